"""Paired comparison of policies on the same episodes, and of methods by runs with several training seeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from muster.envs.registry import EnvLike, make
from muster.envs.vector import BatchEnv, Metric, Policy
from muster.errors import InputError
from muster.evaluation.evaluate import Count, Evaluation, Mean, evaluate
from muster.evaluation.groups import Group, GroupDifference, runs_of, summarise_groups
from muster.evaluation.statistics import Interval, Verdict, interval_of, verdict_of
from muster.evaluation.text import (
    difference_lines,
    episodes_of,
    evaluation_table,
    group_difference_lines,
    group_line,
    html_table,
    text_table,
)
from muster.policy.learned import PRIOR, LearnedPolicy
from muster.rng import SetName

Watch = Callable[[str], AbstractContextManager[Callable[[int], None] | None]]
"""From a policy's name, a context for its evaluation that yields the `progress` of `evaluate`."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One policy's outcome minus another's, episode by episode."""

    policy: str
    reference: str
    mean: float
    ci95: Interval | None
    episodes: int
    higher: int
    equal: int
    lower: int
    metrics: dict[str, Mean] = field(default_factory=dict)
    """Paired difference of each further metric, over the episodes in which both policies have a number."""

    def verdict(self, metric: Metric) -> Verdict:
        """Verdict on the policy: "better" or "worse" if the whole interval is on one side of 0, else "even"."""
        return verdict_of(self.ci95, metric)

    def as_dict(self) -> dict[str, Any]:
        """The difference as in `muster compare --json`."""
        return {name: getattr(self, name) for name in self.__slots__} | {
            "metrics": {name: value._asdict() for name, value in self.metrics.items()}
        }


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Several policies on the same episodes."""

    evaluations: tuple[Evaluation, ...]
    differences: tuple[Difference, ...]
    """Each later policy minus the first; then the last, if no group was compared, minus each of those between."""
    groups: tuple[Group, ...] = ()
    """Runs of one method together, if a group of runs was compared."""
    group_differences: tuple[GroupDifference, ...] = ()
    """Each later group against the first."""

    def as_dict(self) -> dict[str, Any]:
        """The comparison as in `muster compare --json`."""
        return {
            "policies": [evaluation.as_dict() for evaluation in self.evaluations],
            "differences": [difference.as_dict() for difference in self.differences],
            "groups": [asdict(group) for group in self.groups],
            "group_differences": [difference.as_dict() for difference in self.group_differences],
        }

    @property
    def title(self) -> str:
        """Environment and episodes."""
        return f"{self.evaluations[0].env}: {episodes_of(self.evaluations[0])}"

    def remarks(self) -> list[str]:
        """The differences in words, but for metrics that two policies share in every episode."""
        metric = self.evaluations[0].metric
        if self.groups:
            lines = [group_line(group, metric) for group in self.groups]
            return lines + [line for gap in self.group_differences for line in group_difference_lines(gap, metric)]
        return [line for gap in self.differences for line in difference_lines(gap, metric)]

    def __repr__(self) -> str:
        return self.title + "\n" + text_table(*evaluation_table(self.evaluations), self.remarks())

    def _repr_html_(self) -> str:
        return html_table(*evaluation_table(self.evaluations), self.remarks(), self.title)


def compare(
    policies: Sequence[str | Path | Policy | Sequence[str | Path | Policy]],
    env: EnvLike | BatchEnv,
    episodes: Count = 1000,
    seed: SetName = 0,
    noise: bool = False,
    batch: int | None = None,
    watch: Watch = lambda policy: nullcontext(),
) -> Comparison:
    """Run the same episodes with several policies; `noise` is for the learned ones among them.

    `policies`, `env`, `episodes`, `seed` and `batch` are as in `muster.evaluate`. A list among the policies, or a
    pattern such as "runs/ppo-s*", is a group: runs of one method with different training seeds.
    """
    if isinstance(policies, str) or len(policies) < 2:
        got = policies if isinstance(policies, str) else " ".join(map(str, policies)) or "none"
        raise InputError(f"a comparison needs a list of two or more policies, got {got}")
    without_noise = [*(env if isinstance(env, BatchEnv) else make(env)).baselines(), PRIOR]
    groups = [_members(entry) for entry in policies]
    evaluations: list[Evaluation] = []
    for policy in (member for group in groups for member in group):
        learned = policy not in without_noise if isinstance(policy, str) else isinstance(policy, LearnedPolicy)
        with watch(policy if isinstance(policy, str) else getattr(policy, "name", "")) as progress:
            evaluation = evaluate(policy, env, episodes, seed, noise and learned, batch, progress)
        name = _unique_name(evaluation.policy, [other.policy for other in evaluations])
        evaluations.append(replace(evaluation, policy=name))
    gaps = differences(evaluations)
    if all(len(group) == 1 for group in groups):
        gaps += [_difference(evaluations[-1], between) for between in evaluations[1:-1]]
        return Comparison(tuple(evaluations), tuple(gaps))
    ends = np.cumsum([len(group) for group in groups])
    by_group = [evaluations[end - len(group) : end] for group, end in zip(groups, ends, strict=True)]
    summaries, group_gaps = summarise_groups(by_group)
    return Comparison(tuple(evaluations), tuple(gaps), tuple(summaries), tuple(group_gaps))


def _members(entry: str | Path | Policy | Sequence[str | Path | Policy]) -> list[str | Policy]:
    """The policies of a group, or the single policy, as a list."""
    if isinstance(entry, str):
        return [*runs_of(entry)]
    members: Sequence[Any] = entry if isinstance(entry, (list, tuple)) else [entry]
    if not members:
        raise InputError("a group of runs has no member; give their names, or a pattern such as 'runs/ppo-s*'")
    same = [os.path.realpath(member) if isinstance(member, (str, Path)) else id(member) for member in members]
    for member, own in zip(members, same, strict=True):
        if same.count(own) > 1:
            name = getattr(member, "name", member) if isinstance(own, int) else member
            raise InputError(f"{name} is in a group twice; a group has runs with different training seeds, each once")
    return [str(member) if isinstance(member, Path) else member for member in members]


def _unique_name(name: str, others: Sequence[str]) -> str:
    """The name, with a number appended if another policy has the same."""
    number = sum(other == name or other.startswith(f"{name} (") for other in others)
    return f"{name} ({number + 1})" if number else name


def differences(evaluations: Sequence[Evaluation]) -> list[Difference]:
    """Each later evaluation minus the first, on the same episodes."""
    return [_difference(evaluation, evaluations[0]) for evaluation in evaluations[1:]]


def _difference(policy: Evaluation, reference: Evaluation) -> Difference:
    if not np.array_equal(policy.records.seeds, reference.records.seeds):
        raise InputError(f"{policy.policy} and {reference.policy} did not run the same episodes")
    gap = policy.records.outcome - reference.records.outcome
    return Difference(
        policy=policy.policy,
        reference=reference.policy,
        mean=float(gap.mean()),
        ci95=interval_of(gap),
        episodes=len(gap),
        higher=int((gap > 0).sum()),
        equal=int((gap == 0).sum()),
        lower=int((gap < 0).sum()),
        metrics=dict(_metric_gaps(policy, reference)),
    )


def _metric_gaps(policy: Evaluation, reference: Evaluation) -> Iterator[tuple[str, Mean]]:
    """(name, paired difference) of each metric that both policies report."""
    for name, values in policy.records.metrics.items():
        if name in reference.records.metrics:
            gap = values - reference.records.metrics[name]
            gap = gap[np.isfinite(gap)]
            if len(gap):
                yield name, Mean(float(gap.mean()), interval_of(gap))
