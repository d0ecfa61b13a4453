"""Records of tables as files: JSON with a head and one cell a line, so that one cell changed is one line changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from muster.errors import InputError
from muster.settings import read_table
from muster.storage import write_atomically

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

CellType = TypeVar("CellType", bound="DataclassInstance")


def write_record(path: Path, head: dict[str, Any], cells: Sequence[DataclassInstance]) -> None:
    """Replace the file at once or not at all; `head` has at least one entry."""
    lines = ",\n  ".join(json.dumps(asdict(cell)) for cell in cells)
    write_atomically(path, f'{json.dumps(head)[:-1]}, "cells": [\n  {lines}\n]}}\n'.encode())


def read_record(
    path: Path, cell: type[CellType], head: Sequence[str], advice: str
) -> tuple[dict[str, Any], list[CellType]]:
    """Head, of the names in `head`, and cells of what was written; `advice` says how to make a record."""
    if not path.exists():
        raise InputError(f"no record {path}; {advice}")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        # Every field is checked against its annotation: what prints a table need not doubt a number.
        cells = [cell(**read_table(cell, entry, "a cell")) for entry in document["cells"]]
        return {name: document[name] for name in head}, cells
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is not a record of this table, or damaged ({error}); {advice}") from None


@dataclass(frozen=True, slots=True)
class TableRecord(Generic[CellType]):
    """A run of a table whose cells are all of the same episodes."""

    episodes: int
    seed: int
    command: str
    cells: list[CellType]

    cell_type: ClassVar[type[Any]]
    """What its cells are; set by each table."""

    def save(self, path: Path) -> None:
        """Write JSON, one cell a line."""
        write_record(path, {"episodes": self.episodes, "seed": self.seed, "command": self.command}, self.cells)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        head, cells = read_record(path, cls.cell_type, ("episodes", "seed", "command"), "make one with: --rerun")
        return cls(cells=cells, **head)

    def check_episodes(self, episodes: int, seed: int) -> None:
        """Refuse to replace cells by others that are of other episodes."""
        if (self.episodes, self.seed) != (episodes, seed):
            raise InputError(
                f"the record has {self.episodes} episodes of seed {self.seed} in every cell; run part of it again with "
                f"--episodes {self.episodes} --seed {self.seed}, or into another file with --record"
            )
