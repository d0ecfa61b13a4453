"""Settings that a policy keeps. Nothing heavy: the command line reads it."""

from __future__ import annotations

from dataclasses import dataclass

from muster.errors import InputError


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
