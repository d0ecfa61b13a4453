"""Better routes by ruin and recreate: take strings of neighbouring visits out of a few routes, put each back where it
adds least, and keep the result unless it is clearly worse (after Christiaens and Vanden Berghe, 2020).

An iteration costs what it touches: positions are looked for next to a task's nearest neighbours, and a rejected change
is undone visit by visit in reverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.assign.route_positions import Lists, any_position, best_position
from muster.assign.routes import ABSENT, TOTAL, Routes, Trip, insert, measure, remove, weight, worth_of
from muster.compile import kernel, leaf, maker
from muster.data import Floats, Ints
from muster.rng import Seeds, below, uniform

# The longest string that is taken out of one route, and how many visits an iteration takes out on average.
STRING, RUINED = 10, 8
# The share of iterations that take out whatever is nearest to the seed, rather than strings of several routes.
RADIAL = 0.3
# A position is overlooked with one of these probabilities, by turns at random, so that the same visits do not always
# end where they were.
BLINK, BLIND = 0.01, 0.2
# Accepted worsening, as a share of the cost, at the first and at the last iteration.
HOT, COLD = 0.02, 1e-4
# Costs are summed afresh after so many accepted changes.
REFRESH = 1000


class Ruin(NamedTuple):
    """What an iteration took out, and everything needed to undo it."""

    visit: Ints
    """[V] taken out, in that order."""
    behind: Ints
    """[V] the node that each stood after when it was taken out."""
    key: Floats
    """[V] sorts the visits for putting them back."""
    order: Ints
    """[V]"""
    touched: Ints
    """[N] agents whose cost changed, in that order."""
    cost: Floats
    """[N] what their routes cost before."""
    mark: Ints
    """[N] the last iteration that touched (2t) or ruined (2t + 1) an agent's route."""
    filled: Ints
    """[2] visits taken out, agents touched."""


@maker
def make_ruin(visits: int, n: int) -> Ruin:
    """Room for a plan of so many visits and agents."""
    return Ruin(
        np.zeros(visits, np.int64),
        np.zeros(visits, np.int64),
        np.zeros(visits),
        np.zeros(visits, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n),
        np.full(n, -1, np.int64),
        np.zeros(2, np.int64),
    )


@kernel
def construct(trip: Trip, routes: Routes, lists: Lists, ruin: Ruin, rng: Seeds) -> None:
    """Make every visit that nobody makes yet, the farthest from all agents first, each where it adds least."""
    count = 0
    for v in range(trip.task.shape[0]):
        if routes.owner[v] == ABSENT:
            nearest = np.inf
            for k in range(lists.agents.shape[1]):
                nearest = min(nearest, trip.first[lists.agents[v, k], trip.task[v]])
            ruin.visit[count], ruin.key[count], ruin.order[count] = v, -nearest, count
            count += 1
    sort_by_key(ruin.key, ruin.order, count)
    for k in range(count):
        v = ruin.visit[ruin.order[k]]
        a = any_position(trip, routes, v, lists.copies[v])
        if a >= 0:
            insert(trip, routes, v, a)


@kernel
def sort_by_key(keys: Floats, order: Ints, count: int) -> None:
    """Sort order[:count] by increasing key, then by position (Shell's sort, in place)."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for a in range(gap, count):
            x, b = order[a], a - gap
            while b >= 0 and (keys[order[b]] > keys[x] or (keys[order[b]] == keys[x] and order[b] > x)):
                order[b + gap] = order[b]
                b -= gap
            order[b + gap] = x
        gap //= 3


@leaf
def touch(routes: Routes, ruin: Ruin, i: int, stamp: int) -> None:
    """Remember what agent i's route cost before this iteration."""
    if ruin.mark[i] < stamp:
        ruin.touched[ruin.filled[1]] = i
        ruin.cost[ruin.filled[1]] = routes.cost[i]
        ruin.filled[1] += 1
        ruin.mark[i] = stamp


@leaf
def take_out(trip: Trip, routes: Routes, ruin: Ruin, v: int, stamp: int) -> None:
    """Remove visit v and remember where it was."""
    touch(routes, ruin, routes.owner[v], stamp)
    k = ruin.filled[0]
    ruin.visit[k], ruin.behind[k] = v, routes.previous[v]
    ruin.filled[0] = k + 1
    remove(trip, routes, v)


@kernel
def take_string(trip: Trip, routes: Routes, ruin: Ruin, v: int, length: int, rng: Seeds, stamp: int) -> None:
    """Take out up to `length` visits in a row, v among them."""
    visits = trip.task.shape[0]
    a = v
    for _ in range(below(rng, 0, length)):
        if routes.previous[a] >= visits:
            break
        a = routes.previous[a]
    touch(routes, ruin, routes.owner[v], stamp)
    ruin.mark[routes.owner[v]] = stamp + 1
    for _ in range(length):
        if a >= visits:
            break
        following = routes.next[a]
        take_out(trip, routes, ruin, a, stamp)
        a = following


@kernel
def take_neighbourhood(trip: Trip, routes: Routes, lists: Lists, ruin: Ruin, rng: Seeds, stamp: int) -> None:
    """Take out what is near a seed, visit by visit or in strings; half of the seeds lie on the dearest route."""
    visits = trip.task.shape[0]
    seed = int(below(rng, 0, visits))
    if trip.power != TOTAL and uniform(rng, 0) < 0.5:
        dearest = 0
        for i in range(routes.cost.shape[0]):
            if routes.cost[i] > routes.cost[dearest]:
                dearest = i
        # A visit at random on that route: walk on from the seed's own place as often as it takes.
        a = routes.next[visits + dearest]
        length = 0
        while a < visits:
            length += 1
            if below(rng, 0, length) == 0:
                seed = a
            a = routes.next[a]
    wanted = int(1 + below(rng, 0, min(2 * RUINED - 1, visits)))
    radial = uniform(rng, 0) < RADIAL
    if routes.owner[seed] == ABSENT:
        ruin.visit[0], ruin.behind[0] = seed, ABSENT
        ruin.filled[0] = 1
    else:
        take_string(trip, routes, ruin, seed, 1 if radial else int(1 + below(rng, 0, min(STRING, wanted))), rng, stamp)
    for k in range(lists.near.shape[1]):
        if ruin.filled[0] >= wanted:
            return
        v = lists.near[seed, k]
        if radial and routes.owner[v] != ABSENT:
            take_out(trip, routes, ruin, v, stamp)
        elif routes.owner[v] != ABSENT and ruin.mark[routes.owner[v]] <= stamp:
            longest = int(min(STRING, wanted - ruin.filled[0]))
            take_string(trip, routes, ruin, v, int(1 + below(rng, 0, longest)), rng, stamp)


@kernel
def put_back(trip: Trip, routes: Routes, lists: Lists, ruin: Ruin, rng: Seeds, stamp: int) -> None:
    """Insert what was taken out, in one of three orders: at random, the farthest first, the nearest first."""
    way = below(rng, 0, 3)
    blink = BLINK if uniform(rng, 0) < 0.5 else BLIND
    count = ruin.filled[0]
    for k in range(count):
        v = ruin.visit[k]
        ruin.order[k] = k
        ruin.key[k] = uniform(rng, 0)
        if way > 0:
            nearest = trip.first[lists.agents[v, 0], trip.task[v]]
            ruin.key[k] = -nearest if way == 1 else nearest
    sort_by_key(ruin.key, ruin.order, count)
    for k in range(count):
        v = ruin.visit[ruin.order[k]]
        a = best_position(trip, routes, lists, v, rng, blink)
        if a >= 0:
            touch(routes, ruin, routes.owner[a], stamp)
            insert(trip, routes, v, a)


@kernel
def undo(trip: Trip, routes: Routes, ruin: Ruin) -> None:
    """Everything as before the iteration, to the last bit."""
    for k in range(ruin.filled[0]):
        if routes.owner[ruin.visit[k]] != ABSENT:
            remove(trip, routes, ruin.visit[k])
    for k in range(ruin.filled[0] - 1, -1, -1):
        if ruin.behind[k] != ABSENT:
            insert(trip, routes, ruin.visit[k], ruin.behind[k])
    for k in range(ruin.filled[1]):
        routes.cost[ruin.touched[k]] = ruin.cost[k]


@leaf
def change_of(routes: Routes, ruin: Ruin, power: int) -> float:
    """By how much the objective differs from before the iteration."""
    change = 0.0
    for k in range(ruin.filled[1]):
        change += weight(routes.cost[ruin.touched[k]], power) - weight(ruin.cost[k], power)
    return change


@leaf
def size_of(worth: float, power: int) -> float:
    """The objective in units of cost."""
    return worth if power == TOTAL else max(worth, 0.0) ** (1.0 / power)


@leaf
def dearest_of(routes: Routes) -> float:
    """The longest route's cost."""
    longest = 0.0
    for i in range(routes.cost.shape[0]):
        longest = max(longest, routes.cost[i])
    return longest


@kernel
def copy_routes(target: Routes, source: Routes) -> None:
    """Make `target` the same as `source`."""
    for a in range(source.next.shape[0]):
        target.next[a] = source.next[a]
        target.previous[a] = source.previous[a]
        target.owner[a] = source.owner[a]
    for i in range(source.cost.shape[0]):
        target.cost[i] = source.cost[i]
    for j in range(source.load.shape[0]):
        target.load[j] = source.load[j]
    target.absent[0] = source.absent[0]


@kernel
def better(routes: Routes, best: Routes, power: int, worth: float, least: float) -> bool:
    """Fewer visits missing; then, for the longest route, a shorter one; then a lower objective."""
    if routes.absent[0] != best.absent[0]:
        return routes.absent[0] < best.absent[0]
    if power == TOTAL:
        return worth < least
    now, then = dearest_of(routes), dearest_of(best)
    return now < then or (now == then and worth < least)


@kernel
def improve(
    trip: Trip,
    routes: Routes,
    best: Routes,
    lists: Lists,
    ruin: Ruin,
    rng: Seeds,
    iterations: int,
    bound: float,
    stop: Ints,
) -> int:
    """Ruin and recreate so many times, or until the bound is met or someone stops it; the best plan is left in `best`.

    Returns the number of iterations. Stops are looked for every few iterations.
    """
    power = trip.power
    worth = worth_of(routes, power)
    least = worth
    copy_routes(best, routes)
    accepted = 0
    ruin.mark[:] = -1
    for t in range(iterations):
        if stop[0] != 0 or met(best, power, bound, least):
            return t
        stamp = 2 * t
        ruin.filled[:] = 0
        missing = routes.absent[0]
        take_neighbourhood(trip, routes, lists, ruin, rng, stamp)
        put_back(trip, routes, lists, ruin, rng, stamp)
        change = change_of(routes, ruin, power)
        # Threshold acceptance in units of cost, cooling down evenly on a log scale.
        now = size_of(worth, power)
        slack = HOT * (COLD / HOT) ** (t / iterations) * abs(now) * -np.log(1.0 - uniform(rng, 0))
        more = routes.absent[0] - missing
        # A plan with a shorter longest route can have a larger sum of powers: it is kept, though the walk may go on
        # elsewhere.
        if better(routes, best, power, worth + change, least):
            copy_routes(best, routes)
            least = worth + change
        if more > 0 or (more == 0 and size_of(worth + change, power) > now + slack):
            undo(trip, routes, ruin)
            continue
        worth += change
        accepted += 1
        if accepted % REFRESH == 0:
            measure(trip, routes)
            worth = worth_of(routes, power)
    return iterations


@leaf
def met(best: Routes, power: int, bound: float, least: float) -> bool:
    """Whether no plan can be better: nothing is missing and the bound is reached, up to rounding."""
    if best.absent[0] != 0:
        return False
    reached = least if power == TOTAL else dearest_of(best)
    return reached <= bound + 1e-9 * abs(bound)
