from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

import muster.envs  # noqa: F401, registers the ids
from muster.envs.pettingzoo import parallel_env


@pytest.mark.parametrize("settings", [{}, {"agents": 3, "tasks": 2, "walls": True, "grid": (5, 9)}])
def test_gymnasium_finds_nothing_to_complain_about(settings):
    check_env(gymnasium.make("muster/Pursuit-v0", **settings).unwrapped)


def test_a_vector_plays_what_single_environments_play():
    vector = gymnasium.make_vec("muster/Pursuit-v0", num_envs=3, agents=3, tasks=2)
    single = gymnasium.make("muster/Pursuit-v0", agents=3, tasks=2)
    seen, _ = vector.reset(seed=5)
    alone, _ = single.reset(seed=6)
    vector.action_space.seed(0)
    for _ in range(5):
        assert seen in vector.observation_space
        assert all(np.array_equal(alone[name], seen[name][1]) for name in seen)
        actions = vector.action_space.sample()
        seen, alone = vector.step(actions)[0], single.step(actions[1])[0]


def test_pettingzoo_finds_nothing_to_complain_about():
    parallel_api_test(parallel_env("pursuit:4x2"), num_cycles=300)
    parallel_seed_test(lambda: parallel_env("pursuit:4x2"), num_cycles=100)
