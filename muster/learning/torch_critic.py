"""The actor-critic's critic: a network of torch, which kernels evaluate and differentiate where it reads no grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import smooth_l1_loss

from muster.data import BatchObservation, Floats32
from muster.errors import MusterError
from muster.learning.memory import add_gradient
from muster.models.direct import Parameters
from muster.models.networks import ConvCritic, EntityCritic
from muster.models.spec import ModelSpec
from muster.models.values import EntityValues, value_gradient

LAST = ("head.2.weight", "head.2.bias")
"""What `last` of an entity critic is made of."""


class TorchCritic:
    """What is still to be earned in a state.

    The network says it in units of `scale`, so that what it is to say is about 1 however much an env pays: its loss is
    squared only where errors are small (Huber's). Beyond that it would seek the median of the targets, which knows
    nothing of the one decision in many after which there is nothing more to earn, and grow without end.
    """

    def __init__(self, spec: ModelSpec, planes: NDArray[Any] | None, conv: bool) -> None:
        """`conv`: the paper's CNN over planes [B, C, H, W] rather than pooled networks of the objects."""
        self.network: EntityCritic | ConvCritic = EntityCritic(spec)
        if conv:
            if planes is None:
                raise MusterError("the conv critic needs an environment with feature planes; use the entity critic")
            self.network = ConvCritic(planes.shape[1], spec.global_width)
        self.scale = 1.0
        """At least 1, and a power of 2: multiplying by it rounds nothing."""
        # The same memory as the network's, which optimisers and loading change in place.
        self.views: Parameters = self.network.views() if isinstance(self.network, EntityCritic) else {}
        """What kernels read; nothing where torch itself plays."""
        self.pack()

    def pack(self) -> None:
        """Pack the weights for the kernels, after which they are constant."""
        self._values = EntityValues(self.views) if self.views else None

    @torch.no_grad()
    def fit(self, targets: Floats32) -> None:
        """Make the scale large enough for what is to be learned; the values stay what they are."""
        size = float(np.sqrt(np.mean(np.square(targets, dtype=np.float64))))
        if not self.scale < size < math.inf:
            return
        factor = 2.0 ** math.ceil(math.log2(size / self.scale))
        self.scale *= factor
        for parameter in self.network.last.parameters():
            parameter.div_(factor)
        self.pack()

    @property
    def told(self) -> Parameters:
        """Parameters of a network that says the values themselves."""
        return self.views | {name: self.views[name] * np.float32(self.scale) for name in LAST if name in self.views}

    @torch.no_grad()
    def __call__(self, seen: BatchObservation) -> Floats32:
        """Values [B]."""
        if self._values is not None:
            return self._values(seen) * np.float32(self.scale)
        self.network.eval()
        found: Floats32 = self.network(seen).numpy()
        return found * np.float32(self.scale)

    def gradient(self, seen: BatchObservation, target: Floats32, share: float) -> tuple[Floats32, float]:
        """Values and their loss; adds its gradient, times `share`, to the parameters'."""
        target, scale = target / np.float32(self.scale), np.float32(self.scale)
        if self._values is not None:
            values, loss, gradients = value_gradient(self._values, seen, target)
            for name, parameter in self.network.named_parameters():
                add_gradient(parameter, gradients[name], share)
            return values * scale, loss * self.scale
        self.network.train()
        value = self.network(seen)
        value_loss = smooth_l1_loss(value, torch.from_numpy(target))
        (share * value_loss).backward()  # type: ignore[no-untyped-call]
        return value.detach().numpy() * scale, float(value_loss.detach()) * self.scale
