"""`python -m paper tables`: the paper's values beside ours, from committed records."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from muster.errors import InputError
from paper.tables.engine import Asked, Table, print_record, rerun, say

TABLES = {
    "rescue": "paper.tables.rescue:Rescue",
    "battle": "paper.tables.battle:Battle",
    "heuristics": "paper.tables.heuristics:Heuristics",
    "pursuit": "paper.tables.pursuit:Pursuit",
    "fleet": "paper.tables.fleet:Fleet",
    "routes": "paper.tables.routes:Routes",
    "settings": "paper.tables.settings:Settings",
    "outside": "paper.tables.outside:Outside",
}


def table_of(name: str) -> Table[Any]:
    """The table of this name."""
    module, _, kind = TABLES[name].partition(":")
    table: Table[Any] = getattr(import_module(module), kind)()
    return table


@dataclass(frozen=True)
class Tables:
    """Print one of the paper's tables with ours beside it, or another of ours, or evaluate it again."""

    which: Annotated[
        Literal["rescue", "battle", "heuristics", "pursuit", "fleet", "routes", "settings", "outside"],
        tyro.conf.Positional,
    ]
    """Which table; settings: the best settings that the paper's searches and ours found."""
    json: bool = False
    """Print one JSON object instead of a table."""
    markdown: bool = False
    """Print markdown, for a document."""
    record: Path | None = None
    """Where the record is read from or written to; by default the committed one, which a rerun overwrites."""
    rerun: bool = False
    """Evaluate it again, say of each cell whether it is as recorded, and write the record."""
    episodes: int = 1000
    """Episodes a cell when evaluated again (rescue, pursuit, routes)."""
    battles: int = 1000
    """Battles a cell when evaluated again (heuristics; battle: for the median seed)."""
    seed_battles: int = 400
    """Battles a cell when evaluated again, for every seed and with noise (battle)."""
    trials: int = 8
    """Trials a cell when searched again (settings)."""
    minutes: float = 0.1
    """CPU minutes of a trial when searched again (settings)."""
    seed: int = 0
    """Seed of the episodes, battles or trials when evaluated again."""
    options: str = ""
    """Simulator settings (heuristics), such as "latency=3,fog=false"."""
    policies: Path | None = None
    """Folder of the policies to evaluate again (all but heuristics and settings); by default the repository's."""
    only: str = "*"
    """Evaluate only the policies whose names match, such as 'battle-w15v17-quad-*' (heuristics: one of them; settings:
    the cells, such as 'w15v17-*')."""
    tests: tuple[str, ...] = ()
    """Evaluate only these sizes or scenarios, such as 2x4, w15v17 or 100 (all but settings)."""
    fresh: bool = False
    """Evaluate what the record already holds, too (battle)."""

    def run(self) -> None:
        """Print the table."""
        table = table_of(self.which)
        asked = Asked(**{field.name: getattr(self, field.name) for field in fields(Asked)})
        for field in fields(Asked):
            if getattr(asked, field.name) == field.default:
                continue
            flag = f"--{field.name.replace('_', '-')}"
            if field.name not in (*table.counts, *table.flags):
                raise InputError(f"{flag} is not for the table {self.which!r}")
            if not self.rerun:
                raise InputError(f"{flag} says how to evaluate the table again; give --rerun with it")
        if self.json and self.markdown:
            raise InputError("choose --json or --markdown, not both")
        record = rerun(table, asked, self.record or table.committed, say) if self.rerun else table.load(self.record)
        if self.json:
            print(json.dumps(table.as_json(record)))
        else:
            print_record(table, record, self.markdown)
