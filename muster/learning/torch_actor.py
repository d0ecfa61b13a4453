"""Scoring models whose gradients torch computes: positional, context and custom ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from muster.data import BatchObservation, Ints
from muster.learning.actor import LAST_LAYER_OF_G
from muster.learning.optimiser import TrainingError
from muster.models.limits import Limits
from muster.models.spec import ModelSpec, Parameters, Scores
from muster.models.torch_networks import make_network, network_from, parameters_of


class TorchActor:
    """A torch network with the methods of `DirectActor`.

    BatchNorm normalises by its running statistics, which change between updates only (`update_statistics`): normalised
    by its own batch, an update would have other scores than those that acted, and the gradient would be biased. With
    `batch_statistics` one forward pass serves acting and learning, so that the batch's own statistics are right.
    """

    def __init__(
        self,
        spec: ModelSpec,
        seed: int,
        rng: np.random.Generator,
        max_grad_norm: float = 0.0,
        weight_decay: float = 0.0,
        method: Literal["adam", "sgd"] = "adam",
        g_share: float = 1.0,
        g_from_zero: bool = False,
        batch_statistics: bool = False,
    ) -> None:
        self.spec, self.with_g, self.max_grad_norm = spec, spec.task_scores, max_grad_norm
        # One thread: the networks are small, and a run is then the same on every machine with these libraries.
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.model = make_network(spec, rng)
        self.model.train(batch_statistics)
        self.batch_statistics = batch_statistics
        if g_from_zero:
            for name, parameter in self.model.pairs.items():
                if name.replace("_", ".") in LAST_LAYER_OF_G:
                    nn.init.zeros_(parameter)
        of_g = [one for name, one in self.model.pairs.items() if name.startswith("g_")] if g_share < 1.0 else []
        others = [one for one in self.model.parameters() if not any(one is other for other in of_g)]
        self.shares = [g_share] * bool(of_g) + [1.0]
        groups = [{"params": group} for group in (of_g, others) if group]
        if method == "sgd":
            self.optimiser: torch.optim.Optimizer = torch.optim.SGD(groups, lr=1.0)
        else:
            self.optimiser = torch.optim.AdamW(groups, weight_decay=weight_decay)
        self._forward: tuple[torch.Tensor, torch.Tensor | None] | None = None

    def parameters(self) -> Parameters:
        """Copies of the arrays, BatchNorm's statistics among them."""
        return parameters_of(self.model)

    def start(self, parameters: Parameters) -> None:
        """Set the parameters."""
        self.model.load_state_dict(network_from(self.spec, parameters).state_dict())

    def set_with_g(self, with_g: bool) -> None:
        """Use g, or not."""
        self.with_g = with_g

    def scores(self, observation: BatchObservation) -> Scores:
        """h and g of a batch of observations."""
        h, g = self.model.scores(observation)
        return h, g if self.with_g else None

    def forward(self, observation: BatchObservation) -> Scores:
        """h and g, ready for `backward`."""
        h, g = self.model(observation)
        self._forward = h, g if self.with_g else None
        return h.detach().numpy(), g.detach().numpy() if g is not None and self.with_g else None

    def backward(
        self,
        observation: BatchObservation,
        slopes: Scores,
        limits: Limits | None = None,
        states: Ints | None = None,
    ) -> None:
        """Add the gradient of a loss, given its derivatives in h and g, all or those of some `states`."""
        del observation, limits
        assert self._forward is not None
        some = slice(None) if states is None else torch.from_numpy(states)
        ends = [
            (end[some], slope)
            for end, slope in zip(self._forward, slopes, strict=True)
            if end is not None and slope is not None
        ]
        torch.autograd.backward(
            [end for end, _ in ends], [torch.from_numpy(np.asarray(slope, np.float32)) for _, slope in ends]
        )
        self._forward = None

    def step(self, rate: float) -> None:
        """One step of the optimiser, with the gradient of each group clipped to the largest norm."""
        for group, share in zip(self.optimiser.param_groups, self.shares, strict=True):
            norm = torch.nn.utils.clip_grad_norm_(group["params"], self.max_grad_norm or float("inf"))
            if not np.isfinite(float(norm)):
                raise TrainingError("the gradient is not finite; lower the learning rate, or check the features")
            group["lr"] = rate * share
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

    @torch.no_grad()
    def update_statistics(self, observation: BatchObservation) -> None:
        """Update BatchNorm's running statistics by new states."""
        if any(True for _ in self.model.buffers()):
            self.model.train()
            self.model(observation)
            self.model.train(self.batch_statistics)

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Parameters, statistics and the optimiser's moments."""
        arrays = {f"model/{name}": array for name, array in self.parameters().items()}
        for index, entry in self.optimiser.state_dict()["state"].items():
            arrays |= {f"optimiser/{index}/{name}": value.numpy().copy() for name, value in entry.items()}
        return arrays

    def set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state that `get_state` returned."""
        self.start({key.removeprefix("model/"): value for key, value in arrays.items() if key.startswith("model/")})
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in arrays.items():
            kind, index, *name = key.split("/")
            if kind == "optimiser":
                moments.setdefault(int(index), {})[name[0]] = torch.from_numpy(np.array(value))
        self.optimiser.load_state_dict({"state": moments, "param_groups": self.optimiser.state_dict()["param_groups"]})
