"""Observations without a single task, written as people write them: [f(task) for task in tasks]."""

from __future__ import annotations

import numpy as np
import pytest

import muster
from muster.envs.env import Env, Observation
from muster.errors import InputError


class Late(Env):
    """Orders come after the first step, or from the start in some episodes (`early`)."""

    n_agents, n_tasks, max_steps, metric, idling = 2, 3, 5, "return", True

    def __init__(self, columns: bool = False, early: float = 0.0) -> None:
        self.columns, self.early = columns, early

    def reset(self, rng):
        self.t = int(rng.random() < self.early)

    def observe(self):
        orders = [[float(k), 1.0] for k in range(self.t % 4)]
        here = np.zeros((len(orders), 2)) if self.columns and not orders else orders
        return Observation(
            agent_features=[[0.0], [1.0]],
            task_features=here,
            pair_features=[[[1.0, 2.0, 3.0] for _ in orders] for _ in range(2)] if orders else np.zeros((2, 0, 3)),
        )

    def step(self, assignment):
        self.t += 1
        return float((assignment >= 0).sum()), False

    @classmethod
    def baselines(cls):
        return {"first": lambda view: np.array([0 if len(view.task_features) else -1, -1])}


def test_a_first_view_without_tasks_must_tell_how_wide_they_are():
    """It was taken for tasks without features, and the first order was refused for having two."""
    with pytest.raises(InputError, match=r"task_features of Late are empty.*np.zeros\(\(0, 3\)\)"):
        muster.evaluate("first", Late, episodes=3)


def test_another_slot_may_tell_it():
    env = muster.make(Late, 16, seed=1, early=0.5)
    seen = env.observe()
    assert 0 < seen.task_alive.any(axis=1).sum() < 16
    assert not seen.task_alive[0].any(), "or the first view told it"
    assert seen.task_features.shape == (16, 3, 2)
    assert (seen.task_features[seen.task_alive][:, 1] == 1.0).all()


def test_an_empty_array_with_columns_tells_it():
    found = muster.evaluate("first", muster.make(Late, 2, columns=True), episodes=3)
    assert found.mean == 3.0, "orders after steps 1, 2 and 3, and none again after the fourth"


def test_a_policy_has_nothing_to_decide_without_tasks():
    policy = muster.load("pursuit-4x2-quad-dm")
    spec = policy.spec
    agents = np.zeros((3, spec.agent_width))
    full = Observation(
        agent_features=agents,
        task_features=np.zeros((2, spec.task_width)),
        pair_features=np.zeros((3, 2, spec.pair_width)),
        task_pair_features=np.zeros((2, 2, spec.task_pair_width)),
    )
    none = Observation(agent_features=agents, task_features=[], pair_features=[[], [], []], task_pair_features=[])
    assert policy.act(none).tolist() == [-1, -1, -1]
    assert policy.act([none, full])[1].tolist() == policy.act(full).tolist()
    wrong = Observation(
        agent_features=agents, task_features=[[1.0]], pair_features=[[[]]] * 3, task_pair_features=[[[]]]
    )
    with pytest.raises(InputError, match=f"the model reads {spec.task_width} task features"):
        policy.act([none, wrong])
