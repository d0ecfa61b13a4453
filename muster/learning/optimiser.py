"""How parameters move: the schedule of the learning rate, and Adam on a plain vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats
from muster.learning.learner_settings import Schedule
from muster.models.direct import Parameters

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


class Descent:
    """Named arrays that go down a loss by Adam, along sums of gradients cut to a length."""

    def __init__(self, parameters: Parameters, longest: float, weight_decay: float = 0.0) -> None:
        self.shapes = {name: array.shape for name, array in parameters.items()}
        self.theta = self.flatten(parameters)
        self.adam = Adam(len(self.theta))
        self.added = np.zeros(len(self.theta))
        """The sum of the gradients since the last step."""
        self.longest = longest
        """Gradients longer than this are cut to it; 0: none is."""
        self.weight_decay = weight_decay

    def flatten(self, parameters: Mapping[str, NDArray[Any]]) -> Floats:
        """All numbers in a row."""
        return np.concatenate([parameters[name].ravel() for name in self.shapes]).astype(np.float64)

    def parameters(self) -> Parameters:
        """The arrays as they stand (copies)."""
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        parts = np.split(self.theta, np.cumsum(sizes)[:-1])
        return {
            name: part.reshape(shape).astype(np.float32)
            for part, (name, shape) in zip(parts, self.shapes.items(), strict=True)
        }

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers."""
        self.theta = self.flatten(parameters)

    def add(self, gradients: Parameters) -> None:
        """Add a gradient for the next step."""
        self.added += self.flatten(gradients)

    def length(self) -> float:
        """How long the sum of the gradients is, before it is cut."""
        return float(np.linalg.norm(self.added))

    def step(self, rate: float) -> None:
        """One step against what was added, which is then forgotten."""
        length = self.length()
        if self.longest and length > self.longest:
            self.added *= self.longest / length
        self.theta = self.adam.step(self.theta, -self.added, rate, self.weight_decay)
        self.added[:] = 0.0

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Arrays to go on from."""
        adam = self.adam
        return {
            "theta": self.theta.copy(),
            "mean": adam.mean.copy(),
            "spread": adam.spread.copy(),
            "updates": np.array([adam.updates]),
        }

    def set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `get_state` returned."""
        self.theta, self.adam.mean, self.adam.spread = (np.array(arrays[name]) for name in ("theta", "mean", "spread"))
        self.adam.updates = int(arrays["updates"][0])
