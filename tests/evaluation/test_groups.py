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
from muster.evaluation.groups import (
    interquartile_mean,
    name_of_group,
    probability_interval,
    probability_of_improvement,
)
from muster.evaluation.statistics import student95
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


@pytest.mark.parametrize("runs", [2, 3, 5, 10])
def test_intervals_cover_the_truth_about_95_times_in_100(runs, monkeypatch):
    """Two groups of one distribution: the bootstrap's percentiles alone cover 0 in 70, 83, 95 and 96 of 100."""
    monkeypatch.setattr(groups, "RESAMPLES", 200)
    rng = np.random.default_rng(runs)
    hits = sure = 0
    for _ in range(200):
        episodes = rng.normal(0, 3, (1, 30))
        both = [rng.normal(size=(runs, 1)) + rng.normal(size=(runs, 30)) + episodes for _ in range(2)]
        low, high = groups._estimate(
            lambda means: interquartile_mean(means[0]) - interquartile_mean(means[1]), both
        ).ci95
        hits += low <= 0 <= high
        found = probability_of_improvement(both[0].mean(axis=1), both[1].mean(axis=1), 1)
        low, high = probability_interval(float(found), runs, runs)
        sure += low <= 0.5 <= high
    assert hits / 200 > 0.92
    assert sure / 200 > 0.92


def test_training_seeds_and_episodes_both_widen_an_interval():
    rng = np.random.default_rng(0)
    seeds, episodes = rng.normal(0, 1, (12, 1)), rng.normal(0, 3, (1, 60))

    def width(outcomes):
        low, high = groups._estimate(lambda means: means[0].mean(axis=-1), [outcomes]).ci95
        return high - low

    one, other = width(seeds + 0 * episodes), width(seeds[:1] + episodes)
    assert one == pytest.approx(2 * 2.201 * seeds.std(ddof=1) / np.sqrt(12), rel=0.1)
    assert width(seeds + episodes) == pytest.approx(np.hypot(one, other), rel=0.1)


def test_runs_that_are_all_better_leave_the_probability_uncertain():
    low, high = probability_interval(1.0, 3, 3)
    assert 0.2 < low < 0.5
    assert high == 1.0
    assert low < probability_interval(1.0, 10, 10)[0] < probability_interval(1.0, 10, 10, spread=0.0)[1]
    assert probability_interval(1.0, 10, 10, spread=0.1)[0] < probability_interval(1.0, 10, 10)[0]
    # Against one baseline, Wilson's interval of a share, with Student's t for 1.96.
    t = student95(4)
    assert probability_interval(0.0, 5, 1)[1] == pytest.approx(t**2 / (5 + t**2), abs=1e-3)


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
    twice = runs / "lp-s0.safetensors"
    with pytest.raises(InputError, match=r"s0\.safetensors is in a group twice"):
        muster.compare([[twice, str(twice)], "closest"], "rescue:2x4", 5)


def test_one_episode_has_no_interval_and_one_run_against_one_no_probability(runs):
    found = muster.compare([f"{runs}/lp-s*", "closest"], "rescue:2x4", 1)
    assert {found.groups[0].ci95, found.group_differences[0].ci95, found.evaluations[0].ci95} == {None}
    assert "(one episode: no interval)" in repr(found)
    found = muster.compare(["topline", f"{runs}/lp-s*", "closest"], "rescue:2x4", 5)
    assert found.group_differences[0].probability_ci95
    assert found.group_differences[1].probability_ci95 is None
    assert found.remarks()[-1].startswith("closest - topline: ")
    assert "probability" not in found.remarks()[-1]


def test_every_metric_has_a_paired_interval():
    found = muster.compare(["match", "greedy"], "fleet:6,city=small", 12)
    one, other = (evaluation.records.metrics["served"] for evaluation in found.evaluations)
    gap = found.differences[0].metrics["served"]
    assert gap.mean == pytest.approx((other - one).mean())
    assert gap.ci95[0] <= gap.mean <= gap.ci95[1]
    assert any(line.startswith("  served: ") for line in found.remarks())
    assert not any("requests" in line for line in found.remarks()), "the same for both policies in every episode"
    assert found.as_dict()["differences"][0]["metrics"]["served"]["mean"] == gap.mean


def test_every_metric_of_groups_has_an_interval_too():
    found = muster.compare([["match", "worth"], ["greedy"]], "fleet:6,city=small", 12)
    served = [evaluation.records.metrics["served"].mean() for evaluation in found.evaluations]
    gap = found.group_differences[0].metrics["served"]
    assert gap.mean == pytest.approx(served[2] - np.mean(served[:2]))
    assert gap.ci95[0] <= gap.mean <= gap.ci95[1]
    assert any(line.startswith("  served: ") for line in found.remarks())
    assert found.as_dict()["group_differences"][0]["metrics"]["served"]["mean"] == gap.mean
