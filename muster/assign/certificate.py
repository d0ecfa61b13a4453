"""What is proven about an answer: prices, the value that they bound, and why an agent has no task."""

from __future__ import annotations

from typing import Any

import numpy as np

from muster.assign.extremes import larger
from muster.assign.instance import CAPACITY_TOLERANCE, LOADED, Instance, fits
from muster.assign.oracle import Oracle, bonus_of
from muster.assign.outcomes import BETTER_LEFT_OUT, NEGATIVE_SCORES, NO_CAPACITY
from muster.assign.rounding import Plan, join_gain
from muster.compile import kernel, leaf
from muster.data import Floats

PROVEN = np.dtype(
    (
        np.record,
        [("relaxed", np.float64), ("duality_gap", np.float64), ("frank_wolfe_gap", np.float64), ("bound", np.float64)],
    )
)
"""Value of the relaxed solution, the two gaps, and what no assignment is worth more than; NaN for what is not known."""

# An assignment is proven optimal when it is within this share of the bound.
PROOF_TOLERANCE = 1e-9


@leaf
def primal_value(oracle: Oracle, it: Instance, bonus: Floats) -> float:
    """Value of the oracle's vertex under its profits."""
    point, loaded = oracle.vertex, it.facts[0].quadratic == LOADED
    total = 0.0
    for i in range(it.facts[0].n):
        placed = 0.0
        for k in range(point.first[i], point.first[i + 1]):
            placed += point.value[k]
            j = point.task[k]
            total += point.value[k] * (it.score[i, j] + bonus_of(it, i, j, bonus, loaded))
        total += it.facts[0].idle * (1.0 - placed)
    return total


@kernel
def set_prices(oracle: Oracle, it: Instance, bonus: Floats, prices: Floats) -> float:
    """Prices of the tasks, and the dual value that they prove: no relaxed assignment is worth more under the profits.

    The proof uses the prices alone: sum_j u_j pi_j + sum_i max(idle, max_j w_ij - mu_ij pi_j).
    """
    n, m = it.facts[0].n, it.facts[0].m
    tree, loaded = oracle.tree, it.facts[0].quadratic == LOADED
    for j in range(m):
        price = max(0.0, tree.dual[n + j] * it.price_scale[j]) if n > 0 else 0.0
        if it.room[j] <= 0.0:
            # Capacity that is not there costs nothing in the proof: the least price that keeps everyone away.
            for i in range(n):
                if it.use[i, j] > 0.0 and it.score[i, j] > -np.inf:
                    worth = it.facts[0].idle
                    for k in range(m):
                        if it.room[k] > 0.0 or it.use[i, k] == 0.0:
                            lost = it.use[i, k] * max(0.0, tree.dual[n + k] * it.price_scale[k])
                            worth = max(worth, it.score[i, k] + bonus_of(it, i, k, bonus, loaded) - lost)
                    price = max(price, (it.score[i, j] + bonus_of(it, i, j, bonus, loaded) - worth) / it.use[i, j])
        prices[j] = price
    return priced(it, bonus, prices)


@leaf
def largest_net(scores: Floats, bonus: Floats, uses: Floats, prices: Floats) -> float:
    """The largest score with its bonus that is left of an agent's after the prices."""
    best = -np.inf
    for j in range(scores.shape[0]):
        best = larger(scores[j] + bonus[j] - uses[j] * prices[j], best)
    return best


@kernel
def priced(it: Instance, bonus: Floats, prices: Floats) -> float:
    """What prices prove: nothing is worth more; sum_j u_j pi_j + sum_i max(idle, max_j w_ij - mu_ij pi_j)."""
    n, m, loaded = it.facts[0].n, it.facts[0].m, it.facts[0].quadratic == LOADED
    total, closed = 0.0, False
    for j in range(m):
        if prices[j] > 0.0:
            total += it.room[j] * prices[j]
        closed |= it.room[j] <= 0.0
    for i in range(n):
        best = it.facts[0].idle
        if closed or loaded:
            for j in range(m):
                # Whoever needs capacity that is not there is kept away without a price.
                if it.room[j] > 0.0 or it.use[i, j] == 0.0:
                    best = max(best, it.score[i, j] + bonus_of(it, i, j, bonus, loaded) - it.use[i, j] * prices[j])
        else:
            best = max(best, largest_net(it.score[i, :m], bonus, it.use[i, :m], prices))
        total += best
    return total


@kernel
def is_feasible(plan: Plan, it: Instance) -> bool:
    """Whether no capacity is exceeded: rounding as the original does may."""
    feasible = True
    for j in range(it.facts[0].m):
        feasible &= plan.load[j] <= it.room[j] * (1.0 + CAPACITY_TOLERANCE)
    return feasible


@kernel
def settle_bound(proven: Any, plan: Plan, it: Instance, value: float, limit: float) -> bool:
    """Note the bound that follows from `limit`; whether it proves the plan to be optimal.

    No assignment is worth more than `limit` with the penalty for agents left out, nor is the plan, with its own
    `value`. Where assignments are assign_all, this bounds those that leave nobody out; where somebody is left out, it
    bounds nothing unless it is reached.
    """
    feasible = is_feasible(plan, it)
    reached = feasible and value >= limit - PROOF_TOLERANCE * max(abs(limit), abs(value))
    penalty = 0.0
    for i in range(it.facts[0].n):
        if plan.task[i] < 0:
            penalty += it.facts[0].idle
    if penalty == 0.0:
        proven.bound = max(limit, value) if feasible else limit
    elif reached:
        proven.bound = value - penalty
    return reached


@kernel
def reason_of(plan: Plan, it: Instance, i: int) -> int:
    """Why agent i has no task."""
    wanted, room = False, False
    for j in range(it.facts[0].m):
        # With task scores a task may pay in spite of its score.
        if it.score[i, j] > 0.0 or join_gain(plan, it, i, j) > it.facts[0].idle:
            wanted = True
            room = room or fits(plan.load[j], it.use[i, j], it.room[j])
    if not wanted:
        return NEGATIVE_SCORES
    return BETTER_LEFT_OUT if room else NO_CAPACITY
