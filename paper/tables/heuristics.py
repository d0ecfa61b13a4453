"""The paper's table of heuristics, run again: 17 scenarios x 6 heuristics, its figures beside ours."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from muster.errors import InputError
from muster.evaluation.evaluate import evaluate
from muster.evaluation.statistics import wilson_interval
from paper.tables.record_file import read_record, write_record

HEURISTICS = ("c", "wc", "wcnok", "wcnoknc", "wcnoks", "rand-nc")
HEAD = ("seed", "battles", "settings", "command", "notes")
FAMILIES = {"m": "marine", "w": "wraith", "zh": "zergling-hydralisk"}


@dataclass(frozen=True, slots=True)
class Cell:
    """Battles of one heuristic in one scenario."""

    scenario: str
    heuristic: str
    wins: int
    battles: int

    @property
    def rate(self) -> float:
        """Share of battles won."""
        return self.wins / self.battles

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the rate."""
        return wilson_interval(self.wins, self.battles)


@dataclass(frozen=True, slots=True)
class Record:
    """A run of the table."""

    seed: int
    battles: int
    settings: dict[str, Any]
    cells: list[Cell]
    command: str = ""
    notes: dict[str, str] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write JSON, one cell a line."""
        head = {name: getattr(self, name) for name in HEAD}
        write_record(path, head, self.cells)

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read what `save` wrote."""
        head, cells = read_record(path, Cell, HEAD, "make one with: python -m paper tables heuristics --rerun")
        return cls(cells=cells, **head)


def paper_cells() -> dict[str, dict[str, float]]:
    """The paper's win rates: scenario -> heuristic -> rate."""
    text = files("paper.tables").joinpath("paper_heuristics.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def play_cell(scenario: str, heuristic: str, battles: int, seed: int, batch: int = 250) -> Cell:
    """Fight `battles` battles and count those won."""
    found = evaluate(heuristic, f"battle:{scenario}", battles, seed, batch=batch)
    return Cell(scenario, heuristic, int(found.records.outcome.sum()), battles)


def run_table(
    battles: int,
    seed: int,
    command: str = "",
    scenarios: Iterable[str] | None = None,
    report: Callable[[Cell], None] = lambda cell: None,
    options: str = "",
) -> Record:
    """Fight the whole table; `options` is appended to every scenario, such as ",latency=3"."""
    from muster.envs.battle import from_options

    if battles < 1:
        raise InputError(f"battles must be at least 1, got {battles}")
    cells = []
    for scenario in scenarios or paper_cells():
        for heuristic in HEURISTICS:
            cell = play_cell(scenario + options, heuristic, battles, seed)
            cells.append(Cell(scenario, heuristic, cell.wins, cell.battles))
            report(cells[-1])
    settings = asdict(from_options(f"m1v1{options}", 1).settings)
    return Record(seed, battles, settings, cells, command)


@dataclass(frozen=True, slots=True)
class Errors:
    """Mean absolute difference from the paper's rates."""

    overall: float
    by_heuristic: dict[str, float]
    by_unit: dict[str, float]
    expected_from_noise: float
    """What sampling alone (ours and the paper's 1,000 battles) would give if every true rate were the paper's."""


def _family(scenario: str) -> str:
    return FAMILIES[scenario.rstrip("0123456789v")]


def errors(record: Record) -> Errors:
    """How far a record is from the paper."""
    paper = paper_cells()

    def mean(cells: Iterable[Cell]) -> float:
        return float(np.mean([abs(cell.rate - paper[cell.scenario][cell.heuristic]) for cell in cells]))

    def grouped(key: Callable[[Cell], str]) -> Iterator[tuple[str, float]]:
        for name in dict.fromkeys(key(cell) for cell in record.cells):
            yield name, mean(cell for cell in record.cells if key(cell) == name)

    noise = [
        math.sqrt(2 / math.pi * p * (1 - p) * (1 / cell.battles + 1 / 1000))
        for cell in record.cells
        for p in [paper[cell.scenario][cell.heuristic]]
    ]
    return Errors(
        overall=mean(record.cells),
        by_heuristic=dict(grouped(lambda cell: cell.heuristic)),
        by_unit=dict(grouped(lambda cell: _family(cell.scenario))),
        expected_from_noise=float(np.mean(noise)),
    )


def as_json(record: Record) -> dict[str, Any]:
    """The table as one object: cells with both figures and intervals, and the errors."""
    paper = paper_cells()
    return {
        "table": "heuristics",
        "seed": record.seed,
        "battles": record.battles,
        "settings": record.settings,
        "command": record.command,
        "errors": asdict(errors(record)),
        "cells": [
            {
                "scenario": cell.scenario,
                "heuristic": cell.heuristic,
                "paper": paper[cell.scenario][cell.heuristic],
                "win_rate": cell.rate,
                "ci95": list(cell.interval),
                "wins": cell.wins,
                "battles": cell.battles,
            }
            for cell in record.cells
        ],
    }
