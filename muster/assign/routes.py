"""PLAN: every task waits and every agent visits a sequence of them; an agent's assignment is its first stop.

A route of agent i through tasks j, k, …, z costs -(h_ij + g_jk + … + e_iz): scores are worth, costs are their negative.
Routes are linked lists over visits with a sentinel for each agent. A task is visited as often as its capacity takes
contributions, by different agents. What is minimised is a sum over routes of cost to a power: 1 gives the total, a high
power approaches the longest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.assign.instance import fits
from muster.compile import kernel, leaf, maker
from muster.data import Bools, Floats, Ints

ABSENT = -1
# The power whose sum stands for the longest route: the longest of routes that differ by a tenth counts for double.
LONGEST = 8
TOTAL = 1


class Trip(NamedTuple):
    """What routes are made for: costs, and who may visit what."""

    first: Floats
    """[N, M] from where an agent is to a task."""
    follow: Floats
    """[M, M] from a task to the next."""
    last: Floats
    """[N, M] from an agent's last task to its end; [0, 0] for none."""
    allowed: Bools
    """[N, M]; [0, 0] for all."""
    use: Floats
    """[N, M] contributions; [0, 0] for 1."""
    room: Floats
    """[M] capacities."""
    task: Ints
    """[V] the task of each visit."""
    power: int


class Routes(NamedTuple):
    """A plan in the making: doubly linked lists of visits; node V + i is the sentinel of agent i."""

    next: Ints
    """[V + N]"""
    previous: Ints
    """[V + N]"""
    owner: Ints
    """[V + N] the agent that a node belongs to, ABSENT for a visit that nobody makes."""
    cost: Floats
    """[N]"""
    load: Floats
    """[M] contributions that each task receives."""
    absent: Ints
    """[1] how many visits nobody makes."""


@maker
def make_routes(visits: int, n: int, m: int) -> Routes:
    """Empty routes."""
    routes = Routes(
        np.empty(visits + n, np.int64),
        np.empty(visits + n, np.int64),
        np.empty(visits + n, np.int64),
        np.zeros(n),
        np.zeros(m),
        np.zeros(1, np.int64),
    )
    clear_routes(routes, visits, n)
    return routes


@kernel
def clear_routes(routes: Routes, visits: int, n: int) -> None:
    """Nobody visits anything."""
    for v in range(visits):
        routes.next[v] = v
        routes.previous[v] = v
        routes.owner[v] = ABSENT
    for i in range(n):
        routes.next[visits + i] = visits + i
        routes.previous[visits + i] = visits + i
        routes.owner[visits + i] = i
    routes.cost[:] = 0.0
    routes.load[:] = 0.0
    routes.absent[0] = visits


@leaf
def arc(trip: Trip, i: int, a: int, b: int) -> float:
    """What agent i pays from node a to node b of its route."""
    visits = trip.task.shape[0]
    if a >= visits:
        return trip.first[i, trip.task[b]] if b < visits else 0.0
    if b < visits:
        return trip.follow[trip.task[a], trip.task[b]]
    return trip.last[i, trip.task[a]] if trip.last.shape[0] > 0 else 0.0


@leaf
def detour(trip: Trip, routes: Routes, v: int, a: int) -> float:
    """What it adds to a route to make visit v after node a."""
    i, b = routes.owner[a], routes.next[a]
    return arc(trip, i, a, v) + arc(trip, i, v, b) - arc(trip, i, a, b)


@leaf
def weight(cost: float, power: int) -> float:
    """Cost to the power 1 or 8; with a power, a route cannot cost less than nothing."""
    if power == TOTAL:
        return cost
    square = cost * cost if cost > 0.0 else 0.0
    square *= square
    return square * square


@leaf
def may_visit(trip: Trip, routes: Routes, i: int, j: int) -> bool:
    """Whether agent i may visit task j, and the task takes its contribution."""
    if trip.allowed.shape[0] > 0 and not trip.allowed[i, j]:
        return False
    use = trip.use[i, j] if trip.use.shape[0] > 0 else 1.0
    return fits(routes.load[j], use, trip.room[j])


@kernel
def visits_already(trip: Trip, routes: Routes, i: int, j: int) -> bool:
    """Whether agent i's route has task j; only tasks that are visited more than once need to ask."""
    visits = trip.task.shape[0]
    a = routes.next[visits + i]
    while a < visits:
        if trip.task[a] == j:
            return True
        a = routes.next[a]
    return False


@leaf
def insert(trip: Trip, routes: Routes, v: int, a: int) -> None:
    """Make visit v after node a."""
    i, j, b = routes.owner[a], trip.task[v], routes.next[a]
    routes.cost[i] += detour(trip, routes, v, a)
    routes.next[a], routes.previous[v] = v, a
    routes.next[v], routes.previous[b] = b, v
    routes.owner[v] = i
    routes.load[j] += trip.use[i, j] if trip.use.shape[0] > 0 else 1.0
    routes.absent[0] -= 1


@leaf
def remove(trip: Trip, routes: Routes, v: int) -> None:
    """Make visit v no longer."""
    i, j, a, b = routes.owner[v], trip.task[v], routes.previous[v], routes.next[v]
    routes.next[a], routes.previous[b] = b, a
    routes.cost[i] -= arc(trip, i, a, v) + arc(trip, i, v, b) - arc(trip, i, a, b)
    routes.owner[v] = ABSENT
    routes.load[j] -= trip.use[i, j] if trip.use.shape[0] > 0 else 1.0
    routes.absent[0] += 1


@kernel
def measure(trip: Trip, routes: Routes) -> None:
    """Sum the routes' costs afresh, so that rounding errors do not build up."""
    visits = trip.task.shape[0]
    for i in range(routes.cost.shape[0]):
        total, a = 0.0, visits + i
        while True:
            b = routes.next[a]
            total += arc(trip, i, a, b)
            if b >= visits:
                break
            a = b
        routes.cost[i] = total


@kernel
def worth_of(routes: Routes, power: int) -> float:
    """The sum over routes of cost to the power."""
    total = 0.0
    for i in range(routes.cost.shape[0]):
        total += weight(routes.cost[i], power)
    return total


@kernel
def count_visits(trip_use: Floats, room: Floats, allowed: Bools, n: int, most: Ints) -> int:
    """most[j]: how many agents task j takes at the most, the smallest contributions first; returns their sum.

    An agent whose contribution alone exceeds the capacity does not count.
    """
    total = 0
    for j in range(room.shape[0]):
        smallest, able = np.inf, 0
        for i in range(n):
            use = trip_use[i, j] if trip_use.shape[0] > 0 else 1.0
            if (allowed.shape[0] == 0 or allowed[i, j]) and fits(0.0, use, room[j]):
                able += 1
                smallest = min(smallest, use)
        most[j] = able
        if able > 0 and smallest > 0.0 and room[j] / smallest < able:
            most[j] = max(1, int(room[j] / smallest * (1.0 + 1e-11)))
        total += most[j]
    return total


@kernel
def lower_bound(trip: Trip, n: int, reach: Floats, home: Floats, state: Ints) -> float:
    """No plan costs less: the dearest task to reach (and to leave) at all, and the arcs into all visits, shared out.

    For the total, the cheapest arcs into each visit. NaN where a cost is negative. `reach`, `home` and `state` [M] are
    for scratch.
    """
    m, visits = trip.room.shape[0], trip.task.shape[0]
    if has_negative_cost(trip):
        return np.nan
    one_arc_away(trip, trip.first, n, reach, state)
    cheapest = 0.0
    for v in range(visits):
        j = trip.task[v]
        into = reach[j]
        for k in range(m):
            if k != j and state[k] == WAITING:
                into = min(into, trip.follow[k, j])
        if into < np.inf:
            cheapest += into
    if trip.power == TOTAL:
        return cheapest
    settle(trip.follow, False, reach, state)
    if trip.last.shape[0] > 0:
        one_arc_away(trip, trip.last, n, home, state)
        settle(trip.follow, True, home, state)
    dearest = 0.0
    for j in range(m):
        if state[j] == SETTLED:
            dearest = max(dearest, reach[j] + (home[j] if trip.last.shape[0] > 0 else 0.0))
    return max(cheapest / max(n, 1), dearest)


NOT_VISITED, WAITING, SETTLED = range(3)


@kernel
def has_negative_cost(trip: Trip) -> bool:
    """Whether some way earns more than it costs."""
    found = False
    for i in range(trip.first.shape[0]):
        for j in range(trip.first.shape[1]):
            found |= trip.first[i, j] < 0.0
            if trip.last.shape[0] > 0:
                found |= trip.last[i, j] < 0.0
    for j in range(trip.follow.shape[0]):
        for k in range(trip.follow.shape[1]):
            found |= j != k and trip.follow[j, k] < 0.0
    return found


@kernel
def one_arc_away(trip: Trip, ends: Floats, n: int, way: Floats, state: Ints) -> None:
    """way[j]: the cheapest arc between any agent's start (or end) and task j, for the tasks that are visited."""
    for j in range(trip.room.shape[0]):
        state[j], way[j] = NOT_VISITED, np.inf
    for v in range(trip.task.shape[0]):
        state[trip.task[v]] = WAITING
    for i in range(n):
        for j in range(trip.room.shape[0]):
            if state[j] == WAITING and (trip.allowed.shape[0] == 0 or trip.allowed[i, j]):
                way[j] = min(way[j], ends[i, j])


@kernel
def settle(follow: Floats, backwards: bool, way: Floats, state: Ints) -> None:
    """way[j]: from one arc to the cheapest way of any number of arcs (Dijkstra)."""
    m = way.shape[0]
    for _ in range(m):
        best, at = np.inf, -1
        for j in range(m):
            if state[j] == WAITING and way[j] < best:
                best, at = way[j], j
        if at < 0:
            return
        state[at] = SETTLED
        for j in range(m):
            if state[j] == WAITING:
                way[j] = min(way[j], best + (follow[j, at] if backwards else follow[at, j]))
