"""Where a visit can go: next to the visits and at the starts that are nearest, where it adds least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.assign.routes import ABSENT, Routes, Trip, detour, may_visit, visits_already, weight
from muster.compile import kernel, leaf, maker
from muster.data import Floats, Ints
from muster.rng import Seeds, uniform

# Visits next to which, and agents at whose start, a position for a visit is looked for.
NEIGHBOURS = 12


class Lists(NamedTuple):
    """Where to look for positions."""

    near: Ints
    """[V, K] the visits whose tasks are nearest to a visit's."""
    agents: Ints
    """[V, K] the agents that start nearest."""
    copies: Ints
    """[V] whether a visit's task is visited more than once."""


@maker
def make_lists(trip: Trip, n: int) -> Lists:
    """The nearest visits and agents of every visit."""
    visits = trip.task.shape[0]
    lists = Lists(
        np.empty((visits, min(NEIGHBOURS, max(visits - 1, 0))), np.int64),
        np.empty((visits, min(NEIGHBOURS, n)), np.int64),
        np.zeros(visits, np.int64),
    )
    distance = np.empty(max(visits, n))
    for v in range(visits):
        j = trip.task[v]
        for w in range(visits):
            k = trip.task[w]
            distance[w] = min(trip.follow[j, k], trip.follow[k, j]) if k != j else 0.0
            if k == j and w != v:
                lists.copies[v] = 1
        distance[v] = np.inf
        keep_smallest(distance, visits, lists.near[v])
        for i in range(n):
            forbidden = trip.allowed.shape[0] > 0 and not trip.allowed[i, j]
            distance[i] = np.inf if forbidden else trip.first[i, j]
        keep_smallest(distance, n, lists.agents[v])
    return lists


@kernel
def keep_smallest(keys: Floats, count: int, kept: Ints) -> None:
    """kept: the positions of the smallest of keys[:count], in increasing order; ties by position."""
    filled = 0
    for x in range(count):
        if filled == kept.shape[0] and (filled == 0 or keys[x] >= keys[kept[filled - 1]]):
            continue
        at = min(filled, kept.shape[0] - 1)
        while at > 0 and keys[kept[at - 1]] > keys[x]:
            kept[at] = kept[at - 1]
            at -= 1
        kept[at] = x
        filled = min(filled + 1, kept.shape[0])


@leaf
def gain_at(trip: Trip, routes: Routes, v: int, a: int, copies: int) -> float:
    """What making visit v after node a adds to the objective; +inf where it must not be made."""
    i = routes.owner[a]
    if not may_visit(trip, routes, i, trip.task[v]):
        return np.inf
    if copies != 0 and visits_already(trip, routes, i, trip.task[v]):
        return np.inf
    before = routes.cost[i]
    return weight(before + detour(trip, routes, v, a), trip.power) - weight(before, trip.power)


@kernel
def best_position(trip: Trip, routes: Routes, lists: Lists, v: int, rng: Seeds, blink: float) -> int:
    """The node after which visit v adds least, among those near it; all of them if none there will do; -1 for none."""
    best, where = np.inf, -1
    copies, visits = lists.copies[v], trip.task.shape[0]
    for k in range(lists.near.shape[1]):
        a = lists.near[v, k]
        if routes.owner[a] == ABSENT or (blink > 0.0 and uniform(rng, 0) < blink):
            continue
        gain = gain_at(trip, routes, v, a, copies)
        if gain < best:
            best, where = gain, a
        gain = gain_at(trip, routes, v, routes.previous[a], copies)
        if gain < best:
            best, where = gain, routes.previous[a]
    for k in range(lists.agents.shape[1]):
        a = visits + lists.agents[v, k]
        if blink > 0.0 and uniform(rng, 0) < blink:
            continue
        gain = gain_at(trip, routes, v, a, copies)
        if gain < best:
            best, where = gain, a
    return where if where >= 0 else any_position(trip, routes, v, copies)


@kernel
def any_position(trip: Trip, routes: Routes, v: int, copies: int) -> int:
    """The node after which visit v adds least, among all; -1 where nobody may make it."""
    best, where = np.inf, -1
    for a in range(routes.next.shape[0]):
        if routes.owner[a] != ABSENT:
            gain = gain_at(trip, routes, v, a, copies)
            if gain < best:
                best, where = gain, a
    return where
