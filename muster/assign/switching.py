"""Changes against the previous plan, and their cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Bools, Floats, Ints
from muster.errors import InputError

ALONE = "switch_cost is for leaving a task of the previous plan; give previous too, with none for agents without a task"


def refuse_cost_alone(cost: Any) -> None:
    """Raise InputError for a switch cost, other than 0, without a previous plan: it would change nothing."""
    if cost != 0 if isinstance(cost, (int, float)) else np.any(cost):
        raise InputError(ALONE)


def still_had(previous: Ints, task_alive: Bools) -> Bools:
    """[B, N] whether an agent had a task that is still there."""
    if not task_alive.shape[1]:
        return np.zeros(previous.shape, np.bool_)
    return (previous >= 0) & np.take_along_axis(task_alive, np.maximum(previous, 0), axis=1)


def less_switch_cost(scores: NDArray[Any], previous: Ints, task_alive: Bools, cost: Any) -> Floats:
    """Scores [B, N, M] less `cost` (anything that fits that shape) where an agent would leave a task that it still has.

    An agent leaves when it takes another task than `previous` [B, N] while that one is still there. Becoming idle costs
    nothing, nor does a first task.
    """
    other = previous[:, :, None] != np.arange(scores.shape[2])
    return np.asarray(scores - cost * (still_had(previous, task_alive)[:, :, None] & other), np.float64)


def count_changes(assignment: Ints, previous: Ints, agent_alive: Bools, task_alive: Bools) -> Ints:
    """[B] how many agents have left a task that is still there: those that a switch cost is for."""
    left = still_had(previous, task_alive) & agent_alive & (assignment >= 0) & (assignment != previous)
    return np.asarray(left.sum(1), np.int64)
