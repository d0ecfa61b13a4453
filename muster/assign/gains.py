"""What a step changes: an agent gives up its task, moves to another, or trades with someone."""

from __future__ import annotations

from muster.assign.instance import CAPACITY_TOLERANCE, LOADED, Instance, fits, weight
from muster.assign.rounding import Plan, join_gain
from muster.compile import kernel, leaf
from muster.data import Floats


@leaf
def leave_gain(plan: Plan, it: Instance, i: int) -> float:
    """Change of the objective when agent i gives up its task (0 for one that has none)."""
    j = plan.task[i]
    if j < 0:
        return 0.0
    if it.facts[0].quadratic == LOADED:
        use = it.use[i, j]
        return it.facts[0].idle - it.score[i, j] - use * (plan.pull[j] - (use + 1.0) * it.task_score[j, j])
    return it.facts[0].idle - it.score[i, j] - plan.pull[j] + it.both[j, j]


@leaf
def move_gain(plan: Plan, it: Instance, i: int, k: int) -> float:
    """Change of the objective when agent i moves to task k."""
    j = plan.task[i]
    gain = leave_gain(plan, it, i) + join_gain(plan, it, i, k) - it.facts[0].idle
    return gain - weight(it, i, j) * weight(it, i, k) * it.both[j, k] if j >= 0 else gain


@leaf
def best_move(plan: Plan, it: Instance, i: int, least: float) -> tuple[float, int]:
    """The best move of agent i worth more than `least`: its gain and task (-1: give up; -2: there is none)."""
    if it.facts[0].quadratic == LOADED:
        return best_loaded_move(plan, it, i, least)
    load, pull, score, use, room, both = plan.load, plan.pull, it.score, it.use, it.room, it.both
    m, old = it.facts[0].m, plan.task[i]
    if old < 0:
        base = -it.facts[0].idle
        best, where = least - base, -2
        for k in range(m):
            gain = score[i, k] + pull[k]
            if gain > best and fits(load[k], use[i, k], room[k]):
                best, where = gain, k
        return best + base, where
    base = both[old, old] - score[i, old] - pull[old]
    best, where = least - base, -2
    if it.facts[0].idle > best:
        best, where = it.facts[0].idle, -1
    for k in range(m):
        gain = score[i, k] + pull[k] - both[old, k]
        if gain > best and k != old and fits(load[k], use[i, k], room[k]):
            best, where = gain, k
    return best + base, where


@kernel
def best_loaded_move(plan: Plan, it: Instance, i: int, least: float) -> tuple[float, int]:
    """The same where task scores act on loads."""
    old = plan.task[i]
    best, where = least, -2
    if old >= 0 and leave_gain(plan, it, i) > best:
        best, where = leave_gain(plan, it, i), -1
    for k in range(it.facts[0].m):
        gain = move_gain(plan, it, i, k)
        if gain > best and k != old and fits(plan.load[k], it.use[i, k], it.room[k]):
            best, where = gain, k
    return best, where


@leaf
def swap_fits(plan: Plan, it: Instance, i: int, k: int) -> bool:
    """Whether agents i and k can trade their tasks within the capacities."""
    a, b = plan.task[i], plan.task[k]
    slackness = 1.0 + CAPACITY_TOLERANCE
    if a >= 0 and it.use[k, a] > it.use[i, a] and plan.load[a] - it.use[i, a] + it.use[k, a] > it.room[a] * slackness:
        return False
    return not (
        b >= 0 and it.use[i, b] > it.use[k, b] and plan.load[b] - it.use[k, b] + it.use[i, b] > it.room[b] * slackness
    )


@leaf
def best_swap(plan: Plan, it: Instance, own: Floats, i: int, least: float) -> tuple[float, int]:
    """The best swap of agent i worth more than `least`: its gain and the other agent (-1: there is none).

    Swaps leave the number of agents on every task unchanged, so only scores count; `own` has each agent's present one.
    """
    if it.facts[0].quadratic == LOADED:
        return best_loaded_swap(plan, it, own, i, least)
    task, score = plan.task, it.score
    n, a = it.facts[0].n, plan.task[i]
    best, partner = least, -1
    mine = own[i]
    for k in range(n):
        b = task[k]
        if b == a:
            continue
        gain = -mine - own[k]
        if b >= 0:
            gain += score[i, b]
        if a >= 0:
            gain += score[k, a]
        if gain > best and swap_fits(plan, it, i, k):
            best, partner = gain, k
    return best, partner


@kernel
def best_loaded_swap(plan: Plan, it: Instance, own: Floats, i: int, least: float) -> tuple[float, int]:
    """The same where task scores act on loads, which swaps change."""
    n, a = it.facts[0].n, plan.task[i]
    best, partner = least, -1
    for k in range(n):
        b = plan.task[k]
        if b != a:
            gain = swap_gain(plan, it, own, i, k)
            if gain > best and swap_fits(plan, it, i, k):
                best, partner = gain, k
    return best, partner


@leaf
def swap_gain(plan: Plan, it: Instance, own: Floats, i: int, k: int) -> float:
    """Change of the objective when agents i and k, which have not the same task, trade theirs."""
    a, b = plan.task[i], plan.task[k]
    gain, more_a, more_b = -own[i] - own[k], 0.0, 0.0
    if a >= 0:
        more_a = weight(it, k, a) - weight(it, i, a)
        gain += it.score[k, a] + more_a * (plan.pull[a] + (more_a - 1.0) * it.task_score[a, a])
    if b >= 0:
        more_b = weight(it, i, b) - weight(it, k, b)
        gain += it.score[i, b] + more_b * (plan.pull[b] + (more_b - 1.0) * it.task_score[b, b])
    return gain + more_a * more_b * it.both[a, b] if a >= 0 and b >= 0 else gain
