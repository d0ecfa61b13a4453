"""Export of a policy's scoring model as a torch module of plain tensors, for use elsewhere or torch.onnx.export.

Inputs have no padding: all agents and tasks are alive, and all pairs are allowed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from muster.custom import is_custom
from muster.data import BatchObservation
from muster.errors import InputError
from muster.models.custom import needs_torch
from muster.models.linear import LinearModel
from muster.models.pair_scale import RANGE
from muster.models.spec import DISTANCE_WEIGHT, ModelSpec, Parameters
from muster.models.torch_networks import CustomNetwork, network_from


class TensorModel(nn.Module):
    """Module from the tensors named by `inputs`, in that order, to h [B, N, M] and, if there is one, g [B, M, M]."""

    def __init__(self, spec: ModelSpec, parameters: Parameters) -> None:
        super().__init__()
        if spec.kind == "pem" or spec.learned:
            raise InputError(
                "to_torch is for models that score features of agents, tasks and pairs, and for custom torch modules; "
                + ("a positional model (pem) reads planes" if spec.kind == "pem" else "this one learns limits as well")
            )
        if is_custom(spec.kind) and not needs_torch(spec.kind):
            raise InputError(f"{spec.kind} is no torch module, so there is none to return; call its scores() instead")
        self.spec = spec
        self.network: nn.Module = LinearNetwork(spec, parameters) if spec.kind == "linear" else _own(spec, parameters)
        widths = {**spec.widths, "global_features": spec.global_width}
        always = ("agent_features", "task_features")
        self.inputs = [name for name, width in widths.items() if width or name in always]
        self.inputs += ["prior"] * spec.reads_prior + ["task_prior"] * spec.task_prior
        self.inputs += ["contributions", "minimums"] * ("partner_wait" in spec.context_features)
        if not spec.task_scores and "task_pair_features" in self.inputs and spec.kind in ("dm", "linear"):
            self.inputs.remove("task_pair_features")

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Scores of B observations, from tensors with the shapes of a BatchObservation."""
        spec, fields = self.spec, dict(zip(self.inputs, tensors, strict=True))
        agents, tasks = fields["agent_features"], fields["task_features"]
        batch, n, m = agents.shape[0], agents.shape[1], tasks.shape[1]
        if spec.blind and spec.kind != "context":
            keep = torch.tensor([float(k not in spec.blind) for k in range(max(spec.agent_width, spec.task_width))])
            agents, tasks = agents * keep[: spec.agent_width], tasks * keep[: spec.task_width]
        if spec.centred:
            agents, tasks = _centred(agents, tasks, spec.centred)
        if spec.distance_prior:
            fields["prior"] = -DISTANCE_WEIGHT / spec.distance_unit * fields["pair_features"][..., spec.distances[0]]
        filled: dict[str, Any] = {
            "pair_features": agents.new_zeros(batch, n, m, 0),
            "task_pair_features": agents.new_zeros(batch, m, m, 0),
            "agent_alive": agents.new_ones(batch, n, dtype=torch.bool),
            "task_alive": agents.new_ones(batch, m, dtype=torch.bool),
            "contributions": agents.new_ones(batch, n, m),
            "capacities": agents.new_ones(batch, m),
        }
        filled |= fields | {"agent_features": agents, "task_features": tasks}
        if spec.context_features:
            filled["pair_features"] = _with_context(spec, filled)
        h, g = self.network(BatchObservation(**filled))
        return (h,) if g is None else (h, self._scaled(fields, g, n, m))

    def _scaled(self, fields: dict[str, torch.Tensor], g: torch.Tensor, n: int, m: int) -> torch.Tensor:
        """The scaled g; see `muster.models.pair_scale`."""
        spec = self.spec
        if spec.pair_scale == "none":
            return g
        if spec.pair_scale == "size":
            factor = g.new_ones(m, m) * (min(max(n, spec.fewest_agents), spec.trained_agents) / max(n, 1))
        else:
            nearest = fields["pair_features"][..., spec.distances[0]].amin(2).mean(1).clamp(min=spec.distance_unit)
            far = fields["task_pair_features"][..., spec.distances[1]].clamp(min=0.0)
            factor = torch.exp(-far / (float(RANGE) * nearest[:, None, None]))
        own = torch.eye(m, dtype=g.dtype)
        factor = own + (1 - own) * factor
        prior = fields["task_prior"] if spec.task_prior else torch.zeros_like(g)
        return prior + factor * (g - prior)


class LinearNetwork(nn.Module):
    """The linear model in torch (formula: `muster.models.linear`)."""

    def __init__(self, spec: ModelSpec, parameters: Parameters) -> None:
        super().__init__()
        self.spec = spec
        self.weights = nn.ParameterDict(
            {name.replace(".", "_"): nn.Parameter(torch.tensor(array)) for name, array in parameters.items()}
        )
        model = LinearModel(spec, parameters, spec.task_scores)
        for part in (model.h, model.g):
            if part is not None:
                self.register_buffer(f"{part.net}_means", torch.tensor(part.means))
                self.register_buffer(f"{part.net}_factor", torch.tensor(part.factor))
                self.register_buffer(f"{part.net}_unit", torch.tensor(part.unit))

    def forward(self, observation: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
        """h [B, N, M] and g [B, M, M] (None unless the model has one)."""
        n, m = observation.agent_features.shape[1], observation.task_features.shape[1]
        parts = [observation.agent_features.unsqueeze(2).expand(-1, -1, m, -1)]
        parts += [observation.task_features.unsqueeze(1).expand(-1, n, -1, -1), observation.pair_features]
        if self.spec.prior:
            parts.append(observation.prior.unsqueeze(-1))
        if self.spec.global_width:
            parts.append(observation.global_features[:, None, None].expand(-1, n, m, -1))
        h = self._correction("h", torch.cat(parts, dim=-1), torch.ones(n, m))
        h = h + observation.prior if self.spec.prior else h
        if not self.spec.task_scores:
            return h, None
        both = observation.task_features.unsqueeze(2) + observation.task_features.unsqueeze(1)
        g = self._correction("g", torch.cat([both, observation.task_pair_features], dim=-1), torch.eye(m))
        return h, g + observation.task_prior if self.spec.task_prior else g

    def _correction(self, net: str, columns: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """Correction of the prior, from features [..., F]; `first` is the factor of w_0."""
        weight = self.weights[f"{net}_weight"]
        z = (columns - getattr(self, f"{net}_means")) * getattr(self, f"{net}_factor")
        correction = weight[0] * first + z @ weight[1:]
        if f"{net}_products" in self.weights:
            products = self.weights[f"{net}_products"]
            correction = correction + ((z[..., : len(products)] @ products) * z[..., len(products) :]).sum(-1)
        return torch.as_tensor(getattr(self, f"{net}_unit") * correction)


def _own(spec: ModelSpec, parameters: Parameters) -> nn.Module:
    network = network_from(spec, parameters)
    return network.own if isinstance(network, CustomNetwork) else network


def _with_context(spec: ModelSpec, fields: dict[str, torch.Tensor]) -> torch.Tensor:
    """Pair features followed by those of `muster.models.context_features`."""
    worth = fields["prior"] / spec.prior_unit
    gaps = {"agent_gap": _gap(worth, 2), "task_gap": _gap(worth, 1)}
    if "partner_wait" in spec.context_features:
        short = fields["minimums"][:, None] > fields["contributions"]
        gaps["partner_wait"] = torch.where(short, gaps["task_gap"].clamp(min=0.0), 0.0)
    return torch.cat([fields["pair_features"], *(gaps[name].unsqueeze(-1) for name in spec.context_features)], dim=-1)


def _gap(worth: torch.Tensor, axis: int) -> torch.Tensor:
    """[B, N, M] value of each pair minus that of the best other along the axis; 0 where there is no other."""
    if worth.shape[axis] < 2:
        return torch.zeros_like(worth)
    top = worth.topk(2, dim=axis).values
    best, second = top.narrow(axis, 0, 1), top.narrow(axis, 1, 1)
    return worth - torch.where(worth == best, second, best)


def _centred(agents: torch.Tensor, tasks: torch.Tensor, columns: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Features with positions as differences from their mean over all agents and tasks."""
    mean = torch.cat([agents[..., list(columns)], tasks[..., list(columns)]], dim=1).mean(1, keepdim=True)
    parts = []
    for features in (agents, tasks):
        columns_of = [
            features[..., [k]] - mean[..., [columns.index(k)]] if k in columns else features[..., [k]]
            for k in range(features.shape[-1])
        ]
        parts.append(torch.cat(columns_of, dim=-1))
    return parts[0], parts[1]
