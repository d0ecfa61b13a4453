"""QUAD: Frank-Wolfe, rounding and local search put together, at three levels of effort."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.compile import kernel, maker
from muster.data import Floats, Ints
from muster.inference import frank_wolfe, local_search
from muster.inference.frank_wolfe import Walk, make_walk, scale_of, write_sparse
from muster.inference.instance import Instance
from muster.inference.local_search import Search, kick, make_search, total_value
from muster.inference.oracle import Oracle, make_oracle, maximise, read_vertex, set_profits
from muster.inference.rounding import STRICT, Plan, clear, copy_plan, make_plan, round_point

PAPER, FAST, BEST = 0, 1, 2

# Frank-Wolfe steps, walks, and tasks tried for each kind of kick, of each effort.
STEPS = (600, 48, 60)
STARTS = (1, 1, 8)
KICKS = (0, 3, 1_000_000)
# Random starts of BEST without a time limit; with one, it goes on until then.
ROUNDS = 12
# FAST ejects agents from full tasks in instances with no more pairs than this.
EJECTING_PAIRS = 300
# Every assignment is tried in instances that have no more than this many, at each effort.
EXHAUSTIBLE = (0.0, 32.0, 100_000.0)

LOCAL_OPTIMUM, OPTIMUM = 10, 11


class Work(NamedTuple):
    """Everything that solving one instance needs, reused from one instance to the next."""

    oracle: Oracle
    walk: Walk
    search: Search
    plan: Plan
    """The answer."""
    candidate: Plan
    bonus: Floats
    """[M] added to every agent's score of a task, for a start."""
    keys: Floats
    ties: Floats
    order: Ints
    relaxed: Floats
    """[2] objective and Frank-Wolfe gap of the relaxed point behind the answer."""


@maker
def make_work(n: int, m: int, steps: int) -> Work:
    """Room for n agents, m tasks and `steps` Frank-Wolfe steps; steps < 0 for solving linear programmes alone."""
    return lay_work(np.empty((n, m)), steps)


@maker
def lay_work(profit: Floats, steps: int) -> Work:
    """The same with the oracle's profits in `profit` [N, M], which need not be cleared."""
    n, m = profit.shape
    quadratic = steps >= 0
    wide, tall = (n, m) if quadratic else (0, 0)
    return Work(
        make_oracle(profit),
        make_walk(wide, tall, max(0, steps)),
        make_search(wide, tall),
        make_plan(n, m),
        make_plan(wide, tall),
        np.zeros(m),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(2),
    )


@kernel
def secant_bonus(bonus: Floats, it: Instance, share: float) -> bool:
    """What a full task earns from its own term g_jj, per agent, times `share`; False if that is nothing anywhere.

    The linear programme looks at the first agent on a task only and so never starts a crowd; this does.
    """
    n, m = it.size[0], it.size[1]
    useful = False
    for j in range(m):
        bonus[j] = 0.0
        if it.pull[j, j] > 0.0:
            total, pairs = 0.0, 0
            for i in range(n):
                if it.use[i, j] > 0.0:
                    total += it.use[i, j]
                    pairs += 1
            crowd = float(n)
            if pairs == n and total > 0.0:
                crowd = min(crowd, it.room[j] * n / total)
            if crowd > 1.0:
                bonus[j] = share * it.pull[j, j] * (crowd - 1.0)
                useful = True
    return useful


@kernel
def random_bonus(bonus: Floats, it: Instance, scale: float, turn: int) -> None:
    """A lean towards some tasks and away from others, of the size of the scores; the same for the same turn."""
    state = np.uint64(turn)
    for j in range(it.size[1]):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        bonus[j] = scale * (float(state >> np.uint64(33)) / 1073741824.0 - 1.0)


@kernel
def solve(
    work: Work,
    it: Instance,
    effort: int,
    steps: int,
    rule: int,
    rounds: int,
    relaxation: bool,
    trace: Floats,
    stop: Ints,
) -> int:
    """Walk up from each start, round, search locally; the best assignment is left in `work.plan`.

    PAPER: one walk from the linear solution, then rounding. FAST: a short walk, and the secant solution as it is; local
    search, a round of kicks. BEST: more starts, kicks until none helps, then `rounds` random starts, or until stopped.
    FAST and BEST end by trying everything on the smallest instances; FAST does nothing else there unless the
    `relaxation` is wanted too.
    """
    n, m = it.size[0], it.size[1]
    scale = scale_of(it)
    small = n > 0 and (m + 1.0) ** n <= EXHAUSTIBLE[effort]
    if small and effort == FAST and not relaxation:
        clear(work.plan, it)
        work.relaxed[0], work.relaxed[1] = np.nan, np.nan
        if local_search.exhaust(work.plan, work.candidate, it, work.order, scale, stop):
            return OPTIMUM
    status = LOCAL_OPTIMUM
    found = False
    if effort == FAST and secant_bonus(work.bonus, it, 1.0):
        maximise(work.oracle, it, set_profits(work.oracle, it, work.bonus), False, stop)
        read_vertex(work.oracle, it)
        round_point(work.plan, it, work.oracle.vertex, STRICT, work.keys, work.ties, work.order)
        local_search.climb(work.plan, it, work.search, False, scale, stop)
        found = True
    for turn in range(STARTS[effort] + rounds):
        if turn > 0 and stop[0] != 0:
            break
        if turn == 0:
            work.bonus[:] = 0.0
        elif turn >= STARTS[effort]:
            random_bonus(work.bonus, it, scale, turn)
        elif not secant_bonus(work.bonus, it, 2.0 * turn / STARTS[effort]):
            continue
        walked = frank_wolfe.climb(work.walk, work.oracle, it, work.bonus, steps, scale, trace, stop)
        write_sparse(work.walk, it)
        plan = work.candidate if found else work.plan
        used_rule = rule if effort == PAPER else STRICT
        round_point(plan, it, work.walk.rounded, used_rule, work.keys, work.ties, work.order)
        if effort == PAPER:
            status = walked
        else:
            local_search.climb(plan, it, work.search, effort == BEST, scale, stop)
            while effort == BEST and stop[0] == 0:
                if not local_search.eject(plan, it, scale, stop) and not kick(
                    plan, it, work.search, KICKS[BEST], scale, stop
                ):
                    break
        if turn == 0 or total_value(plan, it) > total_value(work.plan, it):
            work.relaxed[0], work.relaxed[1] = work.walk.result[0], work.walk.result[1]
        if found and total_value(plan, it) > total_value(work.plan, it):
            copy_plan(work.plan, plan, n, m)
        found = True
    if effort == FAST and stop[0] == 0:
        local_search.climb(work.plan, it, work.search, True, scale, stop)
        kick(work.plan, it, work.search, KICKS[FAST], scale, stop)
        while n * m <= EJECTING_PAIRS and stop[0] == 0 and local_search.eject(work.plan, it, scale, stop):
            local_search.climb(work.plan, it, work.search, True, scale, stop)
    if small and local_search.exhaust(work.plan, work.candidate, it, work.order, scale, stop):
        return OPTIMUM
    return frank_wolfe.STOPPED if stop[0] != 0 else status
