"""What requests and answers hold: pydantic checks it strictly, names the entry that does not fit, and describes it in
the OpenAPI document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, NoReturn, NotRequired, Self, TypeVar

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, core_schema
from typing_extensions import TypedDict

from muster.assign.settings import Effort, Method, Objective, Rounding, TaskScoresOn
from muster.data import Bools, Floats
from muster.errors import suggestion
from muster.service.refusal import Refusal, clip, describe

LARGEST = 1e100
"""Numbers beyond this size are refused, as the solver does."""
LONGEST_NAME = 200
CONFIG = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""Nothing unknown, and read as it is written: "3.5" is no number and 1 is not true."""
Checked = TypeVar("Checked")


class Lists:
    """Annotates an array that is given as lists, which the parser may have made an array of already."""

    def __init__(self, lists: Any, dimensions: int, null: float = np.nan) -> None:
        """`null` is what null stands for."""
        self.lists, self.dimensions, self.null = lists, dimensions, null

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_wrap_validator_function(self.read, handler.generate_schema(self.lists))

    def read(self, value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        """The array."""
        if isinstance(value, np.ndarray):
            if value.ndim == self.dimensions and self.lists is not FLAGS:
                return value
            value = value.tolist()
        rows = validate(value)
        if self.dimensions == 2:
            columns = len(rows[0]) if rows else 0
            for k, row in enumerate(rows):
                if len(row) != columns:
                    told = {"columns": columns, "row": k, "found": len(row)}
                    raise PydanticCustomError("ragged", "must have {columns} entries and has {found}", told)
        found = np.array(rows, np.bool_ if self.lists is FLAGS else np.float64)
        if self.dimensions == 2 and not found.size:
            found = found.reshape(len(rows), 0)
        return found if np.isnan(self.null) else np.where(np.isnan(found), self.null, found)


def form_of(value: Any) -> str:
    """Which of several forms a value has: the tag of one of a union's members."""
    if isinstance(value, dict):
        return "<names>"
    if isinstance(value, np.ndarray):
        return "<row>" if value.ndim == 1 else "<rows>"
    if isinstance(value, list):
        first = value[0] if value else None
        return "<records>" if isinstance(first, dict) else "<rows>" if isinstance(first, list) else "<row>"
    return "<number>"


def forms(*tags: str) -> Discriminator:
    """Choose the member of a union by the form of the value; the first, which then refuses it, if none fits."""
    return Discriminator(lambda value: form if (form := form_of(value)) in tags else tags[0])


def task(entry: Any) -> Any:
    """A task by number or name, or null."""
    if entry is None or type(entry) is str or (type(entry) is int and entry >= 0):
        return entry
    raise PydanticCustomError("task", "must be a task by number or name, or null")


def different(names: list[str]) -> list[str]:
    """Names, none of which is there twice."""
    seen: set[str] = set()
    for k, name in enumerate(names):
        if name in seen:
            raise PydanticCustomError("twice", "is the name {name} again", {"row": k, "name": clip(name)})
        seen.add(name)
    return names


Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Names = Annotated[list[Name], AfterValidator(different)]
Index = Annotated[int, Field(ge=0)]
FLAGS = list[list[bool]]
Row = Annotated[Floats, Lists(list[Number], 1)]
Rows = Annotated[Floats, Lists(list[list[Number]], 2)]
Table = Annotated[Floats, Lists(list[list[Number | None]], 2, null=-np.inf)]
LimitRow = Annotated[Floats, Lists(list[Number | None], 1, null=np.inf)]
Mask = Annotated[Bools, Lists(FLAGS, 2)]
ByName = dict[str, Number | None]
ByNames = Annotated[dict[str, ByName], Field(min_length=1)]
ByAnyName = dict[
    str, Annotated[Annotated[Number, Tag("<number>")] | Annotated[ByName, Tag("<names>")], forms("<number>", "<names>")]
]
TASK = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}, {"type": "null"}]}
Task = Annotated[Any, AfterValidator(task), WithJsonSchema(TASK)]


class Record(TypedDict):
    """A pair that is allowed."""

    __pydantic_config__ = CONFIG  # type: ignore[misc]
    agent: str
    task: str
    score: Number
    contribution: NotRequired[Number]


Scores = Annotated[
    Annotated[Table, Tag("<rows>")] | Annotated[ByNames, Tag("<names>")] | Annotated[list[Record], Tag("<records>")],
    forms("<rows>", "<names>", "<records>"),
]
Matrix = Annotated[Annotated[Rows, Tag("<rows>")] | Annotated[ByNames, Tag("<names>")], forms("<rows>", "<names>")]
Limits = Annotated[Annotated[LimitRow, Tag("<row>")] | Annotated[ByName, Tag("<names>")], forms("<row>", "<names>")]
Numbers = Annotated[
    Annotated[Number, Tag("<number>")]
    | Annotated[Row, Tag("<row>")]
    | Annotated[Rows, Tag("<rows>")]
    | Annotated[ByAnyName, Tag("<names>")],
    forms("<number>", "<row>", "<rows>", "<names>"),
]
Costs = Annotated[Annotated[Number, Tag("<number>")] | Annotated[Rows, Tag("<rows>")], forms("<number>", "<rows>")]
Plan = Annotated[
    Annotated[list[Task], Tag("<row>")] | Annotated[dict[str, Task], Tag("<names>")], forms("<row>", "<names>")
]


class Body(BaseModel):
    """A JSON object without unknown fields."""

    model_config = CONFIG

    @classmethod
    def read(cls, data: Any) -> Self:
        """The body that data are; Refusal where they are none."""
        return check(cls.model_validate, data, known=cls.model_fields)

    def given(self, *names: str) -> dict[str, Any]:
        """Those of these fields that are not null."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class ProblemBody(Body):
    """An assignment problem."""

    scores: Scores = Field(
        description="A row per agent, a number per task (null forbids the pair); or by name: {agent: {task: score}}, "
        "or records {agent, task, score} of the allowed pairs."
    )
    task_scores: Matrix | None = Field(None, description="What it is worth that two tasks are both served.")
    contributions: Numbers | None = Field(None, description="How much of a capacity an agent uses up: [N] or [N, M].")
    capacities: Limits | None = Field(None, description="A number per task, 1 unless given; null for no limit.")
    minimums: Numbers | None = Field(
        None,
        description="A number per task: it gets contributions of at least so much, or no agent. One number: every task "
        "has to get it.",
    )
    fixed: Plan | None = Field(None, description="Agents that must take a task: a task or null for each, or by name.")
    allowed: Mask | None = Field(None, description="A row per agent; false forbids a pair.")
    agents: Names | None = Field(None, description="Names of the agents; answers then use them.")
    tasks: Names | None = Field(None, description="Names of the tasks.")
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
    previous: Plan | None = Field(None, description="The plan before: a task for each agent, or {agent: task}.")
    switch_cost: Numbers | None = Field(
        None, description="What leaving the previous task costs: a number, [N] or [N, M]; needs `previous`."
    )
    end_scores: Matrix | None = Field(None, description="routes: what it is worth for an agent to end with a task.")
    routes: list[list[Index]] | None = Field(None, description="routes to go on from, by task number.")
    rounding: Rounding = Field("strict", description="Whether the last agent may exceed a capacity.")
    explain: bool = Field(False, description="Whether the answer says why, and what it would take (several solves).")
    objective: Objective = Field("makespan", description="routes: make the longest route short, or the total.")


class CheckBody(ProblemBody):
    """A problem and a plan for it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"scores": [[3, 2], [2.5, 0.5]], "assignment": [0, 1], "method": "lp"}]}
    )
    assignment: Plan = Field(description="A task for each agent, null for none, or {agent: task}.")


class SituationBody(Body):
    """What a policy is to decide on: features by the names of its card, as far as it reads them, and limits."""

    agents: Any = Field(None, description="A list of objects {feature: number}, or columns {feature: numbers}.")
    tasks: Any = Field(None, description="The same of the tasks.")
    pairs: Any = Field(None, description="{feature: a row per agent, a number per task}")
    task_pairs: Any = Field(None, description="{feature: a row per task, a number per task}")
    global_: Any = Field(None, alias="global", description="{feature: number}")
    capacities: LimitRow | None = Field(None, description="A number per task, 1 unless given; null for no limit.")
    minimums: Row | None = Field(None, description="Contributions that a task gets, or no agent.")
    contributions: Rows | None = Field(None, description="How much of a capacity an agent uses up.")
    allowed: Mask | None = Field(None, description="A row per agent; false forbids a pair.")
    prior: Rows | None = Field(None, description="Scores to begin with, for policies that read them.")
    task_prior: Rows | None = Field(None, description="The same between tasks.")
    previous: Plan | None = Field(None, description="The assignment before: a task for each agent, or {agent: task}.")
    switch_cost: Costs | None = Field(None, description="What leaving the previous task costs.")
    agent_names: Names | None = Field(None, description="What agents are called; the answer then uses it.")
    task_names: Names | None = Field(None, description="What tasks are called.")


class ActBody(Body):
    """A policy and what it is to decide on: one situation, or several."""

    policy: str = Field(description="Its name, or name@version where no other version will do.")
    situation: SituationBody | None = Field(None, description="One situation.")
    situations: list[SituationBody] | None = Field(None, description="Or several, of any sizes.")
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


def check(validate: Callable[[Any], Checked], value: Any, where: str = "", known: Iterable[str] = ()) -> Checked:
    """The value as pydantic's `validate` returns it, or a Refusal that names the entry that does not fit."""
    try:
        return validate(value)
    except ValidationError as problems:
        found = problems.errors(include_url=False)
        # What is missing may be there under a name that is not known.
        first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    row = first.get("ctx", {}).get("row")
    for part in first["loc"] if row is None else (*first["loc"], row):
        if isinstance(part, int):
            where += f"[{part}]"
        elif not part.startswith("<"):
            where += f".{clip(part)}" if where else clip(part)
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        if first["loc"][0] in ("situation", "situations"):
            known = [field.alias or name for name, field in SituationBody.model_fields.items()]
        refuse(f"no field {clip(name)!r}{suggestion(name[:80], known)}", where)
    if first["type"] == "missing":
        refuse(f"{where} is missing", where)
    message = re.sub(r"^\w+ should", "must", first["msg"])
    if first["type"] == "model_type":
        message = "must be an object"
    got = f", got {describe(first['input'])}" if row is None else ""
    refuse(f"{where} {message}{got}", where)


def refuse(error: str, where: str) -> NoReturn:
    """Refuse an entry."""
    raise Refusal("input", error, where)
