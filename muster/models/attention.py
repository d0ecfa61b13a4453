"""The rounds of the context model in torch, for its gradient: the same as muster.models.tokens."""

from __future__ import annotations

import torch
from torch import nn

from muster.data import BatchObservation
from muster.models.context import AGENT, LISTENING, TASK
from muster.models.relations import Relation, relate
from muster.models.spec import ModelSpec

SILENT = -1e9
"""Logit of a speaker that is not there."""

Weights = nn.ParameterDict


def contextual(
    spec: ModelSpec, weights: Weights, seen: BatchObservation, agents: torch.Tensor, tasks: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [B, N, C] and [B, M, C] after all rounds, of features [B, N, D] and [B, M, E] that the model may read."""
    relations = relate(spec, seen)
    tokens: dict[str, torch.Tensor] = {}
    for who, features, alive in ((AGENT, agents, seen.agent_alive), (TASK, tasks, seen.task_alive)):
        read = torch.where(torch.from_numpy(alive).unsqueeze(-1), features, 0.0)
        if spec.global_width:
            assert seen.global_features is not None
            shared = torch.from_numpy(seen.global_features).unsqueeze(1)
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
    weights: Weights, edge: str, listeners: torch.Tensor, speakers: torch.Tensor, relation: Relation, heads: int
) -> torch.Tensor:
    """[B, X, C] what each listener hears of all speakers."""
    x = (listeners @ weights[f"{edge}_listener"] + weights[f"{edge}_bias"]).unsqueeze(2)
    x = x + (speakers @ weights[f"{edge}_speaker"]).unsqueeze(1)
    if relation.features.shape[-1]:
        x = x + torch.from_numpy(relation.features) @ weights[f"{edge}_relation"]
    said = torch.relu_(x)
    logits = said @ weights[f"{edge}_logit"]
    if f"{edge}_reach" in weights:
        logits = logits - torch.from_numpy(relation.distance).unsqueeze(-1) * torch.exp(-weights[f"{edge}_reach"])
    logits = torch.where(torch.from_numpy(relation.heard).unsqueeze(-1), logits, SILENT)
    # Silence has logit 0; all are shifted by the largest so that no exponential overflows.
    top = logits.detach().amax(2, keepdim=True).clamp(min=0.0)
    counts = torch.exp(logits - top)
    share = counts / (torch.exp(-top) + counts.sum(2, keepdim=True))
    batch, n, m, c = said.shape
    return (share.unsqueeze(-1) * said.view(batch, n, m, heads, c // heads)).sum(2).view(batch, n, c)
