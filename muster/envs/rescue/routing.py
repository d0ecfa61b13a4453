"""Distances on the grid, and the exact optimum of min-max routing.

Several vehicles visit every stop with the earliest possible last arrival: dynamic programming over subsets gives each
vehicle's fastest route through each subset; then the makespan is raised from a lower bound until the vehicles can cover
every stop within it. Distances must be integers that satisfy the triangle inequality, so that leaving a stop out never
makes a route longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.data import Floats, Ints
from muster.errors import InputError
from muster.kernels import core

MAX_STOPS = 16
"""Most stops: the number of subsets doubles with each, and beyond this takes seconds and gigabytes."""


def king_moves(sources: Ints, targets: Ints, scale: float = 1.0) -> Floats:
    """[B, S, T] king's moves from each source cell [B, S, 2] to each target cell [B, T, 2], times `scale`."""
    distances = np.empty((*sources.shape[:2], targets.shape[1]))
    core.rescue.measure_distances(sources, targets, scale, distances)
    return distances


class Routes(NamedTuple):
    """The stops of each vehicle."""

    makespan: int
    """Time of the last arrival."""
    stops: Ints
    """[N, M] the stops of each vehicle in order, then -1."""


def fastest_routes(from_vehicles: Floats | Ints, between_stops: Floats | Ints) -> Routes:
    """Routes of least makespan for distances [N, M] from each vehicle and [M, M] between stops.

    Raises InputError beyond `MAX_STOPS` stops.
    """
    n_stops = from_vehicles.shape[1]
    check_size(n_stops)
    stops = np.full(from_vehicles.shape, -1, np.int64)
    if n_stops == 0:
        return Routes(0, stops)
    useful = useful_vehicles(from_vehicles)
    routes = np.empty((len(useful), n_stops), np.int64)
    nearby = np.ascontiguousarray(from_vehicles[useful], np.int64)
    makespan = core.rescue.fastest_routes(nearby, np.ascontiguousarray(between_stops, np.int64), routes)
    stops[useful] = routes
    return Routes(makespan, stops)


def check_size(n_stops: int) -> None:
    """Raise InputError for more stops than `MAX_STOPS`."""
    if n_stops > MAX_STOPS:
        raise InputError(
            f"the exact topline goes up to {MAX_STOPS} victims, got {n_stops}; lp-distance has no such limit"
        )


def useful_vehicles(from_vehicles: Floats | Ints) -> Ints:
    """Indices of the vehicles that are among the M nearest to some stop; an optimum needs no others.

    At most M vehicles move; if one of them is not among the M nearest to its first stop, one of those idles and can
    take over its route without arriving later.
    """
    n_vehicles, n_stops = from_vehicles.shape
    nearest = np.argsort(from_vehicles, axis=0, kind="stable")[: min(n_vehicles, n_stops)]
    return np.unique(nearest)
