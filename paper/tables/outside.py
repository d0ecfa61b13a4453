"""The table of problems from outside: learned small in minutes, evaluated there and zero-shot at a larger size.

Episodes are those of SEED, which nothing was tuned, trained or validated on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from muster.data import Floats
from muster.evaluation.statistics import bootstrap_interval
from paper.run_names import PAPER, policy_files
from paper.tables.engine import Asked, Grid, Interval, Outcomes, Record, Table, evaluate_side_by_side

SEED = 3_141_593
FIELD = "examples.field_service:FieldService"
FORAGING = "examples.outside.foraging:Foraging"
SATELLITES = "examples.outside.satellites:Constellation"
REDA = "REDA, the authors' weights"
REDA_OUTCOMES = np.array(
    [11580.849, 9954.819, 11699.009, 9765.222, 10897.086, 12550.527, 11554.366, 11831.258, 11885.382, 10608.256]
)
"""Pay of REDA's published weights in the authors' environment, given the instances of our ten episodes. Taken from a
run of their code, which is not part of this repository: a rerun does not repeat it."""


@dataclass(frozen=True, slots=True)
class Test:
    """One size of a problem."""

    problem: str
    title: str
    env: str
    episodes: int
    baselines: tuple[str, ...]
    """The one to beat first."""
    unit: str = "return"
    look_ahead: Mapping[str, Any] | None = None
    """Arguments of `with_rollouts` for what is learned."""


TESTS = {
    "field-6x18": Test("field", "Field service, 6 technicians", FIELD, 300, ("match", "priority", "prior")),
    "field-6x18-look-ahead": Test(
        "field",
        "Field service, 6 technicians, 16 candidates in 48 futures",
        FIELD,
        60,
        ("match",),
        look_ahead={"rollouts": 16, "futures": 48, "horizon": 25},
    ),
    "field-30x90": Test(
        "field", "Field service, 30 technicians", f"{FIELD},n_agents=30,n_tasks=90", 60, ("match", "priority", "prior")
    ),
    "foraging-8x8": Test(
        "foraging", "Foraging, 8x8, 3 players, 3 foods", FORAGING, 1000, ("team", "nearest", "prior"), "steps"
    ),
    "foraging-8x8-look-ahead": Test(
        "foraging",
        "Foraging, 8x8, 3 players, 3 foods, 8 candidates",
        FORAGING,
        100,
        ("team",),
        "steps",
        {"rollouts": 8, "candidates": "scores", "size": 4.0},
    ),
    "foraging-20x20": Test(
        "foraging",
        "Foraging, 20x20, 10 players, 20 foods",
        f"{FORAGING},n_agents=10,n_tasks=20",
        200,
        ("team", "nearest", "prior"),
        "steps",
    ),
    "satellites-36x50": Test("satellites", "36 satellites, 50 tasks", SATELLITES, 100, ("myopic", "price")),
    "satellites-324x450": Test(
        "satellites",
        "324 satellites, 450 tasks",
        f"{SATELLITES},n_agents=324,n_tasks=450",
        len(REDA_OUTCOMES),
        (REDA, "myopic", "price"),
    ),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A baseline, a policy, or all seeds of a method together (the mean over seeds of each episode) on one test."""

    policy: str
    method: str
    """Such as "lp-linear", or the name of a baseline."""
    learner: str
    """"" for a baseline."""
    seeds: list[int]
    test: str
    episodes: int
    mean: float
    ci95: Interval
    failed: float
    """Share of the episodes that hit the limit."""
    difference: float | None
    """From the baseline to beat, episode by episode; None in its own cell."""
    difference_ci95: Interval | None
    cpu_minutes: float | None


class Outside(Table[Cell]):
    """Problems from outside."""

    name, cell, key, tests = "outside", Cell, ("policy", "test"), tuple(TESTS)
    counts, head = (), ("command",)

    def evaluate(self, asked: Asked, record: Record[Cell]) -> Iterator[Cell]:
        """Baselines, policies and methods, test by test."""
        for name in asked.tests or TESTS:
            test = TESTS[name]
            folder = self.policies(asked) / test.problem
            runs = policy_files(folder, test.problem, asked.only) if folder.is_dir() else {}
            ours = [baseline for baseline in test.baselines if baseline != REDA]
            first: Outcomes | None = None
            if REDA in test.baselines:
                first = Outcomes(REDA, REDA, "", [], REDA_OUTCOMES, np.zeros(len(REDA_OUTCOMES)), None, {})
                yield _cell(first, name, None)
            found = evaluate_side_by_side(
                test.env, ours, runs, test.episodes, SEED, lambda run: f"{run.method} by {run.learner}", test.look_ahead
            )
            for one in found:
                yield _cell(one, name, None if first is None else first.outcome)
                first = first or one

    def line(self, cell: Cell) -> str:
        """A cell in a line."""
        return f"{cell.policy} on {cell.test}: {cell.mean:.2f}"

    def show(self, record: Record[Cell], markdown: bool) -> Iterator[Grid | str]:
        """A grid for each test: baselines, then methods."""
        for name, test in TESTS.items():
            cells = [cell for cell in record.where(test=name) if not cell.learner or " by " in cell.policy]
            title = f"{test.title}: {test.unit}, {test.episodes} episodes"
            columns = ["mean [95 %]", "each seed", f"minus {test.baselines[0]} [95 %]", "CPU min"]
            rows = [_row(record, cell) for cell in cells]
            if rows:
                yield Grid(title, [title if markdown else "policy", *columns], [rows])
        yield f"Episodes of seed {SEED}, paired; learned at the smaller size of each problem only."
        if rows := list(_own_verdicts()):
            title = "What each run of three minutes, with default settings, said of itself: validation episodes"
            yield Grid(title, ["run", "kept", "home", "minus the best rival", "5 times the size", "minus it"], [rows])
        yield f"made with: {record.head['command']}"


def _own_verdicts() -> Iterator[list[str]]:
    """A row for each run that was validated at several sizes: its mean, less the best of baselines and prior."""
    for path in sorted((PAPER / "outside" / "runs").glob("*/summary.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        sizes = list(found["sizes"].values())
        if len(sizes) > 1:
            yield [path.parent.name, found["kept"], *_beside_best(sizes[0]), *_beside_best(sizes[-1])]


def _beside_best(size: dict[str, Any]) -> tuple[str, str]:
    best = size["baselines"][size["best_baseline"]]
    low, high = best["ci95"]
    gap = f"{size['best_baseline']} {best['mean']:,.2f}: {best['difference']:+,.2f} ({low:+,.2f} to {high:+,.2f})"
    return f"{size['mean']:,.2f}", f"{gap}, {size['verdict']}"


def _cell(one: Outcomes, test: str, reference: Floats | None) -> Cell:
    gap = None if reference is None else one.outcome - reference
    return Cell(
        *(one.policy, one.method, one.learner, one.seeds, test, len(one.outcome), float(one.outcome.mean())),
        *(bootstrap_interval(one.outcome), float(one.failed.mean())),
        *((None, None) if gap is None else (float(gap.mean()), bootstrap_interval(gap))),
        one.cpu_minutes,
    )


def _row(record: Record[Cell], cell: Cell) -> list[str]:
    ones = record.where(test=cell.test, method=cell.method, learner=cell.learner) if cell.learner else []
    seeds = [f"{one.mean:,.1f}" for one in sorted(ones, key=lambda one: one.seeds) if one is not cell]
    difference = ""
    if cell.difference is not None and cell.difference_ci95 is not None:
        low, high = cell.difference_ci95
        share = cell.difference / (cell.mean - cell.difference)
        difference = f"{cell.difference:+,.2f} ({low:+,.2f} to {high:+,.2f}), {share:+.1%}"
    failed = f", {cell.failed:.0%} failed" if cell.failed else ""
    minutes = "" if cell.cpu_minutes is None else f"{cell.cpu_minutes:.1f}"
    mean = f"{cell.mean:,.2f} ({cell.ci95[0]:,.2f} to {cell.ci95[1]:,.2f}){failed}"
    return [cell.policy, mean, ", ".join(seeds), difference, minutes]
