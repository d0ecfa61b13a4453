"""The paper's Table 1 beside ours: search and rescue, trained small and tested larger.

The printed figures of the paper are best read as T - 1 with the exploration noise left on (docs/worlds/rescue.md says
why), so both T and T - 1, with and without noise, are given; the honest yardstick is the optimum on the same episodes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from muster.evaluation.evaluate import evaluate
from muster.evaluation.statistics import median_of
from muster.policy.files import load_policy
from muster.reproduction.record_file import read_record, write_record
from muster.reproduction.run_names import policy_files

RECORD = Path(__file__).with_name("records") / "rescue.json"
FOLDER = Path(__file__).resolve().parents[2] / "paper" / "rescue"
"""Where records and policies lie in a checkout of the repository."""

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


@dataclass(frozen=True, slots=True)
class Record:
    """A run of the table."""

    episodes: int
    seed: int
    command: str
    cells: list[Cell]

    def save(self, path: Path) -> None:
        """Write JSON, one cell a line."""
        head = {"episodes": self.episodes, "seed": self.seed, "command": self.command}
        write_record(path, head, self.cells)

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read what `save` wrote."""
        advice = "make one with --rerun, in a checkout of the repository"
        head, cells = read_record(path, Cell, ("episodes", "seed", "command"), advice)
        return cls(cells=cells, **head)


def run_table(
    episodes: int, seed: int, command: str, report: Callable[[Cell], None] | None = None, folder: Path = FOLDER
) -> Record:
    """Evaluate the baselines and every policy in the folder on the fixed episodes."""
    cells: list[Cell] = []

    def add(cell: Cell) -> None:
        cells.append(cell)
        if report:
            report(cell)

    for rule in ("closest", "lp-distance", "topline"):
        for test in TESTS:
            found = evaluate(rule, f"rescue:{test}", episodes, seed)
            add(Cell(rule, "", rule, "", 0, test, False, found.mean, found.ci95, found.failed, None, None))
    for path, name in policy_files(folder / "policies", "rescue").items():
        header = load_policy(path).header
        for test in TESTS:
            for noise in (False, True):
                found = evaluate(str(path), f"rescue:{test}", episodes, seed, noise)
                add(
                    Cell(
                        path.stem,
                        name.train,
                        name.method,
                        name.learner,
                        name.seed,
                        test,
                        noise,
                        found.mean,
                        found.ci95,
                        found.failed,
                        header.get("cpu_minutes"),
                        header.get("steps"),
                    )
                )
    return Record(episodes, seed, command, cells)


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


def baseline(record: Record, name: str, test: str) -> float:
    """Mean steps of a baseline."""
    return next(cell.mean for cell in record.cells if cell.method == name and cell.test == test) or float("nan")


def gap_closed(record: Record, cell: Cell) -> float | None:
    """Share of the way from the greedy baseline to the optimum: 1 is optimal."""
    greedy, best = baseline(record, "closest", cell.test), baseline(record, "topline", cell.test)
    return None if cell.mean is None else (greedy - cell.mean) / (greedy - best)


def improvements(record: Record, method: str, learner: str, noise: bool) -> dict[str, float | None]:
    """Mean improvement over the greedy baseline in domain, out of domain and in total, as the paper aggregates."""
    inside: list[float] = []
    outside: list[float] = []
    for train, test in PAPER:
        cell = pick(record, train, test, method, learner, noise)
        if cell is None or cell.mean is None:
            continue
        greedy = baseline(record, "closest", test)
        (inside if train == test else outside).append((greedy - cell.mean) / greedy)
    both = inside + outside
    complete = len(both) == len(PAPER)
    return {
        "in domain": statistics.fmean(inside) if len(inside) == 2 else None,
        "out of domain": statistics.fmean(outside) if len(outside) == len(PAPER) - 2 else None,
        "total": statistics.fmean(both) if complete else None,
    }


def as_json(record: Record) -> dict[str, Any]:
    """Paper and ours, cell by cell."""
    rows = []
    for (train, test), printed in PAPER.items():
        named = dict(zip(METHODS, printed, strict=True))
        for method in (name for base in METHODS for name in (base, *variants(record, base))):
            steps, failures = named.get(method, (None, None))
            row: dict[str, Any] = {
                "train": train,
                "test": test,
                "method": method,
                "paper": steps,
                "paper_failures": failures,
            }
            for learner in ("a2c", "es"):
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
        "baselines": {
            name: {t: baseline(record, name, t) for t in TESTS} for name in ("closest", "lp-distance", "topline")
        },
        "paper_baseline": PAPER_BASELINE,
        "paper_topline": PAPER_TOPLINE,
        "rows": rows,
        "improvements": {
            f"{method}-{learner}": improvements(record, method, learner, False)
            for method in METHODS
            for learner in ("a2c", "es")
        },
    }
