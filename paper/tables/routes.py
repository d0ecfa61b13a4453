"""The table of learned routes: ROUTES-DM, learned on 2x4 and evaluated larger, on dry ground and in mud.

On dry ground distances are all there is to know, and the yardstick is the optimum. In mud it is the gap between the
baseline that goes by distances and the one that knows the true times: what share of it learned costs close.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.errors import InputError
from muster.evaluation.statistics import bootstrap_interval
from paper.run_names import policy_files
from paper.tables.engine import Asked, Grid, Interval, Outcomes, Record, Table, evaluate_side_by_side

MUD = 0.3
BASELINES = {
    "dry": ("lp-distance", "routes-distance", "topline"),
    "mud": ("lp-distance", "routes-distance", "routes-known"),
}
"""The baselines of each ground; the last is the bar."""
TESTS = {"dry": ("2x4", "5x10", "8x15"), "mud": ("2x4", "5x10", "20x40")}
TITLES = {"dry": "Dry ground: above the optimum", "mud": "In mud: share of the gap that is closed"}
METHOD = "routes-dm"


@dataclass(frozen=True, slots=True)
class Cell:
    """A baseline, a policy, or all seeds together, on one size. An episode at the limit counts the limit."""

    policy: str
    ground: str
    seeds: list[int]
    """[] for a baseline."""
    test: str
    mean: float
    """Steps until the last pick-up."""
    ci95: Interval
    failed: float
    """Share of the episodes that hit the limit."""
    above: float
    """Share by which the mean lies above that of the bar."""
    closed: float | None
    """In mud: the share of the gap between routes-distance and routes-known that is closed."""
    cpu_minutes: float | None


class Routes(Table[Cell]):
    """Learned routes."""

    name, cell, key, tests = "routes", Cell, ("policy", "ground", "test"), tuple(dict.fromkeys(sum(TESTS.values(), ())))

    def evaluate(self, asked: Asked, record: Record[Cell]) -> Iterator[Cell]:
        """The grounds of the policies whose names match, size by size."""
        files = policy_files(self.policies(asked), "rescue", asked.only)
        if not files:
            raise InputError(f"no policy in {self.policies(asked)} is named {asked.only!r}")
        for ground, tests in TESTS.items():
            runs = {path: run for path, run in files.items() if run.variant == ("mud" if ground == "mud" else "")}
            for test in (test for test in tests if runs and test in (asked.tests or tests)):
                env = f"rescue:{test}" + (f",mud={MUD}" if ground == "mud" else "")
                found = evaluate_side_by_side(
                    env, BASELINES[ground], runs, asked.episodes, asked.seed, lambda run: METHOD
                )
                first = [next(found) for _ in BASELINES[ground]]
                for one in (*first, *found):
                    yield _cell(one, ground, test, first)

    def line(self, cell: Cell) -> str:
        """A cell in a line."""
        return f"{cell.policy} on {cell.test}, {cell.ground}: {cell.mean:.3f} {_remark(cell)}"

    def show(self, record: Record[Cell], markdown: bool) -> Iterator[Grid | str]:
        """A grid for each ground: baselines, the mean over seeds, and each seed's remark, over the sizes."""
        for ground, title in TITLES.items():
            rows = [
                [name, *(_value(record.find(policy=name, ground=ground, test=test)) for test in TESTS[ground])]
                for name in (*BASELINES[ground], METHOD)
            ]
            rows.append(["each seed"])
            rows[-1] += [", ".join(map(_remark, seeds_of(record, ground, test))) for test in TESTS[ground]]
            title = f"{title}; mean steps over {record.head['episodes']} episodes (95 %)"
            yield Grid(title, [ground if markdown else "policy", *TESTS[ground]], [rows])
        yield "ROUTES-DM was learned on 2x4 only, from distances on; its row is the mean over its seeds."
        yield "An episode that hit the limit counts the limit."
        yield f"made with: {record.head['command']}"


def seeds_of(record: Record[Cell], ground: str, test: str) -> list[Cell]:
    """The single seeds."""
    found = [cell for cell in record.where(ground=ground, test=test) if len(cell.seeds) == 1 and cell.policy != METHOD]
    return sorted(found, key=lambda cell: cell.seeds)


def _cell(one: Outcomes, ground: str, test: str, baselines: list[Outcomes]) -> Cell:
    means = {other.policy: float(other.outcome.mean()) for other in baselines}
    mean, bar, base = float(one.outcome.mean()), means[BASELINES[ground][-1]], means["routes-distance"]
    return Cell(
        policy=one.policy,
        ground=ground,
        seeds=one.seeds,
        test=test,
        mean=mean,
        ci95=bootstrap_interval(one.outcome),
        failed=float(one.failed.mean()),
        above=mean / bar - 1,
        closed=(base - mean) / (base - bar) if ground == "mud" and base > bar else None,
        cpu_minutes=one.cpu_minutes,
    )


def _remark(cell: Cell) -> str:
    return f"{cell.above:+.2%}" if cell.closed is None else f"closes {cell.closed:.0%}"


def _value(cell: Cell | None) -> str:
    if cell is None:
        return "not run"
    failed = f", {cell.failed:.2%} fail" if cell.failed else ""
    return f"{cell.mean:.2f} ({cell.ci95[0]:.2f} to {cell.ci95[1]:.2f}{failed}); {_remark(cell)}"
