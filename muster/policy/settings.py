"""Settings that a policy keeps. Nothing heavy: the command line reads it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Literal

from muster.errors import InputError
from muster.settings import AtLeast, Positive, check_fields


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """Look-ahead: how many candidates are tried before a decision, which, and how far they are played."""

    rollouts: Annotated[int | None, AtLeast(2)] = None
    """Candidates a decision: the policy itself, the best of the last decision, and new ones."""
    until: Annotated[float | None, Positive()] = None
    """Or as many as can be tried in so many seconds a decision."""
    horizon: Annotated[int | None, AtLeast(1)] = None
    """Decisions for which a candidate is played; None: to the end of the episode."""
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
    """Exploration noise on the scores. None: what the learner's likelihood was measured with."""

    sigma: Annotated[float | None, Positive()] = None
    """p times an innovation's standard deviation (choices: 0.5; played: 1)."""
    correlated_steps: Annotated[int | None, AtLeast(1)] = None
    """p: how many innovations a score remembers (choices: 10; played: 5)."""
    innovations: Literal["normal", "gumbel"] | None = None
    """What an innovation is drawn from (choices: gumbel, under which a choice is a softmax; played: normal)."""
    task_scores: bool | None = None
    """Whether g is played with noise too (choices: false; played: true)."""
    limits: Annotated[float | None, Positive()] = None
    """While capacities or contributions are learned: p times the deviation of an innovation on their z, the softplus of
    which counts in agents (choices: 3)."""
    together: Annotated[float | None, AtLeast(0)] = None
    """p times the deviation of an innovation that all scores of a state share: agents wait, or go, together (choices
    only: 0)."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def innovation(self) -> float:
        """Standard deviation of an innovation on a score; of settings that say all."""
        assert self.sigma is not None
        assert self.correlated_steps is not None
        return self.sigma / self.correlated_steps

    @property
    def limit_innovation(self) -> float:
        """Likewise of one on the z of a limit; 0 where there is no such noise."""
        assert self.correlated_steps is not None
        return (self.limits or 0.0) / self.correlated_steps

    def over(self, below: NoiseSettings) -> NoiseSettings:
        """These settings, with those of `below` where nothing is said."""
        names = [entry.name for entry in dataclasses.fields(self) if getattr(self, entry.name) is None]
        return dataclasses.replace(self, **{name: getattr(below, name) for name in names})


PAPER_NOISE = NoiseSettings(sigma=1.0, correlated_steps=5, innovations="normal", task_scores=True)
