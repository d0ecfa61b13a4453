"""A model that learns from slopes in its scores: looks at states, adds up gradients, and takes a step down."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Ints
from muster.learning.episodes import WEIGHTS, stream
from muster.learning.optimiser import Descent
from muster.learning.rollouts import TrainingError, take
from muster.models.direct import DirectModel, Parameters, Scores, init_parameters
from muster.models.gradient import score_gradient
from muster.models.spec import ModelSpec


class Student(Protocol):
    """What learns, whatever the model and whoever computes its gradients."""

    @property
    def parameters(self) -> Parameters:
        """Copies of its numbers, under the names of policy files."""

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers."""

    def scores(self, seen: BatchObservation) -> Scores:
        """h and g as the model gives them; `add` may follow for the same states."""

    def add(self, seen: BatchObservation, slopes: Scores, states: Ints | None = None) -> None:
        """Add the gradient of a loss, given its slopes in the h and g just given, or in those of some `states`."""

    def step(self, rate: float) -> None:
        """Move against the gradients that were added, and forget them."""

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit: arrays, and plain values."""

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""


class DirectStudent:
    """The direct model, by kernels alone: needs no torch."""

    def __init__(self, spec: ModelSpec, seed: int, gradient_norm: float, weight_decay: float) -> None:
        self.spec = spec
        self.descent = Descent(init_parameters(spec, stream(seed, WEIGHTS)), gradient_norm, weight_decay)
        self._pack()

    def _pack(self) -> None:
        self._model = DirectModel(self.parameters, self.spec.task_scores)

    @property
    def parameters(self) -> Parameters:
        """Its numbers."""
        return self.descent.parameters()

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers."""
        self.descent.start(parameters)
        self._pack()

    def scores(self, seen: BatchObservation) -> Scores:
        """h and g."""
        return self._model(seen)

    def add(self, seen: BatchObservation, slopes: Scores, states: Ints | None = None) -> None:
        """Add a gradient."""
        some = seen if states is None else take(seen, states)
        self.descent.add(score_gradient(self._model, some, slopes))

    def step(self, rate: float) -> None:
        """Adam, with decoupled weight decay, against the gradient cut to its longest."""
        check_length(self.descent.length())
        self.descent.step(rate)
        self._pack()

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Parameters and the optimiser's memory."""
        return self.descent.get_state(), {}

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        del plain
        self.descent.set_state(arrays)
        self._pack()


def check_length(length: float) -> None:
    """Stop where a gradient is none any more."""
    if not np.isfinite(length):
        raise TrainingError("the gradient is not finite; lower the learning rate, or check the features")
