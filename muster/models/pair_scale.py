"""Task scores that keep their meaning at other sizes.

The sum of h grows with the number of agents, the sum of g over pairs of tasks with its square. g is therefore
multiplied by

    size    N0 / N, the number of agents in training over that of now: 1 in training
    fade    exp(-d / (1.25 s)), where d is the distance of the two tasks and s the spacing

The spacing s is the mean over the living agents of the distance to the nearest task that they may take, but at least
the environment's unit of distance. However large the environment, a task then has about as many neighbours that matter
as in a small one of the same density.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats32
from muster.kernels import core
from muster.models.spec import ModelSpec

RANGE = np.float32(1.25)
"""In units of the spacing."""


def scale_pairs(spec: ModelSpec, observation: BatchObservation, g: Floats32 | None) -> Floats32 | None:
    """g [B, M, M] as it counts in this observation."""
    if g is None or spec.pair_scale == "none":
        return g
    if spec.pair_scale == "size":
        n_agents = observation.agent_features.shape[1]
        return g if n_agents == spec.trained_agents else g * np.float32(spec.trained_agents / n_agents)
    there = observation.agent_alive[:, :, None] & observation.task_alive[:, None, :]
    if observation.allowed is not None:
        there = there & observation.allowed
    between = RANGE * spacing(observation.pair_features[..., spec.distances[0]], there, spec.distance_unit)
    # Tasks that are padding may have any distance; their g is 0 whatever it is multiplied by.
    distance = np.maximum(observation.task_pair_features[..., spec.distances[1]], 0)
    return g * exp(-distance / between[:, None, None])


def spacing(distance: Floats32, there: Bools, unit: float) -> Floats32:
    """[B] the mean distance [B, N, M] of agents to their nearest tasks among the pairs `there`, at least one unit."""
    nearest = np.where(there, distance, np.inf).min(axis=2, initial=np.inf)
    found = np.isfinite(nearest)
    mean = np.where(found, nearest, 0.0).sum(axis=1) / np.maximum(found.sum(axis=1), 1)
    return np.maximum(mean, unit).astype(np.float32)


def exp(x: NDArray[np.floating]) -> Floats32:
    """e^x in single precision, the same bits on every machine."""
    found = np.array(x, np.float32, order="C")
    core.models.exp(found)
    return found
