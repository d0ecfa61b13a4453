"""What the addresses take, as the OpenAPI document describes it and as it is checked: strictly, nothing unknown."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from muster.errors import suggestion
from muster.inference.settings import Effort, Method, Objective, Rounding
from muster.service.refusals import Refusal

NUMBER = {"type": "number", "minimum": -1e100, "maximum": 1e100}
# Only their schema is pydantic's: rows are read by muster.service.reading, which names the entry it refuses.
Matrix = Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "array", "items": NUMBER}})]
Gaps = Annotated[
    Any,
    WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"anyOf": [NUMBER, {"type": "null"}]}}}),
]
Masks = Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}})]
Limits = Annotated[Any, WithJsonSchema({"type": "array", "items": {"anyOf": [NUMBER, {"type": "null"}]}})]
Routes = Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}})]


class Body(BaseModel):
    """A JSON object without unknown fields, read as it is written: "3.5" is no number and 1 is not true."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SolveBody(Body):
    """An assignment problem, in the fields of `muster solve`."""

    scores: Gaps = Field(description="A row per agent, a number per task; null forbids the pair.")
    task_scores: Matrix | None = Field(None, description="What it is worth that two tasks are both served.")
    contributions: Matrix | None = Field(
        None, description="How much of a task's capacity an agent uses up; [N] or [N, M]."
    )
    capacities: Limits | None = Field(None, description="A number per task, 1 unless given; null for no limit.")
    allowed: Masks | None = Field(None, description="false forbids a pair.")
    end_scores: Matrix | None = Field(None, description="plan: what it is worth for an agent to end with a task.")
    routes: Routes | None = Field(None, description="plan: routes to go on from.")
    method: Method = "quad"
    effort: Effort = "fast"
    rounding: Rounding = "strict"
    forced: bool = False
    objective: Objective = "longest"
    time_limit: float | None = Field(None, gt=0, description="Seconds; the best found by then comes back.")


class ActBody(Body):
    """A policy and what it is to decide on: one situation, or several."""

    policy: str
    situation: dict[str, Any] | None = None
    situations: list[dict[str, Any]] | None = None
    scores: bool = Field(False, description="Whether the answer has the scores h and g.")


Checked = TypeVar("Checked", bound=Body)


def checked(kind: type[Checked], data: dict[str, Any]) -> Checked:
    """The body as its class, or a Refusal that names what does not fit."""
    try:
        return kind.model_validate(data)
    except ValidationError as problems:
        first = problems.errors(include_url=False)[0]
        where = place(first["loc"])
        if first["type"] == "extra_forbidden":
            name = str(first["loc"][-1])
            raise Refusal(
                "input", f"no field {name!r:.80}{suggestion(name[:80], kind.model_fields)}", where[:80]
            ) from None
        if first["type"] == "missing":
            raise Refusal("input", f"{where} is missing", where) from None
        message = first["msg"][0].lower() + first["msg"][1:]
        raise Refusal("input", f"{where}: {message}, got {str(first['input'])!r:.40}", where) from None


def place(loc: tuple[int | str, ...]) -> str:
    """scores[3][5] for ("scores", 3, 5)."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
