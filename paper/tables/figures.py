"""What the committed records say about one policy: a figure for each size, beside the rules that are its rivals."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

from muster.evaluation.statistics import wilson_interval
from paper.tables import battle, fleet, heuristics, pursuit, rescue
from paper.tables.places import committed_record

Verdict = Literal["better", "even", "worse"]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Figure:
    """One policy on one size."""

    test: str
    unit: str
    """steps (fewer are better), win rate or profit."""
    episodes: int
    mean: float | None
    ci95: Interval | None
    rivals: dict[str, float]
    """The rules' means."""
    best_rule: str
    verdict: Verdict
    """Against the best rule: better or worse where the 95 % intervals say so, else even."""
    paired: bool
    """Whether the verdict is on differences episode by episode; if not, on intervals that do not meet."""
    failed: float
    """Share of episodes that hit the step limit."""
    remark: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of one policy, smallest size first, and the command that makes them."""

    command: str
    figures: tuple[Figure, ...]


def figures_of(env: str, run: str) -> Found | None:
    """What is on record of a run such as "rescue-2x4-quad-dm-a2c-s0"; None if nothing is."""
    readers = {"rescue": _rescue, "battle": _battle, "pursuit": _pursuit, "fleet": _fleet}
    if env not in readers:
        return None
    found = readers[env](run)
    return found if found.figures else None


@cache
def _record_of(table: Any) -> Any:
    """The committed record of a table, read once."""
    return table.Record.load(committed_record(table.__name__.rpartition(".")[2]))


def _rescue(run: str) -> Found:
    record = _record_of(rescue)
    quiet = [cell for cell in record.cells if not cell.noise]
    figures = []
    for cell in (cell for cell in quiet if cell.policy == run):
        rules = {rule.policy: rule for rule in quiet if rule.test == cell.test and rule.policy in rescue.BASELINES}
        optimum = rules.pop("topline", None)
        best = min(rules, key=lambda name: rules[name].mean or 0.0)
        remark = f"the optimum is {optimum.mean:.2f}" if optimum is not None and optimum.mean is not None else ""
        figures.append(
            Figure(
                test=f"rescue:{cell.test}",
                unit="steps",
                episodes=record.episodes,
                mean=cell.mean,
                ci95=cell.ci95,
                rivals={name: float(rule.mean or 0.0) for name, rule in rules.items()},
                best_rule=best,
                verdict=_apart(cell.ci95, rules[best].ci95, fewer=True),
                paired=False,
                failed=cell.failed / record.episodes,
                remark=remark,
            )
        )
    return Found(record.command, tuple(figures))


def _battle(run: str) -> Found:
    record = _record_of(battle)
    rules = _record_of(heuristics)
    # More battles where there are some: those of the policy that stands for its group.
    cells = {cell.test: cell for role in ("seed", "median") for cell in record.cells if _is(cell, run, role)}
    figures = []
    for test in (test for test in battle.paper_rows() if test in cells):
        cell = cells[test]
        rivals = {rule.heuristic: rule for rule in rules.cells if rule.scenario == test}
        best = max(rivals, key=lambda name: rivals[name].wins)
        rival = wilson_interval(rivals[best].wins, rivals[best].battles)
        figures.append(
            Figure(
                test=f"battle:{test}",
                unit="win rate",
                episodes=cell.battles,
                mean=cell.rate,
                ci95=cell.interval,
                rivals={name: rule.wins / rule.battles for name, rule in rivals.items()},
                best_rule=best,
                verdict=_apart(cell.interval, rival, fewer=False),
                paired=False,
                failed=0.0,
                remark="; ".join(note.text for note in battle.NOTES if test in note.scenarios),
            )
        )
    return Found(next((cell.command for cell in cells.values()), ""), tuple(figures))


def _is(cell: battle.Cell, run: str, role: str) -> bool:
    return cell.policy == run and cell.role == role and not cell.noise


def _pursuit(run: str) -> Found:
    record = _record_of(pursuit)
    figures = []
    for cell in (cell for cell in record.cells if cell.policy == run and cell.difference_ci95):
        same = [rule for rule in record.cells if (rule.needed, rule.test) == (cell.needed, cell.test)]
        figures.append(
            Figure(
                test=f"pursuit:{cell.test}" + (f",needed={cell.needed}" if cell.needed != 2 else ""),
                unit="steps",
                episodes=record.episodes,
                mean=cell.mean,
                ci95=cell.ci95,
                rivals={rule.policy: rule.mean for rule in same if rule.policy in pursuit.RULES},
                best_rule=cell.best_rule,
                verdict=_as_verdict(cell.verdict),
                paired=True,
                failed=cell.failed,
            )
        )
    return Found(record.command, tuple(figures))


def _fleet(run: str) -> Found:
    record = _record_of(fleet)
    figures = []
    for cell in (cell for cell in record.cells if cell.policy == run):
        rules = {rule.policy: rule for rule in record.cells if rule.test == cell.test and rule.policy in fleet.RULES}
        bound = rules.pop("hindsight", None)
        best = max(cell.gains, key=lambda name: rules[name].mean if name in rules else 0.0)
        _, low, high = cell.gains[best]
        figures.append(
            Figure(
                test=fleet.TESTS[cell.test].replace("trips=DATA/", ""),
                unit="profit",
                episodes=cell.episodes,
                mean=cell.mean,
                ci95=cell.ci95,
                rivals={name: rule.mean for name, rule in rules.items()},
                best_rule=best,
                verdict="better" if low > 0 else "worse" if high < 0 else "even",
                paired=True,
                failed=0.0,
                remark=f"hindsight has {bound.mean:.1f}" if bound else "",
            )
        )
    return Found(record.command, tuple(figures))


def _as_verdict(word: str) -> Verdict:
    return "better" if word == "better" else "worse" if word == "worse" else "even"


def _apart(own: Interval | None, other: Interval | None, fewer: bool) -> Verdict:
    """Whether two intervals do not meet, and which side is ours."""
    if own is None or other is None:
        return "even"
    below, above = own[1] < other[0], own[0] > other[1]
    return "better" if (below if fewer else above) else "worse" if (above if fewer else below) else "even"
