"""Pair terms that keep their meaning at other sizes.

The sum of h grows with the number of agents, the sum of g over pairs of tasks with its square. What pairs are worth is
therefore multiplied by

    size    N0 / N, the number of agents in training over that of now: 1 in training
    fade    exp(-d / (1.25 s)), where d is the distance of the two tasks and s how far agents have to go

s is the mean over the living agents of the distance to the nearest task that they may take, but at least the env's
unit of distance. However large the env, a task then has about as many neighbours that matter as there are in a small
one as dense.
"""

from __future__ import annotations

import numpy as np

from muster.data import BatchObservation, Floats32
from muster.models.spec import ModelSpec

RANGE = np.float32(1.25)
"""In distances to the nearest task."""


def scale_pairs(spec: ModelSpec, seen: BatchObservation, g: Floats32 | None) -> Floats32 | None:
    """g [B, M, M] as it counts in what is seen."""
    if g is None or spec.pair_scale == "none":
        return g
    if spec.pair_scale == "size":
        n_agents = seen.agent_features.shape[1]
        return g if n_agents == spec.trained_agents else g * np.float32(spec.trained_agents / n_agents)
    reach = RANGE * spacing(spec, seen)
    # Tasks that are padding may have any distance; their g is 0 whatever it is multiplied by.
    distance = np.maximum(seen.task_pair_features[..., spec.distances[1]], 0)
    return g * np.exp(-distance / reach[:, None, None])


def spacing(spec: ModelSpec, seen: BatchObservation) -> Floats32:
    """[B] s: the mean distance of the living agents to their nearest tasks, at least one unit."""
    there = seen.agent_alive[:, :, None] & seen.task_alive[:, None, :]
    if seen.allowed is not None:
        there = there & seen.allowed
    nearest = np.where(there, seen.pair_features[..., spec.distances[0]], np.inf).min(axis=2, initial=np.inf)
    found = np.isfinite(nearest)
    total = np.where(found, nearest, 0.0).sum(axis=1)
    mean = total / np.maximum(found.sum(axis=1), 1)
    return np.maximum(mean, spec.distance_unit).astype(np.float32)
