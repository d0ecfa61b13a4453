"""Settings that a policy keeps. Nothing heavy: the command line reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from muster.settings import AtLeast, Positive, check_fields


@dataclass(frozen=True, slots=True)
class NoiseSettings:
    """Exploration noise on the scores."""

    sigma: Annotated[float, Positive()] = 1.0
    """Standard deviation that the update assumes."""
    correlated_steps: Annotated[int, AtLeast(1)] = 5
    """p: how many innovations a score remembers."""

    def __post_init__(self) -> None:
        check_fields(self)
