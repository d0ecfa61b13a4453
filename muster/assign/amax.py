"""AMAX: every agent takes its best task, whatever the others do. Needs no workspace, and so compiles in no time."""

from __future__ import annotations

import numpy as np

from muster.assign.batch import Output, Settings
from muster.assign.given import Given
from muster.assign.instance import LARGEST, valid_amount
from muster.assign.outcomes import ASSIGNED, INVALID, NEGATIVE_SCORES, OPTIMAL
from muster.compile import kernel, lean_entry
from muster.data import Floats, Ints


@kernel
def is_sound(given: Given, b: int) -> bool:
    """Whether every entry that counts is one to be worked with, as for the other procedures."""
    sound = True
    for j in range(given.task_alive.shape[1]):
        room = given.capacities[b, j]
        sound &= not given.task_alive[b, j] or valid_amount(room) or room == np.inf
    for i in range(given.agent_alive.shape[1]):
        if not given.agent_alive[b, i]:
            continue
        for j in range(given.task_alive.shape[1]):
            if not given.task_alive[b, j] or (given.allowed.shape[0] > 0 and not given.allowed[b, i, j]):
                continue
            sound &= abs(given.scores[b, i, j]) <= LARGEST or given.scores[b, i, j] == -np.inf
            if given.contributions.shape[0] > 0:
                sound &= valid_amount(given.contributions[b, i, j])
    return sound


@kernel
def best_task(given: Given, b: int, i: int, least: float) -> int:
    """The task of agent i's largest score above `least`, the first one if several; -1 if there is none."""
    best, where = least, -1
    for j in range(given.task_alive.shape[1]):
        if given.task_alive[b, j] and given.scores[b, i, j] > best:
            if given.allowed.shape[0] > 0 and not given.allowed[b, i, j]:
                continue
            best, where = given.scores[b, i, j], j
    return where


@lean_entry
def solve_batch(begin: int, end: int, given: Given, settings: Settings, out: Output, space: Floats, stop: Ints) -> None:
    """Solve instances begin..end-1; see `muster.assign.batch`."""
    for b in range(begin, end):
        if not is_sound(given, b):
            out.status[b] = INVALID
            continue
        total = 0.0
        for i in range(given.agent_alive.shape[1]):
            if not given.agent_alive[b, i]:
                continue
            j = best_task(given, b, i, -np.inf if settings.assign_all else 0.0)
            out.assignment[b, i] = j
            out.reason[b, i] = ASSIGNED if j >= 0 else NEGATIVE_SCORES
            if j >= 0:
                total += given.scores[b, i, j]
                out.loads[b, j] += given.contributions[b, i, j] if given.contributions.shape[0] > 0 else 1.0
        out.objective[b], out.relaxed[b], out.bound[b] = total, total, total
        out.duality_gap[b], out.frank_wolfe_gap[b] = np.nan, np.nan
        out.status[b] = OPTIMAL
