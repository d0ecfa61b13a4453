"""Read an answer back from a batch to go on from it, and write the better one in its place."""

from __future__ import annotations

from typing import Any

import numpy as np

from muster.assign.batch import Output, Settings, write_answer
from muster.assign.certificate import settle_bound
from muster.assign.instance import Instance, fits
from muster.assign.outcomes import LOCAL_OPTIMUM, OPTIMAL, TIME_LIMIT
from muster.assign.rounding import Plan, clear, complete, reassign
from muster.assign.statuses import INCOMPLETE
from muster.compile import kernel
from muster.data import Floats, Ints


@kernel
def read_answer(found: Ints, it: Instance, out: Output, b: int, place_of: Ints) -> float:
    """Write the assignment in row b to `found`, m for left out; its value with the penalty for those left out."""
    n, m = it.facts[0].n, it.facts[0].m
    for j in range(m):
        place_of[it.tasks[j]] = j
    value = 0.0
    for i in range(n):
        given = out.assignment[b, it.agents[i]]
        found[i] = place_of[given] if given >= 0 else m
        value += it.score[i, found[i]] if given >= 0 else it.facts[0].idle
    return value


@kernel
def left_out(plan: Plan, it: Instance) -> bool:
    """Whether an agent has no task that could have one if it were alone."""
    for i in range(it.facts[0].n):
        if plan.task[i] < 0:
            for j in range(it.facts[0].m):
                if it.score[i, j] > -np.inf and fits(0.0, it.use[i, j], it.room[j]):
                    return True
    return False


@kernel
def write_better(
    found: Ints,
    limit: float,
    it: Instance,
    settings: Settings,
    out: Output,
    b: int,
    plan: Plan,
    prices: Floats,
    proven: Any,
    order: Ints,
    keys: Floats,
    ties: Floats,
    stop: Ints,
) -> None:
    """Put the assignment `found` in the place of the one in row b, with what follows from nothing exceeding `limit`.

    `plan` is scratch, and so are order, keys and ties [N].
    """
    n, m = it.facts[0].n, it.facts[0].m
    clear(plan, it)
    for i in range(n):
        j = found[i]
        if j < m:
            if not fits(plan.load[j], it.use[i, j], it.room[j]):
                # Rounding errors made the search believe in room: the answer that is there stays.
                return
            reassign(plan, it, i, j)
    complete(plan, it, keys, ties, order)
    value = 0.0
    for i in range(n):
        value += it.score[i, plan.task[i]] if plan.task[i] >= 0 else it.facts[0].idle
    proven.relaxed, proven.bound = out.relaxed[b], np.nan
    proven.duality_gap, proven.frank_wolfe_gap = out.duality_gap[b], out.frank_wolfe_gap[b]
    if settle_bound(proven, plan, it, value, limit):
        out.status[b] = OPTIMAL
    elif stop[0] != 0:
        out.status[b] = TIME_LIMIT
    else:
        out.status[b] = INCOMPLETE if settings.assign_all and left_out(plan, it) else LOCAL_OPTIMUM
    for i in range(out.assignment.shape[1]):
        out.assignment[b, i] = -1
    write_answer(out, b, plan, it, prices, proven)
