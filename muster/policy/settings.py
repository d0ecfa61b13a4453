"""Settings of look-ahead and exploration noise; imports nothing heavy, since the command line reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from muster.errors import InputError
from muster.settings import AtLeast, Positive, check_fields

FUTURES_HORIZON = 15
"""Decisions that candidates are followed for through several futures, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """Look-ahead: how many candidates are tried before a decision, which, and how far they are followed.

    With one future a candidate is another way to act, which is kept as long as it is best. With several a candidate is
    another first decision, and it replaces the policy's own only if it is better beyond chance.
    """

    rollouts: Annotated[int | None, AtLeast(1)] = None
    """Candidates a decision: the policy itself, with one future the best of the last decision, and new ones."""
    until: Annotated[float | None, Positive()] = None
    """Or as many as can be tried in so many seconds a decision."""
    futures: Annotated[int, AtLeast(1)] = 1
    """Random futures that every candidate of a decision is tried in, the same for all of them."""
    standard_errors: Annotated[float, AtLeast(0)] = 1.5
    """With several futures: by how many of its standard errors a candidate's mean gain on the policy's own decision
    must exceed 0. Less lets more candidates through: better where decisions differ much, as in fleets."""
    horizon: Annotated[int | None, AtLeast(1)] = None
    """Decisions for which a candidate is followed; None: to the end of the episode, or 15 with several futures."""
    candidates: Literal["theta", "scores"] | None = None
    """theta: with moved weights; scores: with noise on h for five decisions; None: theta for a direct model. With
    several futures: noise on h at the first decision."""
    size: Annotated[float | None, Positive()] = None
    """Standard deviation of the perturbations: of weights relative to that of their array (0.3), of noise on h (1),
    with several futures relative to that of h over the pairs that the policy chooses."""

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.rollouts is None) == (self.until is None):
            raise InputError("look-ahead needs a number of rollouts, or the seconds that it may take (until), not both")
        if self.futures > 1 and self.candidates is not None:
            raise InputError(
                "with several futures candidates differ by noise on h at the first decision: leave out "
                f"candidates, got {self.candidates!r}"
            )

    @property
    def cut(self) -> int | None:
        """Decisions for which a candidate is followed; None: to the end of the episode."""
        return self.horizon or (FUTURES_HORIZON if self.futures > 1 else None)

    def __str__(self) -> str:
        asked = f"{self.rollouts} rollouts" if self.rollouts else f"rollouts for {self.until:g} s"
        futures = f" x {self.futures} futures" if self.futures > 1 else ""
        return asked + futures + (f" of {self.cut} decisions" if self.cut else "")


@dataclass(frozen=True, slots=True)
class NoiseSettings:
    """Exploration noise on the scores; by default the paper's."""

    sigma: Annotated[float, Positive()] = 1.0
    """p times the standard deviation of an innovation, the noise that a decision adds."""
    correlated_steps: Annotated[int, AtLeast(1)] = 5
    """p: number of later decisions in which an innovation is kept."""
    distribution: Literal["normal", "gumbel"] = "normal"
    """Distribution of innovations; under Gumbel noise an agent's choice is a softmax."""
    task_scores: bool = True
    """Whether g has noise too."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def innovation(self) -> float:
        """Standard deviation of an innovation."""
        return self.sigma / self.correlated_steps


PAPER_NOISE = NoiseSettings()
