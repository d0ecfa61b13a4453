"""LP: the best relaxed assignment for the scores alone, exactly, then rounded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.compile import entry, kernel, maker
from muster.data import Floats, Ints
from muster.inference.batch import WORKSPACES, Output, Settings, write_answer
from muster.inference.certificate import PROVEN, primal_value, set_prices, settle_bound
from muster.inference.instance import Given, Instance, fill_instance, lay_instance
from muster.inference.oracle import Oracle, make_oracle, maximise, read_vertex, set_profits
from muster.inference.outcomes import INVALID, OPTIMAL, ROUNDED, TIME_LIMIT
from muster.inference.rounding import Plan, make_plan, round_point


class Work(NamedTuple):
    """Everything that solving one instance needs, reused from one instance to the next."""

    oracle: Oracle
    plan: Plan
    """The answer."""
    bonus: Floats
    """[M] zeros: nothing is added to the scores."""
    keys: Floats
    ties: Floats
    order: Ints


@maker
def lay_work(profit: Floats) -> Work:
    """Room for [N, M] = the shape of `profit`, where the oracle keeps its profits and which need not be cleared."""
    n, m = profit.shape
    return Work(make_oracle(profit), make_plan(n, m), np.zeros(m), np.zeros(n), np.zeros(n), np.zeros(n, np.int64))


@kernel
def judge(work: Work, it: Instance, certify: bool, prices: Floats, proven: Any) -> int:
    """What is proven about a solved linear programme and its rounding: OPTIMAL if no assignment is better."""
    point, plan, idle = work.oracle.vertex, work.plan, it.facts[0].idle
    relaxed = primal_value(work.oracle, it, work.bonus)
    left_out, rounded = 0.0, 0.0
    for i in range(it.facts[0].n):
        left_out += 1.0
        for k in range(point.first[i], point.first[i + 1]):
            left_out -= point.value[k]
        rounded += it.score[i, plan.task[i]] if plan.task[i] >= 0 else idle
    proven.relaxed = relaxed - idle * left_out
    proven.duality_gap, proven.frank_wolfe_gap, proven.bound = np.nan, np.nan, np.nan
    limit = relaxed
    if certify:
        limit = set_prices(work.oracle, it, work.bonus, prices)
        proven.duality_gap = limit - relaxed
    reached = settle_bound(proven, plan, it, rounded, limit)
    if not certify:
        # Believed, not proven.
        proven.bound = np.nan
    return OPTIMAL if reached else ROUNDED


@entry
def solve_batch(begin: int, end: int, given: Given, settings: Settings, out: Output, space: Floats, stop: Ints) -> None:
    """Solve instances begin..end-1; see `muster.inference.batch`."""
    it = lay_instance(space, False)
    work = lay_work(space[WORKSPACES - 1])
    prices, proof = np.zeros(given.scores.shape[2]), np.zeros(1, PROVEN)
    for b in range(begin, end):
        if not fill_instance(it, given, b, settings.forced):
            out.status[b] = INVALID
            continue
        prices[:] = 0.0
        solved = maximise(work.oracle, it, set_profits(work.oracle, it, work.bonus), False, stop)
        read_vertex(work.oracle, it)
        round_point(work.plan, it, work.oracle.vertex, settings.rule, work.keys, work.ties, work.order)
        status = judge(work, it, settings.certify, prices, proof[0])
        # The value of a programme that was stopped bounds nothing, but its prices do all the same.
        out.status[b] = status if solved == OPTIMAL or (status == OPTIMAL and settings.certify) else TIME_LIMIT
        write_answer(out, b, work.plan, it, prices, proof[0])
