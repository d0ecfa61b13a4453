"""Policies and verdicts in words."""

from __future__ import annotations

import numpy as np
import pytest

import muster
from muster.envs.registry import EXAMPLES, kind_of
from muster.evaluation.captions import BASELINES, label, verdict
from muster.evaluation.replay import Replay


def replay(policy: str, outcome: float, metric: str = "steps", truncated: bool = False) -> Replay:
    env = "rescue:8x15" if metric == "steps" else "battle:w15v17" if metric == "win_rate" else "fleet:24,city=small"
    return Replay(env, policy, 0, np.zeros((1, 1), np.int64), [0.0], outcome, metric, truncated, "")


@pytest.mark.parametrize("env", EXAMPLES)
def test_every_baseline_has_a_name_of_its_own(env: str):
    assert set(BASELINES[kind_of(env)]) == set(muster.make(env).baselines())
    labels = list(BASELINES[kind_of(env)].values())
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(
    ("policy", "env", "words"),
    [
        ("rescue-2x4-quad-dm", "rescue:8x15", "learned on 2x4"),
        ("rescue-small-quad-dm", "rescue:8x15", "learned on several small sizes"),
        ("rescue-2x4-quad-dm, 8 rollouts", "rescue:8x15", "learned on 2x4, looking ahead"),
        ("fleet-24-lp-dm", "fleet:24,city=small", "learned on 24 vehicles"),
        ("runs/first", "rescue:8x15", "run first"),
        ("prior", "rescue:8x15", "the prior, nothing learned"),
        ("nearest", "examples.warehouse:Warehouse", "nearest"),
    ],
)
def test_labels(policy: str, env: str, words: str):
    assert label(policy, env) == words


@pytest.mark.parametrize(
    ("first", "second", "winner", "title", "detail"),
    [
        (replay("closest", 8), replay("lp-distance", 10), 0, "Nearest first wins by 2 steps", "20 % fewer"),
        (replay("closest", 11), replay("lp-distance", 10), 1, "Least total distance wins by 1 step", "10 steps"),
        (replay("closest", 9), replay("lp-distance", 9), None, "Nearest first and least total distance draw", "Both"),
        # A policy that does not finish loses, even if the limit is lower than what the other took.
        (replay("closest", 5, truncated=True), replay("lp-distance", 9), 1, "Least total distance wins", "It b; "),
        (replay("c", 0, "win_rate"), replay("wc", 1, "win_rate"), 1, "Weakest enemy first wins", "closest enemy"),
        (replay("match", 90, "return"), replay("greedy", 75, "return"), 0, "Most profit now wins by 15", "20 % more"),
    ],
)
def test_verdicts(first: Replay, second: Replay, winner: int | None, title: str, detail: str):
    found = verdict([first, second], ["a", "b"])
    assert (found.winner, found.title) == (winner, title)
    assert detail in found.detail
