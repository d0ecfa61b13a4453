"""The table of heuristics and its record."""

from __future__ import annotations

import pytest

from paper.tables import heuristics as table
from paper.tables.engine import Record


def test_the_paper_has_102_cells() -> None:
    assert sum(len(row) for row in table.PAPER.values()) == 102
    assert table.PAPER["w80v82"]["wcnoks"] == 0.32
    assert table.PAPER["zh11v11"]["c"] == 0.87
    assert len(table.Heuristics().load().cells) == 102


def test_errors_by_hand() -> None:
    cells = [table.Cell("m5v5", "c", 87, 100), table.Cell("w15v17", "wc", 4, 100)]
    found = table.errors(Record({}, cells))
    assert found["overall"] == pytest.approx((0.10 + 0.04) / 2)
    assert found["by_unit"] == {"marine": pytest.approx(0.10), "wraith": pytest.approx(0.04)}


def test_a_row_that_is_run_again_is_as_recorded(again) -> None:
    rerun = again("heuristics")
    found = rerun(battles=1000, seed=3, tests=("m5v5",), only="wcnoks")
    assert [line.partition(", ")[2] for line in rerun.lines] == ["as recorded"]
    assert found.head["settings"].items() <= rerun.table.load().head["settings"].items()


def test_other_settings_of_the_simulator_are_kept_in_the_record(again) -> None:
    rerun = again("heuristics")
    found = rerun(battles=3, seed=3, tests=("m5v5",), only="c", options="latency=3")
    assert found.head["settings"]["latency"] == 3
    assert found.head["command"].endswith("--seed 3 --options latency=3")
    assert "recorded" not in rerun.lines[0]


@pytest.mark.slow
def test_the_record_is_reproduced_by_a_rerun(again) -> None:
    rerun = again("heuristics")
    rerun(battles=1000, seed=3, tests=("w15v17", "m10v10"))
    assert all(line.endswith(", as recorded") for line in rerun.lines)
