"""From a relaxed assignment to a real one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.assign.instance import LOADED, Instance, fits
from muster.assign.oracle import Point
from muster.compile import kernel, leaf, maker
from muster.data import Floats, Ints

STRICT, ORIGINAL = 0, 1

# A relaxed value this near to 1 needs no rounding.
WHOLE = 1.0 - 1e-9
# The original leaves an agent out when no task that has room holds this much of it.
ORIGINAL_THRESHOLD = 0.1


class Plan(NamedTuple):
    """An assignment with what follows from it."""

    task: Ints
    """[N] -1 for none."""
    load: Floats
    """[M] contributions received."""
    crowd: Floats
    """[M] agents received."""
    pull: Floats
    """[M] (g + g') c + diag g, where c is the crowd, or the load where that counts: what one more agent on a task, or
    one more unit, adds to the task-task term."""


@maker
def make_plan(n: int, m: int) -> Plan:
    """Room for n agents and m tasks."""
    return Plan(np.full(n, -1, np.int64), np.zeros(m), np.zeros(m), np.zeros(m))


@kernel
def clear(plan: Plan, it: Instance) -> None:
    """Nobody is assigned."""
    m = it.facts[0].m
    plan.task[: it.facts[0].n] = -1
    for j in range(m):
        plan.load[j] = 0.0
        plan.crowd[j] = 0.0
        plan.pull[j] = it.task_score[j, j] if it.facts[0].quadratic != 0 else 0.0


@kernel
def copy_plan(target: Plan, source: Plan, n: int, m: int) -> None:
    """Make `target` the same as `source`."""
    for i in range(n):
        target.task[i] = source.task[i]
    for j in range(m):
        target.load[j] = source.load[j]
        target.crowd[j] = source.crowd[j]
        target.pull[j] = source.pull[j]


@leaf
def reassign(plan: Plan, it: Instance, i: int, j: int) -> None:
    """Move agent i to task j, or to none for j = -1."""
    task, load, crowd, pull = plan.task, plan.load, plan.crowd, plan.pull
    use, both, m = it.use, it.both, it.facts[0].m
    old = task[i]
    if old >= 0:
        load[old] -= use[i, old]
        crowd[old] -= 1.0
        if crowd[old] == 0.0:
            # No rounding error outlives the last agent.
            load[old] = 0.0
    if j >= 0:
        load[j] += use[i, j]
        crowd[j] += 1.0
    task[i] = j
    quadratic = it.facts[0].quadratic
    if quadratic == LOADED:
        for k in range(m):
            if old >= 0:
                pull[k] -= use[i, old] * both[old, k]
            if j >= 0:
                pull[k] += use[i, j] * both[j, k]
    elif quadratic != 0:
        if old >= 0:
            for k in range(m):
                pull[k] -= both[old, k]
        if j >= 0:
            for k in range(m):
                pull[k] += both[j, k]


@leaf
def join_gain(plan: Plan, it: Instance, i: int, j: int) -> float:
    """Change of the objective when agent i, which has no task, takes task j; without what it is worth to have none."""
    if it.facts[0].quadratic == LOADED:
        use = it.use[i, j]
        return it.score[i, j] + use * (plan.pull[j] + (use - 1.0) * it.task_score[j, j])
    return it.score[i, j] + plan.pull[j]


@kernel
def value_of(plan: Plan, it: Instance) -> float:
    """Sum h·b + c'gc"""
    n, m, quadratic = it.facts[0].n, it.facts[0].m, it.facts[0].quadratic
    total = 0.0
    for i in range(n):
        if plan.task[i] >= 0:
            total += it.score[i, plan.task[i]]
    if quadratic != 0:
        crowd = plan.load if quadratic == LOADED else plan.crowd
        for j in range(m):
            if crowd[j] != 0.0:
                row = 0.0
                for k in range(m):
                    row += it.task_score[j, k] * crowd[k]
                total += crowd[j] * row
    return total


@kernel
def rank(keys: Floats, ties: Floats, order: Ints, count: int) -> None:
    """Sort order[:count] by decreasing key, then decreasing tie, then increasing number (Shell's sort, in place)."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for a in range(gap, count):
            x = order[a]
            b = a - gap
            while b >= 0:
                y = order[b]
                if keys[y] != keys[x]:
                    behind = keys[y] < keys[x]
                elif ties[y] != ties[x]:
                    behind = ties[y] < ties[x]
                else:
                    behind = y > x
                if not behind:
                    break
                order[b + gap] = y
                b -= gap
            order[b + gap] = x
        gap //= 3


@leaf
def place_whole(plan: Plan, it: Instance, point: Point, keys: Floats, ties: Floats, order: Ints) -> int:
    """Place the agents that are on one task only; list the others in `order` with what they are ranked by."""
    first, entry, value, score = point.first, point.task, point.value, it.score
    count = 0
    for i in range(it.facts[0].n):
        best, tie, where = 0.0, -np.inf, -1
        for k in range(first[i], first[i + 1]):
            own = score[i, entry[k]]
            if value[k] > best or (value[k] == best and own > tie):
                best, tie, where = value[k], own, entry[k]
        if best >= WHOLE:
            # All whole agents fit together, so their order does not matter.
            reassign(plan, it, i, where)
        elif where >= 0:
            keys[i], ties[i] = best, tie
            order[count] = i
            count += 1
    return count


@kernel
def place_parts(plan: Plan, it: Instance, point: Point, rule: int, order: Ints, count: int) -> None:
    """Place the listed agents in turn on their largest task that has room."""
    first, entry, value, score = point.first, point.task, point.value, it.score
    for a in range(count):
        i = order[a]
        best, tie, where = 0.0, -np.inf, -1
        for k in range(first[i], first[i + 1]):
            j = entry[k]
            if rule == STRICT:
                room = fits(plan.load[j], it.use[i, j], it.room[j])
            else:
                room = it.room[j] - plan.load[j] > 0.0 and value[k] >= ORIGINAL_THRESHOLD
            if room and (value[k] > best or (value[k] == best and score[i, j] > tie)):
                best, tie, where = value[k], score[i, j], j
        if where >= 0:
            reassign(plan, it, i, where)


@kernel
def round_point(plan: Plan, it: Instance, point: Point, rule: int, keys: Floats, ties: Floats, order: Ints) -> None:
    """Agents by decreasing largest relaxed value take their largest task that has room.

    Ties go to the larger score, then to the lower index. STRICT never exceeds a capacity and then lets those who found
    no room join, best first, where it pays. ORIGINAL asks only for some room left, so the last agent may exceed a
    capacity, and for a relaxed value of 0.1.
    """
    clear(plan, it)
    count = place_whole(plan, it, point, keys, ties, order)
    if count > 0:
        rank(keys, ties, order, count)
        place_parts(plan, it, point, rule, order, count)
    if rule == STRICT:
        complete(plan, it, keys, ties, order)


@leaf
def best_to_join(plan: Plan, it: Instance, i: int) -> tuple[float, int]:
    """The task with room that the unassigned agent i gains most by taking, and the gain; -1 where none pays."""
    load, use, room = plan.load, it.use, it.room
    best, where = it.facts[0].idle, -1
    for j in range(it.facts[0].m):
        gain = join_gain(plan, it, i, j)
        if gain > best and fits(load[j], use[i, j], room[j]):
            best, where = gain, j
    return best - it.facts[0].idle, where


@kernel
def complete(plan: Plan, it: Instance, keys: Floats, ties: Floats, order: Ints) -> None:
    """Let unassigned agents join tasks with room, the largest gain first, for as long as it pays."""
    while True:
        count = 0
        for i in range(it.facts[0].n):
            if plan.task[i] < 0:
                gain, where = best_to_join(plan, it, i)
                if where >= 0:
                    keys[i], ties[i] = gain, it.score[i, where]
                    order[count] = i
                    count += 1
        if count == 0:
            return
        rank(keys, ties, order, count)
        for a in range(count):
            _, where = best_to_join(plan, it, order[a])
            if where >= 0:
                reassign(plan, it, order[a], where)
