"""A scoring model with its optimiser: forward, backward from a loss's slopes in the scores, step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Ints
from muster.learning.optimiser import Optimiser
from muster.models.direct import Gates, init_parameters, make_model
from muster.models.limits import Limits
from muster.models.spec import ModelSpec, Parameters, Scores

if TYPE_CHECKING:
    from muster.learning.torch_actor import TorchActor

LAST_LAYER_OF_G = ("g.weight3", "g.bias3")
"""Arrays of a direct model; all weights of a linear one start at 0."""


Actor: TypeAlias = "DirectActor | TorchActor"
"""A scoring model whose gradients compiled code or torch computes."""


class DirectActor:
    """The direct or linear model, whose gradients need no torch."""

    def __init__(
        self,
        spec: ModelSpec,
        rng: np.random.Generator,
        max_grad_norm: float = 0.0,
        weight_decay: float = 0.0,
        method: Literal["adam", "sgd"] = "adam",
        g_share: float = 1.0,
        g_from_zero: bool = False,
    ) -> None:
        """`g_share` multiplies the learning rate of g's network; with `g_from_zero` g starts at 0."""
        self.spec, self.with_g = spec, spec.task_scores
        """Whether the task scores g are used now; see `set_with_g`."""
        start = init_parameters(spec, rng)
        self.names = list(start)
        if g_from_zero:
            start |= {name: np.zeros_like(start[name]) for name in LAST_LAYER_OF_G if name in start}
        of_g = {name: array for name, array in start.items() if name.startswith("g.") and g_share < 1.0}
        others = {name: array for name, array in start.items() if name not in of_g}
        self.groups = [
            (share, Optimiser(group, max_grad_norm, weight_decay, method))
            for share, group in ((g_share, of_g), (1.0, others))
            if group
        ]
        self._pack()

    def _pack(self) -> None:
        """Pack the parameters for the compiled code: once a step, after which they are constant."""
        self.model = make_model(self.spec, self.parameters(), self.with_g)
        self._forward: tuple[BatchObservation, Gates] | None = None

    def parameters(self) -> Parameters:
        """Copies of the arrays, under the names of policy files."""
        arrays = {name: array for _, group in self.groups for name, array in group.parameters().items()}
        return {name: arrays[name] for name in self.names}

    def start(self, parameters: Parameters) -> None:
        """Set the parameters."""
        for _, group in self.groups:
            group.start(parameters)
        self._pack()

    def set_with_g(self, with_g: bool) -> None:
        """Use g, or not: without it QUAD decides and learns as LP does."""
        if with_g != self.with_g:
            self.with_g = with_g
            self._pack()

    def scores(self, observation: BatchObservation) -> Scores:
        """h and g of a batch of observations."""
        return self.model(observation)

    def forward(self, observation: BatchObservation) -> Scores:
        """h and g, to be followed by `backward` for the same observations."""
        scores, gates = self.model.forward(observation)
        self._forward = observation, gates
        return scores

    def backward(
        self,
        observation: BatchObservation,
        slopes: Scores,
        limits: Limits | None = None,
        states: Ints | None = None,
    ) -> None:
        """Add the gradient of a loss, given its derivatives in h and g (and in z of learned limits), or in those of
        some `states`.
        """
        gates = None if self._forward is None or self._forward[0] is not observation else self._forward[1]
        if states is not None:
            observation = observation.take(states)
            gates = gates and {net: bits[states] for net, bits in gates.items()}
        gradients = self.model.gradient(observation, slopes, limits, gates)
        for _, group in self.groups:
            if any(name in gradients for name in group.shapes):  # g has none while it does not count
                group.add({name: np.zeros(shape, np.float32) for name, shape in group.shapes.items()} | gradients)

    def update_statistics(self, observation: BatchObservation) -> None:
        """Update running statistics (BatchNorm), of which there are none here."""

    def norm(self) -> float:
        """Norm of the gradients since the last step."""
        return math.hypot(*(group.norm() for _, group in self.groups))

    def step(self, rate: float) -> None:
        """One step of the optimiser, against the gradients since the last one."""
        for share, group in self.groups:
            group.step(rate * share)
        self._pack()

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Parameters and the optimisers' moments."""
        return {
            f"{k}/{name}": array
            for k, (_, group) in enumerate(self.groups)
            for name, array in group.get_state().items()
        }

    def set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state that `get_state` returned."""
        for k, (_, group) in enumerate(self.groups):
            group.set_state({name.removeprefix(f"{k}/"): array for name, array in arrays.items()})
        self._pack()


def g_is_zero(parameters: Parameters) -> bool:
    """Whether the model has a g that is 0 in every state: its last layer is 0, and it corrects no prior."""
    last = [parameters[name] for name in LAST_LAYER_OF_G if name in parameters]
    return bool(last) and "g.scale" not in parameters and not any(array.any() for array in last)
