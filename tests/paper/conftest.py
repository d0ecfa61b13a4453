"""Evaluating a table again into a record of the test's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paper.tables.command import table_of
from paper.tables.engine import Asked, Record, rerun


class Again:
    """A table with a record in a folder of its own; lines of the last rerun are in `lines`."""

    def __init__(self, name: str, path: Path) -> None:
        self.table, self.path = table_of(name), path
        self.lines: list[str] = []

    def __call__(self, **asked: Any) -> Record[Any]:
        self.lines = []
        return rerun(self.table, Asked(**asked), self.path, self.lines.append)


@pytest.fixture
def again(tmp_path: Path):
    return lambda name: Again(name, tmp_path / f"{name}.json")
