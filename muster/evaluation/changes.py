"""How often a policy changes its mind: agents taken off a task that is still there and given another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.data import Floats, Ints, Observation
from muster.envs.identity import follow


class Before(NamedTuple):
    """What has to be kept of a decision to compare the next one with it: not all that was observed."""

    assignment: Ints
    agent_ids: Ints | None
    task_ids: Ints | None


def keep(observation: Observation, assignment: Ints) -> Before:
    """Of a decision and what it was made on."""
    return Before(assignment, observation.agent_ids, observation.task_ids)


def changed_share(before: Before, observation: Observation, assignment: Ints) -> Floats:
    """[B] share of the living agents whose task of the last decision is still alive and who now have another one.

    Where slots are used again, ids tell who and what is there, in whatever place: a task that has moved up to another
    one is still the same. Losing a task without getting another is no change.
    """
    alive, ids = observation.agent_alive, observation.task_ids
    old, new = before.assignment, assignment
    if ids is not None and before.task_ids is not None:
        old, new = _ids_of(before.task_ids, old), _ids_of(ids, new)
    if observation.agent_ids is not None and before.agent_ids is not None:
        old = follow(old, before.agent_ids, observation.agent_ids)
    # Few have another one, so that the rest is asked of them alone.
    slots, agents = np.nonzero((old >= 0) & (new >= 0) & (old != new) & alive)
    left = old[slots, agents]
    if ids is not None and before.task_ids is not None:
        still = ((ids[slots] == left[:, None]) & observation.task_alive[slots]).any(axis=1)
    else:
        still = observation.task_alive[slots, left]
    changed = np.bincount(slots[still], minlength=len(alive))
    return changed / np.maximum(alive.sum(1), 1)


def _ids_of(ids: Ints, assignment: Ints) -> Ints:
    """[B, N] the ids of the tasks that are assigned, -1 for none."""
    return np.where(assignment >= 0, np.take_along_axis(ids, np.maximum(assignment, 0), axis=1), -1)
