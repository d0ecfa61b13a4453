"""The fleet environment as a whole: strings, what is observed, pictures."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from muster.envs.checks import check_env
from muster.envs.fleet import FleetEnv, FleetSettings, from_options
from muster.envs.fleet.env import expect_worth
from muster.envs.fleet.observe import FEATURE_NAMES
from muster.envs.registry import make
from muster.errors import InputError
from muster.kernels import core
from muster.rng import episode_seeds

from .conftest import Town, hour

RIVALS = 2
"""A vehicle that comes this many waiting times later still counts as there."""


@pytest.mark.parametrize("name", ["fleet:24,city=small", "fleet:3,city=small,demand=0.5", "fleet:30,city=large"])
def test_every_check_passes(name: str) -> None:
    assert [finding for finding in check_env(name) if finding.status not in ("passed", "measured")] == []


def test_every_check_passes_on_recorded_days(town: Town) -> None:
    folder = town(*([(60 * k, (k + d) % 3, (k + d + 1 + k % 2) % 3) for k in range(30)] for d in range(6)))
    findings = check_env(f"fleet:4,trips={folder},set=test")
    assert [finding for finding in findings if finding.status not in ("passed", "measured")] == []


@pytest.mark.parametrize(
    "name", ["fleet:24,city=small", "fleet:100,city=large,demand=0.5,start=even", "fleet:5,city=small,limit=9"]
)
def test_the_name_makes_the_same_environment(name: str) -> None:
    env = make(name)
    assert env.name == name
    assert make(env.name).settings == env.settings  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("many", "fleet takes the number of vehicles first"),
        ("0,city=small", "vehicles must be between 1 and 100000"),
        ("24,city=middle", "no city 'middle'"),
        ("24,town=small", "no fleet setting 'town'"),
        ("24,set=test", "give their folder"),
        ("24,trips=x,demand=2", "cannot be multiplied"),
        ("24,trips=x,city=large", "bring their own zones"),
        ("24,trips=/nowhere/at/all", "there is no folder"),
        ("24,demand=0", "demand must be between"),
        ("24,wait=soon", "wait must be a whole number"),
    ],
)
def test_bad_settings_are_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        from_options(text, 1)


def test_a_folder_without_days_of_the_set_is_refused(town: Town) -> None:
    with pytest.raises(InputError, match="has no training days"):
        from_options(f"2,trips={town([(0, 0, 1)])}", 1)


def test_what_is_seen_does_not_depend_on_the_currency() -> None:
    """Ten times the fares and ten times the cost: the same features, priors and masks."""
    seen = []
    for factor in (1.0, 10.0):
        env = FleetEnv(FleetSettings(cost=0.0045 * factor), 4)
        env.city = dataclasses.replace(env.city, fares=env.city.fares * factor)
        env.kernel = env._make_kernel()
        env.reset(np.arange(4), episode_seeds(0, np.arange(4)))
        policy = env.baselines()["match"](env)
        for _ in range(10):
            env.step(policy.act(env.observe()))
        seen.append(env.observe())
    for name in ("agent_features", "task_features", "pair_features", "prior"):
        assert np.allclose(getattr(seen[0], name), getattr(seen[1], name), atol=1e-5), name


def test_a_place_is_worth_less_the_more_vehicles_are_there(town: Town) -> None:
    env = from_options("24,city=small", 2)
    env.reset(np.arange(2), np.full(2, 5, np.uint64))
    # The same requests; in the second slot all but one vehicle stand where the first one does.
    env.fleet.zone[1, 1:] = env.fleet.zone[1, 0]
    alone = np.flatnonzero(env.fleet.zone[0] == env.fleet.zone[0, 0])
    env.fleet.zone[0, alone[1:]] = (env.fleet.zone[0, 0] + 1) % 11
    worth = FEATURE_NAMES["agent"].index("worth")
    seen = env.observe().agent_features[:, 0, worth]
    assert seen[0] > seen[1] >= 0


def test_meeting_of_poisson_numbers_agrees_with_sums() -> None:
    rng = np.random.default_rng(0)
    requests, vehicles = rng.poisson(2.5, 200_000), rng.poisson(1.7, 200_000)
    both, more = core.fleet.meet(1.7, 2.5)
    assert both == pytest.approx(np.minimum(requests, vehicles).mean(), abs=0.01)
    assert more == pytest.approx((requests > vehicles).mean(), abs=0.005)


def test_worth_ends_at_nothing_and_falls_with_the_number_of_vehicles() -> None:
    expected = np.full((60, 3), 0.5)
    shares = (np.ones((3, 3)) - np.eye(3)) / 2
    minutes = 4 * (1 - np.eye(3, dtype=np.int64))
    few, taking = expect_worth(expected, shares, np.ones((3, 3)), minutes, 3.0)
    many, _ = expect_worth(expected, shares, np.ones((3, 3)), minutes, 30.0)
    assert (few[60] == 0).all()
    assert (np.diff(few[:, 0]) <= 1e-12).all()
    assert (few[:50] > many[:50]).all()
    assert (taking[:59] >= few[:59]).all()
    # Never idle, a trip takes four minutes: no more than fifteen of them.
    assert few.max() <= 15.0


def test_pictures_and_text_show_the_map() -> None:
    env = from_options("24,city=small", 1)
    env.reset(np.arange(1), episode_seeds(0, np.arange(1)))
    policy = env.baselines()["greedy"](env)
    renderer = env.renderer()
    pictures = []
    for _ in range(5):
        pictures.append(renderer.draw(0))
        env.step(policy.act(env.observe()))
    assert len({picture.shape for picture in pictures}) == 1
    assert len({picture.tobytes() for picture in pictures}) == 5
    lines = renderer.describe(0).splitlines()
    assert lines[0].startswith("minute 5, profit")
    assert len(lines) == 2 + 11
    standing = sum(int(line.split()[1]) for line in lines[2:])
    assert standing == (env.fleet.held[0] == 0).sum()


def test_an_ended_hour_can_still_be_drawn(town: Town) -> None:
    env = hour(town([(0, 0, 1)]), minutes=1)
    renderer = env.renderer()
    before = renderer.draw(0)
    env.step(np.array([[0]]))
    assert renderer.draw(0).shape == before.shape
    assert "minute 1" in renderer.describe(0)


def test_what_was_seen_stays_as_it_was_while_somebody_holds_it() -> None:
    env = make("fleet:9,city=small,minutes=12", 3)
    greedy = env.baselines()["greedy"](env)
    held, copies = [], []
    for _ in range(12):
        seen = env.observe()
        # A part is enough to hold on to all of it.
        held.append((seen.pair_features[1:, 2], seen.prior, seen.task_alive))
        copies.append([np.array(array) for array in held[-1]])
        env.step(greedy.act(seen))
        del seen
    for arrays, copied in zip(held, copies, strict=True):
        assert all((array == copy).all() for array, copy in zip(arrays, copied, strict=True))


def test_memory_that_nobody_holds_is_filled_again_and_nothing_is_left_in_it() -> None:
    env = make("fleet:9,city=small", 3)
    seen = env.observe()
    place = seen.pair_features.ctypes.data
    for array in (seen.pair_features, seen.task_pair_features, seen.task_features, seen.prior):
        array[:] = np.nan
    seen.allowed[:] = True
    del seen, array
    again = env.observe()
    assert again.pair_features.ctypes.data == place
    other = make("fleet:9,city=small", 3)
    other.set_state(env.get_state())
    fresh = other.observe()
    for name in ("pair_features", "task_pair_features", "task_features", "agent_features", "prior", "allowed"):
        assert (getattr(again, name) == getattr(fresh, name)).all()


def test_a_drop_off_is_worth_to_each_vehicle_what_it_is_at_its_own_time() -> None:
    """Computed for each pair by itself, as the definition has it."""
    env = make("fleet:12,city=small", 2)
    match = env.baselines()["match"](env)
    for _ in range(20):
        env.step(match.act(env.observe()))
    seen, fleet, outlook, wait = env.observe(), env.fleet, env.outlook, env.settings.wait
    ends = np.minimum(np.arange(1000), len(outlook.usual) - 1)
    checked = 0
    for slot, i, j in np.argwhere(seen.allowed):
        t = fleet.minute[slot]
        pickups, dropoff = fleet.pickups[slot, t], fleet.dropoffs[slot, t, j]
        busyness = seen.global_features[slot, 1] + 1.0

        def worth(zone, after, itself, slot=slot, t=t, pickups=pickups, busyness=busyness):
            later = min(after + RIVALS * wait, core.fleet.HORIZON)
            there = ((fleet.zone[slot] == zone) & (fleet.free[slot] <= later)).sum() - itself
            between = outlook.usual[ends[t + 1 + after + wait]] - outlook.usual[ends[t + 1]]
            mean, least = busyness * outlook.origins[zone] * between, there + 1 - (pickups == zone).sum()
            needed = 1 - sum(np.exp(-mean) * mean**k / math.factorial(k) for k in range(max(least, 0)))
            last = len(outlook.worth) - 1
            taken, left = outlook.taking[min(t + after, last), zone], outlook.worth[min(t + after + wait, last), zone]
            return (needed * taken + (1 - needed) * left) / outlook.unit

        zone, free = fleet.zone[slot, i], fleet.free[slot, i]
        arrival = free + env.city.minutes[zone, pickups[j]] + env.city.minutes[pickups[j], dropoff]
        gained = worth(dropoff, arrival, 0) - worth(zone, free, 1)
        assert seen.pair_features[slot, i, j, 2] == pytest.approx(gained, abs=1e-5)
        checked += 1
    assert checked > 20
