"""How scores become an assignment: the choices, in one place. Nothing heavy: the command line reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from muster.errors import InputError
from muster.settings import check_fields

Method = Literal["amax", "lp", "quad", "plan"]
Effort = Literal["paper", "fast", "best"]
Rounding = Literal["strict", "original"]
Objective = Literal["longest", "total"]


@dataclass(frozen=True, slots=True)
class InferenceSettings:
    """The choices that a policy is trained with and keeps; `Solver` adds those of one call. Checked when made."""

    method: Method = "quad"
    """"amax" gives each agent its best task, "lp" keeps to capacities, "quad" adds what pairs of tasks are worth,
    "plan" makes routes through all tasks and sends each agent to its first stop."""
    effort: Effort = "fast"
    """QUAD and PLAN: "paper" is the paper's procedure (QUAD), "fast" is quicker and better, "best" takes its time."""
    rounding: Rounding = "strict"
    """"strict" never exceeds a capacity; "original" lets the last agent exceed it, as the authors' code does."""
    forced: bool = False
    """Assign every agent that fits somewhere, however bad its scores."""
    objective: Objective = "longest"
    """PLAN only: make the longest route short, or the total of all."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.method == "plan" and self.effort == "paper":
            raise InputError("the paper has no routes: method 'plan' has the efforts fast and best")
