from __future__ import annotations

import numpy as np
import pytest

from muster.data import Ints
from muster.envs.env import Env, Observation
from muster.envs.singles import batched
from muster.errors import InputError, MusterError
from muster.rng import episode_seeds


class Countdown(Env):
    """One agent, two tasks; task 1 counts down from a random number, and the environment is won at 0."""

    n_agents, n_tasks, max_steps, metric = 1, 2, 6, "win_rate"

    def reset(self, rng: np.random.Generator) -> None:
        self.left = int(rng.integers(2, 9))

    def observe(self) -> Observation:
        return Observation(agent_features=np.zeros((1, 0)), task_features=[[0.0], [float(self.left)]])

    def step(self, assignment: Ints) -> tuple[float, bool]:
        self.left -= int(assignment[0] == 1)
        assignment[:] = 99
        return 1.0, self.left == 0

    def won(self) -> bool:
        return self.left == 0


def test_what_a_view_leaves_out_gets_its_default():
    seen = batched(Countdown)(3).observe()
    assert seen.agent_features.shape == (3, 1, 0)
    assert seen.pair_features.shape == (3, 1, 2, 0)
    assert seen.task_pair_features.shape == (3, 2, 2, 0)
    assert seen.agent_alive.all()
    assert seen.task_alive.all()
    assert (seen.contributions == 1).all()
    assert (seen.capacities == 1).all()


def test_the_batch_counts_steps_and_truncates_for_the_user():
    env = batched(Countdown)(40)
    env.reset(np.arange(40), episode_seeds(0, np.arange(40)))
    begun = np.array([single.left for single in env.singles])
    for step in range(1, 7):
        result = env.step(np.ones((40, 1), np.int64))
        assert (result.terminated == (begun == step)).all()
        assert (result.truncated == ((begun > 6) & (step == 6))).all()
    assert (env.outcome() == (begun <= 6)).all()
    assert not env.step(np.ones((40, 1), np.int64)).reward.any()


def test_an_observation_of_the_wrong_shape_is_explained():
    class Wrong(Countdown):
        def observe(self) -> Observation:
            return Observation(agent_features=np.zeros((2, 3)), task_features=np.zeros((2, 1)))

    with pytest.raises(InputError, match="Wrong shows 2 agents, but its n_agents says that 1 are the most"):
        batched(Wrong)(2).observe()


def test_a_foreign_task_is_refused():
    with pytest.raises(InputError, match="tasks are -1 to 1"):
        batched(Countdown)(1).step(np.array([[2]]))


def test_an_environment_without_a_picture_says_so():
    with pytest.raises(MusterError, match="Countdown has no picture"):
        batched(Countdown)(1).renderer().draw(0)
