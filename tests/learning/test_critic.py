"""The actor-critic's critic in environments that pay much."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from muster.envs.registry import make
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from muster.learning.torch_critic import TorchCritic
from muster.models.spec import ModelSpec
from muster.models.values import EntityValues
from muster.rng import episode_seeds

COURIERS = "examples.couriers:Couriers"
WAGES = "tests.learning.toy:Wages"
SHORT = {"envs": 16, "return_steps": 5, "minibatches": 2}


def critic_of(worlds=64, conv=False):
    env = make("rescue:2x4,planes=true", worlds)
    env.reset(np.arange(worlds), episode_seeds(0, np.arange(worlds)))
    seen = env.observe()
    torch.manual_seed(0)
    return TorchCritic(ModelSpec.of(seen, "dm", False), seen.planes, conv), seen


@pytest.mark.parametrize("conv", [False, True])
def test_a_scale_grows_with_what_is_earned_and_leaves_the_values_as_they_are(conv):
    critic, seen = critic_of(conv=conv)
    before = critic(seen)
    critic.fit(np.array([0.9, -0.9], np.float32))
    assert critic.scale == 1
    critic.fit(np.array([100.0, -100.0], np.float32))
    assert critic.scale == 128
    critic.fit(np.array([1.0], np.float32))
    critic.fit(np.array([np.inf, 1.0], np.float32))  # the loss will say what is wrong
    critic.fit(np.array([np.nan, 1.0], np.float32))
    assert critic.scale == 128
    assert np.array_equal(critic(seen), before)
    if not conv:
        assert np.array_equal(EntityValues(critic.told)(seen), before)


@pytest.mark.parametrize("conv", [False, True])
def test_values_are_means_and_no_medians_however_much_is_paid(conv):
    critic, seen = critic_of(conv=conv)
    optimiser = torch.optim.Adam(critic.network.parameters(), lr=0.01)
    target = np.full(64, 100.0, np.float32)
    target[:16] = 0.0  # nothing more to earn, and nothing that tells it beforehand
    rng = np.random.default_rng(0)
    for _ in range(300):
        critic.fit(target)
        optimiser.zero_grad()
        critic.gradient(seen, rng.permutation(target), 1.0)
        optimiser.step()
        critic.pack()
    assert critic(seen).mean() == pytest.approx(75, abs=6)


@pytest.mark.parametrize("env", ["rescue:2x4", "rescue:5x10", "battle:m3v3", "pursuit:4x2", COURIERS])
def test_worlds_that_pay_about_one_are_learned_as_before(env):
    learner = make_learner(TrainSettings(env=env, inference="lp", steps=1, a2c=SHORT))
    for _ in range(40):
        learner.update()
    assert learner.values.scale == 1


def test_a_run_that_pays_much_is_resumed_with_its_scale():
    settings = TrainSettings(env=WAGES, inference="lp", steps=1, a2c=SHORT)
    one, other = make_learner(settings), make_learner(settings)
    for _ in range(20):
        one.update()
    other.set_state(*one.get_state())
    assert other.values.scale == one.values.scale > 1
    one.update()
    other.update()
    mine, theirs = one.get_state()[0], other.get_state()[0]
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
