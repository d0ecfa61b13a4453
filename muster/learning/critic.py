"""The critic: an entity network that estimates the return from a state on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Floats, Floats32
from muster.learning.optimiser import Optimiser
from muster.models.critic import EntityCritic, critic_shapes, init_critic
from muster.models.spec import ModelSpec, Parameters

MEMORY = 0.99
"""Decay of the running mean and variance of the returns."""
LAST = ("head.2.weight", "head.2.bias")


class Critic:
    """State values V = offset + unit · network, so that the network's targets are about 1 in size.

    The loss is Huber's, squared where errors are below 1. Were the unit smaller than the targets, it would be the
    absolute error, whose minimum is the median: that ignores the one state in many with nothing more to earn.
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
        """Running moments of `update_units`: weight of the returns so far, their weighted sum and sum of squares."""
        self._pack()

    def _pack(self) -> None:
        self._network = EntityCritic(self.optimiser.parameters())

    def __call__(self, observation: BatchObservation) -> Floats:
        """[B] values, in units of reward."""
        return self.offset + self.unit * self._network(observation).astype(np.float64)

    def fit_unit(self, targets: Floats32) -> None:
        """Raise the unit, a power of 2, to the size of the targets; the values do not change."""
        size = float(np.sqrt(np.mean(np.square(targets, dtype=np.float64))))
        if not self.unit < size < math.inf:
            return
        factor = 2.0 ** math.ceil(math.log2(size / self.unit))
        self.unit *= factor
        self.optimiser.scale(LAST, 1.0 / factor)
        self._pack()

    def update_units(self, returns: Floats) -> None:
        """Set offset and unit to the running mean and standard deviation of the returns."""
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
        """Parameters of a network that returns the values themselves, where the offset is 0."""
        parameters = self.optimiser.parameters()
        return parameters | {name: parameters[name] * np.float32(self.unit) for name in LAST}

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Parameters, the optimiser's moments and the units."""
        units = np.array([self.offset, self.unit, self.weight, self.first, self.second])
        return {**self.optimiser.get_state(), "units": units}

    def set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state that `get_state` returned."""
        self.optimiser.set_state(arrays)
        self.offset, self.unit, self.weight, self.first, self.second = arrays["units"].tolist()
        self._pack()
