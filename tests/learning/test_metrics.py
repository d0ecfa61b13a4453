"""What a run's log says of the episodes that ended."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import muster
from muster.envs.env import Env, Observation
from muster.learning.metrics import RESERVED, combine, mean_metrics, summarise
from muster.learning.run import COLUMNS

ONE = np.ones(1)
ENVS = [SimpleNamespace(name="easy"), SimpleNamespace(name="hard")]


class Tolls(Env):
    """One agent on one road; only some episodes, of unequal length, have a toll, and a figure is called as a column."""

    n_agents, n_tasks, max_steps, metric = 1, 2, 9, "return"

    def reset(self, rng):
        self.t, self.length, self.toll = 0, int(rng.integers(1, 5)), bool(rng.random() < 0.3)

    def observe(self):
        return Observation(agent_features=[[1.0]], task_features=[[0.0], [1.0]])

    def step(self, assignment):
        self.t += 1
        return 1.0, self.t == self.length

    def metrics(self):
        assert self.t == self.length, "asked of an episode under way"
        return {"steps": -5.0, "reward": 1000.0} | ({"toll": 10.0} if self.toll else {})

    @classmethod
    def baselines(cls):
        return {"first": lambda observation: np.zeros(1, np.int64)}


@pytest.mark.parametrize("batch", [1, 3, 40])
def test_figures_of_some_episodes_are_averaged_over_these(batch):
    """They counted as 0 where an episode ended before any had reported one."""
    found = muster.evaluate("first", Tolls, episodes=40, batch=batch)
    assert 0 < np.isfinite(found.records.metrics["toll"]).sum() < 40
    assert found.metrics["toll"].mean == 10.0


SMALL = {"es": {"es": {"pairs": 2, "episodes": 4}}, "ppo": {"num_envs": 8}}


@pytest.mark.parametrize(("learner", "workers"), [("es", None), ("ppo", None), ("ppo", 2)])
def test_the_log_averages_them_too_and_keeps_its_own_names(learner, workers):
    rows = []
    own = SMALL[learner]
    muster.train(
        f"{__name__}:Tolls",
        inference="lp",
        learner=learner,
        workers=workers,
        steps=1000,
        log_every=250,
        evaluate_episodes=4,
        report=lambda row, progress: rows.append(dict(row)),
        **own,
    )
    assert len(rows) >= 3
    for row in rows:
        assert row["toll"] == 10.0
        assert 1.0 <= row["reward"] == row["outcome"] <= 4.0
        assert row["steps"] > 0
        assert (row["env_steps"], row["env_reward"]) == (-5.0, 1000.0)


def test_every_column_of_the_log_is_taken():
    assert set(COLUMNS) <= set(RESERVED)
    assert set(summarise([{"episodes": 1.0, "reward": 1.0, "outcome": 1.0}])) <= set(RESERVED)


def test_a_row_without_an_episode_of_every_environment_has_no_mean_over_the_environments():
    """Or the best row of a run would be one in which no episode of the hardest environment happened to end."""
    easy = combine(ENVS, [mean_metrics({"reward": np.array([-3.0, -5.0])}, 2), mean_metrics({}, 0)])
    both = combine(ENVS, [mean_metrics({"reward": np.array([-4.0])}, 1), mean_metrics({"reward": -9.0 * ONE}, 1)])
    row = summarise([easy])
    assert row["reward/easy"] == -4.0
    assert "reward" not in row
    assert "reward/hard" not in row
    assert summarise([easy, both])["reward"] == pytest.approx((-4.0 - 9.0) / 2)
