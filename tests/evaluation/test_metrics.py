"""Environments that pay a return, report metrics of their own and have only so many episodes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import muster
from muster.cli.main import main
from muster.envs.rescue import RescueEnv, RescueSettings
from muster.errors import InputError

DAYS = 12


class Paid(RescueEnv):
    """Rescue for money: every pick-up pays 1, within a step limit that most episodes hit; twelve days, no more."""

    metric = "return"

    def __init__(self, n_envs: int = 1) -> None:
        super().__init__(RescueSettings(agents=2, tasks=4, max_steps=8), n_envs)
        self.name = f"{__name__}:Paid"

    def outcome(self):
        return self.metrics()["picked_up"]

    def metrics(self):
        waiting = self.unsolved.sum(axis=1).astype(float)
        return {"picked_up": 4 - waiting, "unknown": np.full(self.n_envs, np.nan)}

    def all_episodes(self):
        return np.arange(DAYS, dtype=np.uint64)


def test_of_a_return_every_episode_counts_and_none_has_failed():
    found = muster.evaluate("closest", Paid(5), episodes=40)
    assert found.records.truncated.any(), "or this shows nothing"
    assert found.failed == 0
    assert found.mean == found.records.outcome.mean()
    assert found.ci95[0] < found.mean < found.ci95[1]


def test_metrics_are_averaged_with_an_interval_whatever_the_batch():
    one, other = (muster.evaluate("closest", Paid(slots), episodes=40) for slots in (3, 40))
    assert one.metrics == other.metrics
    assert one.metrics["picked_up"].mean == one.mean
    assert one.metrics["picked_up"].ci95 == one.ci95
    assert one.metrics["unknown"] is None
    plain = one.as_dict()
    assert json.loads(json.dumps(plain))["metrics"]["picked_up"] == one.mean
    assert "picked up" in repr(one)
    assert "hit the step limit" not in repr(one)


def test_all_plays_each_episode_once_in_order():
    found = muster.evaluate("closest", Paid(5), episodes="all")
    np.testing.assert_array_equal(found.records.seeds, np.arange(DAYS))
    assert found.episodes == DAYS
    assert repr(found).startswith(f"closest on {__name__}:Paid: all 12 episodes")
    with pytest.raises(InputError, match="the same whatever the seed; leave it out, got 3"):
        muster.evaluate("closest", Paid(5), episodes="all", seed=3)


def test_a_comparison_of_returns(capsys):
    found = muster.compare(["lp-distance", "closest"], Paid(8), episodes="all")
    (gap,) = found.differences
    first, second = (one.records.outcome for one in found.evaluations)
    assert gap.episodes == DAYS
    assert gap.mean == pytest.approx((second - first).mean())
    text = repr(found)
    assert text.splitlines()[0].endswith(": all 12 episodes")
    assert "return [95 %]" in text
    assert "closest - lp-distance: " in text
    assert max(map(len, text.splitlines())) <= 140
    assert found._repr_html_().count("<tr>") == 3
    assert json.loads(json.dumps(found.as_dict()))["policies"][0]["metric"] == "return"


def test_the_command_takes_all_episodes(capsys, monkeypatch):
    monkeypatch.setattr("muster.evaluation.evaluate.make", lambda env, n_envs=1: Paid(n_envs))
    main(["evaluate", "closest", "x", "--episodes", "all", "--json"])
    assert json.loads(capsys.readouterr().out)["episodes"] == DAYS


@pytest.mark.parametrize("given", [["closest"], "closest", []])
def test_a_comparison_needs_two(given):
    with pytest.raises(InputError, match="a list of two or more policies, got"):
        muster.compare(given, "rescue:2x4")
