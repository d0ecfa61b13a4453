"""The table of fleets: learned on 24 vehicles and 11 zones, evaluated there and zero-shot on larger ones.

Test days are the published ones (docs/environments/fleet.md), each evaluated once; where they are not at hand the
record still prints, and the city of our own can be evaluated again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.envs.registry import make
from muster.errors import InputError
from muster.evaluation.statistics import bootstrap_interval
from paper.run_names import policy_files
from paper.tables.engine import CHECKOUT, Asked, Grid, Interval, Outcomes, Record, Table, evaluate_side_by_side

BASELINES = ("greedy", "match", "worth", "hindsight")
REFERENCES = ("match", "worth")
"""What everything is compared with, day by day: profit now, and profit with thought of later."""
SHARED = "../shared/fleet"
LOOK_AHEAD = {"rollouts": 8, "futures": 32, "horizon": 30, "standard_errors": 0.75}
"""Chosen on validation days (docs/how-to/look-ahead.md)."""
TESTS = {
    "24": "fleet:24,trips=DATA/11-zones,set=test",
    "24-look-ahead": "fleet:24,trips=DATA/11-zones,set=test",
    "100": "fleet:100,trips=DATA/38-zones,set=test",
    "100-look-ahead": "fleet:100,trips=DATA/38-zones,set=test",
    "300": "fleet:300,city=large",
}
"""The 20 published test days of both cities, and 100 hours of our own with three times the fleet."""
AHEAD = frozenset(test for test in TESTS if test.endswith("-look-ahead"))
LEADING = ("lp-dm", "es"), ("lp-dm-again", "es")
"""Methods and learners that are run with look-ahead too."""
CITY_EPISODES = 100
TITLES = {
    "24": "24 vehicles, 11 zones: 20 test days",
    "24-look-ahead": "24 vehicles, 11 zones: 20 test days, learned policies with 8 candidates in 32 futures",
    "100": "100 vehicles, 38 zones: 20 test days",
    "100-look-ahead": "100 vehicles, 38 zones: 20 test days, learned policies with 8 candidates in 32 futures",
    "300": f"300 vehicles, 38 zones: {CITY_EPISODES} hours of the generator",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A baseline, a policy, or all seeds of a method together (the mean over seeds of each day) on one test."""

    policy: str
    method: str
    """Such as "lp-dm" or "lp-dm-noprior", or the name of a baseline."""
    learner: str
    """"" for a baseline."""
    seeds: list[int]
    test: str
    episodes: int
    mean: float
    """Profit."""
    ci95: Interval
    gains: dict[str, tuple[float, float, float]]
    """Mean difference from each reference, day by day, and its 95 % interval."""
    upper_bound: float | None
    """Mean of the flow's bound, in the cell of hindsight."""
    cpu_minutes: float | None


class Fleet(Table[Cell]):
    """Fleets."""

    name, cell, key, tests = "fleet", Cell, ("policy", "test"), tuple(TESTS)
    counts, head = ("seed",), ("seed", "command")

    def evaluate(self, asked: Asked, record: Record[Cell]) -> Iterator[Cell]:
        """Baselines, policies and methods, test by test."""
        known = policy_files(self.policies(asked), "fleet", asked.only)
        for test in asked.tests or TESTS:
            env, ahead = env_of(test), LOOK_AHEAD if test in AHEAD else None
            runs = {path: run for path, run in known.items() if not ahead or (run.method, run.learner) in LEADING}
            # With all requests of 300 vehicles known, planning takes minutes an hour.
            baselines = REFERENCES if test in AHEAD else BASELINES if "trips=" in env else BASELINES[:-1]
            episodes = CITY_EPISODES if make(env).all_episodes() is None else "all"
            by_name: dict[str, Outcomes] = {}
            found = evaluate_side_by_side(
                env, baselines, runs, episodes, asked.seed, lambda run: f"{run.method} by {run.learner}", ahead
            )
            for one in found:
                by_name[one.policy] = one
                if len(by_name) == len(baselines):
                    yield from (_cell(own, test, by_name) for own in by_name.values())
                elif len(by_name) > len(baselines):
                    yield _cell(one, test, by_name)

    def line(self, cell: Cell) -> str:
        """A cell in a line."""
        return f"{cell.policy} on {cell.test}: {cell.mean:.2f}"

    def show(self, record: Record[Cell], markdown: bool) -> Iterator[Grid | str]:
        """A grid for each test: baselines, then methods."""
        methods = dict.fromkeys(cell.policy for cell in record.cells if " by " in cell.policy)
        for test, title in TITLES.items():
            columns = ["profit [95 %]", "each seed", *(f"minus {one} [95 %]" for one in REFERENCES), "CPU min"]
            names = [name for name in (*BASELINES, *methods) if record.find(policy=name)]
            if test in AHEAD:
                names = [name for name in names if record.find(policy=name, test=test)]
            rows = [_row(record, name, test) for name in names]
            yield Grid(f"Fleet, {title}", [title if markdown else "policy", *columns], [rows])
            best = record.find(policy="hindsight", test=test)
            if best is not None and best.upper_bound is not None and not markdown:
                yield f"No policy can earn more than {best.upper_bound:.1f} (all requests known, a flow)."
        yield "Learned on 24 vehicles and 11 zones only. A learned row is the mean over its seeds, day by day."
        yield f"made with: {record.head['command']}"


def env_of(test: str) -> str:
    """The environment string of a test; raises InputError where its days are not at hand."""
    data = CHECKOUT / SHARED
    if "DATA" in TESTS[test] and not data.is_dir():
        raise InputError(
            f"the published trips are not in {SHARED} beside the repository (docs/environments/fleet.md); "
            f"without them evaluate --tests 300"
        )
    return TESTS[test].replace("DATA", str(data.resolve()))


def _cell(one: Outcomes, test: str, by_name: dict[str, Outcomes]) -> Cell:
    gains = {}
    for reference in REFERENCES:
        if one.policy != reference:
            gap = one.outcome - by_name[reference].outcome
            gains[reference] = (float(gap.mean()), *bootstrap_interval(gap))
    bound = one.metrics.get("upper_bound") if one.policy == "hindsight" else None
    return Cell(
        *(one.policy, one.method, one.learner, one.seeds, test, len(one.outcome), float(one.outcome.mean())),
        *(bootstrap_interval(one.outcome), gains, None if bound is None else bound.mean, one.cpu_minutes),
    )


def _row(record: Record[Cell], name: str, test: str) -> list[str]:
    cell = record.find(policy=name, test=test)
    if cell is None:
        return [name, "not run", "", *("" for _ in REFERENCES), ""]
    ones = record.where(test=test, method=cell.method, learner=cell.learner) if cell.learner else []
    seeds = [f"{one.mean:.1f}" for one in sorted(ones, key=lambda one: one.seeds) if one is not cell]
    gains = []
    for reference in REFERENCES:
        base = record.find(policy=reference, test=test)
        mean, low, high = cell.gains.get(reference, (0.0, 0.0, 0.0))
        known = reference in cell.gains and base is not None
        gains.append(f"{mean:+.1f} ({low:+.1f} to {high:+.1f}), {mean / base.mean:+.1%}" if known else "")
    minutes = "" if cell.cpu_minutes is None else f"{cell.cpu_minutes:.1f}"
    return [name, f"{cell.mean:.1f} ({cell.ci95[0]:.1f} to {cell.ci95[1]:.1f})", ", ".join(seeds), *gains, minutes]
