"""The paper's Table 1 beside ours: search and rescue, trained small and tested larger.

The printed figures of the paper are best read as T - 1 with the exploration noise left on
(docs/environments/rescue.md says why), so both T and T - 1, with and without noise, are given; the honest yardstick is
the optimum on the same episodes.
"""

from __future__ import annotations

import fnmatch
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from muster.errors import InputError, UnknownNameError
from muster.evaluation.evaluate import evaluate
from muster.evaluation.statistics import median_of
from muster.policy.learned import LearnedPolicy
from paper.tables.record_file import TableRecord
from paper.tables.run_names import LEARNERS, policy_files

BASELINES = ("closest", "lp-distance", "topline")
TESTS = ("2x4", "5x10", "8x15")
METHODS = ("amax-pem", "lp-pem", "quad-pem", "amax-dm", "lp-dm", "quad-dm")

# The paper's Table 1: by train and test size, in the order of METHODS; (steps, share of failures).
PAPER: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {
    ("2x4", "2x4"): ((11.98, 0), (12.09, 0), (11.44, 0), (13.78, 0), (11.98, 0), (11.55, 0)),
    ("2x4", "5x10"): ((13.36, 0), (10.69, 0), (9.67, 0), (12.49, 0), (10.24, 0), (9.32, 0)),
    ("2x4", "8x15"): ((15.8, 0.007), (9.86, 0), (10.3, 0.011), (11.06, 0), (9.71, 0), (7.85, 0)),
    ("5x10", "2x4"): ((12.05, 0), (12.94, 0), (13.23, 0.01), (13.84, 0), (12.22, 0), (11.78, 0)),
    ("5x10", "5x10"): ((9.84, 0), (10.24, 0), (10.43, 0), (12.26, 0), (10.12, 0), (9.36, 0)),
    ("5x10", "8x15"): ((8.60, 0), (9.37, 0), (9.51, 0), (10.57, 0), (8.63, 0), (7.95, 0)),
}
PAPER_BASELINE = {"2x4": 14.34, "5x10": 13.61, "8x15": 11.8}
PAPER_TOPLINE = {"2x4": 10.28, "5x10": 7.19, "8x15": None}


@dataclass(frozen=True, slots=True)
class Cell:
    """One policy on one test size."""

    policy: str
    train: str
    """Size trained on; "" for a baseline."""
    method: str
    """Such as "quad-dm", or the name of a baseline."""
    learner: str
    seed: int
    test: str
    noise: bool
    mean: float | None
    ci95: tuple[float, float] | None
    failed: int
    cpu_minutes: float | None
    steps: int | None

    @property
    def key(self) -> tuple[str, str, bool]:
        """A record holds one cell of each key."""
        return self.policy, self.test, self.noise


class Record(TableRecord[Cell]):
    """A run of the table."""

    cell_type = Cell


def run_table(
    episodes: int,
    seed: int,
    command: str,
    policies: Path,
    *,
    only: str = "*",
    tests: Sequence[str] = (),
    before: Record | None = None,
    report: Callable[[Cell], None] = lambda cell: None,
) -> Record:
    """Play the baselines and the policies in a folder whose names match `only`, on `tests` (all if none are named).

    What is played replaces its cells in the record `before`, whose other cells stay as they are.
    """
    if episodes < 1:
        raise InputError(f"episodes must be at least 1, got {episodes}")
    for test in tests:
        if test not in TESTS:
            raise UnknownNameError("test size in this table", test, TESTS)
    if before is not None:
        before.check_episodes(episodes, seed)
    files = policy_files(policies, "rescue")
    kept = [name for name in (*BASELINES, *(path.stem for path in files)) if fnmatch.fnmatchcase(name, only)]
    if not kept:
        names = ", ".join((*BASELINES, *(path.stem for path in files)))
        raise InputError(f"nothing to play: no baseline or policy in {policies} is named {only!r}; there is {names}")
    cells = {cell.key: cell for cell in before.cells} if before else {}

    def play(policy: str, player: str, noise: bool, **facts: Any) -> None:
        for test in tests or TESTS:
            found = evaluate(player, f"rescue:{test}", episodes, seed, noise)
            cell = Cell(
                policy=policy, test=test, noise=noise, mean=found.mean, ci95=found.ci95, failed=found.failed, **facts
            )
            cells[cell.key] = cell
            report(cell)

    for rule in BASELINES:
        if rule in kept:
            play(rule, rule, False, train="", method=rule, learner="", seed=0, cpu_minutes=None, steps=None)
    for path, name in files.items():
        if path.stem not in kept:
            continue
        header = LearnedPolicy.load(path).header
        facts = {"train": name.train, "method": name.method, "learner": name.learner, "seed": name.seed}
        facts |= {fact: header.get(fact) for fact in ("cpu_minutes", "steps")}
        for noise in (False, True):
            play(path.stem, str(path), noise, **facts)
    return Record(episodes, seed, before.command if before else command, list(cells.values()))


def median_cell(cells: Iterable[Cell]) -> Cell | None:
    """The cell of the median seed (the lower one of an even number), failures last."""
    return median_of(cells, key=lambda cell: (cell.mean is None, cell.mean or 0.0))


def pick(record: Record, train: str, test: str, method: str, learner: str, noise: bool) -> Cell | None:
    """The median cell of a method."""
    return median_cell(
        cell
        for cell in record.cells
        if (cell.train, cell.test, cell.method, cell.learner, cell.noise) == (train, test, method, learner, noise)
    )


def variants(record: Record, method: str) -> list[str]:
    """Methods of the record that are a variant of one of the table's, such as "quad-dm-raw"."""
    return sorted({cell.method for cell in record.cells if cell.method.startswith(f"{method}-")})


def methods_of(record: Record) -> list[str]:
    """The table's methods, each with its variants behind it."""
    return [name for base in METHODS for name in (base, *variants(record, base))]


def baseline(record: Record, name: str, test: str) -> Cell | None:
    """What a baseline did, if it was played."""
    return next((cell for cell in record.cells if cell.method == name and cell.test == test), None)


def mean_of(record: Record, name: str, test: str) -> float | None:
    """Mean steps of a baseline, if it was played."""
    cell = baseline(record, name, test)
    return None if cell is None else cell.mean


def gap_closed(record: Record, cell: Cell) -> float | None:
    """Share of the way from the greedy baseline to the optimum: 1 is optimal."""
    greedy, best = mean_of(record, "closest", cell.test), mean_of(record, "topline", cell.test)
    if cell.mean is None or greedy is None or best is None:
        return None
    return (greedy - cell.mean) / (greedy - best)


def improvements(record: Record, method: str, learner: str, noise: bool) -> dict[str, float | None]:
    """Mean improvement over the greedy baseline in domain, out of domain and in total, as the paper aggregates."""
    inside: list[float] = []
    outside: list[float] = []
    for train, test in PAPER:
        cell = pick(record, train, test, method, learner, noise)
        greedy = mean_of(record, "closest", test)
        if cell is None or cell.mean is None or greedy is None:
            continue
        (inside if train == test else outside).append((greedy - cell.mean) / greedy)
    both = inside + outside
    complete = len(both) == len(PAPER)
    return {
        "in domain": statistics.fmean(inside) if len(inside) == 2 else None,
        "out of domain": statistics.fmean(outside) if len(outside) == len(PAPER) - 2 else None,
        "total": statistics.fmean(both) if complete else None,
    }


def level_with_paper(record: Record, method: str, learner: str) -> tuple[int, int]:
    """How many of a method's cells are at or below the paper's figure in its own terms, T - 1 with noise; of how many.

    To the two digits that the paper prints. A variant is measured by its method ("quad-pem-distilled" by "quad-pem"),
    and one that failed throughout is above.
    """
    column = METHODS.index("-".join(method.split("-")[:2]))
    cells = [(pick(record, *sizes, method, learner, noise=True), row[column][0]) for sizes, row in PAPER.items()]
    level = [cell.mean is not None and round(cell.mean - 1, 2) <= steps for cell, steps in cells if cell is not None]
    return sum(level), len(level)


def as_json(record: Record) -> dict[str, Any]:
    """Paper and ours, cell by cell."""
    rows = []
    for (train, test), printed in PAPER.items():
        named = dict(zip(METHODS, printed, strict=True))
        for method in methods_of(record):
            steps, failures = named.get(method, (None, None))
            row: dict[str, Any] = {
                "train": train,
                "test": test,
                "method": method,
                "paper": steps,
                "paper_failures": failures,
            }
            for learner in LEARNERS:
                for noise in (False, True):
                    cell = pick(record, train, test, method, learner, noise)
                    row[f"{learner}{'_noise' if noise else ''}"] = None if cell is None else asdict(cell)
                    if cell is not None and not noise:
                        row[f"{learner}_gap_closed"] = gap_closed(record, cell)
            rows.append(row)
    return {
        "episodes": record.episodes,
        "seed": record.seed,
        "command": record.command,
        "baselines": {name: {test: mean_of(record, name, test) for test in TESTS} for name in BASELINES},
        "paper_baseline": PAPER_BASELINE,
        "paper_topline": PAPER_TOPLINE,
        "rows": rows,
        "improvements": {
            f"{method}-{learner}": improvements(record, method, learner, False)
            for method in METHODS
            for learner in LEARNERS
        },
        "level_with_paper": {
            f"{method}-{learner}": {"level": level, "cells": cells}
            for method in methods_of(record)
            for learner in LEARNERS
            for level, cells in [level_with_paper(record, method, learner)]
            if cells
        },
    }
