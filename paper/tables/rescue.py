"""The paper's Table 1 beside ours: search and rescue, trained small and tested larger.

The printed values of the paper are best read as T - 1 with the exploration noise left on
(docs/environments/rescue.md says why), so both T and T - 1, with and without noise, are given; the honest yardstick is
the optimum on the same episodes.
"""

from __future__ import annotations

import fnmatch
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from muster.errors import InputError
from muster.evaluation.evaluate import evaluate
from muster.policy.learned import LearnedPolicy
from paper.run_names import LEARNERS, policy_files
from paper.tables.engine import Asked, Grid, Interval, Record, Table, median_of

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
    """Over the episodes that did not hit the limit, as in the paper's table; None if all did."""
    ci95: Interval | None
    failed: int
    cpu_minutes: float | None
    steps: int | None


class Rescue(Table[Cell]):
    """Search and rescue."""

    name, cell, key, tests = "rescue", Cell, ("policy", "test", "noise"), TESTS
    measured = ("mean", "ci95", "failed")

    def evaluate(self, asked: Asked, record: Record[Cell]) -> Iterator[Cell]:
        """The baselines and the policies whose names match, without and with noise."""
        folder = self.policies(asked)
        files = policy_files(folder, "rescue")
        names = [*BASELINES, *(path.stem for path in files)]
        kept = fnmatch.filter(names, asked.only)
        if not kept:
            raise InputError(f"no baseline or policy in {folder} is named {asked.only!r}; there is {', '.join(names)}")

        def cells(policy: str, source: str, noise: bool, **facts: Any) -> Iterator[Cell]:
            for test in asked.tests or TESTS:
                found = evaluate(source, f"rescue:{test}", asked.episodes, asked.seed, noise)
                mean, interval = found.finished_mean or (None, None)
                yield Cell(policy, test=test, noise=noise, mean=mean, ci95=interval, failed=found.failed, **facts)

        for baseline in BASELINES:
            if baseline in kept:
                facts = {"train": "", "method": baseline, "learner": "", "seed": 0, "cpu_minutes": None, "steps": None}
                yield from cells(baseline, baseline, False, **facts)
        for path, run in files.items():
            if path.stem in kept:
                header = LearnedPolicy.load(path).header
                facts = {name: getattr(run, name) for name in ("train", "method", "learner", "seed")}
                facts |= {name: header.get(name) for name in ("cpu_minutes", "steps")}
                for noise in (False, True):
                    yield from cells(path.stem, str(path), noise, **facts)

    def line(self, cell: Cell) -> str:
        """A cell in a line."""
        noise = " with noise" if cell.noise else ""
        return f"{cell.policy} on {cell.test}{noise}: " + ("all failed" if cell.mean is None else f"{cell.mean:.3f}")

    def show(self, record: Record[Cell], markdown: bool) -> Iterator[Grid | str]:
        """A block for each cell of the paper's table, then what it comes to."""
        columns = ("train", "test", "method", "paper", "learner", "T [95 %]", "T-1", "with noise: T", "T-1")
        blocks = [[_baseline_row(record, name, test) for test in TESTS for name in BASELINES]]
        for sizes, row in PAPER.items():
            printed = {
                method: f"{steps:.2f}" + (f" ({failures:.1%})" if failures else "")
                for method, (steps, failures) in zip(METHODS, row, strict=True)
            }
            names = methods_of(record)
            blocks.append([line for name in names for line in _rows(record, sizes, name, printed.get(name, ""))])
        title = f"Search and rescue, mean steps over {record.head['episodes']} episodes (seed {record.head['seed']})"
        yield Grid(
            title,
            (*columns, "failed", "gap closed", "seeds", "CPU min"),
            blocks,
            ("train", "test", "method", "learner"),
        )
        for method, learner in _groups(record):
            shares = improvements(record, method, learner)
            parts = ", ".join(f"{name} {value:.0%}" for name, value in shares.items() if value is not None)
            if parts:
                yield f"improvement over greedy, {method} by {learner}: {parts}"
        yield "Means leave out the episodes that hit the limit, as the paper's table does; failed says how many did."
        yield "The paper's values are best read as T-1 with the noise on (docs/environments/rescue.md)."
        for method, learner in _groups(record):
            level, cells = level_with_paper(record, method, learner)
            yield f"so read, {method} by {learner}: {level} of {cells} cells at or below the paper's value"
        yield "distilled: positional models that imitate the direct QUAD policy of their size, from the LP policy on."
        yield "raw: coordinates alone, as in the paper; the other direct models see relative positions as well."
        yield "The median seed is shown where there are several. gap closed: 0 is greedy, 100 % is the optimum."
        yield f"made with: {record.head['command']}"


def methods_of(record: Record[Cell]) -> list[str]:
    """The table's methods, each with its variants behind it, such as "quad-dm-raw"."""
    known = {cell.method for cell in record.cells}
    return [name for base in METHODS for name in (base, *sorted(m for m in known if m.startswith(f"{base}-")))]


def _groups(record: Record[Cell]) -> list[tuple[str, str]]:
    """Method and learner of what was evaluated with noise, as all policies are."""
    known = {(cell.method, cell.learner) for cell in record.cells if cell.noise}
    return [(method, learner) for method in methods_of(record) for learner in LEARNERS if (method, learner) in known]


def pick(record: Record[Cell], train: str, test: str, method: str, learner: str, noise: bool) -> Cell | None:
    """The cell of the median seed (the lower one of an even number), failures last."""
    cells = record.where(train=train, test=test, method=method, learner=learner, noise=noise)
    return median_of(cells, key=lambda cell: (cell.mean is None, cell.mean or 0.0))


def mean_of(record: Record[Cell], baseline: str, test: str) -> float | None:
    """Mean steps of a baseline, if it was evaluated."""
    cell = record.find(method=baseline, test=test)
    return None if cell is None else cell.mean


def gap_closed(record: Record[Cell], cell: Cell) -> float | None:
    """Share of the way from the greedy baseline to the optimum: 1 is optimal."""
    greedy, best = mean_of(record, "closest", cell.test), mean_of(record, "topline", cell.test)
    if cell.mean is None or greedy is None or best is None:
        return None
    return (greedy - cell.mean) / (greedy - best)


def improvements(record: Record[Cell], method: str, learner: str) -> dict[str, float | None]:
    """Mean improvement over the greedy baseline in domain, out of domain and in total, as the paper aggregates."""
    inside: list[float] = []
    outside: list[float] = []
    for train, test in PAPER:
        cell, greedy = pick(record, train, test, method, learner, False), mean_of(record, "closest", test)
        if cell is not None and cell.mean is not None and greedy is not None:
            (inside if train == test else outside).append((greedy - cell.mean) / greedy)
    both = inside + outside
    return {
        "in domain": statistics.fmean(inside) if len(inside) == 2 else None,
        "out of domain": statistics.fmean(outside) if len(outside) == len(PAPER) - 2 else None,
        "total": statistics.fmean(both) if len(both) == len(PAPER) else None,
    }


def level_with_paper(record: Record[Cell], method: str, learner: str) -> tuple[int, int]:
    """How many of a method's cells are at or below the paper's value in its own terms, T - 1 with noise; of how many.

    To the two digits that the paper prints. A variant is measured by its method ("quad-pem-distilled" by "quad-pem"),
    and one that failed throughout is above.
    """
    column = METHODS.index("-".join(method.split("-")[:2]))
    cells = [(pick(record, *sizes, method, learner, noise=True), row[column][0]) for sizes, row in PAPER.items()]
    level = [cell.mean is not None and round(cell.mean - 1, 2) <= steps for cell, steps in cells if cell is not None]
    return sum(level), len(level)


def _baseline_row(record: Record[Cell], name: str, test: str) -> list[str]:
    printed = {"closest": PAPER_BASELINE[test], "topline": PAPER_TOPLINE[test]}.get(name)
    cell = record.find(method=name, test=test)
    values = ["not run"] + ["–"] * 5 if cell is None else _values(record, cell, None)
    return ["–", test, name, "n.a." if printed is None else f"{printed:.2f}", "–", *values, "–", "–"]


def _rows(record: Record[Cell], sizes: tuple[str, str], method: str, printed: str) -> Iterator[list[str]]:
    """A row for each learner that was run; one that says so where a method of the paper's was not."""
    train, test = sizes
    cells = [(learner, pick(record, train, test, method, learner, False)) for learner in LEARNERS]
    if printed and all(cell is None for _, cell in cells):
        yield [train, test, method, printed, "–", "not run", *["–"] * 7]
    for learner, cell in cells:
        if cell is not None:
            noisy = record.find(policy=cell.policy, test=test, noise=True)
            seeds = record.where(train=train, test=test, method=method, learner=learner, noise=False)
            minutes = "–" if cell.cpu_minutes is None else f"{cell.cpu_minutes:.1f}"
            yield [train, test, method, printed, learner, *_values(record, cell, noisy), str(len(seeds)), minutes]


def _values(record: Record[Cell], cell: Cell, noisy: Cell | None) -> list[str]:
    if cell.mean is None or cell.ci95 is None:
        return ["all failed", "–", "–", "–", str(cell.failed), "–"]
    share = gap_closed(record, cell)
    steps = f"{cell.mean:.2f} [{cell.ci95[0]:.2f} {cell.ci95[1]:.2f}]"
    loud = ["–", "–"] if noisy is None or noisy.mean is None else [f"{noisy.mean:.2f}", f"{noisy.mean - 1:.2f}"]
    failed = f"{cell.failed}" + (f" / {noisy.failed}" if noisy is not None else "")
    return [steps, f"{cell.mean - 1:.2f}", *loud, failed, "–" if share is None else f"{share:.0%}"]
