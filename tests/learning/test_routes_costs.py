"""Costs of routes, learned: from distances on, by evolution strategies, and followed with memory of the last routes."""

from __future__ import annotations

import numpy as np
import pytest

import muster
from muster import InputError
from muster.evaluation.episodes import run_episodes
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from muster.policy.learned import adapt
from muster.rng import episode_seeds


def untrained(env: str = "rescue:2x4"):
    return make_learner(TrainSettings(env=env, inference="routes", steps=1)).policy()


def outcomes(policy, env: str, episodes: int = 60, batch: int = 20):
    made = muster.make(env, batch)
    if isinstance(policy, str):
        policy = made.baselines()[policy](made)
    else:
        adapt(policy, made)
    return run_episodes(made, policy, episode_seeds(3, np.arange(episodes))).outcome


@pytest.mark.parametrize("env", ["rescue:2x4", "rescue:5x10", "rescue:3x6,grid=32"])
def test_costs_begin_as_distances(env):
    """What is learned is what distances leave out, so an untrained policy plans as the baseline does."""
    assert np.array_equal(outcomes(untrained(), env), outcomes("routes-distance", env))


def test_an_episode_is_the_same_in_any_batch():
    policy = untrained("rescue:3x6,mud=0.3")
    assert np.array_equal(outcomes(policy, "rescue:3x6,mud=0.3"), outcomes(policy, "rescue:3x6,mud=0.3", batch=7))


def test_one_situation_has_no_memory():
    """Asked twice about the same, a policy answers the same, whatever it was asked in between."""
    policy = untrained()
    first, other = (adapt(policy, muster.make("rescue:3x6", 5, seed)).observe() for seed in (0, 9))
    answer = policy.act(first)
    policy.act(other)
    assert np.array_equal(policy.act(first), answer)


def test_the_learned_policy_says_plan_and_keeps_to_it(tmp_path):
    es = {"pairs": 2, "episodes": 2}
    muster.train("rescue:2x4,mud=0.3", inference="routes", steps=300, es=es, out=tmp_path / "run")
    policy = muster.load(tmp_path / "run" / "last.safetensors")
    assert policy.inference.method == "routes"
    assert muster.load(tmp_path / "run").header["learner"] == "es"
    assert policy.spec.prior
    assert policy.spec.task_prior
    assert np.abs(policy.parameters["g.weight3"]).max() > 0
    assert muster.evaluate(policy, "rescue:5x10,mud=0.3", 4).failed == 0


def test_environments_show_distances_as_prior_scores_on_request_alone():
    env = muster.make("rescue:2x4", 2)
    assert env.observe().prior is None
    env.show(prior=True)
    assert env.observe().prior.shape == (2, 2, 4)
    learner = make_learner(TrainSettings(env="rescue:2x4", inference="quad", learner="es", steps=1))
    assert not learner.spec.prior


def test_costs_are_learned_by_evolution_strategies_alone():
    assert TrainSettings(env="rescue:2x4", inference="routes").learner == "es"
    assert TrainSettings(env="rescue:2x4").learner == "ppo"
    with pytest.raises(InputError, match="evolution strategies only"):
        TrainSettings(env="rescue:2x4", inference="routes", learner="ppo")
