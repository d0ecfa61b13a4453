"""Is what a run learned better than the environment's own baselines and prior, at home and at larger sizes?

Every run ends with paired validation episodes. On one set of them a checkpoint is chosen, or the prior where none is
better than it at one size and worse at none; on a second set that policy is compared with prior and baselines, so that
being chosen does not flatter it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muster.envs.registry import BUILT_IN, make
from muster.envs.vector import BatchEnv, Policy
from muster.errors import MusterError
from muster.evaluation.card import BOUNDS, Result
from muster.evaluation.compare import Difference, differences
from muster.evaluation.evaluate import BATCH, Evaluation, evaluate
from muster.evaluation.scale import LARGEST_BATCH
from muster.evaluation.statistics import MEANINGS, Verdict
from muster.evaluation.text import in_brackets, text_table
from muster.learning.envs import make_env
from muster.learning.learner import REPORT, VALIDATION
from muster.learning.metrics import Metrics
from muster.learning.settings import TrainSettings
from muster.policy.learned import PRIOR, LearnedPolicy, prior_policy

FACTORS = (2, 5)
"""Larger sizes, in multiples of the training size, where --validate-on names none."""
EPISODES = 100
"""At each size, of a run whose length is given in steps."""
PILOT, MOST = 16, 500
"""Episodes that are timed, and the most that follow, in a run whose length is given in minutes."""
ROUGH = 4
"""Episodes of a larger size in the first round, after which the last policy and the best other one are left."""
SHARE, LEAST_SECONDS = 0.25, 6.0
"""Of the training time that validation may take, and what it may take at least; half of it for choosing."""
LOG_EPISODES = 500
"""Held-out lines of a log that is imitated without an environment."""

Evaluations = dict[str, tuple[Evaluation, ...]]
"""By environment, of several policies on the same episodes."""


@dataclass(frozen=True)
class Size:
    """One environment: what was kept beside the baselines and the prior, on the same episodes."""

    policy: Evaluation
    rivals: tuple[Evaluation, ...]
    gaps: tuple[Difference, ...]
    """The policy minus each rival."""

    @property
    def best(self) -> int | None:
        """Index of the best rival; None where there is none."""
        return max(range(len(self.rivals)), key=lambda k: goodness(self.rivals[k]), default=None)

    @property
    def verdict(self) -> Verdict | None:
        """Of the policy against the best rival."""
        return None if self.best is None else self.gaps[self.best].verdict(self.policy.metric)

    def as_dict(self) -> dict[str, Any]:
        """What summary.json says of this environment."""
        return {
            "metric": self.policy.metric,
            "episodes": self.policy.episodes,
            "mean": self.policy.mean,
            "ci95": self.policy.ci95,
            "failed": self.policy.failed,
            "baselines": {
                rival.policy: {"mean": rival.mean, "difference": gap.mean, "ci95": gap.ci95}
                for rival, gap in zip(self.rivals, self.gaps, strict=True)
            },
            "best_baseline": None if self.best is None else self.rivals[self.best].policy,
            "verdict": self.verdict,
        }

    def result(self) -> Result:
        """What a card says of it."""
        assert self.best is not None
        assert self.verdict is not None
        own = self.policy
        return Result(
            env=own.env,
            unit=own.metric.replace("_", " "),
            episodes=own.episodes,
            mean=own.mean,
            ci95=own.ci95,
            baselines={rival.policy: rival.mean for rival in self.rivals},
            best_baseline=self.rivals[self.best].policy,
            verdict=self.verdict,
            paired=True,
            failed=own.failed / own.episodes,
            remark="validation episodes at the end of the run",
        )


@dataclass(frozen=True, repr=False)
class Validation:
    """What a run came to."""

    policy: LearnedPolicy
    """The checkpoint that was kept, or the prior."""
    sizes: dict[str, Size]
    """By environment: those of the training first."""
    home: int
    """How many of them are those of the training."""
    kept: str
    """Which checkpoint that is; or `prior`, where nothing learned was better than it."""
    last: Metrics
    """Mean outcome of the last policy on the episodes of choosing, of each training environment and of all."""
    remarks: tuple[str, ...] = ()

    @property
    def fell_back(self) -> bool:
        """Whether the prior was kept."""
        return self.kept == PRIOR

    @property
    def beats_baselines(self) -> bool:
        """Better than the best of baselines and prior on every training environment, and worse at no size."""
        found = [size.verdict for size in self.sizes.values()]
        return all(one == "better" for one in found[: self.home]) and "worse" not in found

    def results(self) -> list[Result]:
        """What a card says of it."""
        return [size.result() for size in self.sizes.values() if size.best is not None]

    def summary(self) -> dict[str, Any]:
        """Fields of summary.json."""
        sizes = {env: size.as_dict() for env, size in self.sizes.items()}
        return {
            "baselines": next(iter(sizes.values()))["baselines"],
            "sizes": sizes,
            "beats_baselines": self.beats_baselines,
            "kept": PRIOR if self.fell_back else "learned",
            "checkpoint": self.kept,
        }

    def __repr__(self) -> str:
        rows = []
        for env, size in self.sizes.items():
            metric = size.policy.metric
            rows.append([env, "this run", in_brackets(size.policy, metric), "", ""])
            for k, (rival, gap) in enumerate(zip(size.rivals, size.gaps, strict=True)):
                told = gap.verdict(metric)
                rows.append(
                    [
                        "" if k else f"  {rival.episodes} episodes",
                        rival.policy,
                        in_brackets(rival, metric),
                        in_brackets(gap, metric, "+"),
                        told,
                    ]
                )
        first = next(iter(self.sizes.values())).policy
        head = [
            "environment",
            "policy",
            f"{MEANINGS[first.metric].short} [95 %]",
            "this run minus it [95 %]",
            "this run is",
        ]
        return text_table(head, rows, [*self.remarks, self.conclusion()])

    def conclusion(self) -> str:
        """Whether the run was worth it, in a sentence, and what to try where it was not."""
        if not any(size.rivals for size in self.sizes.values()):
            return "nothing to compare with: give the environment baselines() and a prior to see whether learning pays"
        if self.beats_baselines:
            return "better than the best baseline on the training environment, and worse at no size"
        behind = [
            f"{size.verdict} than {size.rivals[size.best].policy} on {env}".replace("even than", "no better than")
            for env, size in self.sizes.items()
            if size.best is not None and size.verdict != "better"
        ]
        kept = "; the prior was kept, since nothing learned was better than it" if self.fell_back else ""
        worse = any(size.verdict == "worse" for size in self.sizes.values())
        instead = " (a run can keep its prior, but not a baseline: `muster evaluate` runs that)" if worse else ""
        return (
            f"not better than the best baseline everywhere: {', '.join(behind)}{kept}{instead}. To try: more "
            "--minutes, another --learner, the baseline's own score as the environment's prior, features that the "
            "baseline reads, several sizes to learn on"
        )


def validate(settings: TrainSettings, candidates: Mapping[str, LearnedPolicy], train_seconds: float) -> Validation:
    """The best of a run's candidates, or the prior, beside the baselines on the same episodes of every size."""
    first = next(iter(candidates.values()))
    prior = _prior(make_env(settings, settings.envs[0], 1), first)
    envs, remarks = _usable_envs(settings)
    seconds = max(SHARE * train_seconds, LEAST_SECONDS) / 2
    kept, last = _choose(settings, envs, candidates, prior, seconds)
    among = [*candidates, *([PRIOR] if prior else [])]
    if len(among) > 1:
        remarks.append(f"kept: {kept}, chosen among {', '.join(among)} on other validation episodes")
    own = candidates.get(kept, prior)
    assert own is not None
    policies = [own, prior] if prior and kept != PRIOR else [own]
    found = _on_sizes(settings, envs, policies, REPORT, seconds, baselines=True)
    if len(policies) > 1 and any(_verdict(one, 0, 1) == "worse" for one in found.values()):
        assert prior is not None
        kept, own, found = PRIOR, prior, {name: one[1:] for name, one in found.items()}
        remarks.append("but these episodes show it worse than the prior, which was kept in its place")
    sizes = {}
    for name, (one, *others) in found.items():
        rivals = (one, *others) if kept == PRIOR else tuple(others)
        sizes[name] = Size(one, rivals, tuple(differences([rival, one])[0] for rival in rivals))
    return Validation(own.variant(header=first.header), sizes, len(settings.envs), kept, last, tuple(remarks))


def _usable_envs(settings: TrainSettings) -> tuple[list[str], list[str]]:
    """The environments to validate on, those of the training first, and what to say of those that cannot be made."""
    found, remarks = list(settings.envs), []
    for name in larger_envs(settings):
        try:
            make_env(settings, name, 1)
        except MusterError as error:
            remarks.append(f"not validated on {name}: {error}")
        else:
            found += [] if name in found else [name]
    return found, remarks


def _choose(
    settings: TrainSettings,
    envs: Sequence[str],
    candidates: Mapping[str, LearnedPolicy],
    prior: LearnedPolicy | None,
    seconds: float,
) -> tuple[str, Metrics]:
    """Name of the candidate that is best over all sizes and better than the prior, or of the prior; and the outcome of
    the first one, the last policy, in the training environments, for the log.
    """
    names = list(candidates)
    if len(names) > 2 and _fixed_episodes(settings) is None:
        rough = {
            name: _run(settings, name, list(candidates.values()), PILOT if name in settings.envs else ROUGH, VALIDATION)
            for name in envs
        }
        best = max(range(1, len(names)), key=lambda k: _merit(rough, k))
        names = [names[0], names[best]]
    policies = [*(candidates[name] for name in names), *([prior] if prior else [])]
    # With nothing to choose, all that is wanted is what the log says.
    found = _on_sizes(settings, envs if len(policies) > 1 else settings.envs, policies, VALIDATION, seconds)
    better = [k for k in range(len(names)) if prior is None or _improves(found, k, len(names))]
    return (names[max(better, key=lambda k: _merit(found, k))] if better else PRIOR), _outcomes(settings, found, 0)


def _outcomes(settings: TrainSettings, found: Evaluations, candidate: int) -> Metrics:
    """Mean outcome of a candidate in each training environment and in all, as the log names them."""
    means = {f"validation/{name}": float(found[name][candidate].records.outcome.mean()) for name in settings.envs}
    mean = {"validation": float(np.mean(list(means.values())))}
    return mean if len(means) == 1 else mean | means


def _on_sizes(
    settings: TrainSettings,
    envs: Sequence[str],
    policies: Sequence[LearnedPolicy],
    seed: int,
    seconds: float,
    baselines: bool = False,
) -> Evaluations:
    """The policies, and the baselines if asked for, on as many episodes of each environment as there is time for."""
    fixed, found, costs = _fixed_episodes(settings), {}, {}
    for name in envs:
        began = time.process_time()
        found[name] = _run(settings, name, policies, fixed or PILOT, seed, baselines)
        costs[name] = max(time.process_time() - began, 1e-4) / PILOT
    if fixed is not None:
        return found
    home = [name for name in envs if name in settings.envs]
    larger = [name for name in envs if name not in settings.envs]
    # Half of the time is for the training environments, however slow larger ones are; those get what is left of it.
    for group, share in ((home, 0.5 if larger else 1.0), (larger, 1.0)):
        budget = share * seconds - PILOT * sum(costs[name] for name in group)
        for k, name in enumerate(sorted(group, key=costs.__getitem__)):
            episodes = min(MOST, int(budget / (len(group) - k) / costs[name]))
            if episodes >= 2 * PILOT:
                found[name] = _run(settings, name, policies, episodes, seed, baselines)
                budget -= episodes * costs[name]
        seconds = (1 - share) * seconds + max(budget, 0.0)
    return found


def _fixed_episodes(settings: TrainSettings) -> int | None:
    """How many at each size; None: as many as there is time for."""
    return settings.evaluate_episodes or (EPISODES if settings.steps is not None else None)


def _run(
    settings: TrainSettings,
    name: str,
    policies: Sequence[LearnedPolicy],
    episodes: int,
    seed: int,
    baselines: bool = False,
) -> tuple[Evaluation, ...]:
    """Policies, and then the baselines if asked for, on the same episodes of one environment."""
    env = make_env(settings, name, 1)
    rivals = [baseline for baseline in env.baselines() if baseline not in BOUNDS] if baselines else []
    largest = min(BATCH, max(1, LARGEST_BATCH // (env.n_agents * env.n_tasks)))
    batch = make_env(settings, name, min(largest, episodes))
    everyone: list[str | Policy] = [*policies, *rivals]
    return tuple(evaluate(policy, batch, episodes, seed) for policy in everyone)


def larger_envs(settings: TrainSettings) -> list[str]:
    """The environments that --validate-on names, or those of 2 and 5 times the largest training size."""
    if settings.validate_on is not None:
        return list(settings.validate_on)
    if settings.model == "pem":  # some tens of decisions a second
        return []
    env = max(settings.envs, key=lambda name: make(name).n_agents)
    return [larger for factor in FACTORS if (larger := enlarged(env, factor)) is not None]


def enlarged(env: str, factor: int) -> str | None:
    """The environment with `factor` times the agents and tasks; None where it does not come in sizes."""
    family, _, rest = env.partition(":")
    size, comma, options = rest.partition(",")
    if family == "log" or "trips=" in options:
        return None
    if family in BUILT_IN:
        name = f"{family}:{re.sub('[0-9]+', lambda number: str(factor * int(number[0])), size)}{comma}{options}"
    else:
        small = make(env)
        kept = [text for text in options.split(",") if text and not re.match(r"\s*n_(agents|tasks)\s*=", text)]
        sizes = [f"n_agents={factor * small.n_agents}", f"n_tasks={factor * small.n_tasks}"]
        name = ",".join([f"{family}:{size}", *kept, *sizes])
    try:
        made = make(name)
    except MusterError:
        return None
    return name if made.n_agents > make(env).n_agents else None


def _prior(env: BatchEnv, candidate: LearnedPolicy) -> LearnedPolicy | None:
    if not candidate.spec.corrects and env.observe().prior is None:
        return None
    return prior_policy(env, candidate.inference, candidate.spec)


def goodness(one: Evaluation) -> float:
    """Largest for the best policy."""
    return MEANINGS[one.metric].better * one.mean


def _verdict(evaluations: Sequence[Evaluation], own: int, rival: int) -> Verdict:
    """Of one of the policies against another."""
    one, other = evaluations[own], evaluations[rival]
    return differences([other, one])[0].verdict(one.metric)


def _improves(found: Evaluations, candidate: int, prior: int) -> bool:
    """Whether a candidate is better than the prior somewhere, and worse nowhere."""
    told = [_verdict(one, candidate, prior) for one in found.values()]
    return "better" in told and "worse" not in told


def _merit(found: Evaluations, candidate: int) -> float:
    """Mean over the environments of how much better a candidate is than the first one, in shares of its mean."""
    total = 0.0
    for one in found.values():
        gap = differences([one[0], one[candidate]])[0]
        total += MEANINGS[one[0].metric].better * gap.mean / (abs(one[0].mean) or 1.0)
    return total / len(found)
