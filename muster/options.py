"""Names to choose from and small settings that several parts share. Nothing heavy: the command line reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from muster.errors import InputError

if TYPE_CHECKING:
    from muster.inference import Solver

Method = Literal["amax", "lp", "quad"]
Effort = Literal["paper", "fast", "best"]
Rounding = Literal["strict", "original"]
ModelKind = Literal["dm", "pem"]


@dataclass(frozen=True, slots=True)
class InferenceSettings:
    """How scores become an assignment; see `muster.inference.Solver`."""

    method: Method = "quad"
    effort: Effort = "fast"
    rounding: Rounding = "strict"
    forced: bool = False
    """Assign every agent that fits somewhere, however bad its scores."""

    def solver(self, threads: int | None = None) -> Solver:
        """The procedure itself, without certificates: this is a learner's inner loop."""
        from muster.inference import Solver

        return Solver(self.method, self.effort, self.rounding, self.forced, threads=threads, certify=False)


@dataclass(frozen=True, slots=True)
class NoiseSettings:
    """Exploration noise on the scores."""

    sigma: float = 1.0
    """Standard deviation that the update assumes."""
    correlated_steps: int = 5
    """p: how many innovations a score remembers."""

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise InputError(f"sigma must be positive, got {self.sigma}")
        if self.correlated_steps < 1:
            raise InputError(f"correlated_steps must be at least 1, got {self.correlated_steps}")
