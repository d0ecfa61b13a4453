"""Is what a run learned better than the environment's own baselines and prior, at home and at larger sizes?

Every run ends with paired validation episodes. The checkpoint that does best in them is kept; where none is better
than the prior, the prior itself is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.envs.registry import BUILT_IN, make
from muster.envs.vector import BatchEnv, Policy
from muster.errors import MusterError
from muster.evaluation.card import BOUNDS, Result, Verdict
from muster.evaluation.compare import Difference, compare, differences
from muster.evaluation.evaluate import BATCH, Evaluation, evaluate
from muster.evaluation.scale import LARGEST_BATCH
from muster.evaluation.statistics import MEANINGS
from muster.evaluation.text import in_brackets, text_table
from muster.learning.envs import make_env
from muster.learning.learner import VALIDATION
from muster.learning.settings import TrainSettings
from muster.policy.learned import PRIOR, LearnedPolicy, prior_policy

FACTORS = (2, 5)
"""Larger sizes, in multiples of the training size, where --validate-on names none."""
EPISODES = 100
"""At each size, of a run whose length is given in steps."""
PILOT, MOST = 8, 500
"""Episodes that are timed, and the most that follow, in a run whose length is given in minutes."""
SHARE, LEAST_SECONDS = 0.15, 4.0
"""Of the training time that validation may take, and what it may take at least."""


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
        return min(range(len(self.rivals)), key=lambda k: badness(self.rivals[k]), default=None)

    @property
    def verdict(self) -> Verdict | None:
        """Of the policy against the best rival."""
        return None if self.best is None else verdict(self.policy, self.rivals[self.best], self.gaps[self.best])

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
            baselines={rival.policy: rival.mean for rival in self.rivals if rival.mean is not None},
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
    fell_back: bool
    """Whether nothing learned was better than the prior, which was kept in its place."""
    remarks: tuple[str, ...] = ()

    @property
    def beats_baselines(self) -> bool:
        """Better than the best of baselines and prior on every training environment, and worse at no size."""
        found = [size.verdict for size in self.sizes.values()]
        return all(one == "better" for one in found[: self.home]) and "worse" not in found

    def results(self) -> list[Result]:
        """What a card says of it."""
        return [
            size.result()
            for size in self.sizes.values()
            if size.best is not None and size.rivals[size.best].mean is not None
        ]

    def summary(self) -> dict[str, Any]:
        """Fields of summary.json."""
        sizes = {env: size.as_dict() for env, size in self.sizes.items()}
        return {
            "baselines": next(iter(sizes.values()))["baselines"],
            "sizes": sizes,
            "beats_baselines": self.beats_baselines,
            "kept": PRIOR if self.fell_back else "learned",
        }

    def __repr__(self) -> str:
        rows = []
        for env, size in self.sizes.items():
            metric = size.policy.metric
            rows.append([env, "this run", in_brackets(size.policy, metric), "", ""])
            for rival, gap in zip(size.rivals, size.gaps, strict=True):
                told = verdict(size.policy, rival, gap)
                rows.append(["", rival.policy, in_brackets(rival, metric), in_brackets(gap, metric, "+"), told])
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
        return (
            f"not better than the best baseline everywhere: {', '.join(behind)}{kept}. To try: more --minutes, "
            "--learner es or srl, a prior that is the baseline's own score, features that the baseline reads, "
            "several sizes to learn on"
        )


def validate(settings: TrainSettings, candidates: Sequence[LearnedPolicy], train_seconds: float) -> Validation:
    """The best of a run's candidates, or the prior, beside the baselines on the same episodes of every size."""
    remarks: list[str] = []
    home = list(settings.envs)
    envs = [*home, *(env for env in larger_envs(settings) if env not in home)]
    budget = max(SHARE * train_seconds, LEAST_SECONDS) / len(envs)
    found: dict[str, tuple[Evaluation, ...]] = {}
    prior: LearnedPolicy | None = None
    for name in envs:
        try:
            env = make_env(settings, name, 1)
            if name == home[0]:
                prior = _prior(env, candidates[0])
            found[name] = _compare(settings, name, env, [*candidates, *([prior] if prior else [])], budget)
        except MusterError as error:
            if name in home:
                raise
            remarks.append(f"not validated on {name}: {error}")
    count = len(candidates)
    ranked = sorted(range(count), key=lambda k: -_merit(found, k))
    chosen, fell_back = ranked[0], False
    if prior is not None and not _improves(found, chosen, count):
        chosen, fell_back = count, True
    sizes = {}
    for name, evaluations in found.items():
        own, rivals = evaluations[chosen], evaluations[count:]
        sizes[name] = Size(own, rivals, tuple(differences([rival, own])[0] for rival in rivals))
    header = candidates[min(chosen, count - 1)].header
    policy = candidates[chosen] if prior is None or not fell_back else prior.variant(header=header)
    return Validation(policy, sizes, len(home), fell_back, tuple(remarks))


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


def _compare(
    settings: TrainSettings, name: str, env: BatchEnv, policies: Sequence[LearnedPolicy], budget: float
) -> tuple[Evaluation, ...]:
    """The candidates, the prior and the baselines of an environment on the same episodes."""
    # As in training, one core a run.
    everyone: list[str | Path | Policy] = [
        *policies,
        *(baseline for baseline in env.baselines() if baseline not in BOUNDS),
    ]
    largest = min(BATCH, max(1, LARGEST_BATCH // (env.n_agents * env.n_tasks)))

    def run(episodes: int) -> tuple[Evaluation, ...]:
        batch = make_env(settings, name, min(largest, episodes))
        if len(everyone) == 1:
            return (evaluate(everyone[0], batch, episodes, VALIDATION),)
        return compare(everyone, batch, episodes, VALIDATION).evaluations

    if settings.evaluate_episodes is not None:
        return run(settings.evaluate_episodes)
    if settings.steps is not None:
        return run(EPISODES)
    began = time.process_time()
    pilot = run(PILOT)
    affordable = int(PILOT * budget / max(time.process_time() - began, 1e-3))
    return pilot if affordable < 2 * PILOT else run(min(affordable, MOST))


def badness(one: Evaluation) -> tuple[int, float]:
    """Least for the best policy: fewest failures where they do not count, and then the best mean."""
    meaning = MEANINGS[one.metric]
    return 0 if meaning.counts_all else one.failed, float("inf") if one.mean is None else -meaning.better * one.mean


def verdict(own: Evaluation, rival: Evaluation, gap: Difference) -> Verdict:
    """Better or worse where the paired interval says so; who fails more cannot be better."""
    meaning = MEANINGS[own.metric]
    fails = 0 if meaning.counts_all else own.failed - rival.failed
    if gap.ci95 is None:
        return "worse" if fails > 0 else "better" if fails < 0 else "even"
    low, high = sorted(meaning.better * bound for bound in gap.ci95)
    if low > 0:
        return "better" if fails <= 0 else "even"
    return "worse" if high < 0 else "even"


def _improves(found: dict[str, tuple[Evaluation, ...]], candidate: int, prior: int) -> bool:
    """Whether a candidate is better than the prior somewhere, and worse nowhere."""
    told = [verdict(one[candidate], one[prior], differences([one[prior], one[candidate]])[0]) for one in found.values()]
    return "better" in told and "worse" not in told


def _merit(found: dict[str, tuple[Evaluation, ...]], candidate: int) -> float:
    """Mean over the environments of how much better a candidate is than the first one, in shares of its mean."""
    total = 0.0
    for one in found.values():
        gap = differences([one[0], one[candidate]])[0]
        scale = abs(one[0].mean or 0.0) or 1.0
        total += MEANINGS[one[0].metric].better * (gap.mean or 0.0) / scale
        if not MEANINGS[one[0].metric].counts_all:
            total -= (one[candidate].failed - one[0].failed) / one[0].episodes
    return total / len(found)
