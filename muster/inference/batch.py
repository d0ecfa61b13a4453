"""Batches: every instance solved on its own, in parallel, with its certificate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.compile import entry, glue, kernel
from muster.data import Bools, Floats, Ints
from muster.inference import frank_wolfe, quadratic, transport
from muster.inference.instance import Instance, fits, lay_instance, load
from muster.inference.oracle import Oracle, maximise, read_vertex, set_profits
from muster.inference.quadratic import Work, lay_work
from muster.inference.rounding import Plan, clear, place, round_point, value_of

AMAX, LP, QUAD = 0, 1, 2

OPTIMAL, ROUNDED, LOCAL_OPTIMUM, CONVERGED, STALLED, ITERATION_LIMIT, TIME_LIMIT, INVALID = range(8)
ASSIGNED, NEGATIVE_SCORES, NO_CAPACITY, BETTER_LEFT_OUT, NOT_ALIVE = range(5)

# Arrays of size [N, M] that a thread works in. numpy allocates them, on huge pages where the system has them: touching
# so much fresh memory page by page would take longer than solving.
WORKSPACES = 5
# The rounded assignment is proven optimal when it is within this share of the relaxed value.
PROOF_TOLERANCE = 1e-9


class Output(NamedTuple):
    """Where the kernels write the fields of a Solution, row by row."""

    assignment: Ints
    objective: Floats
    relaxed: Floats
    status: Ints
    duality_gap: Floats
    frank_wolfe_gap: Floats
    loads: Floats
    prices: Floats
    reason: Ints


class Settings(NamedTuple):
    """How to solve."""

    method: int
    effort: int
    steps: int
    rule: int
    forced: bool
    rounds: int
    certify: bool


@kernel
def greedy(plan: Plan, it: Instance) -> None:
    """AMAX: every agent takes its best task if that is worth more than leaving it out."""
    n, m = it.size[0], it.size[1]
    clear(plan, it)
    for i in range(n):
        best, where = it.idle[0], -1
        for j in range(m):
            if it.score[i, j] > best:
                best, where = it.score[i, j], j
        if where >= 0:
            place(plan, it, i, where)


@kernel
def primal_value(oracle: Oracle, it: Instance, bonus: Floats) -> float:
    """Value of the oracle's vertex under its profits."""
    point = oracle.vertex
    total = 0.0
    for i in range(it.size[0]):
        placed = 0.0
        for k in range(point.first[i], point.first[i + 1]):
            placed += point.value[k]
            total += point.value[k] * (it.score[i, point.task[k]] + bonus[point.task[k]])
        total += it.idle[0] * (1.0 - placed)
    return total


@kernel
def certify(oracle: Oracle, it: Instance, bonus: Floats, prices: Floats) -> float:
    """Prices of the tasks, and the dual value that they prove: no relaxed assignment is worth more under the profits.

    The proof uses the prices alone: sum_j u_j pi_j + sum_i max(idle, max_j w_ij - mu_ij pi_j).
    """
    n, m = it.size[0], it.size[1]
    tree = oracle.tree
    for j in range(m):
        price = max(0.0, tree.dual[n + j] * it.price_scale[j]) if n > 0 else 0.0
        if it.room[j] <= 0.0:
            # Capacity that is not there costs nothing in the proof: the least price that keeps everyone away.
            for i in range(n):
                if it.use[i, j] > 0.0 and it.score[i, j] > -np.inf:
                    worth = it.idle[0]
                    for k in range(m):
                        if it.room[k] > 0.0 or it.use[i, k] == 0.0:
                            lost = it.use[i, k] * max(0.0, tree.dual[n + k] * it.price_scale[k])
                            worth = max(worth, it.score[i, k] + bonus[k] - lost)
                    price = max(price, (it.score[i, j] + bonus[j] - worth) / it.use[i, j])
        prices[j] = price
    total = 0.0
    for j in range(m):
        if prices[j] > 0.0:
            total += it.room[j] * prices[j]
    for i in range(n):
        best = it.idle[0]
        for j in range(m):
            best = max(best, it.score[i, j] + bonus[j] - it.use[i, j] * prices[j])
        total += best
    return total


@kernel
def reason_of(plan: Plan, it: Instance, i: int) -> int:
    """Why agent i has no task."""
    wanted, room = False, False
    for j in range(it.size[1]):
        # With task scores a task may pay in spite of its score.
        if it.score[i, j] > 0.0 or it.score[i, j] + plan.pull[j] > it.idle[0]:
            wanted = True
            room = room or fits(plan.load[j], it.use[i, j], it.room[j])
    if not wanted:
        return NEGATIVE_SCORES
    return BETTER_LEFT_OUT if room else NO_CAPACITY


@glue
def solve_instance(work: Work, it: Instance, settings: Settings, prices: Floats, numbers: Floats, stop: Ints) -> int:
    """Solve what is loaded in `it`; the plan is left in `work.plan`.

    Writes to `numbers`: relaxed objective, duality gap, Frank-Wolfe gap. Returns a status.
    """
    numbers[1], numbers[2] = np.nan, np.nan
    prices[: it.size[1]] = 0.0
    if settings.method == AMAX:
        greedy(work.plan, it)
        numbers[0] = value_of(work.plan, it)
        status = OPTIMAL
    elif settings.method == LP:
        work.bonus[:] = 0.0
        solved = maximise(work.oracle, it, set_profits(work.oracle, it, work.bonus), False, stop)
        read_vertex(work.oracle, it)
        round_point(work.plan, it, work.oracle.vertex, settings.rule, work.keys, work.ties, work.order)
        status = judge(work.oracle, work.plan, it, work.bonus, settings.certify, prices, numbers)
        if solved != transport.OPTIMAL:
            status = TIME_LIMIT
    else:
        found = quadratic.solve(
            work,
            it,
            settings.effort,
            settings.steps,
            settings.rule,
            settings.rounds,
            settings.certify,
            np.zeros(0),
            stop,
        )
        numbers[0], numbers[2] = work.relaxed[0], work.relaxed[1]
        if settings.certify:
            # The last linear programme's profits are the gradient where the last walk stopped.
            slope = work.walk.slope
            numbers[1] = certify(work.oracle, it, slope, prices) - primal_value(work.oracle, it, slope)
        status = ITERATION_LIMIT
        if found == frank_wolfe.STOPPED:
            status = TIME_LIMIT
        elif found == quadratic.OPTIMUM:
            status = OPTIMAL
        elif found == quadratic.LOCAL_OPTIMUM:
            status = LOCAL_OPTIMUM
        elif found == frank_wolfe.CONVERGED:
            status = CONVERGED
        elif found == frank_wolfe.STALLED:
            status = STALLED
    return status


@kernel
def judge(
    oracle: Oracle, plan: Plan, it: Instance, bonus: Floats, with_prices: bool, prices: Floats, numbers: Floats
) -> int:
    """Relaxed value and duality gap of a solved linear programme; OPTIMAL if the plan is as good as the relaxation."""
    point = oracle.vertex
    relaxed = primal_value(oracle, it, bonus)
    left_out, rounded = 0.0, 0.0
    for i in range(it.size[0]):
        left_out += 1.0
        for k in range(point.first[i], point.first[i + 1]):
            left_out -= point.value[k]
        rounded += it.score[i, plan.task[i]] if plan.task[i] >= 0 else it.idle[0]
    numbers[0] = relaxed - it.idle[0] * left_out
    if with_prices:
        numbers[1] = certify(oracle, it, bonus, prices) - relaxed
    return OPTIMAL if rounded >= relaxed - PROOF_TOLERANCE * max(abs(relaxed), abs(rounded)) else ROUNDED


@entry
def solve_range(
    begin: int,
    end: int,
    scores: Floats,
    task_scores: Floats,
    contributions: Floats,
    capacities: Floats,
    agent_alive: Bools,
    task_alive: Bools,
    settings: Settings,
    out: Output,
    space: Floats,
    stop: Ints,
) -> None:
    """Solve instances begin..end-1 one after the other, without the interpreter's lock.

    `space` [WORKSPACES, N, M] is scratch.
    """
    m_max = scores.shape[2]
    it = lay_instance(space, task_scores.shape[0] > 0)
    work = lay_work(space[WORKSPACES - 1], settings.steps if settings.method == QUAD else -1)
    prices, numbers = np.zeros(m_max), np.zeros(3)
    nothing = np.zeros((0, 0))
    for b in range(begin, end):
        if not load(
            it,
            scores[b],
            task_scores[b] if task_scores.shape[0] > 0 else nothing,
            contributions[b] if contributions.shape[0] > 0 else nothing,
            capacities[b],
            agent_alive[b],
            task_alive[b],
            settings.forced,
        ):
            out.status[b] = INVALID
            continue
        out.status[b] = solve_instance(work, it, settings, prices, numbers, stop)
        n, m = it.size[0], it.size[1]
        plan = work.plan
        out.objective[b] = value_of(plan, it)
        out.relaxed[b], out.duality_gap[b], out.frank_wolfe_gap[b] = numbers[0], numbers[1], numbers[2]
        for i in range(n):
            agent = it.agents[i]
            if plan.task[i] >= 0:
                out.assignment[b, agent] = it.tasks[plan.task[i]]
                out.reason[b, agent] = ASSIGNED
            elif settings.certify:
                out.reason[b, agent] = reason_of(plan, it, i)
        for j in range(m):
            out.loads[b, it.tasks[j]] = plan.load[j]
            out.prices[b, it.tasks[j]] = prices[j]
