"""QUAD: Frank-Wolfe, rounding and local search put together, at three levels of effort."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.assign.batch import BEST, FAST, PAPER, WORKSPACES, Output, Settings, write_answer
from muster.assign.bounding import bound_answer, is_small, make_bounds, solve_for_bonus
from muster.assign.certificate import PROVEN, settle_bound
from muster.assign.frank_wolfe import ENDED, Walk, make_walk, scale_of, walk_up, write_sparse
from muster.assign.given import Given
from muster.assign.instance import LOADED, Instance, fill_instance, lay_instance
from muster.assign.local_search import Search, eject, improve, kick, make_search, mean_use, total_value
from muster.assign.oracle import Oracle, make_oracle, read_vertex
from muster.assign.outcomes import INVALID, LOCAL_OPTIMUM, OPTIMAL, TIME_LIMIT
from muster.assign.rounding import STRICT, Plan, clear, complete, copy_plan, make_plan, round_point, value_of
from muster.assign.wandering import are_alike, wander
from muster.compile import entry, glue, kernel, maker
from muster.data import Floats, Ints

# Frank-Wolfe steps, walks, and tasks tried for each kind of kick, of each effort.
STEPS = (600, 48, 60)
STARTS = (1, 1, 8)
KICKS = (0, 3, 1_000_000)
# Random starts of BEST without a time limit; with one, it goes on until then.
ROUNDS = 12
# FAST ejects agents from full tasks in instances with no more pairs than this.
EJECTING_PAIRS = 300
# Steps of tabu search for each agent, where agents are alike and the instance is larger than that.
WANDERING = 8


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
    relaxed: Any
    """[1] ENDED: the relaxed point behind the answer."""


@maker
def make_work(n: int, m: int, steps: int) -> Work:
    """Room for n agents, m tasks and `steps` Frank-Wolfe steps."""
    return lay_work(np.empty((n, m)), steps)


@maker
def lay_work(profit: Floats, steps: int) -> Work:
    """The same with the oracle's profits in `profit` [N, M], which need not be cleared."""
    n, m = profit.shape
    return Work(
        make_oracle(profit),
        make_walk(n, m, steps),
        make_search(n, m),
        make_plan(n, m),
        make_plan(n, m),
        np.zeros(m),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(1, ENDED),
    )


@kernel
def secant_bonus(bonus: Floats, it: Instance, share: float) -> bool:
    """What a full task earns from its own term g_jj, per agent (or unit), times `share`; False if nothing anywhere.

    The linear programme looks at the first agent on a task only and so never starts a crowd; this does.
    """
    n, m = it.facts[0].n, it.facts[0].m
    useful = False
    for j in range(m):
        bonus[j] = 0.0
        if it.task_score[j, j] > 0.0:
            total, pairs = 0.0, 0
            for i in range(n):
                if it.use[i, j] > 0.0:
                    total += it.use[i, j]
                    pairs += 1
            crowd, each = float(n), 1.0
            if pairs == n and total > 0.0:
                crowd = min(crowd, it.room[j] * n / total)
            if it.facts[0].quadratic == LOADED:
                each = total / n
            if crowd > 1.0:
                bonus[j] = share * it.task_score[j, j] * (crowd - 1.0) * each
                useful = True
    return useful


@kernel
def random_bonus(bonus: Floats, it: Instance, scale: float, turn: int) -> None:
    """A lean towards some tasks and away from others, of the size of the scores; the same for the same turn."""
    state = np.uint64(turn)
    for j in range(it.facts[0].m):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        bonus[j] = scale * (float(state >> np.uint64(33)) / 1073741824.0 - 1.0)
        if it.facts[0].quadratic == LOADED:
            use = mean_use(it, j)
            bonus[j] /= use if use > 0.0 else 1.0


@kernel
def find_assignment(work: Work, it: Instance, settings: Settings, trace: Floats, stop: Ints) -> int:
    """Walk up from each start, round, search locally; the best assignment is left in `work.plan`. Returns a status.

    PAPER: one walk from the linear solution, then rounding. FAST: a short walk, and the secant solution as it is; local
    search, a round of kicks. BEST: more starts, kicks until none helps, then `rounds` random starts, or until stopped.
    On the smallest instances FAST leaves the rest to the proof, and the walk too unless its certificate is wanted.
    `trace` (may be empty) receives the objectives of the last walk.
    """
    n, m, effort = it.facts[0].n, it.facts[0].m, settings.effort
    scale = scale_of(it)
    small = is_small(it, settings)
    if effort == FAST and not settings.certify and small:
        clear(work.plan, it)
        complete(work.plan, it, work.keys, work.ties, work.order)
        work.relaxed[0].value, work.relaxed[0].gap = np.nan, np.nan
        return TIME_LIMIT if stop[0] != 0 else LOCAL_OPTIMUM
    wandering = effort != PAPER and n * m > EJECTING_PAIRS and are_alike(it)
    status = LOCAL_OPTIMUM
    found = effort == FAST and not small and start_from_secant(work, it, scale, stop)
    for turn in range(STARTS[effort] + settings.rounds):
        if turn > 0 and stop[0] != 0:
            break
        if not choose_bonus(work.bonus, it, effort, turn, scale):
            continue
        walked = walk_up(work.walk, work.oracle, it, work.bonus, settings.steps, scale, trace, stop)
        write_sparse(work.walk, it)
        plan = work.candidate if found else work.plan
        rule = settings.rule if effort == PAPER else STRICT
        round_point(plan, it, work.walk.rounded, rule, work.keys, work.ties, work.order)
        if effort == PAPER:
            status = walked
        else:
            improve(plan, it, work.search, effort == BEST, scale, stop)
            while effort == BEST and stop[0] == 0:
                if not eject(plan, it, scale, stop) and not kick(plan, it, work.search, KICKS[BEST], scale, stop):
                    break
            if effort == BEST and wandering and stop[0] == 0:
                wander(plan, work.search.trial, it, work.search, WANDERING * n, scale, stop)
        if turn == 0 or total_value(plan, it) > total_value(work.plan, it):
            work.relaxed[0].value, work.relaxed[0].gap = work.walk.ended[0].value, work.walk.ended[0].gap
        if found and total_value(plan, it) > total_value(work.plan, it):
            copy_plan(work.plan, plan, n, m)
        found = True
    if effort == FAST and not small and stop[0] == 0:
        improve(work.plan, it, work.search, True, scale, stop)
        kick(work.plan, it, work.search, KICKS[FAST], scale, stop)
        if wandering and stop[0] == 0:
            wander(work.plan, work.search.trial, it, work.search, WANDERING * n, scale, stop)
        while n * m <= EJECTING_PAIRS and stop[0] == 0 and eject(work.plan, it, scale, stop):
            improve(work.plan, it, work.search, True, scale, stop)
    return TIME_LIMIT if stop[0] != 0 else status


@glue
def start_from_secant(work: Work, it: Instance, scale: float, stop: Ints) -> bool:
    """Round and improve the solution that sees what full tasks earn; False if none would earn anything."""
    useful = secant_bonus(work.bonus, it, 1.0)
    if useful:
        solve_for_bonus(work.oracle, it, work.bonus, False, stop)
        read_vertex(work.oracle, it)
        round_point(work.plan, it, work.oracle.vertex, STRICT, work.keys, work.ties, work.order)
        improve(work.plan, it, work.search, False, scale, stop)
    return useful


@kernel
def choose_bonus(bonus: Floats, it: Instance, effort: int, turn: int, scale: float) -> bool:
    """What is added to the scores for the start of a turn: nothing, shares of the secant, then at random.

    False if the turn would start where the first did.
    """
    if turn == 0:
        bonus[:] = 0.0
    elif turn >= STARTS[effort]:
        random_bonus(bonus, it, scale, turn)
    else:
        return secant_bonus(bonus, it, 2.0 * turn / STARTS[effort])
    return True


@kernel
def judge(work: Work, it: Instance, status: int, limit: float, proven: Any) -> int:
    """What follows for the answer from nothing exceeding `limit`; its status, which is OPTIMAL if that proves it."""
    proven.relaxed, proven.frank_wolfe_gap = work.relaxed[0].value, work.relaxed[0].gap
    proven.bound = np.nan
    if limit < np.inf and settle_bound(proven, work.plan, it, total_value(work.plan, it), limit):
        status = OPTIMAL
    if status == OPTIMAL:
        proven.bound = value_of(work.plan, it)
    return status


@entry
def solve_batch(begin: int, end: int, given: Given, settings: Settings, out: Output, space: Floats, stop: Ints) -> None:
    """Solve instances begin..end-1; see `muster.assign.batch`."""
    n, m = given.scores.shape[1], given.scores.shape[2]
    it = lay_instance(space, True)
    work, bounds = lay_work(space[WORKSPACES - 1], settings.steps), make_bounds(n, m)
    prices, proof, untraced = np.zeros(m), np.zeros(1, PROVEN), np.zeros(0)
    for b in range(begin, end):
        if not fill_instance(it, given, b, settings.assign_all):
            out.status[b] = INVALID
            continue
        prices[:] = 0.0
        status = find_assignment(work, it, settings, untraced, stop)
        limit = bound_answer(
            bounds, work.plan, work.candidate, work.oracle, work.walk, work.search, it, settings, prices, proof[0], stop
        )
        out.status[b] = judge(work, it, status, limit, proof[0])
        if not settings.certify and out.status[b] != OPTIMAL:
            proof[0].bound = np.nan
        write_answer(out, b, work.plan, it, prices, proof[0])
