"""The critic of a run, found again by look-ahead with its policy."""

import numpy as np
import pytest

import muster
from muster.learning.settings import TrainSettings
from muster.learning.train import Loop, run_training
from muster.policy.files import run_critic

TINY = {"rollout_length": 4}


def test_the_critic_of_an_actor_critic_run_values_states_as_the_learner_did(tmp_path):
    settings = TrainSettings("rescue:2x3,grid=5", inference="lp", steps=64, num_envs=4, ppo=muster.PPOSettings(**TINY))
    run_training(settings, tmp_path / "run")
    critic = run_critic(tmp_path / "run")
    assert critic is not None
    learner = Loop(settings, None).learner
    while learner.steps < 64:
        learner.update(learner.steps / 64)
    env = muster.make("rescue:2x3,grid=5", 3, 7)
    env.show(pair_features=True, planes=False)
    seen = env.observe()
    assert critic(seen) == pytest.approx(learner.values(seen))
    assert np.ptp(critic(seen)) > 0


def test_a_run_without_a_critic_has_none(tmp_path):
    muster.train(
        "rescue:2x3,grid=5",
        inference="lp",
        learner="es",
        steps=64,
        out=tmp_path / "run",
        es={"pairs": 1, "episodes": 1},
    )
    assert run_critic(tmp_path / "run") is None
