from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import muster
from muster.evaluation.episodes import Episodes, run_episodes
from muster.policy.names import resolve
from muster.rng import episode_seeds


def run(policy: str, env: str, batch: int, episodes: int = 300) -> Episodes:
    made = muster.make(env, batch)
    return run_episodes(made, resolve(policy, made), episode_seeds(0, np.arange(episodes)))


@pytest.mark.parametrize("policy", ["closest", "lp-distance", "topline"])
@pytest.mark.parametrize("env", ["rescue:3x6", "rescue:3x6,random_moves=true,threads=all"])
def test_episodes_do_not_depend_on_the_batch(policy, env):
    reference = run(policy, env, 64, episodes=100)
    for batch in (1, 7):
        records = run(policy, env, batch, episodes=100)
        for field in fields(records):
            if "seconds" not in field.name:
                assert np.array_equal(getattr(records, field.name), getattr(reference, field.name)), field.name


def test_rewards_add_up_to_a_hundredth_a_step():
    records = run("closest", "rescue:2x4", 32)
    assert records.reward == pytest.approx(-0.01 * records.outcome)
    assert np.array_equal(records.steps, records.outcome)
    assert records.decisions == records.steps.sum()


def test_episodes_that_hit_the_limit_are_marked():
    records = run("closest", "rescue:2x4,max_steps=12", 32)
    long = run("closest", "rescue:2x4", 32).outcome > 12
    assert np.array_equal(records.truncated, long)
    assert (records.outcome[long] == 12).all()


def test_progress_counts_every_episode_once():
    made, heard = muster.make("rescue:2x4", 16), []
    run_episodes(made, resolve("closest", made), episode_seeds(0, np.arange(100)), heard.append)
    assert sum(heard) == 100


def test_fewer_episodes_than_slots_leave_slots_idle():
    assert np.array_equal(run("closest", "rescue:2x4", 64, 5).outcome, run("closest", "rescue:2x4", 2, 5).outcome)
