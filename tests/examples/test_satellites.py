from __future__ import annotations

import numpy as np
import pytest

from examples.outside.satellites import CHARGE, DRAIN, HANDOVER, STEPS, Constellation, orbits_of, price
from muster.envs.checks import check_env
from muster.learning.envs import prepare
from muster.learning.settings import ESSettings, TrainSettings

ENV = "examples.outside.satellites:Constellation"


def begun(seed: int = 0, **size: int) -> Constellation:
    env = Constellation(**size)
    env.reset(np.random.default_rng(seed))
    return env


def test_the_environment_checks_pass():
    assert not [found for found in check_env(ENV) if found.status in ("failed", "advice")]


def test_a_task_is_worth_its_priority_from_straight_above_and_nothing_out_of_view():
    for n_agents in (36, 324):
        orbits = orbits_of(n_agents)
        x, y, z = orbits.direction[2, 0, 40]
        # The direction is measured from the middle of an ellipsoid, latitudes from the vertical on its surface.
        latitude = np.arctan2(z * (6378.1366 / 6356.7519) ** 2, np.hypot(x, y))
        below, opposite = np.rad2deg([[np.arctan2(y, x), latitude], [np.arctan2(-y, -x), -latitude]])
        seen = orbits.proximity(np.array([below, opposite]))
        assert seen[2, 40] == pytest.approx([1, 0])
        assert 0.05 < seen[seen > 0].min() < 0.08
        assert seen.max() <= 1


def test_other_sizes_see_as_many_tasks_for_as_many_steps():
    counts, lengths = [], []
    for size in ({"n_agents": 36, "n_tasks": 50}, {"n_agents": 72, "n_tasks": 100}, {"n_agents": 324, "n_tasks": 450}):
        seen = np.mean([(begun(seed, **size).worth[0] > 0).sum(axis=1).mean() for seed in range(20)])
        env = begun(0, **size)
        in_view = env.proximity > 0
        counts.append(seen)
        lengths.append(in_view.sum() / (np.diff(in_view, axis=1, prepend=False) & in_view).sum())
    assert counts == pytest.approx([counts[-1]] * 3, rel=0.15)
    assert lengths == pytest.approx([lengths[-1]] * 3, rel=0.15)


def test_serving_takes_power_resting_gives_it_back_and_who_runs_out_is_lost():
    env = begun()
    satellite, power = int((env.worth[0] > 0).any(axis=1).argmax()), 1.0
    for _ in range(40):
        best = int(env.worth[0][satellite].argmax())
        serves = env.worth[0][satellite, best] > 0
        worth, handover = env.worth[0][satellite, best], HANDOVER * (env.before[satellite] != best)
        assignment = np.full(env.n_agents, -1)
        assignment[satellite] = best if serves else -1
        pay, _ = env.step(assignment)
        if power > 0:
            assert pay == pytest.approx(worth - handover if serves and power > 1e-12 else 0)
            power = power - DRAIN if serves else min(power + CHARGE, 1)
        else:
            assert pay == 0
        assert env.power[satellite] == power
    assert power <= 0


def test_satellites_with_the_same_task_share_what_it_pays():
    env = begun()
    task = int((env.worth[0] > HANDOVER).sum(axis=0).argmax())
    two = np.flatnonzero(env.worth[0][:, task] > HANDOVER)[:2]
    assert len(two) == 2
    env.before[:] = -1
    alone = env.worth[0][two, task] - HANDOVER
    assignment = np.full(env.n_agents, -1)
    assignment[two] = task
    assert env.step(assignment)[0] == pytest.approx(alone.sum() / 2)


def test_a_price_for_power_keeps_satellites_alive():
    env, ended, total = begun(), False, 0.0
    while not ended:
        pay, ended = env.step(price(env.observe()))
        total += pay
    assert env.k == STEPS
    assert env.metrics()["alive"] > 0.9
    assert total / env.n_agents > 30


def test_statistics_of_time_cover_the_episode_though_the_prior_soon_loses_all_satellites():
    settings = TrainSettings(ENV, "es", "lp", model="linear", es=ESSettings(pairs=1, episodes=1))
    statistics = prepare(settings).spec.h_statistics
    assert statistics is not None
    assert statistics.means[-2] == pytest.approx(0.5, abs=0.03)
    assert statistics.deviations[-2] == pytest.approx(np.sqrt(1 / 12), abs=0.03)
    assert statistics.deviations[-1] > 0
