"""The paper's table of best settings, beside those that `muster search` found in the same ranges.

The paper drew 128 times (search and rescue) or 100 times (battles) for each model and scenario, and trained each draw
for 8 hours. Ours says how often it drew and for how long; few and short draws show that the search works, little more.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from muster.errors import InputError
from muster.search.settings import Pruner
from paper.tables.record_file import read_record, write_record

WORLDS = {"rescue-2x4": "rescue:2x4", "m10v10": "battle:m10v10", "w15v17": "battle:w15v17", "zh10v10": "battle:zh10v10"}
"""Name of the scenario that policies are trained on -> the environment."""
METHODS = ("amax", "lp", "quad")
COLUMNS = ("a2c.policy_rate", "a2c.policy_weight", "a2c.noise.sigma", "a2c.return_steps", "a2c.noise.correlated_steps")
"""What the paper prints, in its order."""
PAPER_DRAWS = {"rescue-2x4": 128, "m10v10": 100, "w15v17": 100, "zh10v10": 100}
PRUNER: Pruner = "median"
LOG_EVERY = 20_000
"""Steps of a row: in environments of 5,000 steps a second, short draws would otherwise have but one."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One scenario and method: the best draw of a search, and all of them."""

    scenario: str
    method: str
    draws: int
    minutes: float
    """CPU minutes of a draw."""
    pruner: str
    seed: int
    command: str
    best: int | None
    """Number of the best draw; None if none finished."""
    found: list[dict[str, Any]]
    """Every draw, best first: number, state, value (training reward), minutes, settings."""

    @property
    def key(self) -> tuple[str, str]:
        """A record holds one cell of each key."""
        return self.scenario, self.method

    @property
    def best_draw(self) -> dict[str, Any] | None:
        """The best draw."""
        return next((draw for draw in self.found if draw["number"] == self.best), None)


@dataclass(frozen=True, slots=True)
class Record:
    """The searches so far."""

    cells: list[Cell]

    def save(self, path: Path) -> None:
        """Write JSON, one cell a line."""
        write_record(path, {"commands": self.commands}, self.cells)

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read what `save` wrote."""
        return cls(read_record(path, Cell, (), "make one with: --rerun")[1])

    @property
    def commands(self) -> list[str]:
        """What makes every cell again: one command for all cells of a scenario that were searched alike."""
        found = []
        for scenario in WORLDS:
            cells = [cell for cell in self.cells if cell.scenario == scenario]
            budgets = sorted({(cell.draws, cell.minutes, cell.seed) for cell in cells})
            for draws, minutes, seed in budgets:
                alike = [cell for cell in cells if (cell.draws, cell.minutes, cell.seed) == (draws, minutes, seed)]
                whole = len(alike) == len(METHODS)
                for name in [f"'{scenario}-*'"] if whole else [f"{scenario}-{cell.method}" for cell in alike]:
                    line = (
                        f"python -m paper tables settings --rerun --draws {draws} --minutes {minutes:g} --seed {seed}"
                    )
                    found.append(f"{line} --only {name}")
        return found

    def find(self, scenario: str, method: str) -> Cell | None:
        """The cell, if that search was made."""
        return next((cell for cell in self.cells if cell.key == (scenario, method)), None)


def paper_settings() -> dict[tuple[str, str], dict[str, float]]:
    """(scenario, method) -> dotted name -> value, as printed; both networks have the one learning rate."""
    path = Path(__file__).with_name("paper_settings.toml")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return {(s, m): dict(zip(COLUMNS, row, strict=True)) for s, rows in table.items() for m, row in rows.items()}


def run_table(
    path: Path,
    runs: Path,
    *,
    draws: int,
    minutes: float,
    seed: int = 0,
    only: str = "*",
    before: Record | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Record:
    """Search for the cells whose names, such as w15v17-quad, match `only`; `path` is written after each.

    Each search is a study in a folder of `runs`, which goes on where it was left.
    """
    from muster.search.playing import play_draws
    from muster.search.results import as_json, best_of, ranked
    from muster.search.settings import StudySettings
    from muster.search.space import load_space
    from muster.search.study import Study

    names = [(s, m) for s in WORLDS for m in METHODS if fnmatch(f"{s}-{m}", only)]
    if not names:
        raise InputError(f"no cell matches {only!r}; there is {', '.join(f'{s}-{m}' for s in WORLDS for m in METHODS)}")
    cells = {cell.key: cell for cell in (before.cells if before else [])}
    for scenario, method in names:
        env = WORLDS[scenario]
        space = load_space("paper", env).as_table()
        asked = StudySettings(
            env=(env,),
            space_name="paper",
            space=space,
            run={"inference": method, "log_every": LOG_EVERY},
            draws=draws,
            minutes=minutes,
            pruner=PRUNER,
            seed=seed,
        )
        study = Study.open(runs / f"{scenario}-{method}", asked, draws)
        if not play_draws(study, report):
            raise KeyboardInterrupt
        flags = f"--log-every {LOG_EVERY} --draws {draws} --minutes {minutes:g} --pruner {PRUNER} --seed {seed}"
        found = [{k: v for k, v in (as_json(d) or {}).items() if k != "folder"} for d in ranked(study.draws(), 1)]
        best = best_of(study.draws(), 1)
        cells[scenario, method] = Cell(
            scenario,
            method,
            draws,
            minutes,
            PRUNER,
            seed,
            f"muster search {env} --inference {method} {flags}",
            best.number if best else None,
            found,
        )
        Record(sorted(cells.values(), key=lambda cell: cell.key)).save(path)
    return Record.load(path)


def as_json(record: Record) -> dict[str, Any]:
    """Every row of the table, the paper's settings and ours."""
    paper = paper_settings()
    rows = []
    for scenario in WORLDS:
        for method in METHODS:
            cell = record.find(scenario, method)
            best = cell.best_draw if cell else None
            ours = None
            if cell:
                ours = {"draws": cell.draws, "minutes": cell.minutes, "command": cell.command, "best": best}
            rows.append({"scenario": scenario, "method": method, "paper": paper.get((scenario, method)), "ours": ours})
    return {"commands": record.commands, "paper_draws": PAPER_DRAWS, "rows": rows}
