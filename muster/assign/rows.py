"""Tables as lists of rows that print as text and become data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.errors import InputError

Row = dict[str, Any]


class Rows(list[Row]):
    """Rows with the same columns in the same order; str() of it is a table."""

    def __init__(self, rows: Sequence[Row], columns: Sequence[str]) -> None:
        super().__init__(rows)
        self.columns = tuple(columns)

    def frame(self) -> Any:
        """The rows as a pandas frame, or as a polars one where pandas is not there."""
        columns = {column: [row[column] for row in self] for column in self.columns}
        for library in ("pandas", "polars"):
            try:
                module = __import__(library)
            except ImportError:
                continue
            return module.DataFrame(columns)
        raise InputError("frame() needs pandas or polars; the rows themselves are dictionaries")

    def __str__(self) -> str:
        cells = [list(self.columns), *([text(row[column]) for column in self.columns] for row in self)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
        return "\n".join(line.rstrip() for line in lines)


def text(value: object) -> str:
    """A cell as text."""
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
