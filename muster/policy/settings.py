"""Settings that a policy keeps. Nothing heavy: the command line reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from muster.errors import InputError
from muster.settings import AtLeast, Positive, check_fields


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """Look-ahead: how many candidates are tried before a decision, which, and how far they are followed."""

    rollouts: Annotated[int | None, AtLeast(2)] = None
    """Candidates a decision: the policy itself, the best of the last decision, and new ones."""
    until: Annotated[float | None, Positive()] = None
    """Or as many as can be tried in so many seconds a decision."""
    horizon: Annotated[int | None, AtLeast(1)] = None
    """Decisions for which a candidate is followed; None: to the end of the episode."""
    candidates: Literal["theta", "scores"] | None = None
    """theta: with moved weights; scores: with noise on h for five decisions; None: theta for a direct model."""
    size: Annotated[float | None, Positive()] = None
    """How far weights are moved, in spreads of their array (0.3), or the deviation of the noise (1)."""

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.rollouts is None) == (self.until is None):
            raise InputError("look-ahead needs a number of rollouts, or the seconds that it may take (until), not both")

    def __str__(self) -> str:
        asked = f"{self.rollouts} rollouts" if self.rollouts else f"rollouts for {self.until:g} s"
        return asked + (f" of {self.horizon} decisions" if self.horizon else "")


@dataclass(frozen=True, slots=True)
class NoiseSettings:
    """Exploration noise on the scores; by default the paper's."""

    sigma: Annotated[float, Positive()] = 1.0
    """p times the standard deviation of a decision's own noise."""
    correlated_steps: Annotated[int, AtLeast(1)] = 5
    """p: for how many decisions the noise of one is remembered."""
    distribution: Literal["normal", "gumbel"] = "normal"
    """Of a decision's own noise; under Gumbel noise a choice is a softmax."""
    task_scores: bool = True
    """Whether g has noise too."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def innovation(self) -> float:
        """Standard deviation of a decision's own noise on a score."""
        return self.sigma / self.correlated_steps


PAPER_NOISE = NoiseSettings()
