"""Settings of inference, from scores to an assignment. Imports nothing heavy: the command line reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from muster.custom import full_name, is_custom
from muster.errors import InputError
from muster.settings import check_fields

Method = Literal["amax", "lp", "quad", "routes"]
Effort = Literal["paper", "fast", "best", "exact"]
Rounding = Literal["strict", "original"]
Objective = Literal["makespan", "total"]
TaskScoresOn = Literal["count", "load"]
Sense = Literal["max", "min"]


@dataclass(frozen=True, slots=True)
class InferenceSettings:
    """The choices that a policy is trained with and keeps; `Solver` adds those of one call. Checked when made."""

    method: Method | str = "quad"
    """"amax" gives each agent its best task, "lp" keeps to capacities, "quad" adds what pairs of tasks are worth,
    "routes" makes routes through all tasks and sends each agent to its first stop; package.module:Name is a custom one
    (`muster.assign.custom`)."""
    effort: Effort = "fast"
    """"paper" solves the relaxation as the paper does and rounds it; "fast" searches on where rounding lost something;
    "best" takes its time, or all of a time limit; "exact" ends with a proof. AMAX is exact at any; routes have "fast"
    and "best"."""
    rounding: Rounding = "strict"
    """"strict" never exceeds a capacity; "original" lets the last agent exceed it, as the authors' code does
    (LP is then not searched on; QUAD does so at effort "paper" only)."""
    assign_all: bool = False
    """Assign every agent that fits somewhere, however bad its scores."""
    objective: Objective = "makespan"
    """Routes only: minimise the longest route ("makespan") or the total of all."""

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "method", full_name("inference", self.method, get_args(Method), "method"))
        if is_custom(self.method) and self.rounding == "original":
            raise InputError(f"rounding is for lp and quad; leave it out with {self.method}")
        if self.method == "routes" and self.effort in ("paper", "exact"):
            raise InputError(f"method 'routes' has the efforts fast and best, got {self.effort!r}")
        if self.effort == "exact" and self.rounding == "original":
            raise InputError("effort 'exact' keeps to capacities: rounding must be strict, got 'original'")
