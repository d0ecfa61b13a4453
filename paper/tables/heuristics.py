"""The paper's table of heuristics, evaluated again: 17 scenarios x 6 heuristics, its win rates beside ours."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from muster.evaluation.evaluate import evaluate
from muster.evaluation.statistics import Interval, wilson_interval
from paper.tables.engine import Asked, Grid, Record, Table

HEURISTICS = ("c", "wc", "wcnok", "wcnoknc", "wcnoks", "rand-nc")
FAMILIES = {"m": "marine", "w": "wraith", "zh": "zergling-hydralisk"}
PAPER: dict[str, dict[str, float]] = tomllib.loads(
    Path(__file__).with_name("paper_heuristics.toml").read_text(encoding="utf-8")
)
"""The paper's win rates: scenario -> heuristic -> rate."""


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
    def interval(self) -> Interval:
        """Wilson's 95 % interval of the rate."""
        return wilson_interval(self.wins, self.battles)


class Heuristics(Table[Cell]):
    """The six heuristics."""

    name, cell, key, measured = "heuristics", Cell, ("scenario", "heuristic"), ("wins",)
    counts, flags, tests = ("battles", "seed"), ("options", "only", "tests"), tuple(PAPER)
    head = ("seed", "battles", "settings", "command", "notes")

    def open(self, path: Path, asked: Asked) -> Record[Cell]:
        """With the settings of the simulator."""
        record = super().open(path, asked)
        command = self.command(asked) + (f" --options {asked.options}" if asked.options else "")
        record.head = {"notes": {}, **record.head, "command": command, "settings": simulator_settings(asked.options)}
        return record

    def is_known(self, cell: Cell, asked: Asked, committed: Record[Cell]) -> bool:
        """Of the same battles under the same settings."""
        return not asked.options and super().is_known(cell, asked, committed)

    def evaluate(self, asked: Asked, record: Record[Cell]) -> Iterator[Cell]:
        """Every heuristic in every scenario."""
        options = f",{asked.options}" if asked.options else ""
        for scenario in asked.tests or PAPER:
            for heuristic in HEURISTICS:
                if asked.only in ("*", heuristic):
                    env = f"battle:{scenario}{options}"
                    found = evaluate(heuristic, env, asked.battles, asked.seed, batch=250)
                    yield Cell(scenario, heuristic, int(found.records.outcome.sum()), asked.battles)

    def line(self, cell: Cell) -> str:
        """A cell in a line."""
        return f"{cell.heuristic} on {cell.scenario}: {cell.wins} of {cell.battles} battles won"

    def show(self, record: Record[Cell], markdown: bool) -> Iterator[Grid | str]:
        """A row a scenario, and how far we are from the paper."""
        rows = []
        for scenario in dict.fromkeys(cell.scenario for cell in record.cells):
            row = [scenario]
            for heuristic in HEURISTICS:
                cell = record.find(scenario=scenario, heuristic=heuristic)
                row.append("–" if cell is None else f"{with_interval(cell)} / {PAPER[scenario][heuristic]:.2f}")
            rows.append(row)
        title = f"Win rate, ours [95 % interval] / the paper's ({record.head['battles']} battles a cell)"
        yield Grid(title, ("scenario", *HEURISTICS), [rows], ("scenario",))
        found = errors(record)
        yield (
            f"mean absolute error {found['overall']:.4f} over {len(record.cells)} cells "
            f"(sampling alone: {found['expected_from_noise']:.3f})"
        )
        for by in ("unit", "heuristic"):
            yield f"by {by}: " + ", ".join(f"{name} {value:.3f}" for name, value in found[f"by_{by}"].items())
        yield f"seed {record.head['seed']}; made with: {record.head['command']}"


def simulator_settings(options: str = "") -> dict[str, Any]:
    """The settings of the engine that battles are fought with."""
    from muster.envs.battle import from_options
    from muster.envs.battle.settings import SHOWN

    settings = asdict(from_options(f"m1v1,{options}" if options else "m1v1", 1).settings)
    return {name: value for name, value in settings.items() if name not in SHOWN}


def with_interval(cell: Any) -> str:
    """A win rate and its interval."""
    low, high = cell.interval
    return f"{cell.rate:.2f} [{low:.2f} {high:.2f}]"


def errors(record: Record[Cell]) -> dict[str, Any]:
    """Mean absolute difference from the paper's rates, in all, by heuristic and by unit.

    `expected_from_noise` is what sampling alone (ours and the paper's 1,000 battles) would give if every true rate were
    the paper's.
    """

    def mean(cells: list[Cell]) -> float:
        return float(np.mean([abs(cell.rate - PAPER[cell.scenario][cell.heuristic]) for cell in cells]))

    def grouped(key: Callable[[Cell], str]) -> dict[str, float]:
        names = dict.fromkeys(map(key, record.cells))
        return {name: mean([cell for cell in record.cells if key(cell) == name]) for name in names}

    noise = [
        math.sqrt(2 / math.pi * p * (1 - p) * (1 / cell.battles + 1 / 1000))
        for cell in record.cells
        for p in [PAPER[cell.scenario][cell.heuristic]]
    ]
    return {
        "overall": mean(record.cells),
        "by_heuristic": grouped(lambda cell: cell.heuristic),
        "by_unit": grouped(lambda cell: FAMILIES[cell.scenario.rstrip("0123456789v")]),
        "expected_from_noise": float(np.mean(noise)),
    }
