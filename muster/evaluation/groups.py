"""Comparison of methods by groups of runs with different training seeds, as in rliable (Agarwal et al., 2021).

Interquartile mean of the runs, and probability that a run of one method is better than a run of another. Intervals take
Student's t, as a few runs tell little of their spread, times the standard error of a bootstrap that resamples training
seeds within each group, and episodes jointly, since all runs share them.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats
from muster.errors import InputError
from muster.evaluation.evaluate import Evaluation, Mean
from muster.evaluation.statistics import MEANINGS, RESAMPLES, Interval, student95

Statistic = Callable[[Sequence[Floats]], Floats]
"""From the means [..., R] of the runs of each group to a number [...]."""
CHUNK = 1_000_000
"""Resampled episodes at a time, to bound memory."""


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one method on the same episodes."""

    policy: str
    """Common prefix of the runs' names with a star; of a single policy its name."""
    runs: tuple[str, ...]
    iqm: float
    """Interquartile mean of the runs' means."""
    ci95: Interval | None
    """Over training seeds and episodes; for a single policy over episodes. None of one episode."""


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """One group against another."""

    policy: str
    reference: str
    difference: float
    """Difference of the interquartile means."""
    ci95: Interval | None
    probability_of_improvement: float
    """Probability that a run of the policy is better than one of the reference; a tie counts one half."""
    probability_ci95: Interval | None
    """None of one episode, and of one run against one."""
    metrics: dict[str, Mean]
    """Difference of the interquartile means of each further metric."""

    def as_dict(self) -> dict[str, Any]:
        """The difference as in `muster compare --json`."""
        return asdict(self) | {"metrics": {name: mean._asdict() for name, mean in self.metrics.items()}}


def runs_of(name: str) -> list[str]:
    """Folders of runs and policy files that match a pattern such as runs/ppo-s*, sorted; any other name by itself."""
    if not any(sign in name for sign in "*?[") or Path(name).exists():
        return [name]
    paths = [path for path in sorted(glob.glob(name)) if Path(path).is_dir() or path.endswith(".safetensors")]
    if not paths:
        raise InputError(f"no run or policy file matches {name!r}; a pattern is such as 'runs/ppo-s*'")
    return paths


def name_of_group(runs: Sequence[str]) -> str:
    """Common prefix of the names with a star: runs/ppo-s* of runs/ppo-s0 and runs/ppo-s1."""
    prefix = takewhile(lambda letters: len(set(letters)) == 1, zip(*runs, strict=False))
    return runs[0] if len(runs) == 1 else "".join(letters[0] for letters in prefix) + "*"


def interquartile_mean(runs: NDArray[np.floating]) -> Floats:
    """[...] mean of the middle half of [..., R]: a quarter of the runs, rounded down, is left out at either end."""
    cut = runs.shape[-1] // 4
    return np.asarray(np.sort(runs, axis=-1)[..., cut : runs.shape[-1] - cut].mean(axis=-1), np.float64)


def probability_of_improvement(runs: Floats, reference: Floats, better: int) -> Floats:
    """[...] share of the pairs of a run [..., R] and one of the reference [..., Q] in which it is better; ties half."""
    gaps = better * (runs[..., :, None] - reference[..., None, :])
    return np.asarray((0.5 * (np.sign(gaps) + 1)).mean(axis=(-2, -1)), np.float64)


def summarise_groups(groups: Sequence[Sequence[Evaluation]]) -> tuple[list[Group], list[GroupDifference]]:
    """Summary of each group, and the difference of each later one from the first."""
    names = [name_of_group([run.policy for run in group]) for group in groups]
    outcomes = [np.array([run.records.outcome for run in group]) for group in groups]
    summaries = []
    for name, group, outcome in zip(names, groups, outcomes, strict=True):
        iqm, interval = _estimate(lambda means: interquartile_mean(means[0]), [outcome])
        if interval and group[0].metric in ("win_rate", "agreement"):
            interval = max(0.0, interval[0]), min(1.0, interval[1])
        summaries.append(Group(name, tuple(run.policy for run in group), iqm, interval))
    return summaries, [_group_difference(names[k], groups[k], names[0], groups[0]) for k in range(1, len(groups))]


def _group_difference(
    name: str, group: Sequence[Evaluation], reference_name: str, reference: Sequence[Evaluation]
) -> GroupDifference:
    better = MEANINGS[reference[0].metric].better

    def difference(means: Sequence[Floats]) -> Floats:
        return interquartile_mean(means[0]) - interquartile_mean(means[1])

    def probability(means: Sequence[Floats]) -> Floats:
        return probability_of_improvement(means[0], means[1], better)

    both = [np.array([run.records.outcome for run in runs]) for runs in (group, reference)]
    metrics = {}
    for metric in group[0].records.metrics:
        if all(metric in run.records.metrics for run in (*group, *reference)):
            values = [np.array([run.records.metrics[metric] for run in runs]) for runs in (group, reference)]
            known = np.isfinite(np.concatenate(values)).all(axis=0)
            if known.any():
                metrics[metric] = _estimate(difference, [runs[:, known] for runs in values])
    gap = _estimate(difference, both)
    improvement = float(probability([outcome.mean(axis=1) for outcome in both]))
    interval = None
    if both[0].shape[1] > 1 and len(group) + len(reference) > 2:
        interval = probability_interval(improvement, len(group), len(reference), _spread_of_episodes(probability, both))
    return GroupDifference(name, reference_name, gap.mean, gap.ci95, improvement, interval, metrics)


def probability_interval(found: float, runs: int, others: int, spread: float = 0.0) -> Interval:
    """95 % interval of a probability of improvement: Newcombe's (2006, method 5), with Student's t.

    It holds from two runs on, and has a width where every run is better than every other one. One run against several
    is taken to be a baseline, without a spread over seeds. `spread` is the variance of the probability over episodes.
    """
    theta = np.linspace(0, 1, 2001)
    pairs = (runs + others) / 2 - 1 if min(runs, others) > 1 else 0.0
    variance = theta * (1 - theta) * (1 + pairs * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / (runs * others)
    within = theta[np.abs(theta - found) <= student95(runs + others - 2) * np.sqrt(variance + spread) + 1e-9]
    return float(min(within[0], found)), float(max(within[-1], found))


def _estimate(statistic: Statistic, outcomes: Sequence[Floats]) -> Mean:
    """A statistic of the runs' means [..., R] of each group, and its 95 % interval."""
    means, rng = [outcome.mean(axis=1) for outcome in outcomes], np.random.default_rng(0)
    found, episodes = float(statistic(means)), outcomes[0].shape[1]
    if episodes < 2:
        return Mean(found, None)
    parts = [(_spread_of_episodes(statistic, outcomes), episodes - 1)]
    for k, mean in enumerate(means):
        if (n := len(mean)) > 1:
            resampled = [*means[:k], mean[rng.integers(n, size=(RESAMPLES, n))], *means[k + 1 :]]
            parts.append((float(statistic(resampled).var()) * n / (n - 1), n - 1))
    variance = sum(part for part, _ in parts)
    if not variance:
        return Mean(found, (found, found))
    # Degrees of freedom of a sum of variances, by Welch and Satterthwaite.
    half = student95(variance**2 / sum(part**2 / degrees for part, degrees in parts)) * math.sqrt(variance)
    return Mean(found, (found - half, found + half))


def _spread_of_episodes(statistic: Statistic, outcomes: Sequence[Floats]) -> float:
    """Variance of a statistic over episodes, of these runs; `outcomes` are [R, E]."""
    rng, samples = np.random.default_rng(0), []
    episodes = outcomes[0].shape[1]
    chunk = max(1, CHUNK // episodes)
    for begin in range(0, RESAMPLES, chunk):
        size = min(chunk, RESAMPLES - begin)
        weights = rng.multinomial(episodes, np.full(episodes, 1 / episodes), size) / episodes
        samples.append(statistic([weights @ outcome.T for outcome in outcomes]))
    return float(np.concatenate(samples).var()) * episodes / (episodes - 1)
