"""The context model without torch: attention among tokens, and the pair networks that read them."""

from __future__ import annotations

import dataclasses

import numpy as np

from muster.data import BatchObservation, Floats32
from muster.kernels import core
from muster.models.context import AGENT, LISTENING, TASK, relate
from muster.models.direct import DirectModel
from muster.models.pair_scale import exp
from muster.models.spec import ModelSpec, Parameters, Scores


class ContextModel:
    """h and g of a context model; its parameters are constant."""

    def __init__(self, spec: ModelSpec, parameters: Parameters) -> None:
        self.spec, self.parameters = spec, parameters
        self.direct = DirectModel(parameters, spec.task_scores)
        self.edges: dict[str, tuple[Floats32, Floats32, Floats32]] = {}
        """By listener and speaker: weights of relations [R, C] and of logits [H, C], and 1 / reach [H]."""
        for number in range(spec.rounds):
            for listener, speaker in LISTENING:
                edge = f"round{number}.{listener}_{speaker}"
                reach = parameters.get(f"{edge}_reach")
                pull = np.zeros(spec.heads, np.float32) if reach is None else exp(-reach)
                self.edges[edge] = (
                    parameters[f"{edge}_relation"],
                    np.ascontiguousarray(parameters[f"{edge}_logit"].T),
                    pull,
                )

    def __call__(self, observation: BatchObservation) -> Scores:
        """h [B, N, M] and, if the model has one, g [B, M, M]."""
        agents, tasks = self.read(observation)
        tokens = self.tokens(observation, agents, tasks)
        agents, tasks = np.concatenate([agents, tokens[0]], axis=2), np.concatenate([tasks, tokens[1]], axis=2)
        return self.direct(dataclasses.replace(observation, agent_features=agents, task_features=tasks))

    def read(self, observation: BatchObservation) -> tuple[Floats32, Floats32]:
        """Features of living agents and tasks, with 0 for others and for positions that the model does not read."""
        agents = np.where(observation.agent_alive[..., None], observation.agent_features, np.float32(0.0))
        tasks = np.where(observation.task_alive[..., None], observation.task_features, np.float32(0.0))
        if self.spec.blind:
            agents[..., list(self.spec.blind)] = tasks[..., list(self.spec.blind)] = 0.0
        return agents, tasks

    def tokens(self, observation: BatchObservation, agents: Floats32, tasks: Floats32) -> tuple[Floats32, Floats32]:
        """Tokens of agents [B, N, C] and tasks [B, M, C] after all rounds."""
        spec, weights = self.spec, self.parameters
        relations = relate(spec, observation)
        tokens: dict[str, Floats32] = {}
        for who, read in ((AGENT, agents), (TASK, tasks)):
            tokens[who] = layer(
                beside(read, observation.global_features),
                weights[f"token.{who}_weight"],
                weights[f"token.{who}_bias"],
                True,
            )
        for number in range(spec.rounds):
            news: dict[str, list[Floats32]] = {AGENT: [tokens[AGENT]], TASK: [tokens[TASK]]}
            for listener, speaker in LISTENING:
                edge = f"round{number}.{listener}_{speaker}"
                bias = weights[f"{edge}_bias"]
                x = layer(tokens[listener], weights[f"{edge}_listener"], bias, False)
                y = layer(tokens[speaker], weights[f"{edge}_speaker"], np.zeros_like(bias), False)
                heard = np.empty_like(x)
                core.models.listen(*self.edges[edge], x, y, *relations[listener, speaker], heard)
                news[listener].append(heard)
            for who, parts in news.items():
                mix = f"round{number}.{who}_mix"
                x = layer(np.concatenate(parts, axis=2), weights[f"{mix}1"], weights[f"{mix}1_bias"], True)
                tokens[who] = tokens[who] + layer(x, weights[f"{mix}2"], weights[f"{mix}2_bias"], False)
        return tokens[AGENT], tokens[TASK]


def layer(x: Floats32, weight: Floats32, bias: Floats32, rectified: bool) -> Floats32:
    """A linear layer, rectified or not, of x [B, N, D]: [B, N, C]. A row's bits do not depend on the batch."""
    y = np.empty((*x.shape[:2], weight.shape[1]), np.float32)
    core.models.fill_layer(x, weight, bias, rectified, y)
    return y


def beside(features: Floats32, shared: Floats32 | None) -> Floats32:
    """[B, N, D + F] features of objects [B, N, D] followed by global features [B, F]."""
    if shared is None or not shared.shape[-1]:
        return features
    batch, n, _ = features.shape
    return np.concatenate([features, np.broadcast_to(shared[:, None], (batch, n, shared.shape[-1]))], axis=2)
