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
    had = (assignment_before >= 0) & alive
    old = np.where(had, assignment_before, 0)
    still = np.take_along_axis(observation.task_alive, old, axis=1)
    if observation.task_ids is not None and before.task_ids is not None:
        ids = np.take_along_axis(observation.task_ids, old, axis=1)
        still &= ids == np.take_along_axis(before.task_ids, old, axis=1)
    if observation.agent_ids is not None and before.agent_ids is not None:
        still &= observation.agent_ids == before.agent_ids
    changed = had & still & (assignment >= 0) & (assignment != assignment_before)
    return changed.sum(1) / np.maximum(alive.sum(1), 1)
