"""Evaluate a policy on a fixed set of episodes, the same for every policy, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from muster.data import Floats
from muster.envs.log.file import line_of, open_log
from muster.envs.registry import EnvLike, make
from muster.envs.vector import BatchEnv, Metric, Policy
from muster.errors import InputError
from muster.evaluation.episodes import Episodes, run_episodes
from muster.evaluation.statistics import MEANINGS, Interval, interval_of, wilson_interval
from muster.evaluation.text import describe, evaluation_lines, evaluation_table, html_table
from muster.policy.learned import LearnedPolicy
from muster.policy.lookahead import LookAhead
from muster.policy.names import resolve
from muster.policy.settings import RolloutSettings
from muster.rng import Seeds, SetName, episode_seeds
from muster.rollout import Transition

BATCH = 256
Count = int | Literal["all"]
"""Number of episodes of a seed's set, or all episodes of an environment with finitely many."""


class Mean(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    ci95: Interval | None
    """None of one episode."""


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """One policy on one fixed set of episodes.

    Every episode counts. For metric "steps" one that hits the step limit counts as so many steps, and `failed` says how
    many did; the paper's Table 1 leaves them out (`finished_mean`). For "return" the step limit is the usual end, so
    that `failed` is 0.
    """

    policy: str
    env: str
    episodes: int
    seed: SetName
    noise: bool
    metric: Metric
    mean: float
    ci95: Interval | None
    """None of one episode."""
    failed: int
    decisions_per_second: float
    """Environment and policy together."""
    ms_per_decision: float
    """Policy alone, in batches."""
    records: Episodes
    changes_per_decision: float | None = None
    """Mean share of the agents that change from one living task to another; None if all episodes have one decision."""
    metrics: dict[str, Mean | None] = field(default_factory=dict)
    """Further metrics of the environment by name, over the episodes that have a number; None if none has."""
    all: bool = False
    """Whether these are all episodes of the environment, so that `seed` has no effect."""
    inference: str | None = None
    """Method that solves a learned policy's scores; None for a baseline."""
    effort: str | None = None
    look_ahead: RolloutSettings | None = None
    """Settings of policy look-ahead; None without it."""

    @property
    def steps_minus_one(self) -> float | None:
        """T - 1 for metric "steps", which the paper's table appears to count."""
        return self.mean - 1 if self.metric == "steps" else None

    @property
    def finished_mean(self) -> Mean | None:
        """Mean over the episodes that did not hit the step limit, as in the paper's Table 1; None if all did."""
        finished = self.records.outcome[~self.records.truncated]
        return Mean(float(finished.mean()), interval_of(finished)) if len(finished) else None

    def as_dict(self) -> dict[str, Any]:
        """The evaluation as in `muster evaluate --json`."""
        names = ["policy", "env", "episodes", "seed", "noise", "metric", "mean", "ci95", "failed"]
        names += ["steps_minus_one"] * (self.metric == "steps") + ["decisions_per_second", "ms_per_decision"]
        names += ["changes_per_decision", "inference", "effort"]
        look_ahead = None if self.look_ahead is None else asdict(self.look_ahead)
        metrics = {name: None if value is None else value.mean for name, value in self.metrics.items()}
        return {name: getattr(self, name) for name in names} | {"look_ahead": look_ahead, "metrics": metrics}

    def __repr__(self) -> str:
        return "\n".join(evaluation_lines(self))

    def _repr_html_(self) -> str:
        return html_table(*evaluation_table([self]), (), describe(self))


def evaluate(
    policy: str | Path | Policy,
    env: EnvLike | BatchEnv,
    episodes: Count = 1000,
    seed: SetName = 0,
    noise: bool = False,
    batch: int | None = None,
    progress: Callable[[int], None] | None = None,
    log: str | Path | None = None,
) -> Evaluation:
    """Run `episodes` episodes of the set that `seed` names; "all" runs each episode of an env that has only so many.

    `env` is an environment string, a class of your own, or an environment object whose slots are then used; `batch`
    is the number of slots otherwise. Neither changes a result other than the times. Every decision is written to `log`,
    if named, with its observation: a file to learn from (`muster.envs.log`). Seed "sealed" names the set for final
    evaluations: training and search cannot draw from it, and no log is written of it.
    """
    if seed == "sealed" and log is not None:
        raise InputError("a log is for training, which must not see the sealed episodes; give another seed")
    if isinstance(env, str) and isinstance(policy, str) and ":" in policy and ":" not in env:
        raise InputError(f"the policy comes first and then the environment, got {policy!r} and {env!r}")
    batch_env = env if isinstance(env, BatchEnv) else make(env, min(batch or BATCH, _count(env, episodes)))
    seeds = choose_episodes(batch_env, episodes, seed)
    bound = resolve(policy, batch_env, noise)
    noise = noise or getattr(bound, "noisy", False)
    learned = bound.policy if isinstance(bound, LookAhead) else bound
    shown = learned.spec.shown if isinstance(learned, LearnedPolicy) else {}
    with writing_log(batch_env, log, shown) as record:
        records = run_episodes(batch_env, bound, seeds, progress, record)
    name = str(policy) if isinstance(policy, (str, Path)) else policy.name
    evaluation = summarise(name, batch_env, seed, noise, records, all_episodes=episodes == "all")
    if not isinstance(learned, LearnedPolicy):
        return evaluation
    inference = learned.inference
    return replace(evaluation, inference=inference.method, effort=inference.effort, look_ahead=learned.rollouts)


@contextmanager
def writing_log(
    env: BatchEnv, log: str | Path | None, shown: Mapping[str, bool]
) -> Iterator[Callable[[Transition], None] | None]:
    """Yield a function that writes transitions with an agent and a task to the log; None without a log."""
    if log is None:
        yield None
        return
    env.show(**{**shown, "pair_features": True})
    with open_log(Path(log), "w") as file:

        def write(transition: Transition) -> None:
            observation = transition.observation
            for slot in transition.active.tolist():
                if observation.agent_alive[slot].any() and observation.task_alive[slot].any():
                    file.write(line_of(observation, slot, transition.action) + "\n")

        yield write


def _count(env: EnvLike, episodes: Count) -> int:
    """Number of episodes of a count or "all"."""
    if episodes == "all":
        return len(choose_episodes(make(env), episodes))
    return episodes if isinstance(episodes, int) and episodes > 0 else 1


def choose_episodes(env: BatchEnv, episodes: Count, seed: SetName = 0) -> Seeds:
    """Seeds of the first `episodes` episodes of the set that `seed` names, or of all episodes."""
    if episodes == "all":
        seeds = env.all_episodes()
        if seeds is None:
            raise InputError(f"{env.name} has episodes without end; say how many rather than 'all'")
        if seed:
            raise InputError(f"all episodes are the same whatever the seed; leave it out, got {seed}")
        return seeds
    if not isinstance(episodes, int) or episodes < 1:
        raise InputError(f"an evaluation needs at least 1 episode, or 'all', got {episodes!r}")
    return episode_seeds(seed, np.arange(episodes))


def summarise(
    policy: str, env: BatchEnv, seed: SetName, noise: bool, records: Episodes, all_episodes: bool = False
) -> Evaluation:
    """Mean, interval and metrics of episodes that were run."""
    outcome = records.outcome
    wins = env.metric == "win_rate"
    return Evaluation(
        policy=policy,
        env=env.name,
        episodes=len(records.seeds),
        seed=seed,
        noise=noise,
        metric=env.metric,
        mean=float(outcome.mean()),
        ci95=wilson_interval(int(outcome.sum()), len(outcome)) if wins and len(outcome) > 1 else interval_of(outcome),
        failed=int(records.truncated.sum()) if MEANINGS[env.metric].limit_fails else 0,
        decisions_per_second=records.decisions / records.seconds,
        ms_per_decision=1000 * records.policy_seconds / records.decisions,
        records=records,
        changes_per_decision=records.changes_per_decision,
        metrics={name: _mean(values) for name, values in records.metrics.items()},
        all=all_episodes,
    )


def _mean(values: Floats) -> Mean | None:
    """Mean over the episodes that have a number; None if none has."""
    known = values[np.isfinite(values)]
    return Mean(float(known.mean()), interval_of(known)) if len(known) else None
