"""CSV files as tables of names and numbers, read and written without anything but Python."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muster.errors import InputError

TEXT = ("agent", "task", "other", "from", "to", "reason")


class CsvTable:
    """Columns by name, as a frame has them: enough for `muster.assign.names`."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str | list[str]) -> Any:
        if isinstance(name, list):
            return CsvTable({each: self._columns[each] for each in name})
        return self._columns[name]

    def to_numpy(self) -> list[list[Any]]:
        """The rows."""
        return [list(row) for row in zip(*self._columns.values(), strict=True)]


def read_text(file: str, expected: str) -> str:
    """A file's text, or standard input's for -."""
    source = "standard input" if file == "-" else file
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{source} is not text; expected {expected}") from None


def is_csv(file: str) -> bool:
    """Whether a file is a table, by its name."""
    return Path(file).suffix.lower() in (".csv", ".tsv")


def read_csv(file: str, expected: str, needs: Sequence[str] = (), pairs: Mapping[str, str] | None = None) -> CsvTable:
    """A CSV file: the first column and those that hold names are text, all others numbers or empty.

    `needs` are columns that must be there, `expected` is what to say of the file where it is something else. `pairs`:
    in a table of pairs, what the columns agent, task, score and contribution are called; others are left out.
    """
    content = read_text(file, expected)
    head = content.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    lines = [line for line in csv.reader(io.StringIO(content), delimiter=delimiter) if any(map(str.strip, line))]
    if not lines:
        raise InputError(f"{file} is empty; expected {expected}")
    header = [cell.strip() for cell in lines[0]]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{file} has two columns called {twice!r}; column names must differ")
    if is_number(header[0]):
        raise InputError(f"{file} begins with numbers; its first row must name the columns: expected {expected}")
    lacking = [name for name in needs if name not in [cell.lower() for cell in header]]
    if lacking:
        raise InputError(f"{file} has no column {lacking[0]!r}, got {', '.join(header)}; expected {expected}")
    ignored: set[int] = set()
    if pairs is not None:
        for name, column in pairs.items():
            if column not in header:
                raise InputError(f"{file} has no column {column!r} for {name}, got {', '.join(header)}")
        called = {column: name for name, column in pairs.items()}
        header = [called.get(cell, cell) for cell in header]
        words = [cell.lower() for cell in header]
        if len(header) == 3 and not pairs:
            expected = expected.replace("agent=tech,task=job,score=worth", "agent={},task={},score={}".format(*header))
        if {"agent", "task", "score"} <= set(words):
            ignored = {k for k, word in enumerate(words) if word not in ("agent", "task", "score", "contribution")}
        if ignored:
            print(
                f"muster: columns of {file} that are ignored: {', '.join(header[k] for k in ignored)}", file=sys.stderr
            )
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(header):
            raise InputError(f"{file}, row {number}: expected {len(header)} cells as in the first row, got {len(line)}")
    columns: dict[str, list[Any]] = {}
    for k, name in enumerate(header):
        if k in ignored:
            continue
        cells = [line[k].strip() for line in lines[1:]]
        named = k == 0 or name.lower() in TEXT
        columns[name.lower() if _is_word(name) else name] = (
            cells if named else [_number(file, row, name, cell, expected) for row, cell in enumerate(cells, start=2)]
        )
    return CsvTable(columns)


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_word(name: str) -> bool:
    """Whether a column's name is one that tables are told apart by, in whichever case."""
    return name.lower() in (*TEXT, "score", "contribution", "capacity")


def _number(file: str, row: int, column: str, cell: str, expected: str) -> float | None:
    if cell == "":
        return None
    if is_number(cell):
        return float(cell)
    point = cell.replace(",", ".")
    told = f"write {point} for it" if is_number(point) else f"the file should be {expected}"
    raise InputError(f"{file}, row {row}, column {column!r}: expected a number or nothing, got {cell!r}; {told}")


def write_csv(file: str, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Write rows as CSV; None becomes an empty cell."""
    with Path(file).open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
