from __future__ import annotations

import itertools

import numpy as np
import pytest

from muster.envs.rescue.routing import MAX_STOPS, fastest_routes, useful_vehicles
from muster.errors import InputError


def instance(n_vehicles: int, n_stops: int, seed: int, grid: int = 16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n_vehicles, n_stops, seed])
    vehicles, stops = rng.integers(grid, size=(n_vehicles, 2)), rng.integers(grid, size=(n_stops, 2))
    between = np.abs(stops[:, None] - stops[None]).max(axis=-1)
    return np.abs(vehicles[:, None] - stops[None]).max(axis=-1), between


def length(route: tuple[int, ...], start: np.ndarray, between: np.ndarray) -> int:
    if not route:
        return 0
    return int(start[route[0]] + sum(between[a, b] for a, b in itertools.pairwise(route)))


def brute_force(starts: np.ndarray, between: np.ndarray) -> int:
    """Every way to hand the stops out, and every order of each hand."""
    n_vehicles, n_stops = starts.shape
    shortest = [
        {
            hand: min(length(order, start, between) for order in itertools.permutations(hand))
            for size in range(n_stops + 1)
            for hand in itertools.combinations(range(n_stops), size)
        }
        for start in starts
    ]
    best = 10**9
    for owners in itertools.product(range(n_vehicles), repeat=n_stops):
        hands = [tuple(j for j in range(n_stops) if owners[j] == i) for i in range(n_vehicles)]
        best = min(best, max(shortest[i][hand] for i, hand in enumerate(hands)))
    return best


@pytest.mark.parametrize("size", [(1, 4), (2, 4), (2, 5), (3, 4), (3, 5), (4, 3), (5, 2)])
def test_the_makespan_is_that_of_brute_force(size):
    for seed in range(50):
        starts, between = instance(*size, seed, grid=16 if seed % 2 else 6)
        assert fastest_routes(starts, between).makespan == brute_force(starts, between)


@pytest.mark.parametrize("size", [(1, 8), (2, 4), (3, 9), (8, 12), (40, 6), (2, 14)])
def test_routes_visit_every_stop_once_and_the_last_takes_the_makespan(size):
    for seed in range(5):
        starts, between = instance(*size, seed)
        makespan, stops = fastest_routes(starts, between)
        routes = [tuple(int(j) for j in row if j >= 0) for row in stops]
        assert sorted(itertools.chain(*routes)) == list(range(size[1]))
        assert max(length(route, starts[i], between) for i, route in enumerate(routes)) == makespan


def test_vehicles_left_out_are_never_needed():
    for seed in range(30):
        starts, between = instance(9, 3, seed, grid=8)
        assert brute_force(starts, between) == fastest_routes(starts, between).makespan


def test_only_the_nearest_vehicles_are_useful():
    """A row a vehicle: of two stops the two nearest each, the earlier of equals."""
    starts = np.array([[5, 9], [1, 9], [2, 3], [9, 3], [2, 4]])
    assert useful_vehicles(starts).tolist() == [1, 2, 3]
    assert all(len(useful_vehicles(instance(9, 2, seed)[0])) <= 2 * 2 for seed in range(30))


def test_one_stop_more_never_shortens_the_makespan():
    for seed in range(30):
        starts, between = instance(3, 7, seed)
        fewer = fastest_routes(starts[:, :6], between[:6, :6]).makespan
        assert fewer <= fastest_routes(starts, between).makespan


def test_one_vehicle_more_never_lengthens_the_makespan():
    for seed in range(30):
        starts, between = instance(4, 7, seed)
        assert fastest_routes(starts, between).makespan <= fastest_routes(starts[:3], between).makespan


def test_no_stops_take_no_time():
    makespan, stops = fastest_routes(np.zeros((3, 0), np.int64), np.zeros((0, 0), np.int64))
    assert makespan == 0
    assert stops.shape == (3, 0)


def test_too_many_stops_are_refused_with_the_limit():
    with pytest.raises(InputError, match=f"up to {MAX_STOPS} victims, got 17"):
        fastest_routes(*instance(2, 17, 0))
