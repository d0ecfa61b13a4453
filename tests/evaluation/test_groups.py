"""Groups of runs: definitions, intervals, and the comparison of two groups of five seeds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import muster
from muster.cli.main import main
from muster.errors import InputError
from muster.evaluation import groups
from muster.evaluation.groups import interquartile_mean, name_of_group, probability_of_improvement
from tests.policy.policy_files import write_random_policy


@pytest.mark.parametrize("runs", [1, 3, 4, 5, 8, 11])
def test_the_interquartile_mean_is_rliables(runs):
    """rliable takes scipy's trimmed mean with a quarter cut off at either end."""
    stats = pytest.importorskip("scipy.stats")
    scores = np.random.default_rng(runs).normal(size=(6, runs))
    assert interquartile_mean(scores) == pytest.approx(stats.trim_mean(scores, 0.25, axis=1))


def test_one_run_that_failed_does_not_move_the_interquartile_mean():
    assert interquartile_mean(np.array([9.0, 10.0, 11.0, 12.0, 200.0])) == 11.0


def test_probability_of_improvement_counts_pairs_and_half_of_the_ties():
    """As rliable: the Mann-Whitney statistic over the number of pairs."""
    own, other = np.array([3.0, 1.0]), np.array([0.0, 1.0, 5.0])
    assert probability_of_improvement(own, other, 1) == pytest.approx((2 + 1.5) / 6)
    assert probability_of_improvement(own, other, -1) == pytest.approx(1 - 3.5 / 6)


def test_intervals_cover_the_truth_about_95_times_in_100():
    """Seeds and episodes both vary: an interval over episodes alone would be far too narrow."""
    rng = np.random.default_rng(0)
    hits = narrow = 0
    for _ in range(150):
        seeds, episodes = rng.normal(0, 1, (12, 1)), rng.normal(0, 3, (1, 60))
        low, high = groups._interval([10 + seeds + episodes], lambda means: means[0].mean(axis=1))
        hits += low <= 10 <= high
        low, high = groups._interval([10 + seeds[:1] + episodes], lambda means: means[0].mean(axis=1))
        narrow += low <= 10 <= high
    assert 0.86 < hits / 150 < 0.99
    assert narrow < hits


def test_names_of_groups():
    assert name_of_group(["runs/ppo-s0", "runs/ppo-s1"]) == "runs/ppo-s*"
    assert name_of_group(["closest"]) == "closest"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for seed in range(5):
        for kind in ("quad", "lp"):
            write_random_policy(tmp_path / f"{kind}-s{seed}.safetensors", "rescue:2x4", seed=seed, method=kind)
    (tmp_path / "lp-s0.log").touch()
    return tmp_path


def test_two_groups_of_five_seeds_are_compared(runs, capsys):
    main(("compare", f"{runs}/lp-s*", f"{runs}/quad-s*", "closest", "rescue:2x4", "--episodes", "40", "--json"))
    found = json.loads(capsys.readouterr().out)
    assert [len(group["runs"]) for group in found["groups"]] == [5, 5, 1]
    means = [one["mean"] for one in found["policies"]]
    assert found["groups"][1]["iqm"] == pytest.approx(np.mean(sorted(means[5:10])[1:4]))
    gap = found["group_differences"][1]
    assert gap["difference"] == pytest.approx(means[10] - found["groups"][0]["iqm"])
    assert gap["ci95"][0] <= gap["difference"] <= gap["ci95"][1]
    assert gap["probability_of_improvement"] == np.mean([means[10] < mean for mean in means[:5]])
    main(("compare", f"{runs}/lp-s*", "closest", "rescue:2x4", "--episodes", "10"))
    assert "5 runs: interquartile mean" in capsys.readouterr().out


def test_a_list_is_a_group_and_one_that_is_empty_is_refused(runs):
    found = muster.compare([sorted(runs.glob("lp-s*.safetensors")), "closest"], "rescue:2x4", 5)
    assert found.groups[0].policy == f"{runs}/lp-s*"
    assert not muster.compare(["closest", "lp-distance"], "rescue:2x4", 5).groups
    with pytest.raises(InputError, match="no run or policy file matches"):
        muster.compare([f"{runs}/ppo-s*", "closest"], "rescue:2x4", 5)
    with pytest.raises(InputError, match="has no member"):
        muster.compare([[], "closest"], "rescue:2x4", 5)


def test_every_metric_has_a_paired_interval():
    found = muster.compare(["match", "greedy"], "fleet:6,city=small", 12)
    one, other = (evaluation.records.metrics["served"] for evaluation in found.evaluations)
    gap = found.differences[0].metrics["served"]
    assert gap.mean == pytest.approx((other - one).mean())
    assert gap.ci95[0] <= gap.mean <= gap.ci95[1]
    assert any(line.startswith("  served: ") for line in found.remarks())
    assert found.as_dict()["differences"][0]["metrics"]["served"]["mean"] == gap.mean


def test_every_metric_of_groups_has_an_interval_too():
    found = muster.compare([["match", "worth"], ["greedy"]], "fleet:6,city=small", 12)
    served = [evaluation.records.metrics["served"].mean() for evaluation in found.evaluations]
    gap = found.group_differences[0].metrics["served"]
    assert gap.mean == pytest.approx(served[2] - np.mean(served[:2]))
    assert gap.ci95[0] <= gap.mean <= gap.ci95[1]
    assert any(line.startswith("  served: ") for line in found.remarks())
    assert found.as_dict()["group_differences"][0]["metrics"]["served"]["mean"] == gap.mean
