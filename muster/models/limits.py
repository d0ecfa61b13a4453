"""Learned limits: capacities and contributions by networks of the direct model, in place of the environment's.

    capacity_j = unit_j · softplus(z_j)            contribution_ij = unit_j · softplus(z_ij)

A capacity's z is a network of the features of the task and of the environment, a contribution's one of the pair, as h
is. unit_j is the mean contribution to task j of the living agents that may take it, in the environment: capacities are
learned in numbers of agents, and where both are learned the unit cancels. Every capacity starts at 2.5 agents, whatever
the environment's own, and every contribution at 0.8 of an agent, so that two or three agents on a task still fit when
their contributions grow a little.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from muster.data import BatchObservation, Floats, Floats32

Limits = dict[str, Floats32]
"""z by network: of capacities [B, 1, M], of contributions [B, N, M]."""
NETWORKS = {"capacities": "capacity", "contributions": "contribution"}
"""Name of the network of each limit that can be learned (`ModelSpec.learned`)."""
START = {"capacity": 2.5, "contribution": 0.8}
"""Initial softplus(z)."""


def start_of(network: str) -> float:
    """Initial z."""
    return math.log(math.expm1(START[network]))


def units(observation: BatchObservation) -> Floats:
    """[B, M] mean contribution to each task of the living agents that may take it; 1 where that is 0."""
    able = observation.pairs
    total = np.where(able, observation.contributions, 0.0).sum(axis=1)
    return np.where(total > 0.0, total / np.maximum(able.sum(axis=1), 1), 1.0)


def with_limits(observation: BatchObservation, z: Limits) -> BatchObservation:
    """The observation with learned limits in place of the environment's."""
    unit = units(observation)
    capacities, contributions = observation.capacities, observation.contributions
    if "capacity" in z:
        capacities = unit * _softplus(z["capacity"][:, 0])
        if observation.minimums is not None:
            capacities = np.maximum(capacities, observation.minimums)
    if "contribution" in z:
        contributions = unit[:, None] * _softplus(z["contribution"])
    return dataclasses.replace(observation, capacities=capacities, contributions=contributions)


def _softplus(z: Floats32) -> Floats:
    softplus: Floats = np.logaddexp(0.0, z.astype(np.float64))
    return softplus
