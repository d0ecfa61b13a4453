"""The paper's Tables 2 and 3 beside ours: battles, trained on one scenario of each kind of units and tested on all.

The paper's game and our simulator differ (docs/environments/battle.md), so the paper's figures are shown for the
pattern; the honest yardstick of a policy is the best of the six heuristics in the same simulator.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from muster.errors import InputError
from muster.evaluation.statistics import Interval, median_of, wilson_interval
from paper.tables import heuristics as heuristics_table
from paper.tables.places import committed_record
from paper.tables.record_file import read_record, write_record
from paper.tables.run_names import INFERENCES

HOW_TO_MAKE = "put trained policies into paper/battle/policies, then run: python -m paper tables battle --rerun"

PRINTED = ("amax", "lp", "quad")
"""The procedures that the paper prints."""
Role = Literal["seed", "median"]
Figure = tuple[float, float]
"""A rate that the paper prints, and half its 95 % interval."""
Group = tuple[str, str, str]
"""Scenario trained on, method and learner: policies that differ in their seed alone."""


@dataclass(frozen=True, slots=True)
class Note:
    """Where the simulator is known to be another game than the paper's."""

    mark: str
    scenarios: tuple[str, ...]
    text: str


NOTES = (
    Note(
        "†",
        ("w60v67", "w60v68", "w80v82"),
        "too easy in our simulator for play that avoids over-kill, heuristics included: not the paper's game on equal "
        "terms (docs/environments/battle.md, known errors)",
    ),
    Note(
        "‡",
        ("zh10v10", "zh10v11", "zh10v12", "zh11v11", "zh12v12"),
        "wcnoks is weaker in our simulator than in the paper's game (docs/environments/battle.md, known errors)",
    ),
)


@dataclass(frozen=True, slots=True)
class Printed:
    """A row of the paper's table."""

    train: str
    heuristic: str
    """The best of the six."""
    best: Figure
    amax: Figure
    lp: Figure
    quad: Figure


@cache
def paper_rows() -> Mapping[str, Printed]:
    """The paper's 17 scenarios, in its order."""
    text = files("paper.tables").joinpath("paper_battle.toml").read_text(encoding="utf-8")
    return {test: _printed(row) for test, row in tomllib.loads(text).items()}


def _printed(row: dict[str, Any]) -> Printed:
    figures: dict[str, Any] = {name: tuple(row[name]) for name in ("best", *PRINTED)}
    return Printed(train=row["train"], heuristic=row["heuristic"], **figures)


def scenarios_of(train: str) -> list[str]:
    """The paper's scenarios with the units of `train`: those that a policy trained there is tested on."""
    found = [test for test in paper_rows() if _units(test) == _units(train)]
    if train not in found:
        raise InputError(f"the table has no scenario {train!r} to train on; it has {', '.join(paper_rows())}")
    return found


def _units(scenario: str) -> str:
    return scenario.rstrip("0123456789v")


def mark_of(scenario: str) -> str:
    """The footnote marks of a scenario."""
    return "".join(note.mark for note in NOTES if scenario in note.scenarios)


@dataclass(frozen=True, slots=True)
class Cell:
    """Battles of one policy in one scenario."""

    policy: str
    train: str
    method: str
    """Such as "quad-dm"."""
    learner: str
    seed: int
    """Of the training."""
    hash: str
    """SHA-256 of the policy file."""
    cpu_minutes: float | None
    """What the training took."""
    steps: int | None
    """Environment steps of the training."""
    test: str
    role: Role
    """seed: every policy; median: the policy that stands for its group, with more battles or with noise."""
    noise: bool
    wins: int
    battles: int
    battle_seed: int
    """Which set of battles."""
    command: str

    @property
    def group(self) -> Group:
        """Policies that differ in their seed alone."""
        return self.train, self.method, self.learner

    @property
    def key(self) -> tuple[str, str, Role, bool]:
        """A record holds one cell of each key."""
        return self.policy, self.test, self.role, self.noise

    @property
    def rate(self) -> float:
        """Share of battles won."""
        return self.wins / self.battles

    @property
    def interval(self) -> Interval:
        """Wilson's 95 % interval of the rate."""
        return wilson_interval(self.wins, self.battles)


def group_order(group: Group) -> tuple[int, int, str, str]:
    """Sorts groups as the table shows them."""
    train, method, learner = group
    return list(paper_rows()).index(train), INFERENCES.index(method.partition("-")[0]), method, learner


@dataclass(frozen=True, slots=True)
class Record:
    """Every cell that was played, and the simulator's settings."""

    settings: dict[str, Any]
    cells: tuple[Cell, ...] = ()

    def save(self, path: Path) -> None:
        """Write JSON, one cell a line, at once or not at all."""
        write_record(path, {"settings": self.settings}, self.cells)

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read what `save` wrote."""
        advice = "train policies into paper/battle/policies first, then: python -m paper tables battle --rerun"
        head, cells = read_record(path, Cell, ("settings",), advice)
        return cls(head["settings"], tuple(cells))

    def with_cell(self, new: Cell) -> Record:
        """With a cell added or replaced; what is left of another file under the same policy's name goes."""
        kept = [c for c in self.cells if c.key != new.key and (c.policy != new.policy or c.hash == new.hash)]
        tests = list(paper_rows())
        order = sorted(
            [*kept, new], key=lambda c: (group_order(c.group), c.seed, c.role == "median", c.noise, tests.index(c.test))
        )
        return Record(self.settings, tuple(order))

    def without(self, gone: Iterable[Cell]) -> Record:
        """Without some cells."""
        keys = {cell.key for cell in gone}
        return Record(self.settings, tuple(cell for cell in self.cells if cell.key not in keys))


def median_policy(cells: Iterable[Cell], group: Group) -> str | None:
    """The policy whose win rate in the scenario trained on is the median of its group (the lower of two)."""
    own = [c for c in cells if c.group == group and c.role == "seed" and c.test == c.train]
    found = median_of(own, key=lambda cell: (cell.rate, cell.seed))
    return None if found is None else found.policy


@dataclass(frozen=True, slots=True)
class Row:
    """One method and learner in one scenario."""

    test: str
    train: str
    method: str
    learner: str
    """"" where nothing was run."""
    paper: Figure | None
    seeds: tuple[Cell, ...]
    """Every seed, without noise."""
    median: Cell | None
    """The policy that stands for the group, without noise."""
    noisy: Cell | None
    """The same with its exploration noise on."""

    @property
    def spread(self) -> tuple[float, float, float] | None:
        """Median, least and greatest win rate over the seeds."""
        rates = [cell.rate for cell in self.seeds]
        return (statistics.median(rates), min(rates), max(rates)) if rates else None

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        spread = self.spread
        return {
            **{name: getattr(self, name) for name in ("test", "train", "method", "learner")},
            "paper": None if self.paper is None else self.paper[0],
            "seeds": len(self.seeds),
            "median_over_seeds": spread and spread[0],
            "min_max": spread and list(spread[1:]),
            "median": self.median and {**asdict(self.median), "rate": self.median.rate, "ci95": self.median.interval},
            "noise": self.noisy and {**asdict(self.noisy), "rate": self.noisy.rate, "ci95": self.noisy.interval},
        }


def rows_of(record: Record, test: str) -> list[Row]:
    """What there is on a scenario: each method of the paper, run or not, and whatever else was run."""
    printed = paper_rows()[test]
    here = [cell for cell in record.cells if cell.test == test]
    groups = {cell.group for cell in here}
    run = {method for train, method, _ in groups if train == printed.train}
    groups |= {(printed.train, f"{name}-dm", "") for name in PRINTED if f"{name}-dm" not in run}
    rows = []
    for group in sorted(groups, key=group_order):
        train, method, learner = group
        own = [cell for cell in here if cell.group == group]
        chosen = median_policy(record.cells, group)
        rows.append(
            Row(
                test=test,
                train=train,
                method=method,
                learner=learner,
                paper=getattr(printed, method.partition("-")[0]) if train == printed.train else None,
                seeds=tuple(cell for cell in own if cell.role == "seed"),
                median=next((c for c in own if c.policy == chosen and c.role == "median" and not c.noise), None),
                noisy=next((c for c in own if c.policy == chosen and c.role == "median" and c.noise), None),
            )
        )
    return rows


def best_heuristics(record: heuristics_table.Record | None) -> dict[str, heuristics_table.Cell]:
    """The best of the six in each scenario of our own record, if there is one."""
    best: dict[str, heuristics_table.Cell] = {}
    for cell in record.cells if record else ():
        if cell.scenario not in best or cell.rate > best[cell.scenario].rate:
            best[cell.scenario] = cell
    return best


def load_heuristics() -> heuristics_table.Record | None:
    """Our record of the heuristics, if there is one."""
    path = committed_record("heuristics")
    return heuristics_table.Record.load(path) if path.exists() else None


def changed_settings(record: Record, heuristics: heuristics_table.Record) -> list[str]:
    """Settings of the simulator that differ between the two records; a record older than a setting does not name it."""
    return [n for n, value in heuristics.settings.items() if n in record.settings and record.settings[n] != value]


def as_json(record: Record, heuristics: heuristics_table.Record | None) -> dict[str, Any]:
    """Paper and ours, scenario by scenario."""
    best = best_heuristics(heuristics)
    scenarios = []
    for test, printed in paper_rows().items():
        ours = best.get(test)
        scenarios.append(
            {
                "test": test,
                "notes": [note.text for note in NOTES if test in note.scenarios],
                "paper_heuristic": {"name": printed.heuristic, "rate": printed.best[0]},
                "heuristic": ours and {"name": ours.heuristic, "rate": ours.rate, "ci95": ours.interval},
                "rows": [row.as_dict() for row in rows_of(record, test)],
            }
        )
    return {
        "table": "battle",
        "settings": record.settings,
        "settings_changed_since_heuristics": heuristics and changed_settings(record, heuristics),
        "scenarios": scenarios,
    }
