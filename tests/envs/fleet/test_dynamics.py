"""The dynamics, on days written by hand: a hop takes two minutes, pays 2 and costs 1.8 to drive."""

from __future__ import annotations

import numpy as np
import pytest

from muster.envs.fleet import FleetEnv, FleetSettings
from muster.rng import episode_seeds

from .conftest import Town, hour

MARGIN = pytest.approx(0.2)


def go(env: FleetEnv, *assignment: int) -> float:
    """One decision; what it earned."""
    return float(env.step(np.array([assignment]))[0][0])


def wait(env: FleetEnv, minutes: int) -> None:
    for _ in range(minutes):
        go(env, *[-1] * env.n_agents)


def test_a_request_pays_its_fare_less_every_metre(town: Town) -> None:
    env = hour(town([(0, 0, 1), (65, 2, 1)]))
    assert go(env, 0) == MARGIN
    # In zone 1 in one minute, two more to zone 2: 400 m empty and 400 m with a passenger.
    assert go(env, 0) == pytest.approx(2 - 0.0045 * 800)
    assert env.metrics()["empty_km"][0] == pytest.approx(0.4)


@pytest.mark.parametrize(("minute", "served"), [(0, False), (1, True)])
def test_a_pick_up_within_five_minutes_counts_all_there_is_to_do(town: Town, minute: int, served: bool) -> None:
    """At minute 0 a trip of 4 minutes is taken; the next pick-up is one hop (2 minutes) from its end."""
    env = hour(town([(0, 0, 2), (60 * minute + 1, 1, 0)]))
    other = int(minute == 0)
    if minute == 0:
        go(env, 0)
        assert not env.observe().task_alive.any()
        return
    go(env, 0)
    assert bool(env.observe().allowed[0, 0, other]) is served  # type: ignore[index]
    assert (go(env, other) != 0) is served


def test_two_minutes_too_late_is_too_late(town: Town) -> None:
    """0 to 2 takes 4 minutes and 2 to 0 another 4: at minute 2 that is 6 minutes from now."""
    env = hour(town([(0, 0, 2), (120, 0, 1), (180, 0, 1)]))
    go(env, 0)
    go(env, -1)
    assert not env.observe().allowed.any()  # type: ignore[union-attr]
    assert go(env, 0) == 0.0
    assert env.observe().allowed[0, 0, 0]  # type: ignore[index]
    assert go(env, 0) != 0.0


def test_one_in_service_and_one_queued_is_all_a_vehicle_holds(town: Town) -> None:
    env = hour(town([(0, 0, 1), (60, 1, 0), (120, 0, 1), (180, 0, 1)]))
    assert go(env, 0) == MARGIN
    assert go(env, 0) == MARGIN
    # The first is done at minute 2: the third can be queued behind the second.
    assert go(env, 0) == MARGIN
    assert go(env, 0) == 0.0
    assert env.fleet.held[0, 0] == 2 - 1 * (env.fleet.minute[0] == 4)


def test_a_request_not_taken_in_its_minute_is_gone(town: Town) -> None:
    env = hour(town([(0, 0, 1)]))
    go(env, -1)
    assert not env.observe().task_alive.any()
    assert go(env, 0) == 0.0


def test_of_two_vehicles_the_first_to_be_there_takes_it(town: Town) -> None:
    env = hour(town([(0, 1, 0)]), vehicles=2)
    go(env, 0, 0)
    assert env.fleet.taken[0].tolist() == [-1, 0]
    assert env.fleet.served[0] == 1


def test_a_vehicle_is_free_again_where_it_drops_off(town: Town) -> None:
    env = hour(town([(0, 0, 2)]))
    go(env, 0)
    wait(env, 2)
    assert (env.fleet.held[0, 0], env.fleet.free[0, 0]) == (1, 1)
    wait(env, 1)
    assert (env.fleet.held[0, 0], env.fleet.free[0, 0], env.fleet.zone[0, 0]) == (0, 0, 2)


def test_requests_beyond_the_limit_of_their_minute_are_lost(town: Town) -> None:
    env = hour(town([(0, 0, 1), (3, 1, 2), (7, 2, 1)]), limit=2)
    assert env.observe().task_alive.sum() == 2
    assert env.fleet.pickups[0, 0].tolist() == [0, 1]
    assert env.metrics()["requests"][0] == 3


def test_test_days_begin_spread_evenly_and_training_days_at_random(town: Town) -> None:
    folder = town([(0, 0, 1)], [(0, 1, 2)], kind="training")
    env = FleetEnv(FleetSettings(vehicles=7, trips=folder), 40)
    env.reset(np.arange(40), episode_seeds(0, np.arange(40)))
    assert len({tuple(zones) for zones in env.fleet.zone.tolist()}) > 30
    even = FleetEnv(FleetSettings(vehicles=7, trips=folder, start="even"), 1)
    even.reset(np.arange(1), episode_seeds(0, np.arange(1)))
    assert even.fleet.zone[0].tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_all_episodes_are_the_days_in_order_and_other_seeds_draw_them(town: Town) -> None:
    days = [[(60 * k, 0, 1)] for k in range(5)]
    env = hour(town(*days), n_envs=5)
    seeds = env.all_episodes()
    assert seeds is not None
    env.reset(np.arange(5), seeds)
    assert [int(np.argmax(env.fleet.pickups[k, :, 0] >= 0)) for k in range(5)] == [0, 1, 2, 3, 4]
    drawn = set()
    for k in range(20):
        env.reset(np.arange(5), episode_seeds(k, np.arange(5)))
        drawn |= {int(np.argmax(env.fleet.pickups[b, :, 0] >= 0)) for b in range(5)}
    assert drawn == {0, 1, 2, 3, 4}


def test_a_city_without_records_never_runs_out() -> None:
    assert FleetEnv().all_episodes() is None
