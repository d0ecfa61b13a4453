"""A learner of another library trains on our environments as they are."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import stable_baselines3 as sb3
from gymnasium.wrappers import FlattenObservation
from stable_baselines3.common.env_checker import check_env

import muster.envs  # noqa: F401, registers the ids
from muster.errors import InputError


@pytest.mark.parametrize("wrap", [True, False], ids=["flat", "dict"])
@pytest.mark.parametrize(
    ("env_id", "settings"),
    [
        ("muster/SearchRescue-v0", {}),
        ("muster/Battle-v0", {"scenario": "m2v2"}),
        ("muster/Assignment-v0", {"env": "examples.couriers:Couriers"}),
    ],
)
def test_ppo_learns_on_actions_counted_from_0(env_id, settings, wrap):
    env = gymnasium.make(env_id, start=0, **settings)
    if wrap:
        env = FlattenObservation(env)
        check_env(env)
    policy = "MlpPolicy" if wrap else "MultiInputPolicy"
    learner = sb3.PPO(policy, env, n_steps=100, batch_size=50, n_epochs=1, seed=0, device="cpu")
    before = [weight.detach().clone() for weight in learner.policy.parameters()]
    learner.learn(200)
    assert learner.num_timesteps == 200
    assert any((a != b).any() for a, b in zip(before, learner.policy.parameters(), strict=True))
    seen, _ = env.reset(seed=0)
    action, _ = learner.predict(seen, deterministic=True)
    assert env.action_space.contains(np.asarray(action))


def test_actions_that_count_from_below_0_are_not_for_it():
    """If this no longer fails, `start=0` is no longer needed."""
    with pytest.raises((UserWarning, InputError), match=r"start|tasks are"):
        check_env(FlattenObservation(gymnasium.make("muster/SearchRescue-v0")))
