"""The table of fleets: learned on 24 vehicles and 11 zones, played there and zero-shot on larger ones.

Test days are the published ones (docs/environments/fleet.md), each played once; where they are not at hand the
record still prints, and the city of our own can be run again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from muster.data import Floats
from muster.envs.registry import make
from muster.errors import InputError, UnknownNameError
from muster.evaluation.evaluate import evaluate
from muster.evaluation.statistics import bootstrap_interval
from muster.policy.learned import LearnedPolicy
from paper.tables.places import CHECKOUT
from paper.tables.record_file import read_record, write_record
from paper.tables.run_names import RunName, policy_files

RULES = ("greedy", "match", "worth", "hindsight")
REFERENCES = ("match", "worth")
"""What everything is compared with, day by day: profit now, and profit with thought of later."""
SHARED = "../shared/fleet"
TESTS = {
    "24": "fleet:24,trips=DATA/11-zones,set=test",
    "100": "fleet:100,trips=DATA/38-zones,set=test",
    "300": "fleet:300,city=large",
}
"""The 20 published test days of both cities, and 100 hours of our own with three times the fleet."""
CITY_EPISODES = 100

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Cell:
    """A rule, a policy, or all seeds of a method together (the mean over seeds of each day) on one test."""

    policy: str
    method: str
    """Such as "lp-dm" or "lp-dm-prior", or the name of a rule."""
    learner: str
    """"" for a rule."""
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

    @property
    def key(self) -> tuple[str, str]:
        """A record holds one cell of each key."""
        return self.policy, self.test


@dataclass(frozen=True, slots=True)
class Record:
    """A run of the table."""

    seed: int
    command: str
    cells: list[Cell]

    def save(self, path: Path) -> None:
        """Write JSON, one cell a line."""
        write_record(path, {"seed": self.seed, "command": self.command}, self.cells)

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read what `save` wrote."""
        head, cells = read_record(path, Cell, ("seed", "command"), "make one with: --rerun")
        return cls(cells=cells, **head)


def run_table(
    seed: int,
    command: str,
    policies: Path,
    *,
    only: str = "*",
    tests: Sequence[str] = (),
    before: Record | None = None,
    report: Callable[[Cell], None] = lambda cell: None,
) -> Record:
    """Play the policies in a folder whose names match `only`, and the rules, on `tests` (all if none are named).

    What is played replaces its cells in the record `before`, whose other cells stay as they are.
    """
    for test in tests:
        if test not in TESTS:
            raise UnknownNameError("test in this table", test, TESTS)
    files = policy_files(policies, "fleet", only)
    cells = {} if before is None else {cell.key: cell for cell in before.cells}
    for test in tests or TESTS:
        env = world_of(test)
        for cell in _play_test(test, env, seed, files):
            report(cell)
            cells[cell.key] = cell
    return Record(seed, command, list(cells.values()))


def world_of(test: str) -> str:
    """The environment string of a test; raises InputError where its days are not at hand."""
    env = TESTS[test]
    data = CHECKOUT / SHARED
    if "DATA" in env and not data.is_dir():
        raise InputError(
            f"the published trips are not in {SHARED} beside the repository (docs/environments/fleet.md); "
            f"without them run --tests 300"
        )
    return env.replace("DATA", str(data.resolve()))


def _play_test(test: str, env: str, seed: int, files: dict[Path, RunName]) -> Iterable[Cell]:
    played: dict[str, Floats] = {}
    methods: dict[tuple[str, str], list[tuple[RunName, float]]] = {}

    def profit(policy: Any) -> tuple[Floats, float | None]:
        recorded = make(env).all_episodes() is not None
        found = evaluate(policy, env, "all") if recorded else evaluate(policy, env, CITY_EPISODES, seed)
        bound = found.metrics.get("upper_bound")
        return found.records.outcome, None if bound is None else bound.mean

    # With all requests of 300 vehicles known, planning takes minutes an hour.
    rules = RULES if "trips=" in env else RULES[:-1]
    bound = None
    for rule in rules:
        played[rule], bound = profit(rule)
    for rule in rules:
        yield _cell(rule, rule, "", [], test, played[rule], played, bound if rule == "hindsight" else None, None)
    for path, run in files.items():
        policy = LearnedPolicy.load(path)
        played[path.stem], _ = profit(policy)
        minutes = float(policy.header.get("cpu_minutes", math.nan))
        methods.setdefault((run.method, run.learner), []).append((run, minutes))
        name, learner = run.method, run.learner
        yield _cell(path.stem, name, learner, [run.seed], test, played[path.stem], played, None, minutes)
    for (method, learner), runs in methods.items():
        names = [path.stem for path, run in files.items() if (run.method, run.learner) == (method, learner)]
        together = np.mean([played[name] for name in names], axis=0)
        seeds = [run.seed for run, _ in runs]
        minutes = float(np.mean([one for _, one in runs]))
        yield _cell(f"{method} by {learner}", method, learner, seeds, test, together, played, None, minutes)


def _cell(
    policy: str,
    method: str,
    learner: str,
    seeds: list[int],
    test: str,
    outcome: Floats,
    played: dict[str, Floats],
    bound: float | None,
    minutes: float | None,
) -> Cell:
    gains = {}
    for reference in REFERENCES:
        if policy != reference:
            gap = outcome - played[reference]
            gains[reference] = (float(gap.mean()), *bootstrap_interval(gap))
    return Cell(
        policy, method, learner, seeds, test, len(outcome), float(outcome.mean()), bootstrap_interval(outcome),
        gains, bound, minutes,
    )  # fmt: skip


def find(record: Record, policy: str, test: str) -> Cell | None:
    """The cell of a rule, a policy or a method."""
    return next((cell for cell in record.cells if cell.key == (policy, test)), None)


def rows_of(record: Record) -> list[str]:
    """Rules, then methods with all their seeds together."""
    methods = dict.fromkeys(cell.policy for cell in record.cells if " by " in cell.policy)
    return [*(rule for rule in RULES if any(cell.policy == rule for cell in record.cells)), *methods]


def runs_of(record: Record, row: str, test: str) -> list[Cell]:
    """The cells of a method's single seeds."""
    return [
        cell
        for cell in record.cells
        if cell.test == test and cell.policy != row and f"{cell.method} by {cell.learner}" == row
    ]


def as_json(record: Record) -> dict[str, Any]:
    """What `python -m paper tables fleet --json` prints."""
    return {"table": "fleet", "command": record.command, "cells": [asdict(cell) for cell in record.cells]}
