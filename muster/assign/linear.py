"""LP: the best relaxed assignment for the scores alone, exactly, then rounded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.assign.batch import WORKSPACES, Output, Settings, write_answer
from muster.assign.certificate import PROVEN, primal_value, set_prices, settle_bound
from muster.assign.given import Given
from muster.assign.instance import TRANSPORT, Instance, fill_instance, lay_instance
from muster.assign.oracle import (
    Oracle,
    make_oracle,
    maximise_generalised,
    maximise_transport,
    read_vertex,
    set_profits,
)
from muster.assign.outcomes import INVALID, OPTIMAL, ROUNDED, TIME_LIMIT
from muster.assign.rounding import Plan, make_plan, round_point
from muster.compile import entry, glue, kernel, leaf, maker
from muster.data import Floats, Ints

LEFT = 100
"""Status of an instance that `solve_batch` has left; never seen outside."""


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


@leaf
def judge(work: Work, it: Instance, certify: bool, enough: bool, prices: Floats, proven: Any) -> int:
    """What is proven about a solved linear programme and its rounding: OPTIMAL if no assignment is better.

    `enough` says that it need not be proven, where to reach the relaxed value is enough to be believed.
    """
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
    reached = False
    if enough or not certify:
        reached = settle_bound(proven, plan, it, rounded, relaxed)
        # Believed, not proven.
        proven.bound = np.nan
    if certify and not reached:
        limit = set_prices(work.oracle, it, work.bonus, prices)
        proven.duality_gap = limit - relaxed
        reached = settle_bound(proven, plan, it, rounded, limit)
    return OPTIMAL if reached else ROUNDED


@glue
def write_solved(
    out: Output, b: int, it: Instance, work: Work, settings: Settings, solved: int, prices: Floats, proven: Any
) -> None:
    """Round the solution of an instance's linear programme, judge it, and write both to row b."""
    prices[:] = 0.0
    read_vertex(work.oracle, it)
    round_point(work.plan, it, work.oracle.vertex, settings.rule, work.keys, work.ties, work.order)
    enough = solved == OPTIMAL and not settings.asked
    status = judge(work, it, settings.certify, enough, prices, proven)
    # The value of a programme that was stopped bounds nothing, but its prices do all the same.
    out.status[b] = status if solved == OPTIMAL or (status == OPTIMAL and settings.certify) else TIME_LIMIT
    write_answer(out, b, work.plan, it, prices, proven)


@kernel
def solve_range(
    begin: int, end: int, given: Given, settings: Settings, out: Output, it: Instance, work: Work, prices: Floats,
    proof: Any, stop: Ints,
) -> None:  # fmt: skip
    """Solve instances begin..end-1 with the memory that is passed in."""
    for b in range(begin, end):
        if not fill_instance(it, given, b, settings.assign_all):
            out.status[b] = INVALID
        elif it.facts[0].kind != TRANSPORT:
            out.status[b] = LEFT
        else:
            solved = maximise_transport(work.oracle, it, set_profits(work.oracle, it, work.bonus), False, stop)
            write_solved(out, b, it, work, settings, solved, prices, proof[0])


@entry
def solve_batch(begin: int, end: int, given: Given, settings: Settings, out: Output, space: Floats, stop: Ints) -> None:
    """Solve instances begin..end-1; see `muster.assign.batch`.

    Those whose contributions differ by agent and by task are left for `solve_generalised`, with that status: it is
    half of the code, and most callers need not wait for it to be compiled.
    """
    it = lay_instance(space, False)
    work = lay_work(space[WORKSPACES - 1])
    prices, proof = np.zeros(given.scores.shape[2]), np.zeros(1, PROVEN)
    # A kernel, which counts no references: that took a tenth of the time.
    solve_range(begin, end, given, settings, out, it, work, prices, proof, stop)


@kernel
def solve_listed(
    rows: Ints, begin: int, end: int, given: Given, settings: Settings, out: Output, it: Instance, work: Work,
    prices: Floats, proof: Any, stop: Ints,
) -> None:  # fmt: skip
    """Solve instances rows[begin:end], which `solve_range` has left, with the memory that is passed in."""
    for r in range(begin, end):
        fill_instance(it, given, rows[r], settings.assign_all)
        solved = maximise_generalised(work.oracle, it, set_profits(work.oracle, it, work.bonus), False, stop)
        write_solved(out, rows[r], it, work, settings, solved, prices, proof[0])


@entry
def solve_generalised(
    rows: Ints, begin: int, end: int, given: Given, settings: Settings, out: Output, space: Floats, stop: Ints
) -> None:
    """Solve instances rows[begin:end], which `solve_batch` has left."""
    it = lay_instance(space, False)
    work = lay_work(space[WORKSPACES - 1])
    prices, proof = np.zeros(given.scores.shape[2]), np.zeros(1, PROVEN)
    solve_listed(rows, begin, end, given, settings, out, it, work, prices, proof, stop)
