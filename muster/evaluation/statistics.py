"""Labels and direction of each metric, and 95 % intervals of means and rates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from muster.data import Floats
from muster.envs.vector import Metric

Interval = tuple[float, float]
Verdict = Literal["better", "even", "worse"]

RESAMPLES = 2000
DRAWN_AT_ONCE = 100_000
"""Values that resamples hold in memory at a time."""
FEW = 20
"""Values below which the percentile bootstrap is clearly too narrow: of five normal ones it covers the mean in 85 %."""
Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Meaning:
    """Labels and direction of a metric."""

    label: str
    """Label of a plot's axis."""
    short: str
    """Head of a table's column."""
    digits: int
    better: Literal[1, -1]
    """1 if higher is better, -1 if lower."""
    limit_fails: bool
    """Whether an episode that hits the step limit has failed; it counts like any other, at the limit."""


MEANINGS: dict[Metric, Meaning] = {
    "steps": Meaning("steps to the last task, T", "steps T", 2, -1, limit_fails=True),
    "win_rate": Meaning("win rate", "win rate", 3, 1, limit_fails=True),
    "return": Meaning("return: sum of rewards", "return", 2, 1, limit_fails=False),
    "agreement": Meaning("agreement: share of agents with the log's task", "agreement", 3, 1, limit_fails=False),
}


def verdict_of(gap: Interval | None, metric: Metric) -> Verdict:
    """Verdict of the 95 % interval of a difference: better or worse if 0 is outside it, else even."""
    low, high = sorted(MEANINGS[metric].better * bound for bound in gap or (0.0, 0.0))
    return "better" if low > 0 else "worse" if high < 0 else "even"


def interval_of(values: Floats) -> Interval | None:
    """95 % interval of the mean; None of one value."""
    return bootstrap_interval(values) if len(values) > 1 else None


def bootstrap_interval(values: Floats, resamples: int = RESAMPLES) -> Interval:
    """95 % interval of the mean, by the percentile bootstrap; the same values always give the same interval.

    With fewer than FEW values it is as much wider as Student's interval is than the normal one. Of one value it is the
    value itself: nothing is known of its spread.
    """
    n = len(values)
    if n < 2:
        return (float(values[0]),) * 2 if n else (math.nan, math.nan)
    rng = np.random.default_rng(0)
    # Few distinct values, as with steps: resampling their counts is far cheaper than resampling the values.
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) * 4 < n:
        means = rng.multinomial(n, counts / n, resamples) @ distinct / n
    else:
        rows = max(1, DRAWN_AT_ONCE // n)
        sizes = [(min(rows, resamples - begin), n) for begin in range(0, resamples, rows)]
        means = np.concatenate([values[rng.integers(n, size=size)].mean(axis=1) for size in sizes])
    low, high = np.quantile(means, [0.025, 0.975])
    if n < FEW:
        mean, wider = values.mean(), student95(n - 1) / Z95 * math.sqrt(n / (n - 1))
        low, high = mean + wider * (low - mean), mean + wider * (high - mean)
    return float(low), float(high)


def student95(degrees: float) -> float:
    """97.5 % quantile of Student's t: exact for 1, 2 and 3 degrees of freedom, else within 3 % (Fisher's expansion)."""
    if degrees <= 3:
        return math.exp(np.interp(1 / degrees, (1 / 3, 1 / 2, 1), np.log((3.18245, 4.30265, 12.7062))))
    z, d = Z95, degrees
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + (z**3 + z) / (4 * d) + second / d**2 + third / d**3


def wilson_interval(successes: int, trials: int) -> Interval:
    """95 % interval of a rate, by Wilson's score: sensible near 0 and 1, and for few trials."""
    if trials == 0:
        return math.nan, math.nan
    rate, spread = successes / trials, Z95**2 / trials
    middle = (rate + spread / 2) / (1 + spread)
    half = math.sqrt(rate * (1 - rate) * spread + spread**2 / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
