"""What pair terms can add at most: bounds on h·b + c'gc that hold for any g.

Two of them. By shares: an agent on task j earns w (w g_jj + sum_k s_jk c_k), where s = (g + g') / 2, c counts the
others and w is what it counts for itself; the sum is at most what as many others as there are can bring, so any prices
with that as a bonus bound everything. By curvature: c_j <= C_j, so c_j² <= C_j c_j; g less a diagonal d, with
d_j C_j c_j added, is worth no less on assignments, and for d large enough it is concave, where Frank-Wolfe proves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.assign.instance import LOADED, Instance, fits, weight
from muster.assign.rounding import rank
from muster.compile import kernel, leaf, maker
from muster.data import Floats, Ints

# The diagonal that is always added is this share of the largest entry: rounding errors are far below.
LEAST_SHIFT = 1e-10
# Halvings of what the diagonal might have to be.
HALVINGS = 8


class Reach(NamedTuple):
    """What each task can take at most."""

    agents: Ints
    """[M] how many; 0 if nobody may or fits."""
    heaviest: Floats
    """[M] what one of them counts for at most, ..."""
    lightest: Floats
    """[M] ... at least, ..."""
    mass: Floats
    """[M] ... and all of them together at most."""
    use: Floats
    """[M] what one of them uses of the capacity on average, ..."""
    least: Floats
    """[M] ... and at least."""
    root: Floats
    """[M] of mass"""


@maker
def make_reach(m: int) -> Reach:
    """Room for m tasks."""
    return Reach(np.zeros(m, np.int64), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m))


@kernel
def fill_reach(reach: Reach, it: Instance) -> None:
    """Find out for every task of the instance."""
    n, m, loaded = it.facts[0].n, it.facts[0].m, it.facts[0].quadratic == LOADED
    agents, least, total = reach.agents, reach.least, reach.use
    heaviest, lightest = reach.heaviest, reach.lightest
    for j in range(m):
        agents[j], least[j], total[j] = 0, np.inf, 0.0
        heaviest[j], lightest[j] = 0.0, np.inf
    for i in range(n):
        for j in range(m):
            use = it.use[i, j]
            if it.score[i, j] > -np.inf and fits(0.0, use, it.room[j]):
                agents[j] += 1
                total[j] += use
                least[j] = min(least[j], use)
                heaviest[j] = max(heaviest[j], use)
    for j in range(m):
        lightest[j], count = least[j], float(agents[j])
        reach.mass[j] = min(total[j], it.room[j] * (1.0 + 1e-9))
        if agents[j] > 0:
            total[j] /= count
            if least[j] > 0.0:
                agents[j] = int(min(count, it.room[j] / least[j] * (1.0 + 1e-9)))
        if not loaded:
            heaviest[j], lightest[j], reach.mass[j] = min(1.0, count), 1.0, float(agents[j])
        reach.mass[j] = min(reach.mass[j], heaviest[j] * agents[j])
        reach.root[j] = np.sqrt(reach.mass[j])


@kernel
def count_closely(reach: Reach, it: Instance, keys: Floats, ties: Floats, order: Ints) -> None:
    """Let a task take no more agents than those that use least of it; keys, ties (zeros) and order [N] are scratch."""
    n = it.facts[0].n
    for j in range(it.facts[0].m):
        if reach.least[j] == reach.use[j] or it.room[j] == np.inf:
            continue
        count = 0
        for i in range(n):
            if it.score[i, j] > -np.inf and fits(0.0, it.use[i, j], it.room[j]):
                keys[i] = -it.use[i, j]
                order[count] = i
                count += 1
        rank(keys, ties, order, count)
        load, fitting = 0.0, 0
        while fitting < count and fits(load, -keys[order[fitting]], it.room[j] * (1.0 + 1e-9)):
            load -= keys[order[fitting]]
            fitting += 1
        reach.agents[j] = min(reach.agents[j], fitting)
        reach.mass[j] = min(reach.mass[j], reach.heaviest[j] * reach.agents[j])
        reach.root[j] = np.sqrt(reach.mass[j])


@leaf
def own_term(reach: Reach, it: Instance, j: int) -> float:
    """What an agent on task j earns of g_jj by itself at most, for each unit that it counts for."""
    own = it.task_score[j, j]
    return own * (reach.heaviest[j] if own > 0.0 else reach.lightest[j])


@kernel
def share_bonus(bonus: Floats, reach: Reach, it: Instance) -> None:
    """For every task what pair terms can bring to an agent on it at most, for each unit that the agent counts for."""
    n, m, both, heaviest, mass = it.facts[0].n, it.facts[0].m, it.both, reach.heaviest, reach.mass
    for j in range(m):
        total, top = 0.0, 0.0
        for k in range(m):
            pull = max(0.0, 0.5 * both[j, k])
            total += pull * mass[k]
            top = max(top, pull * heaviest[k])
        # One of the places on task j itself is taken.
        others = min(heaviest[j] * max(0, reach.agents[j] - 1), mass[j])
        total -= max(0.0, 0.5 * both[j, j]) * (mass[j] - others)
        bonus[j] = min(total, max(0, n - 1) * top) + own_term(reach, it, j) if reach.agents[j] > 0 else 0.0


@kernel
def shift_prices(shadow: Floats, prices: Floats, slope: Floats, bonus: Floats, reach: Reach, it: Instance) -> None:
    """Prices for one bonus from those for another: higher at each task as the bonus is, less the largest of the rises.

    Any prices prove something; these do nearly as well as those of a linear programme of their own.
    """
    m, loaded = it.facts[0].m, it.facts[0].quadratic == LOADED
    rise = -np.inf
    for j in range(m):
        rise = max(rise, bonus[j] - slope[j])
    for j in range(m):
        use = 1.0 if loaded or reach.use[j] == 0.0 else reach.use[j]
        shadow[j] = max(0.0, prices[j] + (bonus[j] - slope[j] - rise) / use) if it.room[j] < np.inf else 0.0


@kernel
def list_most(most: Floats, reach: Reach, it: Instance, keys: Floats, ties: Floats, order: Ints) -> None:
    """most[j, r]: what r others can add to what an agent on task j earns at most, for each unit that it counts for.

    The others take the best places that there are. keys, ties (zeros) and order [M] are scratch.
    """
    n, m = it.facts[0].n, it.facts[0].m
    for j in range(m):
        count = 0
        for k in range(m):
            keys[k] = 0.5 * it.both[j, k] * reach.heaviest[k]
            if keys[k] > 0.0 and reach.agents[k] > 0:
                order[count] = k
                count += 1
        rank(keys, ties, order, count)
        for r in range(n):
            most[j, r] = 0.0
        others, total = 0, 0.0
        for a in range(count):
            k = order[a]
            left = reach.mass[k]
            for _ in range(reach.agents[k] - (1 if k == j else 0)):
                if others + 1 >= n:
                    break
                others += 1
                total += 0.5 * it.both[j, k] * min(left, reach.heaviest[k])
                left = max(0.0, left - reach.heaviest[k])
                most[j, others] = total
        for r in range(others + 1, n):
            most[j, r] = total


@kernel
def curves_down(scratch: Floats, reach: Reach, it: Instance, shift: float) -> bool:
    """Whether shift·I - A is positive definite, where A_jk = s_jk sqrt(C_j C_k): Cholesky's way, in `scratch`."""
    m = it.facts[0].m
    for j in range(m):
        for k in range(j + 1):
            scratch[j, k] = -0.5 * it.both[j, k] * (reach.root[j] * reach.root[k])
        scratch[j, j] += shift
        if scratch[j, j] <= 0.0:
            return False
    for k in range(m):
        if not scratch[k, k] > 0.0:
            return False
        root = np.sqrt(scratch[k, k])
        for i in range(k + 1, m):
            scratch[i, k] /= root
        for i in range(k + 1, m):
            factor = scratch[i, k]
            for j in range(k + 1, i + 1):
                scratch[i, j] -= factor * scratch[j, k]
    return True


@kernel
def least_shift(reach: Reach, it: Instance) -> tuple[float, float]:
    """What is added for rounding errors, and what makes the matrix positive definite in any case (Gershgorin)."""
    m = it.facts[0].m
    largest, most = 0.0, 0.0
    for j in range(m):
        row = 0.0
        for k in range(m):
            size = abs(0.5 * it.both[j, k]) * (reach.root[j] * reach.root[k])
            largest = max(largest, size)
            row += size
        most = max(most, row)
    return LEAST_SHIFT * largest * m, most


@kernel
def find_shift(scratch: Floats, reach: Reach, it: Instance) -> float:
    """A shift that will do, near the least."""
    low, high = least_shift(reach, it)
    high += low
    if low == 0.0 or curves_down(scratch, reach, it, low):
        return low
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high) if high > 100.0 * low else 0.5 * (low + high)
        if curves_down(scratch, reach, it, middle):
            high = middle
        else:
            low = middle
    return high


@kernel
def bend_down(reach: Reach, it: Instance, shift: float) -> None:
    """Make the instance concave and worth no less at any assignment: d_j = shift / C_j."""
    n, m = it.facts[0].n, it.facts[0].m
    for j in range(m):
        if reach.mass[j] > 0.0:
            it.task_score[j, j] -= shift / reach.mass[j]
            it.both[j, j] -= 2.0 * shift / reach.mass[j]
        for i in range(n):
            bonus = shift * weight(it, i, j)
            it.score[i, j] += bonus
            if it.facts[0].restricted != 0:
                it.arc[i, j] += bonus
