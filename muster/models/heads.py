"""Learned capacities and contributions: heads of the direct model, whose outputs stand where the env's values would.

    capacity_j = unit_j · softplus(z_j)            contribution_ij = unit_j · softplus(z_ij)

A capacity's z is a network of the task's features and the env's, a contribution's one of the pair, as h is. unit_j is
the mean contribution to task j, as the env gives it, of the living agents that may take it: a capacity is so learned
in agents, whatever the env measures in, and where both are learned the unit has no say. Every capacity begins as
room for two and a half agents, wherever the env's own lies, and every contribution as 0.8 of an agent, so that those
who just fit a task of the environment's still do when theirs grows a little.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import numpy as np

from muster.data import BatchObservation, Floats, Floats32

Head = Literal["capacity", "contribution"]
Limits = dict[str, Floats32]
"""z by head: of capacities [B, 1, M], of contributions [B, N, M]."""
HEADS: dict[str, Head] = {"capacities": "capacity", "contributions": "contribution"}
"""The network of what can be learned."""
START: dict[str, float] = {"capacity": 2.5, "contribution": 0.8}
"""softplus(z) of a model that has learned nothing yet."""


def start_of(head: str) -> float:
    """z at the start."""
    return math.log(math.expm1(START[head]))


def units(seen: BatchObservation) -> Floats:
    """[B, M] the mean contribution to each task of the living agents that may take it; 1 where that is nothing."""
    able = seen.agent_alive[:, :, None] & seen.task_alive[:, None, :]
    if seen.allowed is not None:
        able = able & seen.allowed
    total = np.where(able, seen.contributions, 0.0).sum(axis=1)
    return np.where(total > 0.0, total / np.maximum(able.sum(axis=1), 1), 1.0)


def with_limits(seen: BatchObservation, z: Limits) -> BatchObservation:
    """What is seen with learned limits in place of the environment's."""
    unit = units(seen)
    capacities, contributions = seen.capacities, seen.contributions
    if "capacity" in z:
        capacities = unit * _softplus(z["capacity"][:, 0])
    if "contribution" in z:
        contributions = unit[:, None] * _softplus(z["contribution"])
    return dataclasses.replace(seen, capacities=capacities, contributions=contributions)


def _softplus(z: Floats32) -> Floats:
    found: Floats = np.logaddexp(0.0, z.astype(np.float64))
    return found
