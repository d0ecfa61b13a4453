"""Is one policy better than another? Paired, on the same episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from muster.envs.registry import EnvLike, make
from muster.envs.vector import BatchEnv, Metric, Policy
from muster.errors import InputError
from muster.evaluation.evaluate import Count, Evaluation, evaluate
from muster.evaluation.statistics import Interval, Verdict, bootstrap_interval, verdict_of
from muster.evaluation.text import difference_line, episodes_of, evaluation_table, html_table, text_table
from muster.policy.learned import PRIOR, LearnedPolicy

Watch = Callable[[str], AbstractContextManager[Callable[[int], None] | None]]
"""Given the name of a policy, a context in which it runs; what it yields is told how many episodes ended."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One policy's outcome minus another's, episode by episode."""

    policy: str
    reference: str
    mean: float
    ci95: Interval
    episodes: int
    higher: int
    equal: int
    lower: int

    def verdict(self, metric: Metric) -> Verdict:
        """Whether the policy is better or worse than the reference where the whole interval says so, else "even"."""
        return verdict_of(self.ci95, metric)

    def as_dict(self) -> dict[str, Any]:
        """What `muster compare --json` prints of it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Several policies on the same episodes."""

    evaluations: tuple[Evaluation, ...]
    differences: tuple[Difference, ...]
    """Each later policy minus the first."""

    def as_dict(self) -> dict[str, Any]:
        """What `muster compare --json` prints."""
        return {
            "policies": [one.as_dict() for one in self.evaluations],
            "differences": [one.as_dict() for one in self.differences],
        }

    @property
    def title(self) -> str:
        """What was run."""
        return f"{self.evaluations[0].env}: {episodes_of(self.evaluations[0])}"

    def remarks(self) -> list[str]:
        """The differences in words."""
        return [difference_line(one, self.evaluations[0].metric) for one in self.differences]

    def __repr__(self) -> str:
        return self.title + "\n" + text_table(*evaluation_table(self.evaluations), self.remarks())

    def _repr_html_(self) -> str:
        return html_table(*evaluation_table(self.evaluations), self.remarks(), self.title)


def compare(
    policies: Sequence[str | Path | Policy],
    env: EnvLike | BatchEnv,
    episodes: Count = 1000,
    seed: int = 0,
    noise: bool = False,
    batch: int | None = None,
    watch: Watch = lambda policy: nullcontext(),
) -> Comparison:
    """Run the same episodes with several policies; `noise` is for the learned ones among them.

    `policies`, `env`, `episodes`, `seed` and `batch` are as in `muster.evaluate`.
    """
    if isinstance(policies, str) or len(policies) < 2:
        told = policies if isinstance(policies, str) else " ".join(map(str, policies)) or "none"
        raise InputError(f"a comparison needs a list of two or more policies, got {told}")
    fixed = [*(env if isinstance(env, BatchEnv) else make(env)).baselines(), PRIOR]
    found: list[Evaluation] = []
    for given in policies:
        policy = str(given) if isinstance(given, Path) else given
        learned = policy not in fixed if isinstance(policy, str) else isinstance(policy, LearnedPolicy)
        with watch(policy if isinstance(policy, str) else getattr(policy, "name", "")) as progress:
            one = evaluate(policy, env, episodes, seed, noise and learned, batch, progress)
        found.append(replace(one, policy=_unlike(one.policy, [other.policy for other in found])))
    return Comparison(tuple(found), tuple(differences(found)))


def _unlike(name: str, others: Sequence[str]) -> str:
    """The name, with a number behind it where another policy has the same."""
    number = sum(other == name or other.startswith(f"{name} (") for other in others)
    return f"{name} ({number + 1})" if number else name


def differences(evaluations: Sequence[Evaluation]) -> list[Difference]:
    """Each later evaluation minus the first, on the same episodes."""
    return [_difference(other, evaluations[0]) for other in evaluations[1:]]


def _difference(one: Evaluation, reference: Evaluation) -> Difference:
    if not np.array_equal(one.records.seeds, reference.records.seeds):
        raise InputError(f"{one.policy} and {reference.policy} did not run the same episodes")
    gap = one.records.outcome - reference.records.outcome
    return Difference(
        policy=one.policy,
        reference=reference.policy,
        mean=float(gap.mean()),
        ci95=bootstrap_interval(gap),
        episodes=len(gap),
        higher=int((gap > 0).sum()),
        equal=int((gap == 0).sum()),
        lower=int((gap < 0).sum()),
    )
