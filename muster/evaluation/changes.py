"""How often a policy changes its mind: agents taken off a task that is still there and given another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.data import Floats, Ints, Observation


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

    Where slots are used again, ids tell whether it is still the same agent and the same task. Losing a task without
    getting another is no change.
    """
    alive = observation.agent_alive
    moved = (before.assignment >= 0) & (assignment >= 0) & (assignment != before.assignment) & alive
    # Few do, so that the rest is asked of them alone.
    slots, agents = np.nonzero(moved)
    old = before.assignment[slots, agents]
    still = observation.task_alive[slots, old]
    if observation.task_ids is not None and before.task_ids is not None:
        still &= observation.task_ids[slots, old] == before.task_ids[slots, old]
    if observation.agent_ids is not None and before.agent_ids is not None:
        still &= observation.agent_ids[slots, agents] == before.agent_ids[slots, agents]
    changed = np.bincount(slots[still], minlength=len(alive))
    return changed / np.maximum(alive.sum(1), 1)
