"""The context model without torch: tokens that listen to all others, and the pair networks that read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.compile import fast_entry, fast_leaf
from muster.data import BatchObservation, Floats32
from muster.models.context import AGENT, LISTENING, TASK
from muster.models.direct import DirectModel, Parameters, Scores, pair_scores
from muster.models.pairs import beside
from muster.models.relations import Relation, relate
from muster.models.spec import ModelSpec

ZERO = np.float32(0.0)


class Edge(NamedTuple):
    """How listeners of one kind hear speakers of one kind."""

    relation: Floats32
    """[R, C]"""
    logit: Floats32
    """[H, C]"""
    pull: Floats32
    """[H] 1 / reach; 0 where there is no distance."""


class ContextModel:
    """h and g of a context model; its parameters are constant."""

    def __init__(self, spec: ModelSpec, parameters: Parameters) -> None:
        self.spec, self.parameters = spec, parameters
        self.direct = DirectModel(parameters, spec.task_scores)
        self.edges: dict[str, Edge] = {}
        for number in range(spec.rounds):
            for listener, speaker in LISTENING:
                edge = f"round{number}.{listener}_{speaker}"
                reach = parameters.get(f"{edge}_reach")
                pull = np.zeros(spec.heads, np.float32) if reach is None else np.exp(-reach)
                logit = np.ascontiguousarray(parameters[f"{edge}_logit"].T)
                self.edges[edge] = Edge(parameters[f"{edge}_relation"], logit, pull)

    def __call__(self, seen: BatchObservation) -> Scores:
        """h [B, N, M] and, if the model has one, g [B, M, M]."""
        agents, tasks = self.read(seen)
        of_agents, of_tasks = self.tokens(seen, agents, tasks)
        agents, tasks = np.concatenate([agents, of_agents], axis=2), np.concatenate([tasks, of_tasks], axis=2)
        pairs = self.direct.pairs(seen, "h")._replace(left=agents, right=tasks)
        h = pair_scores(self.direct.h, pairs)
        if self.direct.g is None:
            return h, None
        pairs = self.direct.pairs(seen, "g")._replace(left=tasks, right=tasks)
        return h, pair_scores(self.direct.g, pairs)

    def read(self, seen: BatchObservation) -> tuple[Floats32, Floats32]:
        """Features of the living agents and tasks, less those that say where on the map."""
        agents = np.where(seen.agent_alive[..., None], seen.agent_features, ZERO)
        tasks = np.where(seen.task_alive[..., None], seen.task_features, ZERO)
        if self.spec.blind:
            agents[..., list(self.spec.blind)] = tasks[..., list(self.spec.blind)] = ZERO
        return agents, tasks

    def tokens(self, seen: BatchObservation, agents: Floats32, tasks: Floats32) -> tuple[Floats32, Floats32]:
        """[B, N, C] and [B, M, C] after all rounds."""
        spec, weights = self.spec, self.parameters
        relations = relate(spec, seen)
        tokens: dict[str, Floats32] = {}
        for who, read in ((AGENT, agents), (TASK, tasks)):
            features = beside(read, seen.global_features)
            tokens[who] = layer(features, weights[f"token.{who}_weight"], weights[f"token.{who}_bias"], True)
        for number in range(spec.rounds):
            news: dict[str, list[Floats32]] = {AGENT: [tokens[AGENT]], TASK: [tokens[TASK]]}
            for listener, speaker in LISTENING:
                edge = f"round{number}.{listener}_{speaker}"
                bias = weights[f"{edge}_bias"]
                x = layer(tokens[listener], weights[f"{edge}_listener"], bias, False)
                y = layer(tokens[speaker], weights[f"{edge}_speaker"], np.zeros_like(bias), False)
                heard = np.zeros_like(x)
                listen(self.edges[edge], x, y, relations[listener, speaker], heard)
                news[listener].append(heard)
            for who, parts in news.items():
                mix = f"round{number}.{who}_mix"
                x = layer(np.concatenate(parts, axis=2), weights[f"{mix}1"], weights[f"{mix}1_bias"], True)
                tokens[who] = tokens[who] + layer(x, weights[f"{mix}2"], weights[f"{mix}2_bias"], False)
        return tokens[AGENT], tokens[TASK]


def layer(x: Floats32, weight: Floats32, bias: Floats32, rectified: bool) -> Floats32:
    """[B, N, C] of x [B, N, D], each row by itself: what stands beside it in a batch changes no bit."""
    y = np.empty((*x.shape[:2], weight.shape[1]), np.float32)
    fill_layer(np.ascontiguousarray(x), weight, bias, rectified, y)
    return y


@fast_entry
def fill_layer(x: Floats32, weight: Floats32, bias: Floats32, rectified: bool, y: Floats32) -> None:
    """y = x weight + bias, and no less than 0 if rectified."""
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            row = y[b, i]
            row[:] = bias
            for k in range(x.shape[2]):
                value = x[b, i, k]
                if value != ZERO:
                    for c in range(row.shape[0]):
                        row[c] += value * weight[k, c]
            if rectified:
                for c in range(row.shape[0]):
                    row[c] = max(row[c], ZERO)


@fast_entry
def listen(edge: Edge, x: Floats32, y: Floats32, relation: Relation, heard: Floats32) -> None:
    """Fill heard [B, X, C] with what listeners of layer x [B, X, C] hear of speakers of layer y [B, Y, C]."""
    batch, n, width = x.shape
    m, heads = y.shape[1], edge.logit.shape[0]
    said = np.empty((m, width), np.float32)
    logits = np.empty((heads, m), np.float32)
    for b in range(batch):
        for i in range(n):
            count = 0
            for j in range(m):
                if relation.heard[b, i, j]:
                    say(edge, x, y, relation, b, i, j, said, count)
                    weigh_words(edge, said, relation.distance[b, i, j], logits, count)
                    count += 1
            gather_words(said, logits, count, heard, b, i)


@fast_leaf
def say(
    edge: Edge, x: Floats32, y: Floats32, relation: Relation, b: int, i: int, j: int, said: Floats32, row: int
) -> None:
    """u = relu(x + y + R r)"""
    width = said.shape[1]
    for c in range(width):
        said[row, c] = x[b, i, c] + y[b, j, c]
    for k in range(relation.features.shape[3]):
        value = relation.features[b, i, j, k]
        for c in range(width):
            said[row, c] += value * edge.relation[k, c]
    for c in range(width):
        said[row, c] = max(said[row, c], ZERO)


@fast_leaf
def weigh_words(edge: Edge, said: Floats32, distance: np.float32, logits: Floats32, row: int) -> None:
    """L u - d / reach"""
    for h in range(logits.shape[0]):
        total = -distance * edge.pull[h]
        for c in range(said.shape[1]):
            total += said[row, c] * edge.logit[h, c]
        logits[h, row] = total


@fast_leaf
def gather_words(said: Floats32, logits: Floats32, count: int, heard: Floats32, b: int, i: int) -> None:
    """What all speakers say, each by its share; silence has logit 0."""
    heads = logits.shape[0]
    each = said.shape[1] // heads
    for h in range(heads):
        top = ZERO
        for j in range(count):
            top = max(top, logits[h, j])
        total = np.exp(-top)
        for j in range(count):
            logits[h, j] = np.exp(logits[h, j] - top)
            total += logits[h, j]
        for c in range(h * each, (h + 1) * each):
            heard[b, i, c] = ZERO
        for j in range(count):
            share = logits[h, j] / total
            for c in range(h * each, (h + 1) * each):
                heard[b, i, c] += share * said[j, c]
