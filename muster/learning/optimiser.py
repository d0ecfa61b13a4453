"""How parameters move: the schedule of the learning rate, and Adam on a plain vector."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from muster.data import Floats
from muster.learning.settings import Schedule

# Adam's usual memory.
FIRST_MOMENT, SECOND_MOMENT, EPSILON = 0.9, 0.999, 1e-8


def rate_factor(schedule: Schedule, progress: float) -> float:
    """What the learning rate is multiplied by when `progress` (0 to 1) of the run is over."""
    return 0.5 * (1.0 + np.cos(np.pi * min(progress, 1.0))) if schedule == "cosine" else 1.0


@dataclass
class Adam:
    """Ascent along gradients whose mean and spread it remembers, without their early bias."""

    size: int
    updates: int = 0
    mean: Floats = field(init=False)
    spread: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.mean, self.spread = np.zeros(self.size), np.zeros(self.size)

    def step(self, theta: Floats, gradient: Floats, rate: float, weight_decay: float) -> Floats:
        """The parameters after one more gradient; `weight_decay` is decoupled, as in AdamW."""
        self.updates += 1
        self.mean = FIRST_MOMENT * self.mean + (1 - FIRST_MOMENT) * gradient
        self.spread = SECOND_MOMENT * self.spread + (1 - SECOND_MOMENT) * gradient**2
        mean = self.mean / (1 - FIRST_MOMENT**self.updates)
        spread = self.spread / (1 - SECOND_MOMENT**self.updates)
        return (1 - rate * weight_decay) * theta + rate * mean / (np.sqrt(spread) + EPSILON)
