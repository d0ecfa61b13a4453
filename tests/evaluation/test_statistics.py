from __future__ import annotations

import numpy as np
import pytest

from muster.evaluation import statistics
from muster.evaluation.statistics import bootstrap_interval, student95, wilson_interval


@pytest.mark.parametrize("whole_numbers", [True, False])
def test_the_bootstrap_agrees_with_the_normal_interval_on_many_values(whole_numbers):
    values = np.random.default_rng(0).normal(10, 3, 4000)
    values = np.round(values) if whole_numbers else values
    half = 1.96 * values.std() / np.sqrt(len(values))
    low, high = bootstrap_interval(values)
    assert low == pytest.approx(values.mean() - half, abs=half / 8)
    assert high == pytest.approx(values.mean() + half, abs=half / 8)


def test_the_bootstrap_covers_the_truth_about_95_times_in_100():
    rng = np.random.default_rng(1)
    hits = sum(low <= 12.0 <= high for low, high in (bootstrap_interval(rng.poisson(12, 100), 400) for _ in range(400)))
    assert 0.91 < hits / 400 < 0.98


def test_the_bootstrap_of_equal_values_has_no_width():
    assert bootstrap_interval(np.full(50, 7.0)) == (7.0, 7.0)


def test_the_bootstrap_repeats_itself():
    values = np.random.default_rng(2).random(200)
    assert bootstrap_interval(values) == bootstrap_interval(values)


@pytest.mark.parametrize("n", [2, 5, 16])
def test_intervals_of_few_values_cover_the_mean_as_often_as_they_say(n):
    """The percentile bootstrap alone covers it in 50, 85 and 92 of 100."""
    samples = np.random.default_rng(n).normal(size=(2000, n))
    intervals = [bootstrap_interval(values, 300) for values in samples]
    assert np.mean([low <= 0 <= high for low, high in intervals]) > 0.93


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.706), (2, 4.303), (2.7, 3.392), (3, 3.182), (5, 2.571), (18, 2.101)]
)
def test_quantiles_of_students_t(degrees, quantile):
    assert student95(degrees) == pytest.approx(quantile, rel=0.01)


@pytest.mark.parametrize("at_once", [1, 200, 999, 10**9])
def test_the_bootstrap_does_not_depend_on_how_many_values_are_drawn_at_once(at_once, monkeypatch):
    values = np.random.default_rng(2).random(200)
    one = bootstrap_interval(values)
    monkeypatch.setattr(statistics, "DRAWN_AT_ONCE", at_once)
    assert bootstrap_interval(values) == one


@pytest.mark.parametrize(
    ("successes", "trials", "expected"),
    # Values of Wilson's formula as published by Newcombe (1998), table I.
    [(81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0.0, 0.1611)), (1, 29, (0.0061, 0.1718))],
)
def test_wilson_matches_published_intervals(successes, trials, expected):
    assert wilson_interval(successes, trials) == pytest.approx(expected, abs=5e-5)


def test_nothing_observed_means_nothing_known():
    assert all(np.isnan(bootstrap_interval(np.array([]))))
    assert all(np.isnan(wilson_interval(0, 0)))
