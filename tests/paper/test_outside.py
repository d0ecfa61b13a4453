"""The table of problems from outside: what is evaluated, and what it is compared with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from muster.evaluation.evaluate import evaluate
from muster.policy.learned import LearnedPolicy
from paper.run_names import PAPER, RunName
from paper.tables import outside as table
from paper.tables.engine import evaluate_side_by_side


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tests of few episodes; one has a figure of others that is not evaluated here."""
    satellites = replace(table.TESTS["satellites-36x50"], episodes=3, baselines=(table.REDA, "myopic"))
    tests = {"field-6x18": replace(table.TESTS["field-6x18"], episodes=6), "satellites-36x50": satellites}
    monkeypatch.setattr(table, "TESTS", tests)
    monkeypatch.setattr(table, "REDA_OUTCOMES", np.array([1.0, 2.0, 3.0]))
    for problem in ("field", "satellites"):
        (tmp_path / problem).mkdir()
    return tmp_path


def test_everything_is_paired_with_the_baseline_to_beat(small: Path, again) -> None:
    record = again("outside")(policies=small)
    match, naive = (record.find(test="field-6x18", policy=name) for name in ("match", "priority"))
    assert match.difference is None
    assert naive.difference == pytest.approx(naive.mean - match.mean)
    assert match.mean == evaluate("match", table.FIELD, 6, seed=table.SEED).mean
    reda, myopic = (record.find(test="satellites-36x50", policy=name) for name in (table.REDA, "myopic"))
    assert reda.mean == 2.0
    assert myopic.difference == pytest.approx(myopic.mean - 2.0)


def test_look_ahead_is_that_of_the_policy_and_leaves_baselines_alone() -> None:
    path = PAPER / "rescue/policies/rescue-2x4-lp-dm-es-s0.safetensors"
    run, ahead = RunName.parse(path.stem, "rescue"), {"rollouts": 8}
    found = evaluate_side_by_side("rescue:2x4", ["closest"], {path: run}, 12, 1, lambda run: run.method, ahead)
    closest, one, together = (outcomes.outcome for outcomes in found)
    assert (closest == evaluate("closest", "rescue:2x4", 12, seed=1).records.outcome).all()
    policy = LearnedPolicy.load(path)
    assert (one == evaluate(policy.with_rollouts(**ahead), "rescue:2x4", 12, seed=1).records.outcome).all()
    assert (one != evaluate(policy, "rescue:2x4", 12, seed=1).records.outcome).any()
    assert (together == one).all()
