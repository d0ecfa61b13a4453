"""Tabu search where agents are alike: which tasks are taken matters, and not by whom.

Choosing 50 of 500 elements by what pairs of them are worth (maximum diversity) is such a problem. Moves that help soon
end there; this goes on with the best move even where it costs something, and does not go back for a while.
"""

from __future__ import annotations

import numpy as np

from muster.assign.instance import Instance, fits
from muster.assign.local_search import GAIN_TOLERANCE, Search, total_value
from muster.assign.rounding import Plan, copy_plan, reassign
from muster.compile import kernel
from muster.data import Floats, Ints

# Steps for which a task that was left is not taken again (and up to four more), and an agent that moved stays.
CLOSED = 12
FROZEN = 5


@kernel
def are_alike(it: Instance) -> bool:
    """Whether all agents have the same scores and contributions. Mostly the first entries tell that they have not."""
    n, m = it.facts[0].n, it.facts[0].m
    for i in range(1, n):
        for j in range(m):
            if it.score[i, j] != it.score[0, j] or it.use[i, j] != it.use[0, j]:
                return False
    return True


@kernel
def wander(plan: Plan, trial: Plan, it: Instance, search: Search, steps: int, scale: float, stop: Ints) -> None:
    """So many moves from `plan`, each the best that is open; `plan` becomes the best assignment on the way.

    Of agents that are alike. One that would lead to a new best is open in any case.
    """
    n, m = it.facts[0].n, it.facts[0].m
    frozen, closed, lure = search.order, search.kick_order, search.kick_gain
    copy_plan(trial, plan, n, m)
    value = total_value(plan, it)
    best, least = value, GAIN_TOLERANCE * scale
    frozen[:n] = 0
    closed[:m] = 0
    for step in range(1, steps + 1):
        if stop[0] != 0:
            return
        for k in range(m):
            lure[k] = -np.inf
            if fits(trial.load[k], it.use[0, k], it.room[k]):
                lure[k] = it.score[0, k] + trial.pull[k]
        top, who, where = best_open(trial, it, lure, frozen, closed, step, best + least - value)
        if who < 0:
            return
        closed[trial.task[who]] = step + CLOSED + step % 5
        frozen[who] = step + FROZEN
        reassign(trial, it, who, where)
        value += top
        if value > best + least:
            best = value
            copy_plan(plan, trial, n, m)


@kernel
def best_open(
    trial: Plan, it: Instance, lure: Floats, frozen: Ints, closed: Ints, step: int, enough: float
) -> tuple[float, int, int]:
    """The best move of an agent on a task to another that is open, or that gains more than `enough`; -1: none."""
    n, m = it.facts[0].n, it.facts[0].m
    top, who, where = -np.inf, -1, -1
    for i in range(n):
        old = trial.task[i]
        if old < 0 or frozen[i] > step:
            continue
        base = it.both[old, old] - it.score[i, old] - trial.pull[old]
        for k in range(m):
            gain = base + lure[k] - it.both[old, k]
            if gain > top and k != old and (closed[k] <= step or gain > enough):
                top, who, where = gain, i, k
    return top, who, where
