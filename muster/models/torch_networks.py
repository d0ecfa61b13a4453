"""The networks in torch, in which positional, context and custom models learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from muster.custom import is_custom
from muster.data import BatchObservation, Floats, Floats32
from muster.models import custom
from muster.models.context import AGENT, LEAST_SPACING, LISTENING, TASK, measured, relate
from muster.models.direct import init_parameters, parameter_shapes
from muster.models.spec import ModelSpec, Parameters, Scores

SILENT = -1e9
"""Logit of a masked speaker."""
Relations = dict[tuple[str, str], tuple[torch.Tensor, ...]]
"""By listener and speaker: features, distance and mask of `muster.models.context.Relation`."""


class ScoringModel(nn.Module):
    """Scoring model of any kind in torch. The parameters of the pair networks are those of `direct.py`."""

    def __init__(self, spec: ModelSpec, rng: np.random.Generator) -> None:
        super().__init__()
        self.spec = spec
        self.pairs = nn.ParameterDict(
            {_key(name): nn.Parameter(torch.from_numpy(array)) for name, array in init_parameters(spec, rng).items()}
        )
        self.grid = Residual(spec.planes, spec.channels, spec.blocks, spec.embedding) if spec.kind == "pem" else None

    def forward(self, observation: BatchObservation) -> tuple[torch.Tensor, torch.Tensor | None]:
        """h [B, N, M] and g [B, M, M] (None unless the model has one)."""
        agents = torch.as_tensor(observation.agent_features)
        tasks = torch.as_tensor(observation.task_features)
        if self.grid is not None:
            assert observation.planes is not None
            assert observation.agent_cells is not None
            assert observation.task_cells is not None
            cells = self.grid(torch.from_numpy(observation.planes))
            half = self.spec.extra
            agents = torch.cat([agents, at_cells(cells[:, :half], observation.agent_cells)], dim=-1)
            tasks = torch.cat([tasks, at_cells(cells[:, half:], observation.task_cells)], dim=-1)
        if self.spec.kind == "context":
            agents, tasks = self._in_context(observation, agents, tasks)
        beside_agents, beside_tasks = agents, tasks
        if self.spec.global_width:
            assert observation.global_features is not None
            shared = torch.as_tensor(observation.global_features).unsqueeze(1)
            beside_agents = torch.cat([agents, shared.expand(-1, agents.shape[1], -1)], dim=-1)
            beside_tasks = torch.cat([tasks, shared.expand(-1, tasks.shape[1], -1)], dim=-1)
        h = self._net("h", beside_agents, tasks, observation.pair_features, observation.prior)
        if not self.spec.task_scores:
            return h, None
        return h, self._net("g", beside_tasks, tasks, observation.task_pair_features, observation.task_prior)

    def _in_context(
        self, observation: BatchObservation, agents: torch.Tensor, tasks: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Features without positions that the model does not read, followed by the tokens after all rounds."""
        if self.spec.blind:
            agents, tasks = agents.clone(), tasks.clone()
            agents[..., list(self.spec.blind)] = tasks[..., list(self.spec.blind)] = 0.0
        tokens = contextual(self.spec, self.pairs, observation, agents, tasks)
        return torch.cat([agents, tokens[0]], dim=-1), torch.cat([tasks, tokens[1]], dim=-1)

    @torch.no_grad()
    def scores(self, observation: BatchObservation) -> Scores:
        """h and g as arrays, without gradients."""
        h, g = self(observation)
        return h.numpy(), None if g is None else g.numpy()

    def _net(
        self, net: str, left: torch.Tensor, right: torch.Tensor, pair_features: Floats32, prior: Floats | None
    ) -> torch.Tensor:
        p, pair = self.pairs, torch.as_tensor(pair_features)
        x = (left @ p[f"{net}_left"]).unsqueeze(2) + (right @ p[f"{net}_right"] + p[f"{net}_bias1"]).unsqueeze(1)
        if pair.shape[-1]:
            x = x + pair @ p[f"{net}_pair"]
        x = torch.relu_(x)
        x = torch.relu_(torch.addmm(p[f"{net}_bias2"], x.flatten(0, 2), p[f"{net}_weight2"]))
        y = torch.addmm(p[f"{net}_bias3"], x, p[f"{net}_weight3"])
        y = y.view(left.shape[0], left.shape[1], right.shape[1])
        if f"{net}_scale" in p:
            assert prior is not None
            y = y + p[f"{net}_scale"] * torch.as_tensor(prior, dtype=torch.float32)
        return y


def at_cells(planes: torch.Tensor, cells: np.ndarray) -> torch.Tensor:
    """Values [B, K, C] of planes [B, C, H, W] at cells [B, K, 2]."""
    index = torch.from_numpy(cells[..., 0] * planes.shape[3] + cells[..., 1])
    flat = planes.flatten(2)
    return flat.gather(2, index.unsqueeze(1).expand(-1, flat.shape[1], -1)).transpose(1, 2)


class CustomNetwork(ScoringModel):
    """A user's torch module as a `ScoringModel`."""

    def __init__(self, spec: ModelSpec, rng: np.random.Generator) -> None:
        nn.Module.__init__(self)
        self.spec, self.own, self.grid = spec, custom.make_custom(spec, rng), None
        self.pairs = nn.ParameterDict()

    def forward(self, observation: BatchObservation) -> tuple[torch.Tensor, torch.Tensor | None]:
        """h [B, N, M] and g [B, M, M] (None unless the model has one)."""
        return custom.checked_scores(self.spec, observation, self.own, custom.as_tensors(observation))


class Residual(nn.Module):
    """CNN of residual blocks, each two 3x3 convolutions with BatchNorm, at the input's resolution."""

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


def make_network(spec: ModelSpec, rng: np.random.Generator) -> ScoringModel:
    """The network with initial parameters."""
    return CustomNetwork(spec, rng) if is_custom(spec.kind) else ScoringModel(spec, rng)


def network_from(spec: ModelSpec, parameters: Parameters) -> ScoringModel:
    """The torch network with a policy's parameters, in evaluation mode."""
    model = make_network(spec, np.random.default_rng(0))
    if isinstance(model, CustomNetwork):
        custom.load_parameters(model.own, parameters, spec.kind)
        return model.eval()
    names = {name: torch_name for torch_name, name in file_names(spec).items()}
    state = {names.get(name, name): torch.from_numpy(np.array(array)) for name, array in parameters.items()}
    model.load_state_dict(state)
    return model.eval()


def parameters_of(model: ScoringModel) -> Parameters:
    """Copies of all arrays of a torch network, under their names in policy files."""
    if isinstance(model, CustomNetwork):
        return custom.parameters_of(model.own)
    names = file_names(model.spec)
    return {names.get(name, name): tensor.detach().numpy().copy() for name, tensor in model.state_dict().items()}


def file_names(spec: ModelSpec) -> dict[str, str]:
    """Names in policy files by names in torch, where they differ: those of the CNN are the same."""
    return {f"pairs.{_key(name)}": name for name in parameter_shapes(spec)}


def _key(name: str) -> str:
    # torch takes no dots in the keys of a ParameterDict.
    return name.replace(".", "_")


def relations_of(spec: ModelSpec, observation: BatchObservation) -> Relations:
    """Relations between listeners and speakers as tensors, from an observation of arrays or of tensors."""
    features: Any = observation.agent_features
    if isinstance(features, torch.Tensor):
        return relate_tensors(spec, observation)
    return {who: tuple(map(torch.from_numpy, one)) for who, one in relate(spec, observation).items()}


def relate_tensors(spec: ModelSpec, observation: BatchObservation) -> Relations:
    """`muster.models.context.relate` for tensors, without padding: all are alive, and all pairs are allowed."""
    features: dict[str, Any] = {AGENT: observation.agent_features, TASK: observation.task_features}
    own: dict[tuple[str, str], tuple[Any, Any]] = {
        (AGENT, TASK): (observation.pair_features, observation.prior if spec.reads_prior else None),
        (TASK, TASK): (observation.task_pair_features, observation.task_prior if spec.task_prior else None),
        (AGENT, AGENT): (features[AGENT].new_zeros(*features[AGENT].shape[:2], features[AGENT].shape[1], 0), None),
    }
    relations: Relations = {}
    unit: torch.Tensor | None = None
    for (listener, speaker), (declared, prior) in own.items():
        heard = torch.ones_like(declared[..., :1].sum(-1), dtype=torch.bool)
        if listener == speaker:
            heard = heard & (torch.eye(heard.shape[1]) == 0)  # onnxruntime has no eye of bools
        parts, far = [declared], None
        if declared.shape[-1] and spec.distances:
            far = declared[..., spec.distances[0 if listener == AGENT else 1]]
        elif spec.places:
            columns = list(spec.places)
            apart = features[speaker][:, None, :, columns] - features[listener][:, :, None, columns]
            parts += [apart, apart.abs()]
            far = torch.linalg.vector_norm(apart, dim=-1)
        distance = torch.zeros_like(heard, dtype=torch.float32)
        if far is not None and measured(spec, listener, speaker):
            if unit is None:
                unit = far.amin(2).mean(1).clamp(min=spec.distance_unit or LEAST_SPACING)
            distance = torch.where(heard, far / unit[:, None, None], 0.0)
            parts += [distance[..., None], torch.exp(-distance)[..., None]]
        if prior is not None:
            parts.append(prior[..., None])
        relations[listener, speaker] = torch.cat(parts, dim=-1) * heard[..., None], distance, heard
    features_of_pairs, distance, heard = relations[AGENT, TASK]
    relations[TASK, AGENT] = features_of_pairs.transpose(1, 2), distance.transpose(1, 2), heard.transpose(1, 2)
    return relations


def contextual(
    spec: ModelSpec,
    weights: nn.ParameterDict,
    observation: BatchObservation,
    agents: torch.Tensor,
    tasks: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [B, N, C] and [B, M, C] after all rounds, from features [B, N, D] and [B, M, E]."""
    relations = relations_of(spec, observation)
    tokens: dict[str, torch.Tensor] = {}
    for who, features, alive in ((AGENT, agents, observation.agent_alive), (TASK, tasks, observation.task_alive)):
        read = torch.where(torch.as_tensor(alive).unsqueeze(-1), features, 0.0)
        if spec.global_width:
            assert observation.global_features is not None
            shared = torch.as_tensor(observation.global_features).unsqueeze(1)
            read = torch.cat([read, shared.expand(-1, read.shape[1], -1)], dim=-1)
        tokens[who] = torch.relu(read @ weights[f"token_{who}_weight"] + weights[f"token_{who}_bias"])
    for number in range(spec.rounds):
        news: dict[str, list[torch.Tensor]] = {AGENT: [tokens[AGENT]], TASK: [tokens[TASK]]}
        for listener, speaker in LISTENING:
            edge = f"round{number}_{listener}_{speaker}"
            heard = listen(weights, edge, tokens[listener], tokens[speaker], relations[listener, speaker], spec.heads)
            news[listener].append(heard)
        for who, parts in news.items():
            mix = f"round{number}_{who}_mix"
            x = torch.relu(torch.cat(parts, dim=-1) @ weights[f"{mix}1"] + weights[f"{mix}1_bias"])
            tokens[who] = tokens[who] + x @ weights[f"{mix}2"] + weights[f"{mix}2_bias"]
    return tokens[AGENT], tokens[TASK]


def listen(
    weights: nn.ParameterDict,
    edge: str,
    listeners: torch.Tensor,
    speakers: torch.Tensor,
    relation: tuple[torch.Tensor, ...],
    heads: int,
) -> torch.Tensor:
    """[B, X, C] messages of all speakers, weighted by attention, for each listener."""
    features, distance, audible = relation
    x = (listeners @ weights[f"{edge}_listener"] + weights[f"{edge}_bias"]).unsqueeze(2)
    x = x + (speakers @ weights[f"{edge}_speaker"]).unsqueeze(1)
    if features.shape[-1]:
        x = x + features @ weights[f"{edge}_relation"]
    said = torch.relu_(x)
    logits = said @ weights[f"{edge}_logit"]
    if f"{edge}_reach" in weights:
        logits = logits - distance.unsqueeze(-1) * torch.exp(-weights[f"{edge}_reach"])
    logits = torch.where(audible.unsqueeze(-1), logits, SILENT)
    # The 1 of the denominator has logit 0; all logits are shifted by the largest so that no exponential overflows.
    top = logits.detach().amax(2, keepdim=True).clamp(min=0.0)
    counts = torch.exp(logits - top)
    share = counts / (torch.exp(-top) + counts.sum(2, keepdim=True))
    batch, n, m, c = said.shape
    return (share.unsqueeze(-1) * said.view(batch, n, m, heads, c // heads)).sum(2).view(batch, n, c)
