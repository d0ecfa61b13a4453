"""`python -m paper tables`: the paper's figures beside ours, from committed records."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from muster.errors import InputError

# Flag -> the tables that it is for. All but `record` and `markdown` say how to run one again.
FLAGS = {
    "battles": ("heuristics", "battle"),
    "seed_battles": ("battle",),
    "episodes": ("rescue", "pursuit", "routes"),
    "draws": ("settings",),
    "minutes": ("settings",),
    "seed": ("heuristics", "battle", "rescue", "pursuit", "fleet", "routes", "settings"),
    "options": ("heuristics",),
    "policies": ("battle", "rescue", "pursuit", "fleet", "routes"),
    "only": ("battle", "rescue", "pursuit", "fleet", "routes", "settings"),
    "tests": ("battle", "rescue", "pursuit", "fleet", "routes"),
    "fresh": ("battle",),
    "markdown": ("battle", "pursuit", "fleet", "routes", "settings"),
}


@dataclass(frozen=True)
class Tables:
    """Print one of the paper's tables with our figures beside it, or another of ours, or run it again."""

    which: Annotated[
        Literal["rescue", "battle", "heuristics", "pursuit", "fleet", "routes", "settings"], tyro.conf.Positional
    ]
    """Which table; settings: the best settings that the paper's searches and ours found."""
    json: bool = False
    """Print one JSON object instead of a table."""
    rerun: bool = False
    """Run it again, say of each cell whether it is as recorded, and write the record."""
    battles: int = 1000
    """Battles a cell when run again (heuristics; battle: for the median seed)."""
    seed_battles: int = 400
    """Battles a cell when run again, for every seed and with noise (battle)."""
    episodes: int = 1000
    """Episodes a cell when run again (rescue, pursuit, routes)."""
    draws: int = 8
    """Draws a cell when run again (settings)."""
    minutes: float = 0.1
    """CPU minutes of a draw when run again (settings)."""
    seed: int = 0
    """Seed of the episodes, battles or draws when run again."""
    options: str = ""
    """Simulator settings for the run (heuristics), such as "latency=3,fog=false"."""
    record: Path | None = None
    """Where the record is read from or written to; by default the committed one, which a rerun overwrites in a
    checkout of the repository only: elsewhere it needs this flag."""
    policies: Path | None = None
    """Folder of the policies to run again (all but heuristics); by default those of the checkout."""
    only: str = "*"
    """Run again only the policies whose names match, such as 'battle-w15v17-quad-*' (all but heuristics; settings: the
    cells, such as 'w15v17-*')."""
    tests: tuple[str, ...] = ()
    """Run again only these sizes or scenarios, such as 2x4, w15v17 or 100 (all but heuristics)."""
    fresh: bool = False
    """Run again what the record already holds, too (battle)."""
    markdown: bool = False
    """Print markdown, for a document (battle, pursuit, fleet, routes, settings)."""

    def run(self) -> None:
        """Print the table."""
        for name, tables in FLAGS.items():
            if getattr(self, name) == getattr(Tables, name):
                continue
            flag = f"--{name.replace('_', '-')}"
            if self.which not in tables:
                raise InputError(f"{flag} is for the table {' or '.join(map(repr, tables))}, not for {self.which!r}")
            if not self.rerun and name != "markdown":
                raise InputError(f"{flag} says how to run the table again; give --rerun with it")
        if self.json and self.markdown:
            raise InputError("choose --json or --markdown, not both")
        print_it = {
            "rescue": _rescue,
            "battle": _battle,
            "heuristics": _heuristics,
            "pursuit": _pursuit,
            "fleet": _fleet,
            "routes": _routes,
            "settings": _settings,
        }
        print_it[self.which](self)


def _battle(command: Tables) -> None:
    from muster.cli import tables_battle
    from paper.tables import battle as table
    from paper.tables import battle_rerun
    from paper.tables.places import policies_to_play, record_to_write

    def run_again(reference: Any) -> Any:
        counts = battle_rerun.Counts(command.battles, command.seed_battles, command.seed)
        known = {(c.key, c.hash, c.battles, c.battle_seed): c.wins for c in reference.cells}
        return battle_rerun.run_table(
            record_to_write("battle", command.record),
            policies_to_play("battle", command.policies),
            counts,
            _line(command, battles=counts.battles, seed_battles=counts.seed_battles, seed=counts.seed),
            only=command.only,
            fresh=command.fresh,
            report=lambda cell: _say(
                tables_battle.line_of(cell),
                cell.wins,
                known.get((cell.key, cell.hash, cell.battles, cell.battle_seed)),
            ),
            scenarios=command.tests,
        )

    _show(command, table, tables_battle, _record(command, table, run_again), table.load_heuristics())


def _rescue(command: Tables) -> None:
    from muster.cli import tables_rescue
    from paper.tables import rescue as table

    def figures(cell: Any) -> tuple[float | None, tuple[float, ...], int]:
        return cell.mean, tuple(cell.ci95 or ()), cell.failed

    _played(command, table, tables_rescue, figures, {"episodes": command.episodes, "seed": command.seed})


def _pursuit(command: Tables) -> None:
    from muster.cli import tables_pursuit
    from paper.tables import pursuit as table

    counts = {"episodes": command.episodes, "seed": command.seed}
    _played(command, table, tables_pursuit, lambda cell: cell.mean, counts)


def _fleet(command: Tables) -> None:
    from muster.cli import tables_fleet
    from paper.tables import fleet as table

    _played(command, table, tables_fleet, lambda cell: cell.mean, {"seed": command.seed})


def _routes(command: Tables) -> None:
    from muster.cli import tables_routes
    from paper.tables import routes as table

    counts = {"episodes": command.episodes, "seed": command.seed}
    _played(command, table, tables_routes, lambda cell: cell.mean, counts)


def _settings(command: Tables) -> None:
    from muster.cli import tables_settings
    from muster.cli.search_results import need_optuna
    from paper.tables import best_settings as table
    from paper.tables.places import record_to_write

    def run_again(reference: Any) -> Any:
        need_optuna("python -m paper tables settings --rerun")
        path = record_to_write("settings", command.record)
        return table.run_table(
            path,
            Path("runs") / "search-paper",
            draws=command.draws,
            minutes=command.minutes,
            seed=command.seed,
            only=command.only,
            before=table.Record.load(path) if path.exists() else None,
            report=lambda line: print(line, file=sys.stderr, flush=True),
        )

    _show(command, table, tables_settings, _record(command, table, run_again))


def _heuristics(command: Tables) -> None:
    from muster.cli import tables_heuristics
    from paper.tables import heuristics as table
    from paper.tables.places import record_to_write

    def run_again(reference: Any) -> Any:
        path = record_to_write("heuristics", command.record)
        options = f",{command.options}" if command.options else ""
        line = _line(command, battles=command.battles, seed=command.seed)
        line += f" --options {command.options}" if command.options else ""
        same = (reference.battles, reference.seed, options) == (command.battles, command.seed, "")
        known = {(c.scenario, c.heuristic): c.wins for c in reference.cells} if same else {}
        record = table.run_table(
            command.battles,
            command.seed,
            line,
            options=options,
            report=lambda cell: _say(
                tables_heuristics.line_of(cell), cell.wins, known.get((cell.scenario, cell.heuristic))
            ),
        )
        record.save(path)
        return record

    _show(command, table, tables_heuristics, _record(command, table, run_again))


def _played(
    command: Tables, table: Any, printed: Any, figures: Callable[[Any], object], counts: dict[str, int]
) -> None:
    """A table of rules and policies in an environment: from its record, or played again with these counts."""
    from paper.tables.places import policies_to_play, record_to_write

    def run_again(reference: Any) -> Any:
        path = record_to_write(command.which, command.record)
        whole = command.only == "*" and not command.tests
        same = all(getattr(reference, name) == count for name, count in counts.items())
        known = {cell.key: figures(cell) for cell in reference.cells} if same else {}
        record = table.run_table(
            *counts.values(),
            _line(command, **counts),
            policies_to_play(command.which, command.policies),
            only=command.only,
            tests=command.tests,
            before=None if whole or not path.exists() else table.Record.load(path),
            report=lambda cell: _say(printed.line_of(cell), figures(cell), known.get(cell.key)),
        )
        record.save(path)
        return record

    _show(command, table, printed, _record(command, table, run_again))


def _record(command: Tables, table: Any, run_again: Callable[[Any], Any]) -> Any:
    """The record to print: run again beside the committed one, or read."""
    from paper.tables.places import committed_record

    committed = committed_record(command.which)
    if command.rerun:
        return run_again(table.Record.load(committed))
    return table.Record.load(command.record or committed)


def _show(command: Tables, table: Any, printed: Any, *shown: Any) -> None:
    """Print a record, and what belongs beside it, as was asked for."""
    if command.json:
        print(json.dumps(table.as_json(*shown)))
    elif command.markdown:
        print(printed.markdown(*shown))
    else:
        printed.print_table(*shown)


def _line(command: Tables, **counts: int) -> str:
    """The command that a record says it was made with."""
    return " ".join(
        [
            f"python -m paper tables {command.which} --rerun",
            *(f"--{k.replace('_', '-')} {v}" for k, v in counts.items()),
        ]
    )


def _say(line: str, found: object, recorded: object) -> None:
    """A cell that was played, and whether the committed record says the same to the last digit."""
    remark = "" if recorded is None else ", as recorded" if found == recorded else f", NOT as recorded: {recorded}"
    print(line + remark, file=sys.stderr, flush=True)
