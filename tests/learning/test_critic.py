"""The critic in environments that pay much."""

from __future__ import annotations

import numpy as np
import pytest

from muster.envs.registry import make
from muster.learning.critic import Critic
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from muster.models.critic import EntityCritic
from muster.models.spec import ModelSpec
from muster.rng import episode_seeds

COURIERS = "examples.couriers:Couriers"
WAGES = "tests.learning.toy:Wages"
SHORT = {"num_envs": 16, "ppo": {"rollout_length": 5, "minibatches": 2}}


def critic_of(n_envs=64):
    env = make("rescue:2x4", n_envs)
    env.reset(np.arange(n_envs), episode_seeds(0, np.arange(n_envs)))
    observation = env.observe()
    return Critic(ModelSpec.of(observation, "dm", False), np.random.default_rng(0)), observation


def test_the_unit_grows_with_the_returns_and_leaves_the_values_as_they_are():
    critic, observation = critic_of()
    before = critic(observation)
    critic.fit_unit(np.array([0.9, -0.9], np.float32))
    assert critic.unit == 1
    critic.fit_unit(np.array([100.0, -100.0], np.float32))
    assert critic.unit == 128
    critic.fit_unit(np.array([1.0], np.float32))
    critic.fit_unit(np.array([np.inf, 1.0], np.float32))  # the loss will say what is wrong
    critic.fit_unit(np.array([np.nan, 1.0], np.float32))
    assert critic.unit == 128
    assert np.array_equal(critic(observation), before)
    assert np.array_equal(EntityCritic(critic.parameters())(observation), before)


def test_values_are_means_and_no_medians_however_much_is_paid():
    critic, observation = critic_of()
    target = np.full(64, 100.0, np.float32)
    target[:16] = 0.0  # nothing more to earn, and nothing that tells it beforehand
    rng = np.random.default_rng(0)
    for _ in range(300):
        critic.fit_unit(target)
        critic.add_gradient(observation, rng.permutation(target))
        critic.step(0.01)
    assert critic(observation).mean() == pytest.approx(75, abs=6)


@pytest.mark.parametrize("env", ["rescue:2x4", "rescue:5x10", "battle:m3v3", "pursuit:4x2", COURIERS])
def test_environments_that_pay_about_one_need_no_unit(env):
    learner = make_learner(TrainSettings(env=env, learner="ppo", inference="lp", steps=1, **SHORT))
    for _ in range(40):
        learner.update()
    assert learner.critic.unit == 1


def test_a_run_that_pays_much_is_resumed_with_its_unit():
    settings = TrainSettings(env=WAGES, inference="lp", steps=1, **SHORT)
    one, other = make_learner(settings), make_learner(settings)
    for _ in range(20):
        one.update()
    other.set_state(*one.get_state())
    assert other.critic.unit == one.critic.unit > 1
    one.update()
    other.update()
    mine, theirs = one.get_state()[0], other.get_state()[0]
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
