"""Validation at the end of a run: is its policy better than baselines and prior, at larger sizes too?

Episodes are paired: all policies run the same ones. On one set of episodes the best checkpoint is chosen, or the prior
where no checkpoint is better at one size and worse at none. On a second set that policy is compared with prior and
baselines, so that the choice does not bias the result.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muster.envs.checks.probes import try_baseline
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
from muster.policy.learned import PRIOR, LearnedPolicy, adapt, prior_policy

FACTORS = (2, 5)
"""Larger sizes, in multiples of the training size, unless --validate-on names environments."""
EPISODES = 100
"""Episodes at each size, in a run whose length is given in steps."""
PILOT, MOST = 16, 500
"""Episodes that are timed, and the largest number after that, in a run whose length is given in minutes."""
ROUGH = 4
"""Episodes of a larger size in the first round, which leaves the last policy and the best of the others."""
SHARE, LEAST_SECONDS = 0.25, 6.0
"""Share of the training time for validation, and its minimum in seconds; half of it is for choosing."""
LOG_EPISODES = 500
"""Held-out lines that validate the imitation of a log without an environment."""

Evaluations = dict[str, tuple[Evaluation, ...]]
"""By environment, those of several policies on the same episodes."""


@dataclass(frozen=True)
class Size:
    """The policy beside its rivals, baselines and prior, on the same episodes of one environment."""

    policy: Evaluation
    rivals: tuple[Evaluation, ...]
    gaps: tuple[Difference, ...]
    """Paired difference, policy minus rival, of each."""

    @property
    def best(self) -> int | None:
        """Index of the best rival; None where there is none."""
        return max(range(len(self.rivals)), key=lambda k: goodness(self.rivals[k]), default=None)

    @property
    def verdict(self) -> Verdict | None:
        """Whether the policy is better than the best rival, even or worse."""
        return None if self.best is None else self.gaps[self.best].verdict(self.policy.metric)

    def as_dict(self) -> dict[str, Any]:
        """Entry of this environment in summary.json."""
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
        """Entry of this environment in the policy's card."""
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
    """Result of a run's validation."""

    policy: LearnedPolicy
    """The chosen checkpoint, or the prior."""
    sizes: dict[str, Size]
    """By environment, those of the training first."""
    home: int
    """Number of training environments among them."""
    kept: str
    """Name of the chosen checkpoint; `prior` where none was better."""
    last: Metrics
    """Mean outcome of the last policy on the first set of episodes, in each training environment and in all."""
    remarks: tuple[str, ...] = ()

    @property
    def fell_back(self) -> bool:
        """Whether the prior was kept."""
        return self.kept == PRIOR

    @property
    def beats_baselines(self) -> bool:
        """Whether the policy is better than the best rival on every training environment, and worse at no size."""
        verdicts = [size.verdict for size in self.sizes.values()]
        return all(verdict == "better" for verdict in verdicts[: self.home]) and "worse" not in verdicts

    def results(self) -> list[Result]:
        """Entries of the policy's card."""
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
                rows.append(
                    [
                        "" if k else f"  {rival.episodes} episodes",
                        rival.policy,
                        in_brackets(rival, metric),
                        in_brackets(gap, metric, "+"),
                        gap.verdict(metric),
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
        """The result in a sentence, with advice where the policy is not better than its rivals."""
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
    """Choose the best of a run's candidates, or the prior, and compare it with the baselines at every size."""
    first = next(iter(candidates.values()))
    prior = _prior(make_env(settings, settings.envs[0], 1), first)
    envs, remarks = _usable_envs(settings, first)
    seconds = max(SHARE * train_seconds, LEAST_SECONDS) / 2
    kept, last = _choose(settings, envs, candidates, prior, seconds)
    names = [*candidates, *([PRIOR] if prior else [])]
    if len(names) > 1:
        remarks.append(f"kept: {kept}, chosen among {', '.join(names)} on other validation episodes")
    policy = candidates.get(kept, prior)
    assert policy is not None
    policies = [policy, prior] if prior and kept != PRIOR else [policy]
    evaluations = _on_sizes(settings, envs, policies, REPORT, seconds, baselines=True)
    if len(policies) > 1 and any(_verdict(at_size, 0, 1) == "worse" for at_size in evaluations.values()):
        assert prior is not None
        kept, policy = PRIOR, prior
        evaluations = {name: at_size[1:] for name, at_size in evaluations.items()}
        remarks.append("but these episodes show it worse than the prior, which was kept in its place")
    sizes = {}
    for name, (own, *others) in evaluations.items():
        rivals = (own, *others) if kept == PRIOR else tuple(others)
        sizes[name] = Size(own, rivals, tuple(differences([rival, own])[0] for rival in rivals))
    return Validation(policy.variant(header=first.header), sizes, len(settings.envs), kept, last, tuple(remarks))


def describe_validation(settings: TrainSettings, train_seconds: float) -> str:
    """One line on the environments of the validation and the time that it takes."""
    envs = list(dict.fromkeys([*settings.envs, *larger_envs(settings)]))
    seconds = max(SHARE * train_seconds, LEAST_SECONDS)
    episodes = _fixed_episodes(settings)
    length = f"about {seconds:.0f} CPU seconds" if episodes is None else f"{episodes} episodes at each size"
    return f"validation on {', '.join(envs)}: {length}"


def _usable_envs(settings: TrainSettings, policy: LearnedPolicy) -> tuple[list[str], list[str]]:
    """Environments to validate on, those of the training first, and remarks on those where the policy cannot act."""
    envs, remarks = list(settings.envs), []
    for name in larger_envs(settings):
        try:
            adapt(policy, try_env(settings, name))
        except MusterError as error:
            remarks.append(f"not validated on {name}: {error}")
        else:
            envs += [] if name in envs else [name]
    return envs, remarks


def _choose(
    settings: TrainSettings,
    envs: Sequence[str],
    candidates: Mapping[str, LearnedPolicy],
    prior: LearnedPolicy | None,
    seconds: float,
) -> tuple[str, Metrics]:
    """Name of the candidate that is best over all sizes and better than the prior, or PRIOR; and the outcomes of the
    first candidate, the last policy, in the training environments.
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
    # With nothing to choose among, only the outcomes for the log are needed.
    evaluations = _on_sizes(settings, envs if len(policies) > 1 else settings.envs, policies, VALIDATION, seconds)
    better = [k for k in range(len(names)) if prior is None or _improves(evaluations, k, len(names))]
    chosen = names[max(better, key=lambda k: _merit(evaluations, k))] if better else PRIOR
    return chosen, _outcomes_of_first(settings, evaluations)


def _outcomes_of_first(settings: TrainSettings, evaluations: Evaluations) -> Metrics:
    """Mean outcome of the first policy in each training environment and in all, under their names in the log."""
    means = {f"validation/{name}": float(evaluations[name][0].records.outcome.mean()) for name in settings.envs}
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
    """Evaluate the policies, and on request the baselines, on as many episodes at each size as the time allows."""
    fixed, evaluations, costs = _fixed_episodes(settings), {}, {}
    for name in envs:
        began = time.process_time()
        evaluations[name] = _run(settings, name, policies, fixed or PILOT, seed, baselines)
        costs[name] = max(time.process_time() - began, 1e-4) / PILOT
    if fixed is not None:
        return evaluations
    home = [name for name in envs if name in settings.envs]
    larger = [name for name in envs if name not in settings.envs]
    # Half of the time is for the training environments, however slow the larger ones are, which get the rest.
    for group, share in ((home, 0.5 if larger else 1.0), (larger, 1.0)):
        budget = share * seconds - PILOT * sum(costs[name] for name in group)
        for k, name in enumerate(sorted(group, key=costs.__getitem__)):
            episodes = min(MOST, int(budget / (len(group) - k) / costs[name]))
            if episodes >= 2 * PILOT:
                evaluations[name] = _run(settings, name, policies, episodes, seed, baselines)
                budget -= episodes * costs[name]
        seconds = (1 - share) * seconds + max(budget, 0.0)
    return evaluations


def _fixed_episodes(settings: TrainSettings) -> int | None:
    """Episodes at each size; None: as many as the time allows."""
    return settings.evaluate_episodes or (EPISODES if settings.steps is not None else None)


def _run(
    settings: TrainSettings,
    name: str,
    policies: Sequence[LearnedPolicy],
    episodes: int,
    seed: int,
    baselines: bool = False,
) -> tuple[Evaluation, ...]:
    """Evaluate policies, and on request the baselines, on the same episodes of one environment."""
    env = make_env(settings, name, 1)
    rivals = _rivals(env) if baselines else []
    largest = min(BATCH, max(1, LARGEST_BATCH // (env.n_agents * env.n_tasks)))
    batch = make_env(settings, name, min(largest, episodes))
    everyone: list[str | Policy] = [*policies, *rivals]
    return tuple(evaluate(policy, batch, episodes, seed) for policy in everyone)


def _rivals(env: BatchEnv) -> list[str]:
    """The baselines that a run is compared with."""
    return [baseline for baseline in env.baselines() if baseline not in BOUNDS]


def try_env(settings: TrainSettings, name: str) -> BatchEnv:
    """The environment, after a step with each of its baselines; raises what is wrong with them."""
    env = make_env(settings, name, 1)
    env.observe()
    for rival in _rivals(env):
        try_baseline(env, env.baselines()[rival](env))
    return env


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
    """Mean outcome, with the sign by which more is better."""
    return MEANINGS[one.metric].better * one.mean


def _verdict(evaluations: Sequence[Evaluation], own: int, rival: int) -> Verdict:
    """Whether one policy is better than another on the same episodes, even or worse."""
    one, other = evaluations[own], evaluations[rival]
    return differences([other, one])[0].verdict(one.metric)


def _improves(evaluations: Evaluations, candidate: int, prior: int) -> bool:
    """Whether a candidate is better than the prior at one size and worse at none."""
    verdicts = [_verdict(at_size, candidate, prior) for at_size in evaluations.values()]
    return "better" in verdicts and "worse" not in verdicts


def _merit(evaluations: Evaluations, candidate: int) -> float:
    """Improvement of a candidate on the first one, relative to its mean outcome, averaged over the sizes."""
    total = 0.0
    for at_size in evaluations.values():
        first = at_size[0]
        gap = differences([first, at_size[candidate]])[0]
        total += MEANINGS[first.metric].better * gap.mean / (abs(first.mean) or 1.0)
    return total / len(evaluations)
