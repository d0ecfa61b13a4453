"""What requests and answers hold: checked strictly, nothing unknown, and described in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from muster.assign.settings import Effort, Method, Objective, Rounding, TaskScoresOn
from muster.errors import suggestion
from muster.service.body import clip, describe, refuse

NUMBER = {"type": "number", "minimum": -1e100, "maximum": 1e100}
NULL = {"type": "null"}
TEXT = {"type": "string"}
INDEX = {"type": "integer", "minimum": 0}


def _lists(*inner: dict[str, Any], depth: int = 1) -> dict[str, Any]:
    items: dict[str, Any] = inner[0] if len(inner) == 1 else {"anyOf": list(inner)}
    return {"type": "array", "items": items if depth == 1 else _lists(*inner, depth=depth - 1)}


def _by_name(inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": inner}


def _any(*schemas: dict[str, Any]) -> Any:
    """Only the schema is pydantic's: numbers are read by muster.service.body, which names the entry it refuses."""
    return WithJsonSchema({"anyOf": [*schemas, NULL]})


VECTOR, MATRIX = (_lists(NUMBER), _by_name(NUMBER)), (_lists(NUMBER, depth=2), _by_name(_by_name(NUMBER)))
RECORD = {
    "type": "object",
    "properties": {"agent": TEXT, "task": TEXT, "score": NUMBER, "contribution": NUMBER},
    "required": ["agent", "task", "score"],
    "additionalProperties": False,
}
PLAN = [_lists(INDEX, TEXT, NULL), _by_name({"anyOf": [INDEX, TEXT, NULL]})]
SCORES = [_lists(NUMBER, NULL, depth=2), _by_name(_by_name({"anyOf": [NUMBER, NULL]})), _lists(RECORD)]
Scores = Annotated[Any, WithJsonSchema({"anyOf": SCORES})]
Matrix = Annotated[Any, _any(*MATRIX)]
AgentsOrPairs = Annotated[Any, _any(*VECTOR, *MATRIX)]
Costs = Annotated[Any, _any(NUMBER, *VECTOR, *MATRIX)]
Minimums = Annotated[Any, _any(NUMBER, *VECTOR)]
Limits = Annotated[Any, _any(_lists(NUMBER, NULL), _by_name(NUMBER))]
Masks = Annotated[Any, _any(_lists({"type": "boolean"}, depth=2))]
Routes = Annotated[Any, _any(_lists(INDEX, depth=2))]
Names = Annotated[Any, _any(_lists(TEXT))]
Plan = Annotated[Any, WithJsonSchema({"anyOf": PLAN})]
Previous = Annotated[Any, _any(*PLAN)]


class Body(BaseModel):
    """A JSON object without unknown fields, read as it is written: "3.5" is no number and 1 is not true."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class ProblemBody(Body):
    """An assignment problem."""

    scores: Scores = Field(
        description="A row per agent, a number per task (null forbids the pair); or by name: {agent: {task: score}}, "
        "or records {agent, task, score} of the allowed pairs."
    )
    task_scores: Matrix = Field(None, description="What it is worth that two tasks are both served.")
    contributions: AgentsOrPairs = Field(None, description="How much of a capacity an agent uses up: [N] or [N, M].")
    capacities: Limits = Field(None, description="A number per task, 1 unless given; null for no limit.")
    minimums: Minimums = Field(
        None,
        description="A number per task: it gets contributions of at least so much, or no agent. One number: every task "
        "has to get it.",
    )
    fixed: Previous = Field(None, description="Agents that have to take a task: a task or null for each, or by name.")
    allowed: Masks = Field(None, description="A row per agent; false forbids a pair.")
    agents: Names = Field(None, description="Names of the agents; answers then use them.")
    tasks: Names = Field(None, description="Names of the tasks.")
    method: Method = Field("quad", description="amax, lp (within capacities), quad (task scores too) or routes.")
    effort: Effort = Field("fast", description="How hard is tried.")
    assign_all: bool = Field(False, description="Assign every agent that fits somewhere.")
    sense: Literal["max", "min"] = Field("max", description="min: scores (and task scores, end scores) are costs.")
    task_scores_on: TaskScoresOn = Field(
        "count", description="quad: what task scores act on, numbers of agents or contributions (load)."
    )
    time_limit: float | None = Field(
        None, gt=0, le=3600, description="Seconds; the best found by then comes back. Below the service's own limit."
    )


class SolveBody(ProblemBody):
    """An assignment problem, in the fields of `muster solve`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "scores": [[3, 2, None], [2.5, 0.5, 1]],
                    "capacities": [1, 1, 2],
                    "agents": ["van-1", "van-2"],
                    "tasks": ["a", "b", "c"],
                    "previous": {"van-1": "a"},
                    "switch_cost": 0.5,
                    "method": "lp",
                },
                {"scores": {"van-1": {"a": 3, "b": 2}, "van-2": {"a": 1}}, "sense": "min", "assign_all": True},
            ]
        }
    )
    previous: Previous = Field(None, description="The plan before: a task for each agent, or {agent: task}.")
    switch_cost: Costs = Field(
        None, description="What leaving the previous task costs: a number, [N] or [N, M]; needs `previous`."
    )
    end_scores: Matrix = Field(None, description="routes: what it is worth for an agent to end with a task.")
    routes: Routes = Field(None, description="routes to go on from, by task number.")
    rounding: Rounding = Field("strict", description="Whether the last agent may exceed a capacity.")
    explain: bool = Field(False, description="Whether the answer says why, and what it would take (several solves).")
    objective: Objective = Field("makespan", description="routes: make the longest route short, or the total.")


class CheckBody(ProblemBody):
    """A problem and a plan for it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"scores": [[3, 2], [2.5, 0.5]], "assignment": [0, 1], "method": "lp"}]}
    )
    assignment: Plan = Field(description="A task for each agent, null for none, or {agent: task}.")


class ActBody(Body):
    """A policy and what it is to decide on: one situation, or several.

    A situation holds what the policy reads, by the names of its card: `agents` and `tasks` (a list of objects
    {feature: number}, or columns {feature: numbers}), `pairs` and `task_pairs` ({feature: rows}) and `global`
    ({feature: number}) as far as it reads them; and, if wanted, `capacities`, `contributions`, `allowed`, `prior`,
    `task_prior`, `previous`, `switch_cost`, and `agent_names` and `task_names`, which the answer then uses.
    """

    policy: str = Field(description="Its name, or name@version where no other version will do.")
    situation: dict[str, Any] | None = Field(None, description="One situation.")
    situations: list[dict[str, Any]] | None = Field(None, description="Or several, of any sizes.")
    scores: bool = Field(False, description="Whether the answer has the scores h and g.")
    method: Method | None = Field(None, description="Another procedure on the same scores.")
    effort: Effort | None = Field(None, description="Another effort.")


class ReloadBody(Body):
    """Which versions of the policies to serve."""

    rollback: bool = Field(False, description="Back to the versions before the last reload, instead of the files'.")


class ErrorAnswer(BaseModel):
    """Every error."""

    code: str
    error: str = Field(description="One sentence.")
    where: str = Field(description="The entry, such as scores[3][5]; empty if there is none.")


class SolveAnswer(BaseModel):
    """An assignment with its certificate."""

    assignment: list[int | str | None] = Field(description="For each agent its task, by name where there are names.")
    objective: float
    relaxed_objective: float
    bound: float | None = Field(description="No assignment is better; null if nothing is proven.")
    integer_gap: float | None
    status: str
    loads: list[float]
    prices: list[float] = Field(description="Worth of one more unit of each task's capacity.")
    unassigned: dict[str, str] = Field(description="Why an agent has no task.")
    changes: int | None = Field(description="Agents that left their previous task; null without one.")
    seconds: float


class CheckAnswer(BaseModel):
    """A verdict on a plan."""

    feasible: bool
    broken: list[str] = Field(description="A sentence for each constraint that is broken.")
    value: float | None
    bound: float | None
    optimal: bool
    better: dict[str, Any] | None
    changes: list[dict[str, Any]]


class ActAnswer(BaseModel):
    """Decisions: of one situation in the answer itself, of several under `answers`.

    A decision has `assignment`, `reasons` (why an agent has no task), `objective`, `status`, `by` ("policy" or
    "fallback") and, where features are outside of what training saw, `warnings`.
    """

    policy: str = Field(description="name@version")
    seconds: float


class JobAnswer(BaseModel):
    """A long solve."""

    id: str
    status: str = Field(description="waiting, running, done, cancelled or failed")
    seconds: float
    objective: float | None = Field(description="Of the best plan so far (the incumbent).")
    bound: float | None = Field(description="No plan is better.")
    answer: dict[str, Any] | None = Field(description="What /solve answers, of the best plan so far.")
    error: str | None


class Alive(BaseModel):
    """The service is there."""

    status: str


Checked = TypeVar("Checked", bound=Body)


def check_body(kind: type[Checked], data: dict[str, Any]) -> Checked:
    """The body as its class, or a Refusal that names what does not fit."""
    try:
        return kind.model_validate(data)
    except ValidationError as problems:
        found = problems.errors(include_url=False, include_context=False)
        # What is missing may be there under a name that is not known.
        first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    where = ""
    for part in first["loc"]:
        where += f"[{part}]" if isinstance(part, int) else f".{part}" if where else str(part)
    where = clip(where)
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        refuse(f"no field {clip(name)!r}{suggestion(name[:80], kind.model_fields)}", where)
    if first["type"] == "missing":
        refuse(f"{where} is missing", where)
    message = first["msg"].removeprefix("Input ")
    refuse(f"{where} {message[0].lower()}{message[1:]}, got {describe(first['input'])}", where)
