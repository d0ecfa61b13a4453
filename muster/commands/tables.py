"""`muster tables`: the paper's figures beside ours, from committed records."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from muster.errors import InputError

if TYPE_CHECKING:
    from muster.reproduction.heuristics import Cell, Record


@dataclass(frozen=True)
class Tables:
    """Print one of the paper's tables with our figures beside it, or run it again."""

    which: Annotated[Literal["rescue", "battle", "heuristics"], tyro.conf.Positional]
    """Which table."""
    json: bool = False
    """Print one JSON object instead of a table."""
    rerun: bool = False
    """Run it again and overwrite the record, instead of reading it."""
    battles: int = 1000
    """Battles a cell when run again (heuristics; battle: for the median seed)."""
    seed_battles: int = 400
    """Battles a cell when run again, for every seed and with noise (battle)."""
    episodes: int = 1000
    """Episodes a cell when run again (rescue)."""
    seed: int = 0
    """Seed of the episodes or battles when run again."""
    options: str = ""
    """Simulator settings for the run (heuristics), such as "latency=3,fog=false"."""
    record: Path | None = None
    """Where the record is read from or written to; by default the committed one."""
    policies: Path | None = None
    """Folder of the policies to run again (battle); by default the committed ones."""
    only: str = "*"
    """Run again only the policies whose names match, such as 'battle-w15v17-quad-*' (battle)."""
    fresh: bool = False
    """Run again what the record already holds, too (battle)."""
    markdown: bool = False
    """Print markdown, for a document (battle)."""

    def run(self) -> None:
        """Print the table."""
        if self.which != "battle":
            for name in ("policies", "only", "fresh", "markdown"):
                if getattr(self, name) != getattr(Tables, name):
                    raise InputError(f"--{name} is for the table 'battle', not for {self.which!r}")
        if self.which == "rescue":
            _rescue(self)
        elif self.which == "heuristics":
            _heuristics(self)
        else:
            _battle(self)


def _battle(command: Tables) -> None:
    from muster.commands import tables_battle
    from muster.reproduction import battle as table
    from muster.reproduction import battle_rerun

    if command.json and command.markdown:
        raise InputError("choose --json or --markdown, not both")
    if command.options:
        raise InputError("--options is for the table 'heuristics'; policies play the simulator as it is")
    if not command.rerun and (command.only != "*" or command.fresh):
        raise InputError("--only and --fresh say what to run again; give --rerun with them")
    path = command.record or table.RECORD
    if command.rerun:
        counts = battle_rerun.Counts(command.battles, command.seed_battles, command.seed)
        line = f"muster tables battle --rerun --battles {counts.battles} --seed-battles {counts.seed_battles}"
        line += f" --seed {counts.seed}"
        record = battle_rerun.run_table(
            path,
            command.policies or table.FOLDER / "policies",
            counts,
            line,
            only=command.only,
            fresh=command.fresh,
            report=tables_battle.report,
        )
    else:
        record = table.Record.load(path)
    heuristics = table.load_heuristics()
    if command.json:
        print(json.dumps(table.as_json(record, heuristics)))
    elif command.markdown:
        print(tables_battle.markdown(record, heuristics))
    else:
        tables_battle.print_table(record, heuristics)


def _rescue(command: Tables) -> None:
    from muster.commands import tables_rescue
    from muster.reproduction import rescue as table

    path = command.record or table.RECORD
    if command.rerun:
        line = f"muster tables rescue --rerun --episodes {command.episodes} --seed {command.seed}"
        record = table.run_table(command.episodes, command.seed, line, tables_rescue.report)
        record.save(path)
    else:
        record = table.Record.load(path)
    if command.json:
        print(json.dumps(table.as_json(record)))
    else:
        tables_rescue.print_table(record)


def _heuristics(command: Tables) -> None:
    from muster.reproduction import heuristics as table

    path = command.record or table.RECORD
    if command.rerun:
        if command.battles < 1:
            raise InputError(f"battles must be at least 1, got {command.battles}")
        options = f",{command.options}" if command.options else ""
        record = table.run_table(command.battles, command.seed, report=_progress, options=options)
        line = f"muster tables heuristics --rerun --battles {command.battles} --seed {command.seed}"
        line += f" --options {command.options}" if command.options else ""
        record = table.Record(record.seed, record.battles, record.settings, record.cells, line)
        record.save(path)
    else:
        record = table.Record.load(path)
    if command.json:
        print(json.dumps(table.as_json(record)))
    else:
        _print(record)


def _progress(cell: Cell) -> None:
    print(f"{cell.scenario} {cell.heuristic}: {cell.rate:.3f}", file=sys.stderr, flush=True)


def _print(record: Record) -> None:
    from rich.console import Console
    from rich.table import Table

    from muster.reproduction.heuristics import HEURISTICS, errors, paper_cells

    paper = paper_cells()
    grid: Any = Table(title=f"Win rate, ours [95 % interval] / the paper's ({record.battles} battles a cell)")
    grid.add_column("scenario")
    for heuristic in HEURISTICS:
        grid.add_column(heuristic, justify="right")
    for scenario in dict.fromkeys(cell.scenario for cell in record.cells):
        row = [scenario]
        for cell in record.cells:
            if cell.scenario == scenario:
                low, high = cell.interval
                row.append(f"{cell.rate:.2f} [{low:.2f} {high:.2f}] / {paper[scenario][cell.heuristic]:.2f}")
        grid.add_row(*row)
    console = Console(width=max(190, Console().width))
    console.print(grid)
    found = errors(record)
    print(f"mean absolute error {found.overall:.4f} over {len(record.cells)} cells", end="")
    print(f" (sampling alone: {found.expected_from_noise:.3f})")
    print("  by unit       " + ", ".join(f"{name} {value:.3f}" for name, value in found.by_unit.items()))
    print("  by heuristic  " + ", ".join(f"{name} {value:.3f}" for name, value in found.by_heuristic.items()))
    print(f"seed {record.seed}; made with: {record.command}")
