"""Custom batch environments: what they return wrongly gets one sentence, in the checks and in training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import muster
from muster.envs.checks.contract import masks
from muster.errors import EnvError, InputError


class Jobs(muster.BatchEnv):
    """Two steps; a reward for every agent that has a task."""

    metric = "return"
    n_agents, n_tasks, max_steps = 2, 3, 2

    def __init__(self, n_envs: int):
        self.n_envs = n_envs
        self.steps, self.earned, self.luck = np.zeros(n_envs, np.int64), np.zeros(n_envs), np.zeros(n_envs)

    def reset(self, slots, seeds):
        self.steps[slots], self.earned[slots] = 0, 0.0
        self.luck[slots] = [np.random.default_rng(int(seed)).random() for seed in seeds]

    def observe(self):
        b, n, m = self.n_envs, self.n_agents, self.n_tasks
        return muster.BatchObservation(
            agent_features=np.tile(self.luck.astype(np.float32)[:, None, None], (1, n, 1)),
            task_features=np.ones((b, m, 1), np.float32),
            pair_features=np.zeros((b, n, m, 0), np.float32),
            task_pair_features=np.zeros((b, m, m, 0), np.float32),
            agent_alive=np.ones((b, n), np.bool_),
            task_alive=np.ones((b, m), np.bool_),
            contributions=np.ones((b, n, m)),
            capacities=np.full((b, m), np.inf),
        )

    def step(self, assignment):
        running = self.steps < self.max_steps
        reward = np.where(running, (assignment >= 0).sum(axis=1), 0.0)
        self.steps += running
        self.earned += reward
        ended = running & (self.steps >= self.max_steps)
        return muster.Step(reward, np.zeros_like(ended), ended)

    def outcome(self):
        return self.earned.copy()

    def get_state(self):
        return {"steps": self.steps.copy(), "earned": self.earned.copy(), "luck": self.luck.copy()}

    def set_state(self, state):
        self.steps[:], self.earned[:], self.luck[:] = state["steps"], state["earned"], state["luck"]


class Pair(Jobs):
    def step(self, assignment):
        return super().step(assignment)[:2]


class Column(Jobs):
    def step(self, assignment):
        result = super().step(assignment)
        return result._replace(reward=result.reward[:, None])


class Priceless(Jobs):
    def step(self, assignment):
        result = super().step(assignment)
        return result._replace(reward=result.reward * np.nan)


class Crashing(Jobs):
    def step(self, assignment):
        raise ZeroDivisionError("in the simulator")


class Double(Jobs):
    def observe(self):
        return replace(super().observe(), agent_features=np.ones((self.n_envs, 2, 1)))


class Unknown(Jobs):
    def observe(self):
        return replace(super().observe(), task_features=np.full((self.n_envs, 3, 1), np.nan, np.float32))


class Blind(Jobs):
    def observe(self):
        raise KeyError("camera")


class Endless(Jobs):
    def step(self, assignment):
        result = super().step(assignment)
        return result._replace(truncated=np.zeros_like(result.truncated))


class Silent(Jobs):
    def observe(self):
        return None


def test_a_class_without_faults_passes_and_trains():
    assert not [found for found in muster.check_env(Jobs) if found.status == "failed"]
    assert muster.train(Jobs, steps=20, inference="lp", learner="es", es={"pairs": 2, "episodes": 2})


@pytest.mark.parametrize(
    ("faulty", "complaint"),
    [
        (Pair, r"step\(\) of .*:Pair must return muster.Step\(reward, terminated, truncated\), got \(array"),
        (
            Column,
            r"reward of .*:Column must be an array of floating of shape \(\d+,\), got float64 of shape \(\d+, 1\)",
        ),
        (Priceless, r"reward of .*:Priceless must be finite, got nan at \[0\]"),
        (Crashing, r"step\(\) of .*:Crashing failed: ZeroDivisionError: in the simulator \(.*line"),
        (Double, "agent_features of .*:Double must be an array of float32 of shape .*, got float64"),
        (Unknown, "task_features of .*:Unknown must be finite, got nan"),
        (Blind, r"observe\(\) of .*:Blind failed: KeyError: 'camera'"),
        (Endless, r"an episode( of .*:Endless)? goes on after max_steps = 2"),
        (Silent, r"observe\(\) of .*:Silent must return a muster.BatchObservation, got None"),
    ],
)
def test_a_fault_has_one_sentence_in_checks_and_in_training(faulty, complaint):
    for learner in ({"learner": "es", "es": {"pairs": 2, "episodes": 2}}, {"learner": "ppo", "num_envs": 4}):
        with pytest.raises(EnvError, match=complaint):
            muster.train(faulty, steps=20, inference="lp", **learner)
    failed = [found.detail for found in muster.check_env(faulty) if found.status == "failed"]
    assert failed
    for detail in failed:
        with pytest.raises(EnvError, match=complaint):
            raise EnvError(detail)


@pytest.mark.parametrize("wrong", [np.full((2, 2), 3), np.full((2, 2), -2), np.zeros((2, 3), int), np.zeros((2, 2))])
def test_no_index_beyond_the_tasks_reaches_the_simulator(wrong):
    with pytest.raises(InputError, match=r"tasks are -1 to 2|whole numbers of shape \(2, 2\)"):
        muster.make(Jobs, 2).step(wrong)


class Indexing(Jobs):
    def step(self, assignment):
        np.zeros(self.n_tasks)[assignment]
        return super().step(assignment)


def test_an_index_that_the_check_gives_on_purpose_is_said_to_be_one():
    """Of a batch made by hand, which has no checks of muster.make."""
    found = {finding.check: finding.detail for finding in muster.check_env(lambda n_envs: Indexing(n_envs))}
    assert "must refuse the task 3, which this check gives on purpose, by an InputError" in found["masks"]
    assert "IndexError" in found["masks"]
    masks(lambda n_envs: muster.make(Indexing, n_envs))


def test_nan_is_not_said_to_be_a_forbidden_pair():
    found = {finding.check: finding for finding in muster.check_env(lambda n_envs: Priceless(n_envs))}
    assert found["forbidden pairs are not carried out"].status == "passed"
    assert "must be finite" in found["shapes and types"].detail


class Unnumbered(Jobs):
    n_agents = None


class Elsewhere(Jobs):
    def __init__(self, n_envs: int):
        super().__init__(n_envs + 1)


@pytest.mark.parametrize(
    ("faulty", "complaint"),
    [
        (Unnumbered, "must have n_agents, the most agents that there ever are, a whole number from 1; got None"),
        (Elsewhere, "must have n_envs as its constructor was given it, 2; got 3"),
    ],
)
def test_attributes_of_a_batch_are_checked(faulty, complaint):
    with pytest.raises(InputError, match=complaint):
        muster.make(faulty, 2)
