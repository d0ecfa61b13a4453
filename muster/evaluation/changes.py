"""How often a policy changes its mind: agents taken off a task that is still there and given another."""

from __future__ import annotations

import numpy as np

from muster.data import Floats, Ints, Observation


def changed_share(before: Observation, assignment_before: Ints, observation: Observation, assignment: Ints) -> Floats:
    """[B] share of the living agents whose task of the last decision is still alive and who now have another one.

    Where slots are used again, ids tell whether it is still the same agent and the same task. Losing a task without
    getting another is no change.
    """
    alive = observation.agent_alive
    moved = (assignment_before >= 0) & (assignment >= 0) & (assignment != assignment_before) & alive
    # Few do, so that the rest is asked of them alone.
    slots, agents = np.nonzero(moved)
    old = assignment_before[slots, agents]
    still = observation.task_alive[slots, old]
    if observation.task_ids is not None and before.task_ids is not None:
        still &= observation.task_ids[slots, old] == before.task_ids[slots, old]
    if observation.agent_ids is not None and before.agent_ids is not None:
        still &= observation.agent_ids[slots, agents] == before.agent_ids[slots, agents]
    changed = np.bincount(slots[still], minlength=len(alive))
    return changed / np.maximum(alive.sum(1), 1)
