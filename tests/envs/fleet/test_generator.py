"""Our own cities: their requests follow the rates, and grow with the fleet."""

from __future__ import annotations

import numpy as np
import pytest

from muster.envs.fleet import FleetEnv, FleetSettings
from muster.envs.fleet.city import built_in, shortest_hops
from muster.rng import episode_seeds


def requests(env: FleetEnv) -> tuple[np.ndarray, np.ndarray]:
    env.reset(np.arange(env.n_envs), episode_seeds(7, np.arange(env.n_envs)))
    there = env.fleet.pickups >= 0
    return there, env.fleet.lost


@pytest.mark.parametrize(("name", "zones", "vehicles", "limit"), [("small", 11, 24, 24), ("large", 38, 100, 20)])
def test_cities_have_the_sizes_of_their_source(name: str, zones: int, vehicles: int, limit: int) -> None:
    city = built_in(name)
    assert (city.n_zones, city.vehicles, city.limit) == (zones, vehicles, limit)
    assert np.array_equal(city.minutes, city.minutes.T)
    assert (np.diag(city.minutes) == 0).all()
    assert city.profile.mean() == pytest.approx(1, abs=1e-3)
    assert city.busyness.mean() == pytest.approx(1, abs=1e-3)


def test_hops_go_round_what_has_no_zones() -> None:
    """A ring of six hexagons round a missing one: opposite zones are three hops apart, not two."""
    ring = np.array([[1, 0], [3, 0], [4, 1], [3, 2], [1, 2], [0, 1]])
    assert shortest_hops(ring)[0].tolist() == [0, 1, 2, 3, 2, 1]


@pytest.mark.parametrize("vehicles", [12, 24, 48])
def test_requests_come_in_proportion_to_the_vehicles(vehicles: int) -> None:
    env = FleetEnv(FleetSettings(vehicles=vehicles), 400)
    there, lost = requests(env)
    wanted = built_in("small").hourly.sum() * vehicles / 24
    # Days differ by 17 %: 400 of them know their mean to about 1 %.
    assert (there.sum() + lost.sum()) / 400 == pytest.approx(wanted, rel=0.04)
    assert env.n_tasks == vehicles


def test_demand_multiplies_requests_and_their_limit() -> None:
    plain, doubled = FleetEnv(FleetSettings(), 200), FleetEnv(FleetSettings(demand=2.0), 200)
    assert doubled.n_tasks == 2 * plain.n_tasks
    assert requests(doubled)[0].sum() == pytest.approx(2 * requests(plain)[0].sum(), rel=0.1)


def test_origins_and_destinations_follow_the_rates() -> None:
    env = FleetEnv(FleetSettings(), 600)
    there, _ = requests(env)
    pairs = env.fleet.pickups[there].astype(int) * 11 + env.fleet.dropoffs[there]
    found = np.bincount(pairs, minlength=121) / len(pairs)
    hourly = built_in("small").hourly.ravel()
    assert np.abs(found - hourly / hourly.sum()).max() < 0.002
    assert not (env.fleet.pickups[there] == env.fleet.dropoffs[there]).any()
    by_minute = there.sum((0, 2)) / there.sum() * 60
    assert np.abs(by_minute - built_in("small").profile).max() < 0.1
