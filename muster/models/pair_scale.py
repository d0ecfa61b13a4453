"""Scaling of task scores by which they generalise to other sizes.

The sum of h grows with the number of agents, the sum of g over pairs of tasks with its square. The learned score of two
different tasks is therefore multiplied by

    size    N0 / N, agents in training over agents alive; 1 for any N that occurred in training
    fade    exp(-d / (1.25 s)), where d is the distance of the two tasks and s the spacing

Where agents may be missing in training N0 is every number up to the largest, so that g only ever shrinks.
The diagonal, a task's own term, and the environment's task_prior are not scaled. Masked agents count as if they were
left out.

The spacing s is the mean over the living agents of the distance to the nearest task that they may take, but at least
the environment's unit of distance. In a large environment a task then has about as many relevant neighbours as in a
small one of the same density.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats32
from muster.kernels import core
from muster.models.spec import ModelSpec

RANGE = np.float32(1.25)
"""Distance at which g fades to 1/e, in units of the spacing."""


def scale_pairs(spec: ModelSpec, observation: BatchObservation, g: Floats32 | None) -> Floats32 | None:
    """The scaled g [B, M, M]: task_prior + factor·(g - task_prior)."""
    if g is None or (factor := pair_factor(spec, observation)) is None:
        return g
    if not spec.task_prior:
        return g * factor
    # Written so that a factor of 1, or g equal to the prior, changes no bit.
    prior = np.where(observation.task_pairs, np.asarray(observation.task_prior, np.float32), np.float32(0.0))
    return g - (np.float32(1.0) - factor) * (g - prior)


def pair_factor(spec: ModelSpec, observation: BatchObservation) -> Floats32 | None:
    """[B, M, M] factors of the learned part of g; None for 1 everywhere."""
    if spec.pair_scale == "none":
        return None
    m = observation.task_alive.shape[1]
    if spec.pair_scale == "size":
        alive = observation.agent_alive.sum(axis=1)
        if ((alive >= spec.fewest_agents) & (alive <= spec.trained_agents)).all():
            return None
        factor = np.repeat(spec.pair_share(alive).astype(np.float32), m * m).reshape(-1, m, m)
    else:
        far = observation.pair_features[..., spec.distances[0]]
        between = RANGE * spacing(far, observation.pairs, spec.distance_unit)
        # Tasks that are padding may have any distance; their g is 0 whatever it is multiplied by.
        distance = np.maximum(observation.task_pair_features[..., spec.distances[1]], 0)
        factor = exp(-distance / between[:, None, None])
    factor[:, np.arange(m), np.arange(m)] = 1.0
    return factor


def spacing(distance: Floats32, there: Bools, unit: float) -> Floats32:
    """[B] mean over agents of the distance [B, N, M] to the nearest task among the pairs `there`, at least `unit`."""
    nearest = np.where(there, distance, np.inf).min(axis=2, initial=np.inf)
    found = np.isfinite(nearest)
    mean = np.where(found, nearest, 0.0).sum(axis=1) / np.maximum(found.sum(axis=1), 1)
    return np.maximum(mean, unit).astype(np.float32)


def exp(x: NDArray[np.floating]) -> Floats32:
    """e^x in single precision, the same bits on every machine."""
    found = np.array(x, np.float32, order="C")
    core.models.exp(found)
    return found
