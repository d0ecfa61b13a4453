"""How often a policy changes its mind: agents taken off a task that is still there and given another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.identity import follow


class Before(NamedTuple):
    """What has to be kept of a decision to compare the next one with it: not all that was observed."""

    assignment: Ints
    agent_ids: Ints | None
    task_ids: Ints | None


def keep(observation: BatchObservation, assignment: Ints) -> Before:
    """Of a decision and what it was made on."""
    return Before(assignment, observation.agent_ids, observation.task_ids)


def changed_share(before: Before, observation: BatchObservation, assignment: Ints) -> Floats:
    """[B] share of the living agents whose task of the last decision is still alive and who now have another one.

    Where slots are used again, ids tell who and what is there, in whatever place: a task that has moved up to another
    one is still the same. Losing a task without getting another is no change.
    """
    alive, ids = observation.agent_alive, observation.task_ids
    last = before.assignment
    if observation.agent_ids is not None and before.agent_ids is not None:
        last = follow(last, before.agent_ids, observation.agent_ids)
    # Few had a task and have one, so that the rest is asked of them alone.
    slots, agents = np.nonzero((last >= 0) & (assignment >= 0) & alive)
    old, new = last[slots, agents], assignment[slots, agents]
    if ids is None or before.task_ids is None:
        left = (old != new) & observation.task_alive[slots, old]
        return _share(slots[left], alive)
    old, new = before.task_ids[slots, old], ids[slots, new]
    moved = (old != new) & (old >= 0)
    slots, old = slots[moved], old[moved]
    still = ((ids[slots] == old[:, None]) & observation.task_alive[slots]).any(axis=1)
    return _share(slots[still], alive)


def _share(slots: Ints, alive: Bools) -> Floats:
    """[B] by how many of the living, given the slot of each who changed."""
    return np.bincount(slots, minlength=len(alive)) / np.maximum(alive.sum(1), 1)
