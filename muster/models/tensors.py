"""A policy's scoring model as a torch module of plain tensors: to embed elsewhere, or for torch.onnx.export.

Of situations without padding: all agents and tasks that are given count, and all pairs are allowed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from muster.custom import is_custom
from muster.data import BatchObservation
from muster.errors import InputError
from muster.models.direct import Parameters
from muster.models.pair_scale import RANGE
from muster.models.spec import DISTANCE_WEIGHT, ModelSpec
from muster.models.torch_networks import CustomNetwork, network_from


class TensorModel(nn.Module):
    """h [B, N, M], and g [B, M, M] if the model has one, from the tensors that `inputs` names, in that order."""

    def __init__(self, spec: ModelSpec, parameters: Parameters) -> None:
        super().__init__()
        if not (spec.kind == "dm" or is_custom(spec.kind)) or spec.learned or spec.context_features:
            raise InputError(
                "to_torch is for direct models (dm) that learn scores alone, and for custom torch modules; this one is "
                f"{spec.kind}"
            )
        network = network_from(spec, parameters)
        self.spec, self.network = spec, network.own if isinstance(network, CustomNetwork) else network
        widths = {**spec.widths, "global_features": spec.global_width}
        always = ("agent_features", "task_features")
        self.inputs = [name for name, width in widths.items() if width or name in always]
        self.inputs += ["prior"] * spec.reads_prior + ["task_prior"] * spec.task_prior
        if not spec.task_scores and "task_pair_features" in self.inputs and not is_custom(spec.kind):
            self.inputs.remove("task_pair_features")

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Scores of B situations, from tensors with the shapes that a BatchObservation has."""
        spec, seen = self.spec, dict(zip(self.inputs, tensors, strict=True))
        agents, tasks = seen["agent_features"], seen["task_features"]
        batch, n, m = agents.shape[0], agents.shape[1], tasks.shape[1]
        if spec.blind:
            keep = torch.tensor([float(k not in spec.blind) for k in range(max(spec.agent_width, spec.task_width))])
            agents, tasks = agents * keep[: spec.agent_width], tasks * keep[: spec.task_width]
        if spec.centred:
            agents, tasks = _centred(agents, tasks, spec.centred)
        if spec.distance_prior:
            seen["prior"] = -DISTANCE_WEIGHT / spec.distance_unit * seen["pair_features"][..., spec.distances[0]]
        filled: dict[str, Any] = {
            "pair_features": agents.new_zeros(batch, n, m, 0),
            "task_pair_features": agents.new_zeros(batch, m, m, 0),
            "agent_alive": agents.new_ones(batch, n, dtype=torch.bool),
            "task_alive": agents.new_ones(batch, m, dtype=torch.bool),
            "contributions": agents.new_ones(batch, n, m),
            "capacities": agents.new_ones(batch, m),
        }
        filled |= seen | {"agent_features": agents, "task_features": tasks}
        h, g = self.network(BatchObservation(**filled))
        return (h,) if g is None else (h, self._scaled(seen, g, n, m))

    def _scaled(self, seen: dict[str, torch.Tensor], g: torch.Tensor, n: int, m: int) -> torch.Tensor:
        """The learned part of g as it counts at this size; see `muster.models.pair_scale`."""
        spec = self.spec
        if spec.pair_scale == "none":
            return g
        if spec.pair_scale == "size":
            factor = g.new_ones(m, m) * (min(max(n, spec.fewest_agents), spec.trained_agents) / max(n, 1))
        else:
            nearest = seen["pair_features"][..., spec.distances[0]].amin(2).mean(1).clamp(min=spec.distance_unit)
            far = seen["task_pair_features"][..., spec.distances[1]].clamp(min=0.0)
            factor = torch.exp(-far / (float(RANGE) * nearest[:, None, None]))
        own = torch.eye(m, dtype=g.dtype)
        factor = own + (1 - own) * factor
        prior = seen["task_prior"] if spec.task_prior else torch.zeros_like(g)
        return prior + factor * (g - prior)


def _centred(agents: torch.Tensor, tasks: torch.Tensor, columns: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions as differences from the mean of all."""
    mean = torch.cat([agents[..., list(columns)], tasks[..., list(columns)]], dim=1).mean(1, keepdim=True)
    found = []
    for features in (agents, tasks):
        parts = [
            features[..., [k]] - mean[..., [columns.index(k)]] if k in columns else features[..., [k]]
            for k in range(features.shape[-1])
        ]
        found.append(torch.cat(parts, dim=-1))
    return found[0], found[1]
