"""Context features: how a pair compares with the alternatives of its agent and of its task.

With the prior p over allowed pairs of the living, and its standard deviation u:

    agent_gap     (p_ij - max over other tasks of p_i.) / u                  to the agent's best alternative
    task_gap      (p_ij - max over other agents of p_.j) / u                 to the task's best other agent
    partner_wait  max(0, task_gap) where the task needs more than this agent brings, else 0

A gap is 0 where there is no alternative. Masked agents and tasks count as if they were left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np

from muster.data import BatchObservation, Bools, Floats
from muster.models import ContextFeature

MEANINGS: Mapping[str, str] = {
    "agent_gap": "how much better by the prior than the agent's best other task",
    "task_gap": "how much better by the prior than the task's best other agent",
    "partner_wait": "how much worse the best partner is, where the task needs several",
}
AGENTS, TASKS = 1, 2
"""Axes of [B, N, M]."""


def available(observation: BatchObservation, prior: bool) -> tuple[ContextFeature, ...]:
    """Context features that can be computed from the observation; they need a prior."""
    names = get_args(ContextFeature) if prior else ()
    return tuple(name for name in names if name != "partner_wait" or observation.minimums is not None)


def with_context(observation: BatchObservation, names: Sequence[ContextFeature], unit: float) -> BatchObservation:
    """The observation with context features after its own pair features; `unit`: standard deviation of the prior."""
    there, own = observation.pairs, observation.pair_features
    pairs = np.zeros((*there.shape, own.shape[-1] + len(names)), np.float32)
    pairs[..., : own.shape[-1]] = own
    for column, found in enumerate(_columns(observation, names, unit, there), start=own.shape[-1]):
        np.copyto(pairs[..., column], found, where=there, casting="same_kind")
    return dataclasses.replace(observation, pair_features=pairs)


def _columns(observation: BatchObservation, names: Sequence[ContextFeature], unit: float, there: Bools) -> list[Floats]:
    assert observation.prior is not None
    worth = np.where(there, observation.prior / unit, -np.inf)
    found: dict[ContextFeature, Floats] = {}
    if "agent_gap" in names:
        found["agent_gap"] = _gap(worth, TASKS)
    if "task_gap" in names or "partner_wait" in names:
        found["task_gap"] = _gap(worth, AGENTS)
    if "partner_wait" in names and observation.minimums is not None:
        short = observation.minimums[:, None, :] > observation.contributions
        found["partner_wait"] = np.where(short, np.maximum(found["task_gap"], 0.0), 0.0)
    return [found[name] for name in names if name in found]


def _gap(worth: Floats, axis: int) -> Floats:
    """[B, N, M] value of each pair minus that of the best other along the axis; 0 where there is no other."""
    if not worth.size:
        return worth
    best = worth.max(axis=axis, keepdims=True)
    first = worth == best
    second = np.where(first, -np.inf, worth).max(axis=axis, keepdims=True)
    other = np.where(first & (first.sum(axis=axis, keepdims=True) == 1), second, best)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(other), worth - other, 0.0)
