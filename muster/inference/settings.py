"""How scores become an assignment: the choices, in one place. Nothing heavy: the command line reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from muster.settings import check_fields

Method = Literal["amax", "lp", "quad"]
Effort = Literal["paper", "fast", "best"]
Rounding = Literal["strict", "original"]


@dataclass(frozen=True, slots=True)
class InferenceSettings:
    """The choices that a policy is trained with and keeps; `Solver` adds those of one call. Checked when made."""

    method: Method = "quad"
    """"amax" gives each agent its best task, "lp" keeps to capacities, "quad" adds what pairs of tasks are worth."""
    effort: Effort = "fast"
    """QUAD only: "paper" is the paper's procedure, "fast" is quicker and better, "best" takes its time."""
    rounding: Rounding = "strict"
    """"strict" never exceeds a capacity; "original" lets the last agent exceed it, as the authors' code does."""
    forced: bool = False
    """Assign every agent that fits somewhere, however bad its scores."""

    def __post_init__(self) -> None:
        check_fields(self)
