"""Settings that a policy keeps. Nothing heavy: the command line reads it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Literal

from muster.settings import AtLeast, Positive, check_fields


@dataclass(frozen=True, slots=True)
class NoiseSettings:
    """Exploration noise on the scores. None: what the learner's likelihood was measured with."""

    sigma: Annotated[float | None, Positive()] = None
    """p times an innovation's standard deviation (1; choices: 0.5)."""
    correlated_steps: Annotated[int | None, AtLeast(1)] = None
    """p: how many innovations a score remembers (5; choices: 10)."""
    innovations: Literal["normal", "gumbel"] | None = None
    """What an innovation is drawn from (normal; choices: gumbel, under which one agent's choice is a softmax)."""
    task_scores: bool | None = None
    """Whether g is played with noise too (true; choices: false)."""

    def __post_init__(self) -> None:
        check_fields(self)

    def over(self, below: NoiseSettings) -> NoiseSettings:
        """These settings, with those of `below` where nothing is said."""
        names = [entry.name for entry in dataclasses.fields(self) if getattr(self, entry.name) is None]
        return dataclasses.replace(self, **{name: getattr(below, name) for name in names})


PAPER_NOISE = NoiseSettings(sigma=1.0, correlated_steps=5, innovations="normal", task_scores=True)
