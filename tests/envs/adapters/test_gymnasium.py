from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import muster.envs
from muster.errors import InputError

ID = "muster/SearchRescue-v0"
BATTLE = "muster/Battle-v0"


@pytest.mark.parametrize("settings", [{}, {"agents": 3, "tasks": 6, "mud": 0.3, "grid": (5, 9)}])
def test_gymnasium_finds_nothing_to_complain_about(settings):
    check_env(gymnasium.make(ID, **settings).unwrapped)


@pytest.mark.parametrize("settings", [{}, {"planes": True, "latency": 3}])
def test_nor_in_battles(settings):
    check_env(gymnasium.make(BATTLE, scenario="w2v2", **settings).unwrapped)


def test_the_entry_point_registers_the_environments():
    """Tools that list environments load it, whether or not muster was imported."""
    (entry,) = (point for point in entry_points(group="gymnasium.envs") if point.value.startswith("muster."))
    spec = gymnasium.registry.pop(ID)
    entry.load()()
    assert gymnasium.registry[ID] == spec


def test_battles_run_as_a_vector():
    vector = gymnasium.make_vec(BATTLE, num_envs=2, scenario="m2v2", start=0)
    seen, _ = vector.reset(seed=0)
    begun = seen["agent_features"].copy()
    ended = 0
    for _ in range(150):
        seen, _, terminated, _, info = vector.step(np.ones((2, 2), np.int64))
        ended += terminated.sum()
    assert seen in vector.observation_space
    assert ended >= 2
    assert (vector.reset(seed=0)[0]["agent_features"] == begun).all()
    assert set(info["outcome"]) <= {0.0, 1.0}


@pytest.mark.parametrize("first", ["import gymnasium, muster", "import muster.envs, gymnasium"])
def test_importing_muster_registers_its_ids(first):
    code = f"{first}; print(gymnasium.spec('{ID}').id, gymnasium.spec('muster/Battle-v0').id)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [ID, "muster/Battle-v0"]


@pytest.mark.parametrize("env_id", [ID, BATTLE])
def test_render_modes(env_id):
    assert gymnasium.make(env_id, render_mode=None).unwrapped.render() is None
    for mode, kind in (("rgb_array", np.ndarray), ("ansi", str)):
        env = gymnasium.make(env_id, render_mode=mode)
        env.reset(seed=0)
        assert isinstance(env.render(), kind)
    with pytest.raises(InputError, match="render_mode is one of rgb_array, ansi or None, got 'human'"):
        muster.envs.gymnasium.single("rescue", render_mode="human")


def test_a_vector_of_seed_s_has_the_episodes_of_single_environments_of_s_and_up():
    vector = gymnasium.make_vec(ID, num_envs=3, agents=2, tasks=3, grid=5)
    singles = [gymnasium.make(ID, agents=2, tasks=3, grid=5) for _ in range(3)]
    assert vector.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    seen, _ = vector.reset(seed=10)
    for i, single in enumerate(singles):
        assert (single.reset(seed=10 + i)[0]["task_features"] == seen["task_features"][i]).all()
    vector.action_space.seed(0)
    ended = np.zeros(3, bool)
    endings = 0
    for _ in range(120):
        actions = vector.action_space.sample()
        seen, reward, terminated, truncated, _ = vector.step(actions)
        assert seen in vector.observation_space
        for i, single in enumerate(singles):
            if ended[i]:
                expected = (single.reset()[0], 0.0, False, False)
            else:
                expected = single.step(actions[i])[:4]
            assert all((expected[0][name] == seen[name][i]).all() for name in seen)
            assert expected[1:] == (reward[i], terminated[i], truncated[i])
        ended = terminated | truncated
        endings += ended.sum()
    assert endings > 5


def test_gymnasium_batches_single_environments_too():
    vector = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="sync")
    vector.reset(seed=0)
    vector.step(vector.action_space.sample())
    vector.close()


def test_an_environment_that_does_not_draw_itself_offers_no_pictures():
    env = gymnasium.make("muster/Assignment-v0", env="examples.couriers:Couriers", n_agents=2)
    check_env(env.unwrapped)
    assert env.unwrapped.metadata["render_modes"] == []
    with pytest.raises(InputError, match=r"defines no draw\(\), which rgb_array shows"):
        gymnasium.make("muster/Assignment-v0", env="examples.couriers:Couriers", render_mode="rgb_array")
    assert gymnasium.make(ID).unwrapped.metadata["render_modes"] == ["rgb_array", "ansi"]


@pytest.mark.parametrize("env_id", ["muster/Assignment-v0", "muster/Pursuit-v0", "muster/Fleet-v0", ID, BATTLE])
def test_actions_count_from_0_wherever_it_is_asked_for(env_id):
    settings = {"muster/Assignment-v0": {"env": "rescue:2x4"}, "muster/Fleet-v0": {"city": "small"}}.get(env_id, {})
    env = gymnasium.make(env_id, start=0, **settings)
    assert (env.action_space.start == 0).all()
    vector = gymnasium.make_vec(env_id, num_envs=2, start=0, **settings)
    assert (vector.single_action_space.start == 0).all()


def test_a_wrong_setting_is_refused():
    with pytest.raises(InputError, match="no rescue setting 'gird'; did you mean 'grid'"):
        gymnasium.make(ID, agents=3, gird=6)
    with pytest.raises(InputError, match="agents must be at least 1, got 0"):
        gymnasium.make(ID, agents=0)


def test_a_reset_forgets_that_an_episode_had_ended():
    vector = gymnasium.make_vec(ID, num_envs=2, agents=1, tasks=1, grid=(1, 2))
    vector.reset(seed=0)
    assert vector.step(np.zeros((2, 1), int))[2].all()
    vector.reset(seed=0)
    assert vector.step(np.zeros((2, 1), int))[2].all(), "the first step after a reset is a step, not another reset"


def test_actions_counted_from_0_mean_the_same():
    """0 is no task, so every number is one more."""
    usual, counted = gymnasium.make(ID), gymnasium.make(ID, start=0)
    assert counted.action_space.contains(np.zeros(2, np.int64))
    assert not counted.action_space.contains(np.full(2, -1))
    usual.reset(seed=1), counted.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(30):
        task = rng.integers(-1, 4, 2)
        one, other = usual.step(task), counted.step(task + 1)
        assert (one[0]["agent_features"] == other[0]["agent_features"]).all()
        assert one[1:4] == other[1:4]
        if one[2]:
            break
    with pytest.raises(InputError, match="start is -1"):
        gymnasium.make(ID, start=2)
