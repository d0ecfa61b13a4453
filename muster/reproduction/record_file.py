"""Records of tables as files: JSON with a head and one cell a line, so that one cell changed is one line changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from muster.errors import InputError
from muster.settings import read_table
from muster.storage import write_atomically

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

CellType = TypeVar("CellType")


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
