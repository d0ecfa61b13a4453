"""The context model: its parameters, and the relations between its agents and tasks.

Every agent and every task is a token of C values, embedded from its own features. In each round tokens attend to those
of agents and of tasks: with listener x, speaker y and their relation r,

    u_xy = relu(S y + T x + R r + b)                                          message
    w_xy = exp(L u_xy - d_xy / (reach·s)) / (1 + sum over the speakers)       attention weight, for each head
    x   <- x + W2 relu(W1 [x, sum of w u over agents, sum of w u over tasks] + b1) + b2

where d is their distance and s the mean distance of agents to their nearest task (pair_scale.py), so that a token has
about as many relevant neighbours in a large environment as in a small one of the same density. The 1 lets the weights
add up to less than 1: far from all others a token attends to next to nothing, and their sum tells how many are near.
Where an environment names neither distances nor positions, weights depend on the messages alone.

The tokens of the last round are further features of the pair networks (muster.models.direct). The rounds are computed
in context_model.py, and in torch_networks.py for learning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.data import BatchObservation, Bools, Floats32
from muster.models.pair_scale import exp, spacing
from muster.models.spec import ModelSpec

AGENT, TASK = "agent", "task"
LISTENING = ((AGENT, AGENT), (AGENT, TASK), (TASK, AGENT), (TASK, TASK))
"""Pairs of listener and speaker."""
APART = 4
"""Features of two positions: their differences in both coordinates, with and without sign."""
NEARNESS = 2
"""Features of a distance: d / s and exp(-d / s)."""
FIRST_REACH, LAST_REACH = 0.5, 2.0
"""Initial reach of the first and the last head, in units of s."""


def measured(spec: ModelSpec, listener: str, speaker: str) -> bool:
    """Whether a listener and a speaker of these kinds have a distance."""
    return bool(spec.places) or (bool(spec.distances) and declared(spec, listener, speaker) > 0)


def declared(spec: ModelSpec, listener: str, speaker: str) -> int:
    """Width of the environment's own features of two objects."""
    if listener == speaker:
        return spec.task_pair_width if listener == TASK else 0
    return spec.pair_width


def relation_width(spec: ModelSpec, listener: str, speaker: str) -> int:
    """Width of a relation's features."""
    width = declared(spec, listener, speaker)
    # Where the environment's own features have distances, differences of positions are left out.
    width += APART if spec.places and not (width and spec.distances) else 0
    width += NEARNESS if measured(spec, listener, speaker) else 0
    if listener != speaker:
        width += spec.reads_prior
    elif listener == TASK:
        width += spec.task_prior
    return width


def context_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array of embeddings and rounds, in their fixed order."""
    c = spec.context
    shapes: dict[str, tuple[int, ...]] = {}
    for who, width in ((AGENT, spec.agent_width), (TASK, spec.task_width)):
        shapes |= {f"token.{who}_weight": (width + spec.global_width, c), f"token.{who}_bias": (c,)}
    for number in range(spec.rounds):
        for listener, speaker in LISTENING:
            edge = f"round{number}.{listener}_{speaker}"
            shapes |= {
                f"{edge}_listener": (c, c),
                f"{edge}_speaker": (c, c),
                f"{edge}_relation": (relation_width(spec, listener, speaker), c),
                f"{edge}_bias": (c,),
                f"{edge}_logit": (c, spec.heads),
            }
            if measured(spec, listener, speaker):
                shapes[f"{edge}_reach"] = (spec.heads,)
        for who in (AGENT, TASK):
            mix = f"round{number}.{who}_mix"
            shapes |= {f"{mix}1": (3 * c, c), f"{mix}1_bias": (c,), f"{mix}2": (c, c), f"{mix}2_bias": (c,)}
    return shapes


def init_context(spec: ModelSpec, rng: np.random.Generator) -> dict[str, Floats32]:
    """Initial arrays: uniform within 1/sqrt(inputs) of each layer; the heads' reaches spread geometrically."""
    arrays: dict[str, Floats32] = {}
    inputs = 1
    for name, shape in context_shapes(spec).items():
        if name.endswith("_reach"):
            arrays[name] = np.log(np.geomspace(FIRST_REACH, LAST_REACH, spec.heads)).astype(np.float32)
            continue
        if name.endswith("_listener"):
            relation = name.replace("_listener", "_relation")
            inputs = 2 * spec.context + context_shapes(spec)[relation][0]
        elif name.endswith("_logit") or "_mix" in name or name.startswith("token"):
            inputs = shape[0] if len(shape) == 2 else inputs
        bound = 1.0 / np.sqrt(max(inputs, 1))
        arrays[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
    return arrays


LEAST_SPACING = 1e-3
"""Least spacing s, for environments without a `distance_unit`."""


class Relation(NamedTuple):
    """Relations between X listeners and Y speakers."""

    features: Floats32
    """[B, X, Y, R]"""
    distance: Floats32
    """[B, X, Y] in units of s; 0 where there is none."""
    heard: Bools
    """[B, X, Y] True where both are alive, not the same object, and allowed as a pair."""

    def turned(self) -> Relation:
        """The relations with listeners and speakers exchanged."""
        return Relation(*(np.ascontiguousarray(part.swapaxes(1, 2)) for part in self))  # type: ignore[arg-type]


def relate(spec: ModelSpec, observation: BatchObservation) -> dict[tuple[str, str], Relation]:
    """Relations between listeners and speakers of all kinds."""
    features = {AGENT: observation.agent_features, TASK: observation.task_features}
    alive = {AGENT: observation.agent_alive, TASK: observation.task_alive}
    prior = observation.prior if spec.reads_prior else None
    own = {
        (AGENT, TASK): (observation.pair_features, prior),
        (TASK, TASK): (observation.task_pair_features, observation.task_prior if spec.task_prior else None),
        (AGENT, AGENT): (None, None),
    }
    relations: dict[tuple[str, str], Relation] = {}
    unit: Floats32 | None = None
    for (listener, speaker), (declared, prior) in own.items():
        heard = alive[listener][:, :, None] & alive[speaker][:, None, :]
        if listener == speaker:
            heard &= ~np.eye(heard.shape[1], dtype=np.bool_)
        elif observation.allowed is not None:
            heard &= observation.allowed
        parts: list[Floats32] = []
        far: Floats32 | None = None
        if declared is not None and declared.shape[-1]:
            parts.append(declared)
            far = declared[..., spec.distances[0 if listener == AGENT else 1]] if spec.distances else None
        if spec.places and far is None:
            columns = list(spec.places)
            apart = features[speaker][:, None, :, columns] - features[listener][:, :, None, columns]
            parts += [apart, np.abs(apart)]
            far = np.sqrt((apart * apart).sum(-1))
        distance = np.zeros(heard.shape, np.float32)
        if far is not None and measured(spec, listener, speaker):
            if unit is None:
                unit = spacing(far, heard, spec.distance_unit or LEAST_SPACING)
            np.divide(far, unit[:, None, None], out=distance, where=heard)
            parts += [distance[..., None], exp(-distance)[..., None]]
        if prior is not None:
            parts.append(np.asarray(prior, np.float32)[..., None])
        relation = np.concatenate(parts, axis=-1) if parts else np.zeros((*heard.shape, 0), np.float32)
        relation[~heard] = 0.0
        relations[listener, speaker] = Relation(relation, distance, heard)
    relations[TASK, AGENT] = relations[AGENT, TASK].turned()
    return relations
