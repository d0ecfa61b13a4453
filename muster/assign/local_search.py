"""Improve an assignment by moves, swaps and kicks until none helps.

A sweep finds the best step of every agent, then takes them in order of their gain, each checked again before it is
taken. So the result does not depend on how agents and tasks are numbered, ties aside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.assign.gains import best_move, best_swap, leave_gain, move_gain
from muster.assign.instance import LOADED, Instance, fits
from muster.assign.rounding import Plan, best_to_join, copy_plan, make_plan, rank, reassign
from muster.compile import kernel, maker
from muster.data import Floats, Ints

# Gains below this share of the largest score are rounding errors.
GAIN_TOLERANCE = 1e-11


class Search(NamedTuple):
    """Scratch of the local search."""

    gain: Floats
    """[N] of the best step of each agent."""
    own: Floats
    """[N] each agent's score of its present task."""
    order: Ints
    zeros: Floats
    trial: Plan
    kick_gain: Floats
    """[2M] of filling task j, of emptying it (M + j)."""
    kick_order: Ints
    kick_zeros: Floats


@maker
def make_search(n: int, m: int) -> Search:
    """Room for n agents and m tasks."""
    return Search(
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n),
        make_plan(n, m),
        np.zeros(2 * m),
        np.zeros(2 * m, np.int64),
        np.zeros(2 * m),
    )


@kernel
def sweep_moves(plan: Plan, it: Instance, search: Search, least: float) -> bool:
    """One sweep of moves; whether any was made."""
    n = it.facts[0].n
    count = 0
    for i in range(n):
        gain, where = best_move(plan, it, i, least)
        if where > -2:
            search.gain[i] = gain
            search.order[count] = i
            count += 1
    rank(search.gain, search.zeros, search.order, count)
    moved = False
    for a in range(count):
        i = search.order[a]
        # Earlier moves of this sweep have changed the gains.
        gain, where = best_move(plan, it, i, least)
        if where > -2:
            reassign(plan, it, i, where)
            moved = True
    return moved


@kernel
def sweep_swaps(plan: Plan, it: Instance, search: Search, least: float) -> bool:
    """One sweep of swaps; whether any was made."""
    n, own = it.facts[0].n, search.own
    for i in range(n):
        own[i] = it.score[i, plan.task[i]] if plan.task[i] >= 0 else 0.0
    count = 0
    for i in range(n):
        gain, partner = best_swap(plan, it, own, i, least)
        if partner >= 0:
            search.gain[i] = gain
            search.order[count] = i
            count += 1
    rank(search.gain, search.zeros, search.order, count)
    swapped = False
    for a in range(count):
        i = search.order[a]
        _, k = best_swap(plan, it, own, i, least)
        if k >= 0:
            first, second = plan.task[i], plan.task[k]
            reassign(plan, it, i, -1)
            reassign(plan, it, k, first)
            reassign(plan, it, i, second)
            own[i] = it.score[i, second] if second >= 0 else 0.0
            own[k] = it.score[k, first] if first >= 0 else 0.0
            swapped = True
    return swapped


@kernel
def improve(plan: Plan, it: Instance, search: Search, swaps: bool, scale: float, stop: Ints) -> None:
    """Moves, and swaps (if wanted) where no move helps, until neither does."""
    least = GAIN_TOLERANCE * scale
    while stop[0] == 0:
        if sweep_moves(plan, it, search, least):
            continue
        if not swaps or not sweep_swaps(plan, it, search, least):
            return


@kernel
def eject(plan: Plan, it: Instance, scale: float, stop: Ints) -> bool:
    """The best move into a task without room that sends one of its agents elsewhere, if any helps; whether one did.

    Costs far more than moves and swaps, and helps where contributions differ.
    """
    n, m = it.facts[0].n, it.facts[0].m
    best, mover, target, victim, refuge = GAIN_TOLERANCE * scale, -1, -1, -1, -1
    for k in range(m):
        for other in range(n):
            if plan.task[other] != k:
                continue
            if stop[0] != 0:
                return False
            lost = leave_gain(plan, it, other)
            reassign(plan, it, other, -1)
            for i in range(n):
                old = plan.task[i]
                if i == other or old == k or not fits(plan.load[k], it.use[i, k], it.room[k]):
                    continue
                gain = lost + move_gain(plan, it, i, k)
                if gain == -np.inf:
                    continue
                reassign(plan, it, i, k)
                again, where = best_to_join(plan, it, other)
                if where >= 0:
                    gain += again
                if gain > best:
                    best, mover, target, victim, refuge = gain, i, k, other, where
                reassign(plan, it, i, old)
            reassign(plan, it, other, k)
    if mover < 0:
        return False
    reassign(plan, it, victim, -1)
    reassign(plan, it, mover, target)
    reassign(plan, it, victim, refuge)
    return True


@kernel
def fill(plan: Plan, it: Instance, search: Search, j: int) -> float:
    """Send to task j the agents that gain most, until it is full; returns the gain, which may be negative."""
    n = it.facts[0].n
    count = 0
    for i in range(n):
        if plan.task[i] != j and it.score[i, j] > -np.inf:
            search.gain[i] = move_gain(plan, it, i, j)
            search.order[count] = i
            count += 1
    rank(search.gain, search.zeros, search.order, count)
    total = 0.0
    for a in range(count):
        i = search.order[a]
        if fits(plan.load[j], it.use[i, j], it.room[j]):
            total += move_gain(plan, it, i, j)
            reassign(plan, it, i, j)
    return total


@kernel
def empty(plan: Plan, it: Instance, search: Search, j: int) -> float:
    """Send every agent of task j to the best of its other choices, or to none; returns the gain."""
    total = 0.0
    count = 0
    for i in range(it.facts[0].n):
        if plan.task[i] == j:
            total += leave_gain(plan, it, i)
            reassign(plan, it, i, -1)
            search.order[count] = i
            count += 1
    room = it.room[j]
    it.room[j] = -1.0
    for a in range(count):
        search.gain[search.order[a]], _ = best_to_join(plan, it, search.order[a])
    rank(search.gain, search.zeros, search.order, count)
    for a in range(count):
        gain, where = best_to_join(plan, it, search.order[a])
        if where >= 0:
            total += gain
            reassign(plan, it, search.order[a], where)
    it.room[j] = room
    return total


@kernel
def list_kicks(plan: Plan, it: Instance, search: Search, tries: int) -> int:
    """Choose up to `tries` tasks to fill and as many to empty, by what a first look promises; returns how many.

    Filling is promising where the last agent to come would find the crowd worth most, emptying where those present are
    worth least.
    """
    n, m = it.facts[0].n, it.facts[0].m
    gain, order, trial = search.kick_gain, search.kick_order, search.trial
    for j in range(m):
        gain[j], gain[m + j] = -np.inf, -np.inf
        if plan.crowd[j] > 0.0:
            gain[m + j] = 0.0
    for i in range(n):
        j = plan.task[i]
        if j >= 0:
            gain[m + j] += leave_gain(plan, it, i)
    for j in range(m):
        use = mean_use(it, j)
        more = float(n) if use == 0.0 else min(float(n), (it.room[j] - plan.load[j]) / use)
        if more >= 1.0 - 1e-9:
            gain[j] = plan.pull[j] + 2.0 * it.task_score[j, j] * (more - 1.0)
            if it.facts[0].quadratic == LOADED:
                gain[j] = use * (plan.pull[j] + it.task_score[j, j] * ((2.0 * more - 1.0) * use - 1.0))
    count = 0
    for side in range(2):
        for _ in range(min(tries, m)):
            best, where = -np.inf, -1
            for j in range(side * m, (side + 1) * m):
                if gain[j] > best:
                    best, where = gain[j], j
            if where < 0:
                break
            gain[where] = -np.inf
            order[count] = where
            count += 1
    # A second look at the chosen ones: what filling or emptying them really gains at once.
    for a in range(count):
        copy_plan(trial, plan, n, m)
        if order[a] < m:
            gain[order[a]] = fill(trial, it, search, order[a])
        else:
            gain[order[a]] = empty(trial, it, search, order[a] - m)
    rank(gain, search.kick_zeros, order, count)
    return count


@kernel
def mean_use(it: Instance, j: int) -> float:
    """Mean contribution to task j."""
    total = 0.0
    for i in range(it.facts[0].n):
        total += it.use[i, j]
    return total / max(1, it.facts[0].n)


@kernel
def kick(plan: Plan, it: Instance, search: Search, tries: int, scale: float, stop: Ints) -> bool:
    """Fill or empty single tasks, the most promising first, move on from there, and keep the first that improves."""
    n, m = it.facts[0].n, it.facts[0].m
    trial = search.trial
    least = GAIN_TOLERANCE * scale
    before = total_value(plan, it)
    for a in range(list_kicks(plan, it, search, tries)):
        which = search.kick_order[a]
        if stop[0] != 0:
            break
        copy_plan(trial, plan, n, m)
        if which < m:
            fill(trial, it, search, which)
        else:
            empty(trial, it, search, which - m)
        improve(trial, it, search, False, scale, stop)
        if total_value(trial, it) > before + least:
            improve(trial, it, search, True, scale, stop)
            copy_plan(plan, trial, n, m)
            return True
    return False


@kernel
def total_value(plan: Plan, it: Instance) -> float:
    """The objective with the penalty for agents that are left out, by way of `pull`: sum h + c·(pull - diag g) / 2."""
    n, m = it.facts[0].n, it.facts[0].m
    crowd = plan.load if it.facts[0].quadratic == LOADED else plan.crowd
    total = 0.0
    for i in range(n):
        j = plan.task[i]
        total += it.score[i, j] if j >= 0 else it.facts[0].idle
    for j in range(m):
        if crowd[j] != 0.0:
            total += 0.5 * crowd[j] * (plan.pull[j] - it.task_score[j, j])
    return total
