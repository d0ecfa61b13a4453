from __future__ import annotations

import numpy as np
import pytest

import muster
from muster.envs.checks import check_env

ENV = "examples.warehouse:Warehouse"


def test_the_laws_hold():
    assert not [found for found in check_env(f"{ENV},steps=30") if found.status in ("failed", "advice")]


def test_orders_come_go_and_are_counted():
    env = muster.make(ENV, 8)
    baseline = env.baselines()["worth"](env)
    ids = set()
    for _ in range(60):
        seen = env.observe()
        ids |= set(seen.task_ids[0][seen.task_alive[0]].tolist())
        env.step(baseline.act(seen))
    metrics = env.metrics()
    assert len(ids) > 12
    assert (metrics["served"] <= metrics["orders"]).all()
    assert (env.outcome() >= metrics["served"]).all()


def test_a_state_is_what_the_environment_says_and_not_its_history():
    env = muster.make(ENV, 4)
    assert "history" not in env.get_state()


@pytest.mark.slow
def test_it_learns_to_beat_its_greedy_rule(tmp_path):
    """The claim of the docstring, in less time and on fewer episodes: intervals that exclude 0, also at 20x60."""
    policy = muster.train(ENV, learner="es", inference="lp", minutes=2.5, out=tmp_path / "run")
    for env in (ENV, f"{ENV},n_agents=20,n_tasks=60"):
        baseline, learned = (muster.evaluate(one, env, 200, seed=1) for one in ("worth", policy))
        gain = learned.records.outcome - baseline.records.outcome
        assert gain.mean() - 1.96 * gain.std() / np.sqrt(len(gain)) > 0
