"""How far what the steps of the local search say is from what is worth more afterwards, where loads count.

`NUMBA_DISABLE_JIT=1 python -m tests.assign.steps` prints the largest difference, and how many steps were tried.
"""

from __future__ import annotations

import numpy as np

from muster.assign.entries import read_problem
from muster.assign.gains import leave_gain, move_gain, swap_fits, swap_gain
from muster.assign.instance import LOADED, fill_instance, fits, make_instance
from muster.assign.local_search import total_value
from muster.assign.rounding import clear, join_gain, make_plan, reassign, value_of
from tests.assign.cases import make_problem


def differences(given, plans):
    """By how much what the steps say differs from what is worth more afterwards, at most, and how many were tried."""
    n, m = given.scores.shape[1], given.scores.shape[2]
    it, plan, own = make_instance(n, m, True), make_plan(n, m), np.zeros(n)
    worst, tried = 0.0, 0
    for b in range(given.scores.shape[0]):
        fill_instance(it, given, b, False)
        if it.facts[0].quadratic != LOADED:
            return np.inf, 0
        clear(plan, it)
        for i in range(n):
            j = plans[b, i]
            if j >= 0 and fits(plan.load[j], it.use[i, j], it.room[j]):
                reassign(plan, it, i, j)
        before = total_value(plan, it)
        worst = max(worst, abs(before - value_of(plan, it)))
        for i in range(n):
            old = plan.task[i]
            own[i] = it.score[i, old] if old >= 0 else 0.0
        for i in range(n):
            old = plan.task[i]
            said = leave_gain(plan, it, i)
            reassign(plan, it, i, -1)
            worst = max(worst, abs(total_value(plan, it) - before - said))
            for k in range(m):
                if fits(plan.load[k], it.use[i, k], it.room[k]):
                    alone, joined = total_value(plan, it), join_gain(plan, it, i, k)
                    reassign(plan, it, i, k)
                    worst = max(worst, abs(total_value(plan, it) - alone - joined))
                    reassign(plan, it, i, old)
                    moved = move_gain(plan, it, i, k) if k != old else 0.0
                    reassign(plan, it, i, k)
                    worst = max(worst, abs(total_value(plan, it) - before - moved))
                    reassign(plan, it, i, -1)
                    tried += 1
            reassign(plan, it, i, old)
        for i in range(n):
            for k in range(n):
                a, c = plan.task[i], plan.task[k]
                if a != c and swap_fits(plan, it, i, k):
                    said = swap_gain(plan, it, own, i, k)
                    reassign(plan, it, i, -1)
                    reassign(plan, it, k, a)
                    reassign(plan, it, i, c)
                    worst = max(worst, abs(total_value(plan, it) - before - said))
                    reassign(plan, it, i, -1)
                    reassign(plan, it, k, c)
                    reassign(plan, it, i, a)
                    tried += 1
    return worst, tried


if __name__ == "__main__":
    problem = make_problem("pair", "normal", 20, 6, 5, seed=29, pulls="indefinite")
    print(*differences(read_problem(problem, True, by_load=True), np.random.default_rng(3).integers(-1, 5, (20, 6))))
