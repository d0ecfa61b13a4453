"""Optimisers on named arrays, Adam and SGD, and the schedule of their learning rate."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats
from muster.errors import MusterError
from muster.kernels import core
from muster.models.direct import unflatten
from muster.models.spec import Parameters

BETA1, BETA2 = 0.9, 0.999
"""Adam's decay rates, as in core/learning/adam.cpp."""


class TrainingError(MusterError):
    """Training cannot continue; the message names the quantity that is not finite."""


def cosine_decay(progress: float) -> float:
    """Factor of the learning rate at `progress` in [0, 1]: (1 + cos(pi·progress)) / 2."""
    return 0.5 * (1.0 + float(np.cos(np.pi * min(progress, 1.0))))


class Adam:
    """Adam (Kingma and Ba, 2015) as ascent on a vector, with bias-corrected moments."""

    def __init__(self, size: int) -> None:
        self.updates = 0
        self.mean, self.variance = np.zeros(size), np.zeros(size)

    def step(self, theta: Floats, gradient: Floats, rate: float, weight_decay: float = 0.0) -> Floats:
        """The parameters after one step; `weight_decay` is decoupled, as in AdamW."""
        self.updates += 1
        corrections = 1 - BETA1**self.updates, 1 - BETA2**self.updates
        theta = theta.copy()
        core.learning.climb(gradient, rate, weight_decay, *corrections, self.mean, self.variance, theta)
        return theta

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Arrays to go on from."""
        return {"mean": self.mean.copy(), "variance": self.variance.copy(), "updates": np.array([self.updates])}

    def set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `get_state` returned."""
        self.mean, self.variance = np.array(arrays["mean"]), np.array(arrays["variance"])
        self.updates = int(arrays["updates"][0])


class Optimiser:
    """Gradient descent on named arrays: gradients are added up, then `step` follows their sum."""

    def __init__(
        self,
        parameters: Parameters,
        max_grad_norm: float = 0.0,
        weight_decay: float = 0.0,
        method: Literal["adam", "sgd"] = "adam",
    ) -> None:
        """Gradients are clipped to the norm `max_grad_norm`; 0: no clipping."""
        self.shapes = {name: array.shape for name, array in parameters.items()}
        self.theta = self._flatten(parameters)
        self.adam = Adam(len(self.theta)) if method == "adam" else None
        self.gradient = np.zeros(len(self.theta))
        """Sum of the gradients since the last step."""
        self.empty = True
        """Whether there were none."""
        self.max_grad_norm, self.weight_decay = max_grad_norm, weight_decay

    def _flatten(self, parameters: Mapping[str, NDArray[Any]]) -> Floats:
        return np.concatenate([parameters[name].ravel() for name in self.shapes]).astype(np.float64)

    def parameters(self) -> Parameters:
        """Copies of the arrays."""
        return unflatten(self.theta, self.shapes)

    def start(self, parameters: Parameters) -> None:
        """Set the arrays."""
        self.theta = self._flatten(parameters)

    def scale(self, names: Collection[str], factor: float) -> None:
        """Multiply some of the arrays."""
        end = 0
        for name, shape in self.shapes.items():
            begin, end = end, end + math.prod(shape)
            if name in names:
                self.theta[begin:end] *= factor

    def add(self, gradients: Parameters, weight: float = 1.0) -> None:
        """Add `weight` times a gradient for the next step."""
        self.gradient += weight * self._flatten(gradients)
        self.empty = False

    def norm(self) -> float:
        """Norm of the sum of the gradients, before clipping."""
        return math.sqrt(core.learning.sum_squares(self.gradient))

    def step(self, rate: float) -> None:
        """One step against the sum of the gradients, which is then 0; no step where none were added."""
        if self.empty:
            return
        norm = self.norm()
        if not np.isfinite(norm):
            raise TrainingError("the gradient is not finite; lower the learning rate, or check the features")
        if self.max_grad_norm and norm > self.max_grad_norm:
            self.gradient *= self.max_grad_norm / norm
        if self.adam is None:
            self.theta = self.theta - rate * self.gradient
        else:
            self.theta = self.adam.step(self.theta, -self.gradient, rate, self.weight_decay)
        self.gradient[:] = 0.0
        self.empty = True

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Arrays to go on from."""
        return {"theta": self.theta.copy(), **(self.adam.get_state() if self.adam else {})}

    def set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `get_state` returned."""
        self.theta = np.array(arrays["theta"])
        if self.adam:
            self.adam.set_state(arrays)
