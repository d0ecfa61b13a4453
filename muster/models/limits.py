"""Learned limits: capacities and contributions from networks of the direct model, in place of the environment's.

    capacity_j = unit_j · softplus(z_j)            contribution_ij = unit_j · softplus(z_ij)

A capacity's z is a network of the features of the task and of the environment, a contribution's one of the pair, as h
is. unit_j is the environment's mean contribution to task j of the living agents that may take it: a capacity is learned
in agents, whatever the environment measures in, and where both are learned the unit cancels. Every capacity starts at
two and a half agents, whatever the environment's own, and every contribution at 0.8 of an agent, so that agents who
just fit a task still do when their contribution grows a little.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from muster.data import BatchObservation, Floats, Floats32

Limits = dict[str, Floats32]
"""z by network: of capacities [B, 1, M], of contributions [B, N, M]."""
NETWORKS = {"capacities": "capacity", "contributions": "contribution"}
"""The network of what can be learned (`ModelSpec.learned`)."""
START = {"capacity": 2.5, "contribution": 0.8}
"""softplus(z) of a model that has learned nothing yet."""


def start_of(network: str) -> float:
    """z at the start."""
    return math.log(math.expm1(START[network]))


def units(observation: BatchObservation) -> Floats:
    """[B, M] the mean contribution to each task of the living agents that may take it; 1 where that is 0."""
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
    found: Floats = np.logaddexp(0.0, z.astype(np.float64))
    return found
