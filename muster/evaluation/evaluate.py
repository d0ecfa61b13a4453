"""How good is a policy, and is one better than another? The same episodes for everyone, and an interval always."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from muster.envs.base import BatchEnv, Policy
from muster.envs.registry import make
from muster.errors import InputError
from muster.evaluation.rollout import Episodes, begin_episodes, decide, run_episodes
from muster.evaluation.statistics import Interval, bootstrap_interval, wilson_interval
from muster.policy.names import resolve
from muster.rng import Seeds, episode_seeds

BATCH = 256


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One policy on one fixed set of episodes.

    For metric "steps" the episodes that hit the step limit are counted in `failed` and left out of the mean, as in
    the paper's Table 1; for "win_rate" every episode counts.
    """

    policy: str
    env: str
    episodes: int
    seed: int
    noise: bool
    metric: str
    mean: float | None
    """None when every episode failed."""
    ci95: Interval | None
    failed: int
    decisions_per_second: float
    """World and policy together."""
    ms_per_decision: float
    """Policy alone, in batches."""
    records: Episodes = field(repr=False)

    @property
    def steps_minus_one(self) -> float | None:
        """T - 1, for metric "steps": what the paper's table appears to count."""
        return self.mean - 1 if self.mean is not None and self.metric == "steps" else None

    def as_dict(self) -> dict[str, Any]:
        """What `muster evaluate --json` prints."""
        names = ["policy", "env", "episodes", "seed", "noise", "metric", "mean", "ci95", "failed"]
        names += ["steps_minus_one"] * (self.metric == "steps") + ["decisions_per_second", "ms_per_decision"]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Difference:
    """One policy's outcome minus another's, episode by episode."""

    policy: str
    reference: str
    mean: float | None
    ci95: Interval | None
    episodes: int
    """Episodes that neither failed: those compared."""
    higher: int
    equal: int
    lower: int

    def as_dict(self) -> dict[str, Any]:
        """What `muster compare --json` prints of it."""
        return {name: getattr(self, name) for name in self.__slots__}


def evaluate(
    policy: str | Policy,
    env: str | BatchEnv,
    episodes: int = 1000,
    seed: int = 0,
    noise: bool = False,
    batch: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Play `episodes` episodes of the set that `seed` names.

    `env` is an environment string, or an environment object whose slots are then used; `batch` is the number of
    slots otherwise. Neither changes a figure other than the times.
    """
    if episodes < 1:
        raise InputError(f"an evaluation needs at least 1 episode, got {episodes}")
    if isinstance(env, str):
        env = make(env, min(episodes, batch or BATCH))
    player = resolve(policy, env, noise) if isinstance(policy, str) else policy
    seeds = episode_seeds(seed, np.arange(episodes))
    _warm_up(env, player, seeds[:1])
    records = run_episodes(env, player, seeds, progress)
    return summarise(policy if isinstance(policy, str) else policy.name, env, seed, noise, records)


def _warm_up(env: BatchEnv, policy: Policy, seeds: Seeds) -> None:
    """One step for nothing, so that compiling is not counted as thinking."""
    begin_episodes(env, policy, np.arange(1), seeds)
    decide(env, policy)


def summarise(policy: str, env: BatchEnv, seed: int, noise: bool, records: Episodes) -> Evaluation:
    """Figures of merit of episodes that were played."""
    outcome = records.outcome if env.metric == "win_rate" else records.outcome[~records.truncated]
    interval: Interval | None = None
    if env.metric == "win_rate":
        interval = wilson_interval(int(outcome.sum()), len(outcome))
    elif len(outcome):
        interval = bootstrap_interval(outcome)
    return Evaluation(
        policy=policy,
        env=env.name,
        episodes=len(records.seeds),
        seed=seed,
        noise=noise,
        metric=env.metric,
        mean=float(outcome.mean()) if len(outcome) else None,
        ci95=interval,
        failed=int(records.truncated.sum()),
        decisions_per_second=records.decisions / records.seconds,
        ms_per_decision=1000 * records.policy_seconds / records.decisions,
        records=records,
    )


def differences(evaluations: Sequence[Evaluation]) -> list[Difference]:
    """Each later evaluation minus the first, on the same episodes."""
    return [_difference(other, evaluations[0]) for other in evaluations[1:]]


def _difference(one: Evaluation, reference: Evaluation) -> Difference:
    if not np.array_equal(one.records.seeds, reference.records.seeds):
        raise InputError(f"{one.policy} and {reference.policy} did not play the same episodes")
    both = np.ones(one.episodes, np.bool_)
    if one.metric == "steps":
        both = ~(one.records.truncated | reference.records.truncated)
    gap = (one.records.outcome - reference.records.outcome)[both]
    return Difference(
        policy=one.policy,
        reference=reference.policy,
        mean=float(gap.mean()) if len(gap) else None,
        ci95=bootstrap_interval(gap) if len(gap) else None,
        episodes=len(gap),
        higher=int((gap > 0).sum()),
        equal=int((gap == 0).sum()),
        lower=int((gap < 0).sum()),
    )
