"""The baselines, and the bound that no policy exceeds."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from muster.envs.fleet import FleetEnv, FleetSettings, from_options, upper_bound
from muster.envs.fleet.city import Zones
from muster.rng import episode_seeds

from .conftest import Town, hour

SHARED = Path(__file__).parents[4] / "shared/fleet"


def returns_of(env: FleetEnv, name: str) -> np.ndarray:
    policy = env.baselines()[name](env)
    policy.reset(np.arange(env.n_envs), np.arange(env.n_envs, dtype=np.uint64))
    for _ in range(env.max_steps):
        env.step(policy.act(env.observe()))
    return env.outcome()


def test_greedy_takes_requests_in_order_and_the_nearest_vehicle(town: Town) -> None:
    """Vehicle 1 stands at the pick-up of both; the first request gets it, though the second pays more."""
    env = hour(town([(0, 1, 0), (1, 1, 2)]), vehicles=2, cost=0.001)
    policy = env.baselines()["greedy"](env)
    assert policy.act(env.observe()).tolist() == [[1, 0]]


def test_greedy_leaves_what_does_not_pay(town: Town) -> None:
    env = hour(town([(0, 1, 0)]))
    assert env.baselines()["greedy"](env).act(env.observe()).tolist() == [[-1]]


def test_match_takes_the_most_profitable_pairs(town: Town) -> None:
    """One vehicle, two requests where it stands: the longer one pays more."""
    env = hour(town([(0, 0, 1), (1, 0, 2)]))
    assert env.baselines()["match"](env).act(env.observe()).tolist() == [[1]]


def best_by_trying(env: FleetEnv, requests: Zones) -> float:
    """The most that any sequence of assignments earns."""
    counts = [int((requests[t] >= 0).sum()) for t in range(env.max_steps)]
    start, best = env.get_state(), 0.0
    for plan in product(*(product(range(-1, count), repeat=env.n_agents) for count in counts)):
        env.set_state(start)
        for assignment in plan:
            env.step(np.array([assignment]))
        best = max(best, float(env.outcome()[0]))
    env.set_state(start)
    return best


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_lies_above_the_best_of_all_plans_and_hindsight_below_it(town: Town, seed: int) -> None:
    rng = np.random.default_rng(seed)
    day = []
    for minute in range(5):
        pickup = int(rng.integers(3))
        day.append((60 * minute + 1, pickup, int((pickup + rng.integers(1, 3)) % 3)))
    env = hour(town(day), vehicles=2, minutes=5, cost=0.003)
    best = best_by_trying(env, env.fleet.pickups[0])
    earned_once = returns_of(env, "hindsight")[0]
    bound = env.metrics()["upper_bound"][0]
    assert bound >= best - 1e-9
    assert earned_once <= best + 1e-9
    assert upper_bound(env, np.zeros(1, np.uint64))[0] == pytest.approx(bound)


def test_the_bound_is_exact_where_nothing_is_late(town: Town) -> None:
    """There and back again all hour long: one vehicle serves all of it, and the flow says so."""
    env = hour(town([(120 * k, k % 2, 1 - k % 2) for k in range(10)]), minutes=20)
    assert returns_of(env, "hindsight")[0] == pytest.approx(10 * 0.2)
    assert env.metrics()["upper_bound"][0] == pytest.approx(10 * 0.2)


def test_nobody_earns_more_than_the_bound_in_a_city() -> None:
    env = from_options("24,city=small", 3)
    seeds = episode_seeds(0, np.arange(3))
    bounds = upper_bound(from_options("24,city=small", 1), seeds)
    earned = {}
    for name in ("greedy", "match", "hindsight"):
        env.reset(np.arange(3), seeds)
        earned[name] = returns_of(env, name)
        assert (earned[name] < bounds).all()
    assert (earned["hindsight"] > earned["match"]).all()


def test_thought_of_later_pays() -> None:
    """On 40 hours of a city; the difference is about 7 of 84, with a standard error below 1."""
    env = from_options("24,city=small", 40)
    earned = {}
    for name in ("match", "worth"):
        env.reset(np.arange(40), episode_seeds(0, np.arange(40)))
        earned[name] = returns_of(env, name)
    assert (earned["worth"] - earned["match"]).mean() > 3


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published trips are not in ../shared/fleet")
@pytest.mark.parametrize(
    ("folder", "vehicles", "greedy", "match"), [("11-zones", 24, 80.9, 83.9), ("38-zones", 100, 409.0, 418.8)]
)
def test_the_real_test_days_give_what_the_first_simulator_gave(
    folder: str, vehicles: int, greedy: float, match: float
) -> None:
    """Ties are broken differently there, hence the room for match."""
    env = FleetEnv(FleetSettings(vehicles=vehicles, trips=str(SHARED / folder), set="test"), 20)
    for name, wanted, room in (("greedy", greedy, 0.001), ("match", match, 0.005)):
        seeds = env.all_episodes()
        assert seeds is not None
        env.reset(np.arange(20), seeds)
        assert returns_of(env, name).mean() == pytest.approx(wanted, rel=room)
