"""Runs of one method with different training seeds, taken together: what the method does rather than one run of it.

As rliable defines them (Agarwal et al., 2021): the interquartile mean of the runs, and the probability that a run of
one method is better than a run of another. Intervals are by a bootstrap that draws training seeds anew within each
group and episodes anew for all runs alike, since all ran the same ones.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats
from muster.envs.vector import Metric
from muster.errors import InputError
from muster.evaluation.evaluate import Evaluation
from muster.evaluation.statistics import MEANINGS, RESAMPLES, Interval

CHUNK = 1_000_000
"""Resampled episodes at once: bounds the memory."""


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one method on the same episodes."""

    policy: str
    """What their names have in common, with a star; the name itself of a single policy."""
    runs: tuple[str, ...]
    iqm: float
    """Interquartile mean of the runs' means."""
    ci95: Interval
    """Over training seeds and episodes; of a single policy over episodes."""


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """One group beside another."""

    policy: str
    reference: str
    difference: float
    """Of the interquartile means."""
    ci95: Interval
    probability_of_improvement: float
    """That a run of the policy is better than a run of the reference; a tie counts one half."""
    probability_ci95: Interval


def runs_that_match(pattern: str) -> list[str]:
    """The folders of runs and the policy files that a pattern such as runs/ppo-s* names, in order."""
    found = [path for path in sorted(glob.glob(pattern)) if Path(path).is_dir() or path.endswith(".safetensors")]
    if not found:
        raise InputError(f"no run or policy file matches {pattern!r}; a pattern is such as 'runs/ppo-s*'")
    return found


def is_pattern(name: str) -> bool:
    """Whether a name stands for several runs: it has a star, a question mark or brackets, and is no file itself."""
    return any(sign in name for sign in "*?[") and not Path(name).exists()


def name_of_group(runs: Sequence[str]) -> str:
    """What the names have in common, with a star: runs/ppo-s* of runs/ppo-s0 and runs/ppo-s1."""
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*runs, strict=False))
    return runs[0] if len(runs) == 1 else "".join(letters[0] for letters in alike) + "*"


def interquartile_mean(runs: NDArray[np.floating]) -> Floats:
    """[...] mean of the middle half of [..., R]: a quarter of the runs, rounded down, is left out at either end."""
    cut = runs.shape[-1] // 4
    return np.asarray(np.sort(runs, axis=-1)[..., cut : runs.shape[-1] - cut].mean(axis=-1), np.float64)


def probability_of_improvement(runs: Floats, reference: Floats, better: int) -> Floats:
    """[...] share of the pairs of a run [..., R] and one of the reference [..., Q] in which it is better; ties half."""
    gaps = better * (runs[..., :, None] - reference[..., None, :])
    return np.asarray((0.5 * (np.sign(gaps) + 1)).mean(axis=(-2, -1)), np.float64)


def summarise_groups(groups: Sequence[Sequence[Evaluation]]) -> tuple[list[Group], list[GroupDifference]]:
    """Each group, and each later one beside the first."""
    names = [name_of_group([one.policy for one in group]) for group in groups]
    outcomes = [np.array([one.records.outcome for one in group]) for group in groups]
    found = []
    for name, group, outcome in zip(names, groups, outcomes, strict=True):
        interval = _interval([outcome], lambda means: interquartile_mean(means[0]))
        iqm = float(interquartile_mean(outcome.mean(axis=1)))
        found.append(Group(name, tuple(one.policy for one in group), iqm, interval))
    metric = groups[0][0].metric
    gaps = [_beside(names[k], outcomes[k], names[0], outcomes[0], metric) for k in range(1, len(groups))]
    return found, gaps


def _beside(name: str, own: Floats, reference_name: str, reference: Floats, metric: Metric) -> GroupDifference:
    better = MEANINGS[metric].better

    def difference(means: list[Floats]) -> Floats:
        return interquartile_mean(means[0]) - interquartile_mean(means[1])

    def probability(means: list[Floats]) -> Floats:
        return probability_of_improvement(means[0], means[1], better)

    whole = [own.mean(axis=1), reference.mean(axis=1)]
    return GroupDifference(
        policy=name,
        reference=reference_name,
        difference=float(difference(whole)),
        ci95=_interval([own, reference], difference),
        probability_of_improvement=float(probability(whole)),
        probability_ci95=_interval([own, reference], probability),
    )


def _interval(outcomes: Sequence[Floats], statistic: Callable[[list[Floats]], Floats]) -> Interval:
    """95 % interval of a statistic of the runs' means [S, R] of each group, by the stratified bootstrap."""
    drawn = np.concatenate([statistic(means) for means in _resampled_means(outcomes)])
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def _resampled_means(outcomes: Sequence[Floats], resamples: int = RESAMPLES) -> Iterator[list[Floats]]:
    """[S, R] for each group of outcomes [R, E], some resamples at a time: seeds within groups, episodes for all."""
    rng = np.random.default_rng(0)
    episodes = outcomes[0].shape[1]
    chunk = max(1, CHUNK // episodes)
    for part in range(math.ceil(resamples / chunk)):
        size = min(chunk, resamples - part * chunk)
        weights = rng.multinomial(episodes, np.full(episodes, 1 / episodes), size) / episodes
        means = [weights @ outcome.T for outcome in outcomes]
        yield [np.take_along_axis(one, rng.integers(one.shape[1], size=one.shape), axis=1) for one in means]
