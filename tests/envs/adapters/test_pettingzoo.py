from __future__ import annotations

import numpy as np
from pettingzoo.test import parallel_api_test, parallel_seed_test

from muster.envs.pettingzoo import parallel_env


def test_pettingzoo_finds_nothing_to_complain_about():
    parallel_api_test(parallel_env("rescue:3x6"), num_cycles=300)
    parallel_seed_test(lambda: parallel_env("rescue:3x6"), num_cycles=100)


def test_nor_in_battles():
    """Where agents fall one after the other."""
    parallel_api_test(parallel_env("battle:m3v3"), num_cycles=300)
    parallel_seed_test(lambda: parallel_env("battle:m3v3"), num_cycles=100)


def test_the_fallen_leave_before_the_others():
    env = parallel_env("battle:m4v4", render_mode="ansi")
    env.reset(seed=1)
    sizes = []
    while env.agents:
        env.step(dict.fromkeys(env.agents, 3))
        sizes.append(len(env.agents))
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) > 2
    assert env.render().startswith("0 v ")


def test_users_custom_environments_fit_too():
    parallel_api_test(parallel_env("examples.delivery:Delivery"), num_cycles=250)


def test_every_agent_gets_the_team_reward_and_leaves_when_all_are_picked_up():
    env = parallel_env("rescue:2x1,grid=4", render_mode="ansi")
    seen, _ = env.reset(seed=3)
    assert np.array_equal(seen["agent_0"]["action_mask"], [1, 1])
    assert "waiting" in env.render()
    for _ in range(4):
        if env.agents:
            _, reward, terminated, _, _ = env.step(dict.fromkeys(env.agents, 0))
            assert set(reward.values()) == {-0.01}
    assert all(terminated.values())
    assert env.agents == []
