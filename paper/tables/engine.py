"""One engine for every table: records on disk, cells evaluated again, rows printed.

A table is a subclass of `Table`: what its cells are, how they are evaluated, and how rows are laid out.
"""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from muster.checkout import code_commit
from muster.data import Floats
from muster.errors import InputError, UnknownNameError
from muster.evaluation.evaluate import evaluate
from muster.policy.learned import LearnedPolicy
from muster.settings import read_table
from muster.storage import write_atomically
from paper.run_names import PAPER, RunName, of_today

RECORDS = Path(__file__).with_name("records")
CHECKOUT = PAPER.parent
NAMES = "0.2"
"""Written into records whose names are those of today; records without it are translated when they are read."""
COMMIT = re.compile("[0-9a-f]{12}")
_OLD_FIELDS = {"best_rule": "best_baseline", "draws": "trials", "world": "env", "collapses": "rollbacks"}

COMMITS = "commits"
"""Entry of a record: the commits of the code that its cells were evaluated with; not in records from before 0.2.0."""

CellType = TypeVar("CellType", bound=Any)
Interval = tuple[float, float]


@dataclass(slots=True)
class Record(Generic[CellType]):
    """The cells of a table and what holds for all of them, such as the episodes, the seed and the command."""

    head: dict[str, Any]
    cells: list[CellType]

    def find(self, **facts: Any) -> CellType | None:
        """The first cell with these values."""
        return next(iter(self.where(**facts)), None)

    def where(self, **facts: Any) -> list[CellType]:
        """All cells with these values."""
        return [cell for cell in self.cells if all(getattr(cell, name) == value for name, value in facts.items())]

    def save(self, path: Path) -> None:
        """Write JSON with one cell a line, so that one cell changed is one line changed."""
        lines = ",\n  ".join(json.dumps(asdict(cell)) for cell in self.cells)
        head = json.dumps({"names": NAMES, **self.head})[:-1]
        write_atomically(path, f'{head}, "cells": [\n  {lines}\n]}}\n'.encode())


def read_record(path: Path, cell: type[CellType], head: Sequence[str], advice: str) -> Record[CellType]:
    """What `save` wrote, with the names of today; `head` are the entries it must have, `advice` how to make one."""
    if not path.exists():
        raise InputError(f"no record {path}; {advice}")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        entries = document["cells"]
        if document.get("names") != NAMES:
            document |= {
                name: _translate_commands(document[name]) for name in ("command", "commands") if name in document
            }
            entries = [_translate(entry) for entry in entries]
        # Every field is checked against its annotation, so that printing need not doubt a number.
        cells = [cell(**read_table(cell, entry, "a cell")) for entry in entries]
        known = [COMMITS] if COMMITS in document else []
        return Record({name: document[name] for name in [*head, *known]}, cells)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is not a record of this table, or damaged ({error}); {advice}") from None


def _translate(entry: dict[str, Any]) -> dict[str, Any]:
    """A cell with the names of today."""
    new = {_OLD_FIELDS.get(name, name): value for name, value in entry.items()}
    if new.get("learner") and "method" in new:
        new["method"], _, new["learner"] = of_today(f"{new['method']}-{new['learner']}").rpartition("-")
    elif "learner" in new:
        new["learner"] = "a2c" if new["learner"] == "played" else of_today(new["learner"])
    new |= {name: of_today(new[name]) for name in ("policy", "best_baseline") if name in new}
    return new | {name: _translate_commands(new[name]) for name in ("command",) if name in new}


def _translate_commands(command: Any) -> Any:
    if isinstance(command, list):
        return [_translate_commands(one) for one in command]
    return re.sub(r"\bmuster tables\b", "python -m paper tables", command).replace("--draws", "--trials")


@dataclass(frozen=True, slots=True)
class Asked:
    """How a table is to be evaluated again."""

    episodes: int = 1000
    battles: int = 1000
    seed_battles: int = 400
    trials: int = 8
    minutes: float = 0.1
    seed: int = 0
    options: str = ""
    policies: Path | None = None
    only: str = "*"
    tests: tuple[str, ...] = ()
    fresh: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether every cell is asked for."""
        return self.only == "*" and not self.tests


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows to print, in blocks that a terminal shows apart."""

    title: str
    columns: Sequence[str]
    blocks: Sequence[Sequence[Sequence[str]]]
    left: Sequence[str] = ("policy",)
    """Columns of words, which are aligned left."""


class Table(ABC, Generic[CellType]):
    """A table of results."""

    name: ClassVar[str]
    cell: ClassVar[type[Any]]
    key: ClassVar[tuple[str, ...]]
    """Fields of which a record holds one cell for each combination of values."""
    measured: ClassVar[tuple[str, ...]] = ("mean",)
    """Fields that a rerun compares with the record, to the last digit."""
    counts: ClassVar[tuple[str, ...]] = ("episodes", "seed")
    """Flags that say which episodes; they hold for every cell of a record and are named in its command."""
    flags: ClassVar[tuple[str, ...]] = ("policies", "only", "tests")
    """Further flags of a rerun."""
    head: ClassVar[tuple[str, ...]] = ("episodes", "seed", "command")
    tests: Sequence[str] = ()
    saves_each: ClassVar[bool] = False
    """Whether the record is written after every cell, so that a rerun that was cut short goes on where it was."""

    @abstractmethod
    def evaluate(self, asked: Asked, record: Record[CellType]) -> Iterator[CellType]:
        """Evaluate what is asked for, cell by cell; the record has what was evaluated so far."""

    @abstractmethod
    def line(self, cell: CellType) -> str:
        """A cell in a line."""

    @abstractmethod
    def show(self, record: Record[CellType], markdown: bool) -> Iterator[Grid | str]:
        """What is printed: grids, and remarks."""

    def as_json(self, record: Record[CellType]) -> dict[str, Any]:
        """Every cell, and what is printed, as plain values."""
        shown = list(self.show(record, False))
        grids = [
            {"title": grid.title, "columns": grid.columns, "rows": [row for block in grid.blocks for row in block]}
            for grid in shown
            if isinstance(grid, Grid)
        ]
        remarks = [text for text in shown if isinstance(text, str)]
        cells = [asdict(cell) for cell in record.cells]
        return {"table": self.name, **record.head, "cells": cells, "grids": grids, "remarks": remarks}

    @property
    def committed(self) -> Path:
        """The record in the repository."""
        return RECORDS / f"{self.name}.json"

    def load(self, path: Path | None = None) -> Record[CellType]:
        """A record, by default the committed one."""
        return read_record(
            path or self.committed, self.cell, self.head, f"make one with: python -m paper tables {self.name} --rerun"
        )

    def key_of(self, cell: CellType) -> tuple[Any, ...]:
        """The values of the key's fields."""
        return tuple(getattr(cell, name) for name in self.key)

    def measured_of(self, cell: CellType) -> tuple[Any, ...]:
        """The values of the measured fields."""
        return tuple(getattr(cell, name) for name in self.measured)

    def command(self, asked: Asked) -> str:
        """The command that a record says it was made with."""
        counts = (f"--{name.replace('_', '-')} {getattr(asked, name)}" for name in self.counts)
        return " ".join([f"python -m paper tables {self.name} --rerun", *counts])

    def open(self, path: Path, asked: Asked) -> Record[CellType]:
        """The record that a rerun begins with: empty, or the one whose other cells stay as they are."""
        head = {name: getattr(asked, name) for name in self.counts if name in self.head}
        if asked.is_whole or not path.exists():
            return Record(head | {"command": self.command(asked)}, [])
        before = self.load(path)
        if any(before.head[name] != value for name, value in head.items()):
            flags = " ".join(f"--{name} {before.head[name]}" for name in head)
            raise InputError(
                f"the cells of the record are of other episodes; evaluate part of it again with {flags}, or into "
                "another file with --record"
            )
        return before

    def is_known(self, cell: CellType, asked: Asked, committed: Record[CellType]) -> bool:
        """Whether the committed record is of the same episodes."""
        return all(committed.head[name] == getattr(asked, name) for name in self.counts)

    def policies(self, asked: Asked) -> Path:
        """The folder of policies that a rerun evaluates."""
        return asked.policies or PAPER / self.name / "policies"


def clean_commit() -> str:
    """The commit of the code; InputError where it is unknown or changed: such a record could not be made again."""
    commit = code_commit()
    if commit is None or not COMMIT.fullmatch(commit):
        raise InputError(
            f"a record is made with code that is committed, and this is {commit or 'of no known commit'}; commit "
            "first, or write it to another file with --record"
        )
    return commit


def rerun(table: Table[CellType], asked: Asked, path: Path, report: Callable[[str], None]) -> Record[CellType]:
    """Evaluate what is asked for, say of each cell whether it is as committed, and write the record to `path`."""
    for name in table.counts:
        least = 0 if name == "seed" else 2 if name == "episodes" else 1e-9 if name == "minutes" else 1
        if getattr(asked, name) < least:
            raise InputError(f"{name} must be at least {least:g}, got {getattr(asked, name)}")
    for test in asked.tests:
        if test not in table.tests:
            raise UnknownNameError("test in this table", test, table.tests)
    commit = clean_commit() if path.resolve() == table.committed.resolve() else code_commit()
    committed = table.load() if table.committed.exists() else None
    known = {table.key_of(cell): cell for cell in committed.cells} if committed else {}
    record = table.open(path, asked)
    if commit is not None:
        record.head[COMMITS] = list(dict.fromkeys([*record.head.get(COMMITS, []), commit]))
    for cell in table.evaluate(asked, record):
        key = table.key_of(cell)
        at = next((k for k, one in enumerate(record.cells) if table.key_of(one) == key), len(record.cells))
        record.cells[at : at + 1] = [cell]
        if table.saves_each:
            record.save(path)
        remark, before = "", known.get(key)
        alike = getattr(cell, "seeds", None) == getattr(before, "seeds", None)
        if committed and before is not None and alike and table.is_known(cell, asked, committed):
            found, recorded = table.measured_of(cell), table.measured_of(before)
            remark = ", as recorded" if found == recorded else f", NOT as recorded: {recorded}"
        report(table.line(cell) + remark)
    record.save(path)
    return record


@dataclass(frozen=True, slots=True)
class Outcomes:
    """A baseline, a run, or all seeds of a method together, on the episodes of one test."""

    policy: str
    method: str
    """Such as "quad-dm", or the name of a baseline."""
    learner: str
    """"" for a baseline."""
    seeds: list[int]
    """[] for a baseline."""
    outcome: Floats
    """[E] of every episode."""
    failed: Floats
    """[E] 1 where the episode hit the limit."""
    cpu_minutes: float | None
    metrics: Mapping[str, Any]


def evaluate_side_by_side(
    env: str,
    baselines: Iterable[str],
    runs: Mapping[Path, RunName],
    episodes: int | str,
    seed: int,
    name_method: Callable[[RunName], str],
    look_ahead: Mapping[str, Any] | None = None,
) -> Iterator[Outcomes]:
    """Baselines, every run, and the seeds of every method together, on the same episodes; `look_ahead`: arguments of
    `with_rollouts` for the runs.

    Of seeds together the outcome is the mean over seeds, episode by episode: an interval is then of the episodes, for
    these seeds.
    """
    for baseline in baselines:
        found = evaluate(baseline, env, episodes, seed)  # type: ignore[arg-type]
        outcome, failed = found.records.outcome, found.records.truncated.astype(np.float64)
        yield Outcomes(baseline, baseline, "", [], outcome, failed, None, found.metrics)
    methods: dict[str, list[Outcomes]] = {}
    for path, run in runs.items():
        policy = LearnedPolicy.load(path)
        minutes = policy.header.get("cpu_minutes")
        found = evaluate(policy.with_rollouts(**look_ahead) if look_ahead else policy, env, episodes, seed)  # type: ignore[arg-type]
        outcome, failed = found.records.outcome, found.records.truncated.astype(np.float64)
        one = Outcomes(path.stem, run.method, run.learner, [run.seed], outcome, failed, minutes, {})
        methods.setdefault(name_method(run), []).append(one)
        yield one
    for name, ones in methods.items():
        minutes = [one.cpu_minutes for one in ones if one.cpu_minutes is not None]
        yield replace(
            ones[0],
            policy=name,
            seeds=[seed for one in ones for seed in one.seeds],
            outcome=np.mean([one.outcome for one in ones], axis=0),
            failed=np.mean([one.failed for one in ones], axis=0),
            cpu_minutes=float(np.mean(minutes)) if minutes else None,
        )


def print_record(table: Table[CellType], record: Record[CellType], markdown: bool = False) -> None:
    """Print a record for a terminal, or as markdown."""
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console(width=max(190, Console().width))
    for part in table.show(record, markdown):
        if isinstance(part, str):
            print(f"- {part}" if markdown else part)
        elif markdown:
            lines = [part.columns, ["---"] * len(part.columns), *(row for block in part.blocks for row in block)]
            print("\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n")
        else:
            grid: Any = RichTable(title=part.title, title_justify="left")
            for name in part.columns:
                grid.add_column(name, justify="left" if name in part.left else "right")
            for block in part.blocks:
                grid.add_section()
                for row in block:
                    grid.add_row(*row)
            console.print(grid)


def say(line: str) -> None:
    """Print progress where it does not mix with the table."""
    print(line, file=sys.stderr, flush=True)


def median_of(items: Iterable[CellType], key: Callable[[CellType], Any]) -> CellType | None:
    """The item in the middle by `key`, the lower one of two; None of none. Unlike a median it is one of the items."""
    ranked = sorted(items, key=key)
    return ranked[(len(ranked) - 1) // 2] if ranked else None
