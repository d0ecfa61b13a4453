"""Bodies and answers as pydantic models: they check requests strictly, name the entry that is wrong, and describe
themselves in the OpenAPI document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, NotRequired, Self, TypeVar

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
)
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError, core_schema
from typing_extensions import TypedDict

from muster.assign.settings import Effort, Method, Objective, Rounding, TaskScoresOn
from muster.data import Bools, Floats
from muster.errors import suggestion
from muster.service.errors import clip, describe, refuse

LARGEST = 1e100
"""Larger numbers are refused, as by the solver."""
CONFIG = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""No unknown fields and no conversions: "3.5" is no number and 1 is not true."""
Checked = TypeVar("Checked")


class Array:
    """Annotates an array that JSON gives as `lists`; the parser may have made an array of them already."""

    def __init__(self, lists: Any, dimensions: int, null: float | None = None, dtype: type = np.float64) -> None:
        """`null`: the number that null stands for."""
        self.lists, self.dimensions, self.null, self.dtype = lists, dimensions, null, dtype

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_wrap_validator_function(self.read, handler.generate_schema(self.lists))

    def read(self, value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        """The array."""
        if isinstance(value, np.ndarray):
            if value.ndim == self.dimensions and self.dtype is not np.bool_:
                return value
            value = value.tolist()
        rows = validate(value)
        if self.dimensions == 2:
            columns = len(rows[0]) if rows else 0
            for k, row in enumerate(rows):
                if len(row) != columns:
                    sizes = {"columns": columns, "row": k, "size": len(row)}
                    raise PydanticCustomError("ragged", "must have {columns} entries and has {size}", sizes)
        array: Any = np.array(rows, self.dtype)
        if self.dimensions == 2 and not array.size:
            array = array.reshape(len(rows), 0)
        return array if self.null is None else np.where(np.isnan(array), self.null, array)


def check_different(names: list[str]) -> list[str]:
    """The names; an error if one is given twice."""
    earlier: set[str] = set()
    for k, name in enumerate(names):
        if name in earlier:
            raise PydanticCustomError("twice", "is the name {name} again", {"row": k, "name": clip(name)})
        earlier.add(name)
    return names


IN_ORDER = Field(union_mode="left_to_right")
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], AfterValidator(check_different)]
Index = Annotated[int, Field(ge=0)]
Task = Annotated[Index | str | None, IN_ORDER]
Row = Annotated[Floats, Array(list[Number], 1)]
Rows = Annotated[Floats, Array(list[list[Number]], 2)]
Table = Annotated[Floats, Array(list[list[Number | None]], 2, null=-np.inf)]
LimitRow = Annotated[Floats, Array(list[Number | None], 1, null=np.inf)]
Mask = Annotated[Bools, Array(list[list[bool]], 2, dtype=np.bool_)]
ByName = dict[str, Number | None]
ByNames = Annotated[dict[str, ByName], Field(min_length=1)]


class Record(TypedDict):
    """A pair that is allowed."""

    __pydantic_config__ = CONFIG  # type: ignore[misc]
    agent: str
    task: str
    score: Number
    contribution: NotRequired[Number]


Scores = Annotated[Table | ByNames | list[Record], IN_ORDER]
Matrix = Annotated[Rows | ByNames, IN_ORDER]
Limits = Annotated[LimitRow | ByName, IN_ORDER]
Numbers = Annotated[Number | Row | Rows | dict[str, Number | ByName], IN_ORDER]
Costs = Annotated[Number | Rows, IN_ORDER]
Plan = Annotated[list[Task] | dict[str, Task], IN_ORDER]


class Body(BaseModel):
    """A JSON object without unknown fields."""

    model_config = CONFIG

    @classmethod
    def read(cls, data: Any) -> Self:
        """The body in parsed JSON; RequestError if it is not valid."""
        return check(cls.model_validate, data, known=cls.model_fields)

    def given(self, *names: str) -> dict[str, Any]:
        """The fields of these names that are not null."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class ProblemBody(Body):
    """An assignment problem."""

    scores: Scores = Field(description="Rows (null forbids a pair), {agent: {task: score}}, or records of pairs.")
    task_scores: Matrix | None = Field(None, description="What it is worth that two tasks are both served.")
    contributions: Numbers | None = Field(None, description="How much of a capacity an agent uses up: [N] or [N, M].")
    capacities: Limits | None = Field(None, description="A number per task, 1 unless given; null for no limit.")
    minimums: Numbers | None = Field(None, description="A task gets so much or no agent; one number: each gets it.")
    fixed: Plan | None = Field(None, description="Agents that must take a task: a task or null for each, or by name.")
    allowed: Mask | None = Field(None, description="A row per agent; false forbids a pair.")
    agents: Names | None = Field(None, description="Names of the agents; answers then use them.")
    tasks: Names | None = Field(None, description="Names of the tasks.")
    method: Method = Field("quad", description="amax, lp (within capacities), quad (task scores too) or routes.")
    effort: Effort = Field("fast", description="How hard the solver tries.")
    assign_all: bool = Field(False, description="Assign every agent that fits somewhere.")
    sense: Literal["max", "min"] = Field("max", description="min: scores (and task scores, end scores) are costs.")
    task_scores_on: TaskScoresOn = Field("count", description="quad: whether task scores act on agents or loads.")
    time_limit: float | None = Field(None, gt=0, le=3600, description="Seconds after which the best plan is returned.")


EXAMPLE: JsonDict = {
    "scores": [[3, 2, None], [2.5, 0.5, 1]], "capacities": [1, 1, 2], "agents": ["van-1", "van-2"],
    "tasks": ["a", "b", "c"], "previous": {"van-1": "a"}, "switch_cost": 0.5, "method": "lp",
}  # fmt: skip
BY_NAME: JsonDict = {"scores": {"van-1": {"a": 3, "b": 2}, "van-2": {"a": 1}}, "sense": "min", "assign_all": True}


class SolveBody(ProblemBody):
    """An assignment problem, in the fields of `muster solve`."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE, BY_NAME]})
    previous: Plan | None = Field(None, description="The plan before: a task for each agent, or {agent: task}.")
    switch_cost: Numbers | None = Field(None, description="Cost of leaving the previous task: a number, [N] or [N, M].")
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
    """A situation to decide on: the features that the policy reads, by the names of its card, and limits."""

    agents: Any = Field(None, description="A list of objects {feature: number}, or columns {feature: numbers}.")
    tasks: Any = Field(None, description="The same of the tasks.")
    pairs: Any = Field(None, description="{feature: a row per agent, a number per task}")
    task_pairs: Any = Field(None, description="{feature: a row per task, a number per task}")
    global_: Any = Field(None, alias="global", description="{feature: number}")
    capacities: LimitRow | None = Field(None, description="A number per task, 1 unless given; null for no limit.")
    minimums: Row | None = Field(None, description="A task gets contributions of at least so much, or no agent.")
    contributions: Rows | None = Field(None, description="How much of a capacity an agent uses up.")
    allowed: Mask | None = Field(None, description="A row per agent; false forbids a pair.")
    prior: Rows | None = Field(None, description="Scores that the model corrects, for policies that read a prior.")
    task_prior: Rows | None = Field(None, description="The same between tasks.")
    previous: Plan | None = Field(None, description="The assignment before: a task for each agent, or {agent: task}.")
    switch_cost: Costs | None = Field(None, description="What leaving the previous task costs.")
    agent_names: Names | None = Field(None, description="Names of the agents; the answer then uses them.")
    task_names: Names | None = Field(None, description="Names of the tasks.")


class ActBody(Body):
    """A policy and one situation to decide on, or several."""

    policy: str = Field(description="Its name, or name@version where no other version will do.")
    situation: SituationBody | None = Field(None, description="One situation.")
    situations: list[SituationBody] | None = Field(None, description="Or several, of any sizes.")
    scores: bool = Field(False, description="Whether the answer has the scores h and g.")
    method: Method | None = Field(None, description="Another inference on the same scores.")
    effort: Effort | None = Field(None, description="Another effort.")


class ReloadBody(Body):
    """Which versions of the policies to serve."""

    rollback: bool = Field(False, description="Go back to the versions before the last reload.")


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
    """The decision on one situation; those on several are under `answers`.

    A decision has `assignment`, `reasons` (why an agent has no task; none of a fallback), `objective`, `status`, `by`
    ("policy" or "fallback") and, where features are outside of their range in training, `warnings`.
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
    answer: dict[str, Any] | None = Field(description="The answer of /solve with the best plan so far.")
    error: str | None


def check(validate: Callable[[Any], Checked], value: Any, where: str = "", known: Iterable[str] = ()) -> Checked:
    """The value as pydantic's `validate` returns it; RequestError that names the entry that is not valid."""
    try:
        return validate(value)
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False)
    # A field that is missing may be there under an unknown name; of a union, the member that matches furthest counts.
    unknown = next((error for error in errors if error["type"] == "extra_forbidden"), None)
    error = unknown or max(errors, key=lambda one: len(one["loc"]) + ("row" in one.get("ctx", ())))
    row = error.get("ctx", {}).get("row")
    for part in error["loc"] if row is None else (*error["loc"], row):
        if isinstance(part, int):
            where += f"[{part}]"
            value = value[part]
        elif isinstance(value, dict) and (part in value or error["type"] == "missing"):
            where += f".{clip(part)}" if where else clip(part)
            value = value.get(part)
    if unknown:
        name = str(error["loc"][-1])
        if error["loc"][0] in ("situation", "situations"):
            known = [field.alias or name for name, field in SituationBody.model_fields.items()]
        refuse(f"no field {clip(name)!r}{suggestion(name[:80], known)}", where)
    if error["type"] == "missing":
        refuse(f"{where} is missing", where)
    message = "must be an object" if error["type"] == "model_type" else re.sub(r"^\w+ should", "must", error["msg"])
    got = f", got {describe(error['input'])}" if row is None else ""
    refuse(f"{where} {message}{got}", where)
