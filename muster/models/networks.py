"""The networks in torch: direct, positional and context model, and the critics that only training needs."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import nn

from muster.data import BatchObservation, Floats, Floats32
from muster.models.attention import contextual
from muster.models.direct import Parameters, Scores, init_parameters
from muster.models.spec import ModelSpec

CriticKind = Literal["entity", "conv"]
FAR_BELOW = -1e6


class ScoringModel(nn.Module):
    """h and g of a model of any kind. The parameters of the pair networks are those of `direct.py`."""

    def __init__(self, spec: ModelSpec, rng: np.random.Generator) -> None:
        super().__init__()
        self.spec = spec
        self.pairs = nn.ParameterDict(
            {
                name.replace(".", "_"): nn.Parameter(torch.from_numpy(array))
                for name, array in init_parameters(spec, rng).items()
            }
        )
        self.grid = Residual(spec.planes, spec.channels, spec.blocks, spec.embedding) if spec.kind == "pem" else None
        self.low_precision = False
        """Run the CNN in bfloat16: half the time on processors that have it. For training only."""

    def forward(self, observation: BatchObservation) -> tuple[torch.Tensor, torch.Tensor | None]:
        """h [B, N, M] and g [B, M, M] (None unless the model has one)."""
        agents = torch.from_numpy(observation.agent_features)
        tasks = torch.from_numpy(observation.task_features)
        if self.grid is not None:
            assert observation.planes is not None
            assert observation.agent_cells is not None
            assert observation.task_cells is not None
            with torch.autocast("cpu", torch.bfloat16, enabled=self.low_precision):
                cells = self.grid(torch.from_numpy(observation.planes)).float()
            half = self.spec.extra
            agents = torch.cat([agents, at_cells(cells[:, :half], observation.agent_cells)], dim=-1)
            tasks = torch.cat([tasks, at_cells(cells[:, half:], observation.task_cells)], dim=-1)
        if self.spec.kind == "context":
            agents, tasks = self._in_context(observation, agents, tasks)
        beside_agents, beside_tasks = agents, tasks
        if self.spec.global_width:
            assert observation.global_features is not None
            shared = torch.from_numpy(observation.global_features).unsqueeze(1)
            beside_agents = torch.cat([agents, shared.expand(-1, agents.shape[1], -1)], dim=-1)
            beside_tasks = torch.cat([tasks, shared.expand(-1, tasks.shape[1], -1)], dim=-1)
        h = self._net("h", beside_agents, tasks, observation.pair_features, observation.prior)
        if not self.spec.task_scores:
            return h, None
        return h, self._net("g", beside_tasks, tasks, observation.task_pair_features, observation.task_prior)

    def _in_context(
        self, seen: BatchObservation, agents: torch.Tensor, tasks: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Features, less those that say where on the map, and beside them the tokens that have heard of the others."""
        if self.spec.blind:
            agents, tasks = agents.clone(), tasks.clone()
            agents[..., list(self.spec.blind)] = tasks[..., list(self.spec.blind)] = 0.0
        tokens = contextual(self.spec, self.pairs, seen, agents, tasks)
        return torch.cat([agents, tokens[0]], dim=-1), torch.cat([tasks, tokens[1]], dim=-1)

    @torch.no_grad()
    def scores(self, seen: BatchObservation) -> Scores:
        """The same as arrays, for playing."""
        h, g = self(seen)
        return h.numpy(), None if g is None else g.numpy()

    def _net(
        self, net: str, left: torch.Tensor, right: torch.Tensor, pair_features: Floats32, prior: Floats | None
    ) -> torch.Tensor:
        p, pair = self.pairs, torch.from_numpy(pair_features)
        x = (left @ p[f"{net}_left"]).unsqueeze(2) + (right @ p[f"{net}_right"] + p[f"{net}_bias1"]).unsqueeze(1)
        if pair.shape[-1]:
            x = x + pair @ p[f"{net}_pair"]
        x = torch.relu_(x)
        x = torch.relu_(torch.addmm(p[f"{net}_bias2"], x.flatten(0, 2), p[f"{net}_weight2"]))
        y = torch.addmm(p[f"{net}_bias3"], x, p[f"{net}_weight3"])
        y = y.view(left.shape[0], left.shape[1], right.shape[1])
        if f"{net}_scale" in p:
            assert prior is not None
            y = y + p[f"{net}_scale"] * torch.from_numpy(np.asarray(prior, np.float32))
        return y

    def views(self) -> Parameters:
        """The pair networks' parameters under the names of `direct.py`; they share memory with the model."""
        return {name.replace("_", ".", 1): value.detach().numpy() for name, value in self.pairs.items()}


def at_cells(planes: torch.Tensor, cells: np.ndarray) -> torch.Tensor:
    """Values [B, K, C] of planes [B, C, H, W] at cells [B, K, 2]."""
    index = torch.from_numpy(cells[..., 0] * planes.shape[3] + cells[..., 1])
    flat = planes.flatten(2)
    return flat.gather(2, index.unsqueeze(1).expand(-1, flat.shape[1], -1)).transpose(1, 2)


class Residual(nn.Module):
    """Residual blocks of two 3x3 convolutions with BatchNorm, at the input's resolution; then `out` planes."""

    def __init__(self, planes: int, channels: int, blocks: int, out: int) -> None:
        super().__init__()
        self.inlet = nn.Conv2d(planes, channels, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU(),
                nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                nn.BatchNorm2d(channels),
            )
            for _ in range(blocks)
        )
        self.outlet = nn.Conv2d(channels, out, 1)

    def forward(self, planes: torch.Tensor) -> torch.Tensor:
        """[B, planes, H, W] -> [B, out, H, W]"""
        x = torch.relu(self.inlet(planes.contiguous(memory_format=torch.channels_last)))
        for block in self.blocks:
            x = torch.relu(x + block(x))
        return self.outlet(x)


class EntityCritic(nn.Module):
    """Value of a state: a small network per object, mean and maximum over the living, a head. Cheap on a CPU."""

    def __init__(self, spec: ModelSpec, width: int = 32) -> None:
        super().__init__()
        self.agent = nn.Sequential(nn.Linear(spec.agent_width, width), nn.ReLU(), nn.Linear(width, width))
        self.task = nn.Sequential(nn.Linear(spec.task_width, width), nn.ReLU(), nn.Linear(width, width))
        inputs = 4 * width + 2 + spec.global_width
        self.head = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, observation: BatchObservation) -> torch.Tensor:
        """[B]"""
        pooled = []
        for net, features, alive in (
            (self.agent, observation.agent_features, observation.agent_alive),
            (self.task, observation.task_features, observation.task_alive),
        ):
            here = torch.from_numpy(alive).unsqueeze(-1).float()
            x = net(torch.from_numpy(features))
            count = here.sum(1)
            # Far below any living object's value, yet finite; where nobody lives the maximum counts as 0.
            highest = (x + FAR_BELOW * (1.0 - here)).amax(1) * (count > 0)
            pooled += [(x * here).sum(1) / count.clamp(min=1.0), highest, here.mean(1)]
        if observation.global_features is not None:
            pooled.append(torch.from_numpy(observation.global_features))
        return self.head(torch.cat(pooled, dim=-1)).squeeze(-1)

    @property
    def last(self) -> nn.Module:
        """Its last layer."""
        return self.head[2]

    def views(self) -> Parameters:
        """Its parameters for `muster.models.values`, which does the same without torch; they share memory."""
        return {name: value.detach().numpy() for name, value in self.named_parameters()}


class ConvCritic(nn.Module):
    """The paper's critic: the residual CNN over the whole grid, spatial pooling and a linear layer."""

    def __init__(self, planes: int, global_width: int = 0, channels: int = 32, blocks: int = 3) -> None:
        super().__init__()
        self.grid = Residual(planes, channels, blocks, channels)
        self.head = nn.Linear(channels + global_width, 1)

    def forward(self, observation: BatchObservation) -> torch.Tensor:
        """[B]"""
        assert observation.planes is not None
        pooled = self.grid(torch.from_numpy(observation.planes)).mean((2, 3))
        if observation.global_features is not None:
            pooled = torch.cat([pooled, torch.from_numpy(observation.global_features)], dim=-1)
        return self.head(pooled).squeeze(-1)

    @property
    def last(self) -> nn.Module:
        """Its last layer."""
        return self.head


def network_from(spec: ModelSpec, parameters: Parameters) -> ScoringModel:
    """The torch network of a policy, in evaluation mode."""
    model = ScoringModel(spec, np.random.default_rng(0))
    state = {_torch_name(name): torch.from_numpy(np.array(array)) for name, array in parameters.items()}
    model.load_state_dict(state)
    return model.eval()


def parameters_of(model: ScoringModel) -> Parameters:
    """All arrays of a torch network, under the names that policy files use (copies)."""
    return {
        _file_name(name): np.ascontiguousarray(tensor.detach().numpy()).copy()
        for name, tensor in model.state_dict().items()
    }


def _torch_name(name: str) -> str:
    return name if name.startswith("grid.") else "pairs." + name.replace(".", "_")


def _file_name(name: str) -> str:
    return name.removeprefix("pairs.").replace("_", ".", 1) if name.startswith("pairs.") else name
