"""Generalisation curve: one policy on environments of growing size, against the best baseline on the same episodes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from muster.custom import expanded
from muster.envs.registry import BUILT_IN, OWN, make
from muster.envs.vector import Policy
from muster.errors import InputError, UnknownNameError
from muster.evaluation.compare import Difference, compare, differences
from muster.evaluation.evaluate import BATCH, Evaluation
from muster.evaluation.groups import summarise_groups
from muster.evaluation.statistics import MEANINGS
from muster.evaluation.text import html_table, in_brackets, text_table
from muster.policy.learned import PRIOR
from muster.policy.names import resolve
from muster.rng import SetName

Runs = str | Policy | Sequence[str | Policy]
"""A policy, or the runs of a group."""
Verdict = Literal["wins", "even", "loses"]
VERDICTS: dict[str, Verdict] = {"better": "wins", "even": "even", "worse": "loses"}

SIZES_OF_A_RANGE = 8
MOST_SIZES = 100
LARGEST_BATCH = 4_000_000
"""Agent-task pairs in a batch of environments, to bound memory."""

_NUMBER = r"(\d{1,6})"
_RANGE = re.compile(rf"{_NUMBER}\.\.{_NUMBER}(?::{_NUMBER})?")
_GROWING = re.compile(r"=\s*(?:(\d+(?:\.\d+)?)\*)?(?:n|(sqrt)\(n\))(?=,|$)")
"""An option in proportion to n or to its root: grid=8*sqrt(n) keeps the density of a map."""
_LIST = re.compile(rf"{_NUMBER}(?:,{_NUMBER})*")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of environment that comes in sizes."""

    form: str
    """Template of the environment string."""
    ratio: float
    """Tasks for each agent, rounded up."""
    baselines: tuple[str, ...]
    sizes: str
    """Default range."""


KINDS = {
    "rescue": Kind("rescue:{agents}x{tasks}", 2.0, ("lp-distance", "closest"), "2..80"),
    # The grid grows with the number of pursuers.
    "pursuit": Kind("pursuit:{agents}x{tasks}", 0.5, ("lp-distance", "closest-pairs", "closest"), "4..80"),
    # A city's requests are in proportion to its vehicles; the ratio is to what the city has for each.
    "fleet": Kind("fleet:{agents},demand={ratio:g}", 1.0, ("match", "worth", "greedy"), "12..300"),
    "battle:m": Kind("battle:m{agents}v{tasks}", 1.0, ("c", "wcnoks", "wcnoknc"), "5..100"),
    # 1.13 and rounding up give the paper's w15v17, w30v34 and w60v68.
    "battle:w": Kind("battle:w{agents}v{tasks}", 1.13, ("c", "wcnok", "wcnoks", "wcnoknc"), "5..100"),
    "battle:zh": Kind("battle:zh{agents}v{tasks}", 1.0, ("c", "wcnoks", "wcnoknc"), "5..100"),
}


def parse_sizes(text: str) -> list[int]:
    """Sizes in increasing order: "5..100" (about eight, spaced geometrically), "5..100:5" (steps) or "5,10,20"."""
    text = text.replace(" ", "")
    if found := _RANGE.fullmatch(text):
        low, high, step = (None if part is None else int(part) for part in found.groups())
        assert low is not None
        assert high is not None
        if low > high:
            raise InputError(f"a range of sizes goes upwards, got {text!r}")
        if step == 0:
            raise InputError(f"the step of a range of sizes must be at least 1, got {text!r}")
        # From 0 there is no geometric spacing, and 0 is refused below.
        even = np.geomspace(max(low, 1), high, SIZES_OF_A_RANGE).round() if step is None and high else ()
        sizes = {low, *map(int, even)} if step is None else set(range(low, high + 1, step))
    elif _LIST.fullmatch(text):
        sizes = set(map(int, text.split(",")))
    else:
        raise InputError(f"sizes are such as 5..100, 5..100:5 (in steps of 5) or 5,10,20, up to 999999; got {text!r}")
    if min(sizes) < 1:
        raise InputError(f"a size is at least 1, got {text!r}")
    if len(sizes) > MOST_SIZES:
        raise InputError(f"at most {MOST_SIZES} sizes, got {len(sizes)} in {text!r}; widen the step")
    return sorted(sizes)


def split_env(env: str) -> tuple[Kind, str]:
    """Kind of environment and its options, with their comma, of a text such as "battle:w" or "rescue,grid=32"."""
    env = expanded("environment", env)
    if match := re.match(r"(battle:[a-z]+)\d|(rescue|pursuit|fleet):\d", env):
        raise InputError(f"scale chooses the sizes itself: write {match[1] or match[2]} rather than {env}, and --sizes")
    name, _, options = re.sub("^(rescue|pursuit|fleet):", r"\1,", env).partition(",")
    rest = f",{options}" if options else ""
    if name in KINDS:
        return KINDS[name], rest
    if ":" in name and name.partition(":")[0] not in BUILT_IN:
        return custom_kind(name, env), rest
    raise UnknownNameError("environment", name, [*KINDS, OWN], "that comes in sizes")


def custom_kind(name: str, env: str) -> Kind:
    """Kind of a custom environment whose constructor takes n_agents and n_tasks; their defaults are the first size."""
    if set(re.findall(r",\s*(n_agents|n_tasks)\s*=", env)):
        raise InputError(
            f"scale chooses n_agents and n_tasks itself: leave them out of {env}, and give --sizes and --ratio"
        )
    env = re.sub(rf",\s*\w+\s*{_GROWING.pattern}", "", env)
    default = make(env)
    try:
        make(env, n_agents=default.n_agents, n_tasks=default.n_tasks)
    except UnknownNameError:
        raise InputError(f"the constructor of {name} must take n_agents and n_tasks for it to come in sizes") from None
    form = name + ",n_agents={agents},n_tasks={tasks}"
    ratio = default.n_tasks / default.n_agents
    default.show()
    prior = () if default.observe().prior is None else (PRIOR,)
    return Kind(form, ratio, (*default.baselines(), *prior), f"{default.n_agents}..{10 * default.n_agents}")


def env_of(kind: Kind, options: str, size: int, ratio: float | None = None) -> str:
    """The environment string of `size` agents (of each type) and `ratio` times as many tasks, rounded up."""
    # 1.1 * 10 is a little more than 11 in floating point, and must not be rounded up to 12.
    ratio = kind.ratio if ratio is None else ratio
    tasks = math.ceil(round(ratio * size, 9))
    env = kind.form.format(agents=size, tasks=tasks, ratio=ratio)
    given = options.split(",")
    texts = [_GROWING.sub(lambda match: f"={math.ceil(_grown(match, size))}", option) for option in given]
    for k, option in enumerate(given):
        exact = [*texts[:k], _GROWING.sub(lambda match: f"={_grown(match, size):.6g}", option), *texts[k + 1 :]]
        if exact != texts:
            # Only a whole number is refused as it is.
            with suppress(InputError):
                make(env + ",".join(exact))
                texts = exact
    return env + ",".join(texts)


def _grown(match: re.Match[str], size: int) -> float:
    """Value of an option that grows with the number of agents."""
    factor, power = float(match[1] or 1.0), 0.5 if match[2] else 1.0
    return round(factor * size**power, 9)


@dataclass(frozen=True, slots=True)
class Point:
    """Evaluations at one size."""

    size: int
    env: str
    policy: Evaluation
    baselines: tuple[Evaluation, ...]
    best: Evaluation
    """The best of the baselines."""
    difference: Difference
    """The policy minus the best baseline, episode by episode."""
    runs: tuple[Evaluation, ...] = ()
    """Runs of a group, of which `policy` has the interquartile mean; episode by episode it is the mean of the runs."""

    @property
    def verdict(self) -> Verdict | None:
        """wins or loses if the interval of the paired difference excludes 0, else even; None of one episode."""
        return VERDICTS[self.difference.verdict(self.policy.metric)] if self.difference.ci95 else None

    def as_dict(self) -> dict[str, Any]:
        """The point as JSON values."""
        return {
            "size": self.size,
            "env": self.env,
            "policy": self.policy.as_dict(),
            "best_baseline": self.best.policy,
            "baselines": [one.as_dict() for one in self.baselines],
            "difference": self.difference.as_dict(),
            "verdict": self.verdict,
            "runs": [one.as_dict() for one in self.runs],
        }


@dataclass(frozen=True, slots=True, repr=False)
class Curve:
    """Points at all sizes, in increasing order."""

    policy: str
    points: tuple[Point, ...]

    def sizes(self, verdict: Verdict) -> list[int]:
        """The sizes with that verdict."""
        return [point.size for point in self.points if point.verdict == verdict]

    @property
    def last_win(self) -> int | None:
        """The last size at which the policy wins; None if it wins at none."""
        return max(self.sizes("wins"), default=None)

    @property
    def first_loss(self) -> int | None:
        """The first size at which the policy loses; None if it loses at none."""
        return min(self.sizes("loses"), default=None)

    def conclusion(self) -> str:
        """Sizes at which the policy wins, is even and loses, in a sentence."""
        if all(point.verdict is None for point in self.points):
            return f"{self.policy}: one episode has no interval, and no verdict; give more episodes"
        if len(self.sizes("wins")) == len(self.points):
            first, last = self.points[0].size, self.points[-1].size
            return f"{self.policy} wins at every size, {first} to {last}"
        verdicts: tuple[Verdict, ...] = ("wins", "even", "loses")
        parts = [f"{words} at {', '.join(map(str, sizes))}" for words in verdicts if (sizes := self.sizes(words))]
        win = "it wins at no size" if self.last_win is None else f"the last size at which it wins is {self.last_win}"
        loss = "it loses at none" if self.first_loss is None else f"the first at which it loses is {self.first_loss}"
        return f"{self.policy}: {'; '.join(parts)}: {win}, {loss}"

    def as_dict(self) -> dict[str, Any]:
        """The curve as in `muster scale --json`."""
        return {
            "policy": self.policy,
            "points": [point.as_dict() for point in self.points],
            "last_win": self.last_win,
            "first_loss": self.first_loss,
            "conclusion": self.conclusion(),
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head of the table, and one row for each size."""
        metric = self.points[0].policy.metric
        head = ["size", "env", "policy [95 %]", "best baseline [95 %]", "paired difference [95 %]", "verdict"]
        failed = MEANINGS[metric].limit_fails
        rows = []
        for point in self.points:
            shares = [f"{100 * one.failed / one.episodes:.1f} %" for one in (point.policy, point.best)]
            limits = [" / ".join(shares)] * failed
            row = [str(point.size), point.env, in_brackets(point.policy, metric)]
            row += [
                f"{point.best.policy} {in_brackets(point.best, metric)}",
                in_brackets(point.difference, metric, "+"),
            ]
            rows.append([*row, point.verdict or "–", *limits])
        return head + ["hit the limit"] * failed, rows

    @property
    def title(self) -> str:
        """Policy, metric and episodes."""
        first, runs = self.points[0].policy, self.points[0].runs
        what = f"interquartile mean of {len(runs)} runs, " * bool(runs) + MEANINGS[first.metric].short
        return f"{self.policy}: {what}, {first.episodes} episodes a size (seed {first.seed})"

    def __repr__(self) -> str:
        return self.title + "\n" + text_table(*self.table(), [self.conclusion()])

    def _repr_html_(self) -> str:
        return html_table(*self.table(), [self.conclusion()], self.title)


def plan(
    policy: Runs, env: str, sizes: str | None = None, baselines: Sequence[str] = (), ratio: float | None = None
) -> tuple[dict[int, str], tuple[str, ...]]:
    """{size: environment string} and names of the baselines; raises for any that cannot be made, before a long run."""
    kind, options = split_env(env)
    if ratio is not None and not (0 < ratio < 1000):
        raise InputError(f"ratio must be positive and below 1000, got {ratio}")
    names = tuple(baselines) or kind.baselines
    if not names:
        raise InputError(
            f"{env} has no baselines and no prior: name policies to compare with (--baseline), or give the class "
            "baselines()"
        )
    envs = {size: env_of(kind, options, size, ratio) for size in parse_sizes(sizes or kind.sizes)}
    for text in envs.values():
        try:
            batch_env = make(text)
            for name in (*_members(policy), *names):
                resolve(name, batch_env)
        except InputError as error:
            raise InputError(f"cannot run {text}: {error}") from None
    return envs, names


def _members(policy: Runs) -> Sequence[str | Policy]:
    return policy if isinstance(policy, (list, tuple)) else [cast("str | Policy", policy)]


def run_curve(
    policy: Runs,
    envs: dict[int, str],
    baselines: Sequence[str],
    episodes: int = 200,
    seed: SetName = 0,
    report: Callable[[Point], None] = lambda point: None,
) -> Curve:
    """Run the policy, or the runs of a group, and the baselines on the same episodes at every size."""
    members = _members(policy)
    points = []
    for size, name in envs.items():
        first = make(name)
        batch = min(BATCH, max(1, LARGEST_BATCH // (first.n_agents * first.n_tasks)))
        found = compare((list(members), *baselines), name, episodes, seed, batch=batch).evaluations
        runs, others = found[: len(members)], found[len(members) :]
        best = max(others, key=lambda other: MEANINGS[other.metric].better * other.mean)
        if len(runs) == 1:
            point = Point(size, name, runs[0], others, best, differences([best, runs[0]])[0])
        else:
            (_, group), (gap,) = summarise_groups([[best], runs])
            records = replace(
                runs[0].records, outcome=np.mean([run.records.outcome for run in runs], axis=0), metrics={}
            )
            failed = round(sum(run.failed for run in runs) / len(runs))
            evaluation = replace(runs[0], policy=group.policy, mean=group.iqm, ci95=group.ci95, failed=failed)
            evaluation = replace(evaluation, metrics={}, records=records)
            difference = replace(differences([best, evaluation])[0], mean=gap.difference, ci95=gap.ci95)
            point = Point(size, name, evaluation, others, best, difference, runs)
        points.append(point)
        report(point)
    return Curve(points[0].policy.policy, tuple(points))
