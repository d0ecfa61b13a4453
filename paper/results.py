"""What the records say of one policy: a result for each size, beside the baselines that are its rivals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from muster.evaluation.card import Result
from muster.evaluation.statistics import Interval, Verdict, wilson_interval
from paper.tables import battle, fleet, pursuit, rescue
from paper.tables.command import table_of
from paper.tables.engine import Record


def results_of(env: str, run: str) -> tuple[str, list[Result]]:
    """The command that made them and the results of a run such as "rescue-2x4-quad-dm-ppo-s0", smallest size first."""
    readers = {"rescue": _rescue, "battle": _battle, "pursuit": _pursuit, "fleet": _fleet}
    found = list(readers[env](run)) if env in readers else []
    if not found:
        return "", []
    record = _record(env)
    command = record.where(policy=run)[0].command if env == "battle" else record.head["command"]
    return command, found


@cache
def _record(table: str) -> Record[Any]:
    return table_of(table).load()


def _rescue(run: str) -> Iterator[Result]:
    record = _record("rescue")
    for cell in record.where(policy=run, noise=False):
        baselines = {name: record.find(policy=name, test=cell.test) for name in rescue.BASELINES}
        optimum = baselines.pop("topline")
        best = min(baselines, key=lambda name: baselines[name].mean)
        yield Result(
            env=f"rescue:{cell.test}",
            unit="steps",
            episodes=record.head["episodes"],
            mean=cell.mean,
            ci95=cell.ci95,
            baselines={name: baseline.mean for name, baseline in baselines.items()},
            best_baseline=best,
            verdict=_apart(cell.ci95, baselines[best].ci95, fewer=True),
            paired=False,
            failed=cell.failed / record.head["episodes"],
            remark=f"the optimum is {optimum.mean:.2f}",
        )


def _battle(run: str) -> Iterator[Result]:
    record, heuristics = _record("battle"), _record("heuristics")
    for test in battle.TESTS:
        # More battles where there are some: those of the policy that stands for its group.
        cells = [record.find(policy=run, test=test, role=role, noise=False) for role in ("median", "seed")]
        cell = next(filter(None, cells), None)
        if cell is None:
            continue
        rivals = {rival.heuristic: rival for rival in heuristics.where(scenario=test)}
        best = max(rivals, key=lambda name: rivals[name].wins)
        yield Result(
            env=f"battle:{test}",
            unit="win rate",
            episodes=cell.battles,
            mean=cell.rate,
            ci95=cell.interval,
            baselines={name: rival.rate for name, rival in rivals.items()},
            best_baseline=best,
            verdict=_apart(cell.interval, wilson_interval(rivals[best].wins, rivals[best].battles), fewer=False),
            paired=False,
            failed=0.0,
            remark="; ".join(note.text for note in battle.NOTES if test in note.scenarios),
        )


def _pursuit(run: str) -> Iterator[Result]:
    record = _record("pursuit")
    for cell in record.where(policy=run):
        rivals = [record.find(policy=name, needed=cell.needed, test=cell.test) for name in pursuit.BASELINES]
        yield Result(
            env=f"pursuit:{cell.test}" + (f",needed={cell.needed}" if cell.needed != 2 else ""),
            unit="steps",
            episodes=record.head["episodes"],
            mean=cell.mean,
            ci95=cell.ci95,
            baselines={rival.policy: rival.mean for rival in rivals},
            best_baseline=cell.best_baseline,
            verdict=cell.verdict,
            paired=True,
            failed=cell.failed,
        )


def _fleet(run: str) -> Iterator[Result]:
    record = _record("fleet")
    for cell in record.where(policy=run):
        if cell.test in fleet.AHEAD:
            # A card is of the policy alone.
            continue
        known = {name: record.find(policy=name, test=cell.test) for name in fleet.BASELINES}
        baselines = {name: baseline.mean for name, baseline in known.items() if baseline is not None}
        bound = baselines.pop("hindsight", None)
        best = max(cell.gains, key=lambda name: baselines[name])
        _, low, high = cell.gains[best]
        yield Result(
            env=fleet.TESTS[cell.test].replace("trips=DATA/", ""),
            unit="profit",
            episodes=cell.episodes,
            mean=cell.mean,
            ci95=cell.ci95,
            baselines=baselines,
            best_baseline=best,
            verdict="better" if low > 0 else "worse" if high < 0 else "even",
            paired=True,
            failed=0.0,
            remark="" if bound is None else f"hindsight has {bound:.1f}",
        )


def _apart(own: Interval | None, other: Interval | None, fewer: bool) -> Verdict:
    """Whether two intervals do not overlap, and which side is ours."""
    if own is None or other is None:
        return "even"
    below, above = own[1] < other[0], own[0] > other[1]
    return "better" if (below if fewer else above) else "worse" if (above if fewer else below) else "even"
