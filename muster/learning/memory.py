"""Between arrays and torch's optimisers: what one remembers, for a checkpoint, and gradients that kernels computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from muster.data import Floats32


def memory_of(optimiser: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """Copies of all of it, by the number of a parameter and a name."""
    state = optimiser.state_dict()["state"]
    return {f"{index}/{name}": value.numpy().copy() for index, entry in state.items() for name, value in entry.items()}


def recall(optimiser: torch.optim.Optimizer, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Go on from what `memory_of` returned."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in arrays.items():
        index, _, name = key.partition("/")
        state.setdefault(int(index), {})[name] = torch.from_numpy(np.array(value))
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def add_gradient(parameter: torch.nn.Parameter, gradient: Floats32, share: float) -> None:
    """Add `share` times a gradient that kernels computed."""
    found = torch.from_numpy(gradient if share == 1.0 else np.float32(share) * gradient)
    parameter.grad = found if parameter.grad is None else parameter.grad + found
