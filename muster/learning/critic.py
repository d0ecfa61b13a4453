"""The critic: an entity network that says what is still to be earned in a state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Floats, Floats32
from muster.learning.optimiser import Optimiser
from muster.models.critic import EntityCritic, critic_shapes, init_critic
from muster.models.direct import Parameters
from muster.models.spec import ModelSpec

MEMORY = 0.99
"""Share of what is known of the returns' mean and variance that an update keeps."""
LAST = ("head.2.weight", "head.2.bias")


class Critic:
    """Values of states: value = offset + unit · network, so that the network's targets are about 1 in size.

    The loss is Huber's: squared only where errors are small. Beyond that it would seek the median of the targets, which
    knows nothing of the one decision in many after which there is nothing more to earn, and grow without end.
    """

    def __init__(
        self,
        spec: ModelSpec,
        rng: np.random.Generator,
        max_grad_norm: float = 0.0,
        method: Literal["adam", "sgd"] = "adam",
    ) -> None:
        shapes = critic_shapes(spec.agent_width, spec.task_width, spec.global_width)
        self.optimiser = Optimiser(init_critic(shapes, rng), max_grad_norm, method=method)
        self.offset, self.unit = 0.0, 1.0
        self.weight = self.first = self.second = 0.0
        """Of `follow`: weight of the returns seen, and their weighted sums and sums of squares."""
        self._pack()

    def _pack(self) -> None:
        self._network = EntityCritic(self.optimiser.parameters())

    def __call__(self, observation: BatchObservation) -> Floats:
        """[B] values, in the rewards' units."""
        return self.offset + self.unit * self._network(observation).astype(np.float64)

    def fit_unit(self, targets: Floats32) -> None:
        """Make the unit, a power of 2, large enough for the targets; the values stay what they are."""
        size = float(np.sqrt(np.mean(np.square(targets, dtype=np.float64))))
        if not self.unit < size < math.inf:
            return
        factor = 2.0 ** math.ceil(math.log2(size / self.unit))
        self.unit *= factor
        self.optimiser.scale(LAST, 1.0 / factor)
        self._pack()

    def follow(self, returns: Floats) -> None:
        """Let offset and unit follow the mean and standard deviation of the returns."""
        self.weight = MEMORY * self.weight + 1 - MEMORY
        self.first = MEMORY * self.first + (1 - MEMORY) * float(returns.mean())
        self.second = MEMORY * self.second + (1 - MEMORY) * float((returns**2).mean())
        self.offset = self.first / self.weight
        self.unit = float(np.sqrt(max(self.second / self.weight - self.offset**2, 1e-12)))

    def add_gradient(
        self, observation: BatchObservation, targets: NDArray[np.floating], weight: float = 1.0
    ) -> tuple[Floats, float]:
        """Values [B] and their mean loss against the targets; adds `weight` times its gradient for the next step."""
        scaled = ((targets - self.offset) / self.unit).astype(np.float32)
        values, loss, gradients = self._network.gradient(observation, scaled)
        self.optimiser.add(gradients, weight)
        return self.offset + self.unit * values.astype(np.float64), loss * self.unit

    def step(self, rate: float) -> None:
        """One step of the optimiser."""
        self.optimiser.step(rate)
        self._pack()

    def parameters(self) -> Parameters:
        """Of a network that gives the values themselves, for offset 0."""
        parameters = self.optimiser.parameters()
        return parameters | {name: parameters[name] * np.float32(self.unit) for name in LAST}

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Arrays to go on from."""
        units = np.array([self.offset, self.unit, self.weight, self.first, self.second])
        return {**self.optimiser.get_state(), "units": units}

    def set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `get_state` returned."""
        self.optimiser.set_state(arrays)
        self.offset, self.unit, self.weight, self.first, self.second = arrays["units"].tolist()
        self._pack()
