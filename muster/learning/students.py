"""A model that learns from slopes in its scores: looks at states, adds up gradients, and takes a step down."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muster.data import Observation
from muster.learning.episodes import WEIGHTS, stream
from muster.learning.optimiser import Adam
from muster.learning.rollouts import TrainingError
from muster.scoring.direct import DirectModel, Parameters, Scores, init_parameters, parameter_shapes
from muster.scoring.gradient import score_gradient
from muster.scoring.spec import ModelSpec


class Student(Protocol):
    """What learns, whatever the model and whoever computes its gradients."""

    @property
    def parameters(self) -> Parameters:
        """Copies of its numbers, under the names of policy files."""

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers."""

    def scores(self, seen: Observation) -> Scores:
        """h and g as the model gives them; `add` may follow for the same states."""

    def add(self, seen: Observation, slopes: Scores) -> None:
        """Add the gradient of a loss, given its slopes in the h and g just given."""

    def step(self, rate: float) -> None:
        """Move against the gradients that were added, and forget them."""

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit: arrays, and plain values."""

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""


class DirectStudent:
    """The direct model, by kernels alone: needs no torch."""

    def __init__(self, spec: ModelSpec, seed: int, gradient_norm: float, weight_decay: float) -> None:
        self.spec, self.gradient_norm, self.weight_decay = spec, gradient_norm, weight_decay
        self.shapes = parameter_shapes(spec)
        self.theta = self._flat(init_parameters(spec, stream(seed, WEIGHTS)))
        self.adam = Adam(len(self.theta))
        self._gradient = np.zeros(len(self.theta))
        self._pack()

    def _flat(self, parameters: Parameters) -> NDArray[np.float64]:
        return np.concatenate([parameters[name].ravel() for name in self.shapes]).astype(np.float64)

    def _pack(self) -> None:
        self._model = DirectModel(self.parameters, self.spec.task_scores)

    @property
    def parameters(self) -> Parameters:
        """Its numbers."""
        found, begin = {}, 0
        for name, shape in self.shapes.items():
            end = begin + int(np.prod(shape))
            found[name] = self.theta[begin:end].reshape(shape).astype(np.float32)
            begin = end
        return found

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers."""
        self.theta = self._flat(parameters)
        self._pack()

    def scores(self, seen: Observation) -> Scores:
        """h and g."""
        return self._model(seen)

    def add(self, seen: Observation, slopes: Scores) -> None:
        """Add a gradient."""
        self._gradient += self._flat(score_gradient(self._model, seen, slopes))

    def step(self, rate: float) -> None:
        """Adam, with decoupled weight decay, against the gradient cut to its longest."""
        length = float(np.linalg.norm(self._gradient))
        check_length(length)
        if self.gradient_norm and length > self.gradient_norm:
            self._gradient *= self.gradient_norm / length
        self.theta = self.adam.step(self.theta, -self._gradient, rate, self.weight_decay)
        self._gradient[:] = 0.0
        self._pack()

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Parameters and the optimiser's memory."""
        arrays = {"theta": self.theta.copy(), "mean": self.adam.mean.copy(), "spread": self.adam.spread.copy()}
        return arrays, {"updates": self.adam.updates}

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.theta, self.adam.mean, self.adam.spread = (np.array(arrays[name]) for name in ("theta", "mean", "spread"))
        self.adam.updates = plain["updates"]
        self._pack()


def check_length(length: float) -> None:
    """Stop where a gradient is none any more."""
    if not np.isfinite(length):
        raise TrainingError("the gradient is not finite; lower the learning rate, or check the features")
