"""The table of heuristics and its record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.cli.main import main
from paper.tables import heuristics as table
from paper.tables.places import committed_record


def test_the_paper_has_102_cells() -> None:
    cells = table.paper_cells()
    assert sum(len(row) for row in cells.values()) == 102
    assert cells["w80v82"]["wcnoks"] == 0.32
    assert cells["zh11v11"]["c"] == 0.87


def test_records_survive_saving(tmp_path: Path) -> None:
    record = table.run_table(3, 1, "x", ["m5v5"])
    path = tmp_path / "record.json"
    record.save(path)
    assert table.Record.load(path) == record


def test_errors_by_hand() -> None:
    cells = [table.Cell("m5v5", "c", 87, 100), table.Cell("w15v17", "wc", 4, 100)]
    found = table.errors(table.Record(0, 100, {}, cells))
    assert found.overall == pytest.approx((0.10 + 0.04) / 2)
    assert found.by_unit == {"marine": pytest.approx(0.10), "wraith": pytest.approx(0.04)}


def test_a_cell_is_the_same_in_any_batch() -> None:
    assert table.play_cell("m5v5", "wcnoks", 12, 9, batch=5) == table.play_cell("m5v5", "wcnoks", 12, 9)


def test_the_command_prints_the_committed_record(capsys: pytest.CaptureFixture[str]) -> None:
    main(["tables", "heuristics", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert len(found["cells"]) == 102
    assert found["battles"] >= 1000
    main(["tables", "heuristics"])
    assert "mean absolute error" in capsys.readouterr().out


def test_a_missing_record_says_how_to_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["tables", "heuristics", "--record", str(tmp_path / "none.json")])
    assert stop.value.code == 2
    assert "--rerun" in capsys.readouterr().err


@pytest.mark.slow
def test_the_record_is_reproduced_by_a_rerun() -> None:
    record = table.Record.load(committed_record("heuristics"))
    for cell in record.cells[:6]:
        again = table.play_cell(cell.scenario, cell.heuristic, cell.battles, record.seed)
        assert again == cell
