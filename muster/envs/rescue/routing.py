"""The exact optimum of min-max routing: several vehicles visit every stop, and the last arrival is as early as can be.

Dynamic programming over subsets gives each vehicle's fastest route through each subset; then the makespan is raised
from a lower bound until the vehicles can cover every stop within it. Distances must be whole numbers that satisfy
the triangle inequality, so that leaving a stop out never makes a route longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.compile import entry, kernel, maker
from muster.data import Bools, Ints
from muster.errors import InputError

MAX_STOPS = 16
"""Subsets double with each stop; beyond this a route takes seconds and gigabytes."""

Table = NDArray[np.int32]


class Routes(NamedTuple):
    """Who visits what, in which order."""

    makespan: int
    """When the last stop is reached."""
    stops: Ints
    """[N, M] the stops of each vehicle in order, then -1."""


def fastest_routes(from_vehicles: Ints, between_stops: Ints) -> Routes:
    """Routes of least makespan for distances [N, M] from each vehicle and [M, M] between stops.

    Raises InputError beyond `MAX_STOPS` stops.
    """
    n_stops = from_vehicles.shape[1]
    check_size(n_stops)
    stops = np.full(from_vehicles.shape, -1, np.int64)
    if n_stops == 0:
        return Routes(0, stops)
    useful = useful_vehicles(from_vehicles)
    makespan, found = _solve(np.ascontiguousarray(from_vehicles[useful]), np.ascontiguousarray(between_stops))
    stops[useful] = found
    return Routes(int(makespan), stops)


def check_size(n_stops: int) -> None:
    """Raise InputError for more stops than the dynamic programme can take."""
    if n_stops > MAX_STOPS:
        raise InputError(
            f"the exact topline goes up to {MAX_STOPS} victims, got {n_stops}; lp-distance has no such limit"
        )


def useful_vehicles(from_vehicles: Ints) -> Ints:
    """Indices of the vehicles among the M nearest to some stop; the others are never needed.

    At most M vehicles move, so if one that moves is not among the M nearest to its first stop, then one of those
    stands idle and can take its route over without being later.
    """
    n_vehicles, n_stops = from_vehicles.shape
    nearest = np.argsort(from_vehicles, axis=0, kind="stable")[: min(n_vehicles, n_stops)]
    return np.unique(nearest)


@entry
def path_lengths(between: Ints) -> Table:
    """[2^M, M] length of the shortest path that starts at stop j of the subset and visits all of it."""
    n_stops = between.shape[0]
    lengths = np.zeros((1 << n_stops, n_stops), np.int32)
    for subset in range(1, 1 << n_stops):
        for j in range(n_stops):
            rest = subset & ~(1 << j)
            if rest == subset or rest == 0:
                continue
            best = np.iinfo(np.int32).max
            for k in range(n_stops):
                if rest >> k & 1:
                    best = min(best, between[j, k] + lengths[rest, k])
            lengths[subset, j] = best
    return lengths


@maker
def tour_lengths(from_vehicle: Ints, lengths: Table) -> Table:
    """[2^M] length of one vehicle's shortest route through each subset of the stops."""
    n_stops = from_vehicle.shape[0]
    tours = np.zeros(1 << n_stops, np.int32)
    for subset in range(1, 1 << n_stops):
        best = np.iinfo(np.int32).max
        for j in range(n_stops):
            if subset >> j & 1:
                best = min(best, from_vehicle[j] + lengths[subset, j])
        tours[subset] = best
    return tours


@maker
def maximal_subsets(tours: Table, makespan: int, n_stops: int) -> Ints:
    """The subsets that fit in `makespan` and to which no stop can be added."""
    count = 0
    found = np.empty(tours.shape[0], np.int64)
    for subset in range(tours.shape[0]):
        if tours[subset] > makespan:
            continue
        maximal = True
        for j in range(n_stops):
            if not subset >> j & 1 and tours[subset | 1 << j] <= makespan:
                maximal = False
                break
        if maximal:
            found[count] = subset
            count += 1
    return found[:count]


@maker
def can_cover(tours: Table, makespan: int, n_stops: int, covered: Bools) -> bool:
    """Can the vehicles cover every stop within `makespan`? `covered[i, A]`: vehicles 0..i can cover subset A.

    `covered` [N, 2^M] is overwritten, except its last row, of which only the full set is decided.
    """
    n_vehicles, n_subsets = tours.shape
    full = n_subsets - 1
    for i in range(n_vehicles):
        last = i == n_vehicles - 1
        if i == 0:
            for subset in range(n_subsets):
                covered[0, subset] = tours[0, subset] <= makespan
            continue
        choices = maximal_subsets(tours[i], makespan, n_stops)
        for subset in range(full if last else 0, n_subsets):
            covered[i, subset] = False
            for choice in choices:
                if covered[i - 1, subset & ~choice]:
                    covered[i, subset] = True
                    break
    return bool(covered[n_vehicles - 1, full])


@kernel
def write_route(subset: int, from_vehicle: Ints, between: Ints, lengths: Table, route: Ints) -> None:
    """The order in which one vehicle visits `subset` fastest, written to `route`."""
    n_stops = from_vehicle.shape[0]
    here = -1
    position = 0
    while subset:
        best = np.iinfo(np.int64).max
        stop = -1
        for j in range(n_stops):
            if subset >> j & 1:
                length = (from_vehicle[j] if here < 0 else between[here, j]) + lengths[subset, j]
                if length < best:
                    best, stop = length, j
        route[position] = stop
        position += 1
        here = stop
        subset &= ~(1 << stop)


@entry
def _solve(from_vehicles: Ints, between: Ints) -> tuple[int, Ints]:
    n_vehicles, n_stops = from_vehicles.shape
    full = (1 << n_stops) - 1
    lengths = path_lengths(between)
    tours = np.empty((n_vehicles, 1 << n_stops), np.int32)
    for i in range(n_vehicles):
        tours[i] = tour_lengths(from_vehicles[i], lengths)
    # No makespan is shorter than the way to the stop that is farthest from every vehicle.
    makespan = 0
    for j in range(n_stops):
        makespan = max(makespan, from_vehicles[:, j].min())
    covered = np.empty((n_vehicles, 1 << n_stops), np.bool_)
    while not can_cover(tours, makespan, n_stops, covered):
        makespan += 1
    routes = np.full((n_vehicles, n_stops), -1, np.int64)
    left = full
    for i in range(n_vehicles - 1, 0, -1):
        for choice in maximal_subsets(tours[i], makespan, n_stops):
            if covered[i - 1, left & ~choice]:
                write_route(left & choice, from_vehicles[i], between, lengths, routes[i])
                left &= ~choice
                break
    write_route(left, from_vehicles[0], between, lengths, routes[0])
    return makespan, routes
