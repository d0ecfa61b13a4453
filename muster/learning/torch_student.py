"""A student whose gradients torch computes: the positional model, and whatever else is a torch network."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from muster.data import BatchObservation, Ints
from muster.learning.episodes import WEIGHTS, stream
from muster.learning.memory import memory_of, recall
from muster.learning.parts import part, under
from muster.learning.students import check_length
from muster.models.direct import Parameters, Scores
from muster.models.networks import ScoringModel, network_from, parameters_of
from muster.models.spec import ModelSpec


class TorchStudent:
    """One forward pass serves acting and learning, so BatchNorm normalises by the states that are played."""

    def __init__(
        self, spec: ModelSpec, seed: int, gradient_norm: float, weight_decay: float, low_precision: bool
    ) -> None:
        self.spec, self.gradient_norm = spec, gradient_norm
        torch.manual_seed(seed)
        self.model = ScoringModel(spec, stream(seed, WEIGHTS))
        self.model.low_precision = low_precision
        self.model.train()
        self.optimiser = torch.optim.AdamW(self.model.parameters(), weight_decay=weight_decay)
        self._ends: tuple[torch.Tensor, torch.Tensor | None] | None = None

    @property
    def parameters(self) -> Parameters:
        """Its numbers, BatchNorm's running means among them."""
        return parameters_of(self.model)

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers."""
        self.model.load_state_dict(network_from(self.spec, parameters).state_dict())

    def scores(self, seen: BatchObservation) -> Scores:
        """h and g, ready for `add`."""
        h, g = self._ends = self.model(seen)
        return h.detach().numpy(), None if g is None else g.detach().numpy()

    def add(self, seen: BatchObservation, slopes: Scores, states: Ints | None = None) -> None:
        """Add a gradient."""
        del seen
        assert self._ends is not None
        some = slice(None) if states is None else torch.from_numpy(states)
        ends = [(end[some], slope) for end, slope in zip(self._ends, slopes, strict=True) if end is not None]
        torch.autograd.backward([end for end, _ in ends], [torch.from_numpy(slope) for _, slope in ends])
        self._ends = None

    def step(self, rate: float) -> None:
        """AdamW against the gradient cut to its longest."""
        length = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.gradient_norm or float("inf"))
        check_length(float(length))
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Parameters, statistics and the optimiser's memory."""
        return under("model", self.parameters) | under("optimiser", memory_of(self.optimiser)), {}

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        del plain
        self.start(part(arrays, "model"))
        recall(self.optimiser, part(arrays, "optimiser"))
