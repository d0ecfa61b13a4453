"""The actor-critic's critic: a network of torch, which kernels evaluate and differentiate where it reads no grid."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import smooth_l1_loss

from muster.data import Floats32, Observation
from muster.errors import MusterError
from muster.learning.memory import add_gradient
from muster.scoring.direct import Parameters
from muster.scoring.networks import ConvCritic, EntityCritic
from muster.scoring.spec import ModelSpec
from muster.scoring.values import EntityValues, value_gradient


class TorchCritic:
    """What is still to be earned in a state."""

    def __init__(self, spec: ModelSpec, planes: NDArray[Any] | None, conv: bool) -> None:
        """`conv`: the paper's CNN over planes [B, C, H, W] rather than pooled networks of the objects."""
        self.network: nn.Module = EntityCritic(spec)
        if conv:
            if planes is None:
                raise MusterError("the conv critic needs a world with feature planes; use the entity critic")
            self.network = ConvCritic(planes.shape[1], spec.global_width)
        # The same memory as the network's, which optimisers and loading change in place.
        self.views: Parameters = self.network.views() if isinstance(self.network, EntityCritic) else {}
        """What kernels read; nothing where torch itself plays."""
        self.pack()

    def pack(self) -> None:
        """Pack the weights for the kernels, after which they are constant."""
        self._values = EntityValues(self.views) if self.views else None

    @torch.no_grad()
    def __call__(self, seen: Observation) -> Floats32:
        """Values [B]."""
        if self._values is not None:
            return self._values(seen)
        self.network.eval()
        found: Floats32 = self.network(seen).numpy()
        return found

    def gradient(self, seen: Observation, target: Floats32, share: float) -> tuple[Floats32, float]:
        """Values and their loss; adds its gradient, times `share`, to the parameters'."""
        if self._values is not None:
            values, loss, gradients = value_gradient(self._values, seen, target)
            for name, parameter in self.network.named_parameters():
                add_gradient(parameter, gradients[name], share)
            return values, loss
        self.network.train()
        value = self.network(seen)
        value_loss = smooth_l1_loss(value, torch.from_numpy(target))
        (share * value_loss).backward()  # type: ignore[no-untyped-call]
        return value.detach().numpy(), float(value_loss.detach())
