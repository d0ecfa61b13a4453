"""The table of best settings: the paper's as printed, ours from a record."""

import json

import pytest

from muster.cli.main import main
from muster.search.space import load_space
from paper.tables.best_settings import COLUMNS, METHODS, WORLDS, Cell, Record, paper_settings
from paper.tables.places import committed_record


def test_the_papers_best_settings_lie_in_its_ranges():
    """A typing error in one of them would mostly leave its range."""
    for (scenario, _), settings in paper_settings().items():
        space = load_space("paper", WORLDS[scenario])
        assert all(space.drawn[name].holds(value) for name, value in settings.items())
    assert len(paper_settings()) == 9


def test_the_record_holds_what_was_drawn_and_names_the_best():
    record = Record.load(committed_record("settings"))
    for cell in record.cells:
        assert len(cell.found) == cell.draws
        space = load_space("paper", WORLDS[cell.scenario])
        for draw in cell.found:
            assert all(space.drawn[name].holds(value) for name, value in draw["settings"].items())
        done = [draw["value"] for draw in cell.found if draw["state"] == "done"]
        assert cell.best_draw is not None
        assert cell.best_draw["value"] == max(done)


def test_every_row_is_printed_with_dashes_where_nothing_is_known(tmp_path, capsys):
    best = {"number": 3, "state": "done", "value": 0.25, "settings": dict.fromkeys(COLUMNS, 0.125)}
    cell = Cell("w15v17", "lp", 1, 0.1, "median", 0, "muster search …", 3, [best])
    Record([cell]).save(tmp_path / "r.json")
    main(["tables", "settings", "--record", str(tmp_path / "r.json"), "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert len(rows) == len(WORLDS) * len(METHODS)
    ours = [row for row in rows if row["ours"]]
    assert [(row["scenario"], row["method"], row["ours"]["best"]["value"]) for row in ours] == [("w15v17", "lp", 0.25)]
    assert [row["scenario"] for row in rows if row["paper"] is None] == ["rescue-2x4"] * 3
    main(["tables", "settings", "--record", str(tmp_path / "r.json"), "--markdown"])
    said = capsys.readouterr().out
    assert "| w15v17 | LP | 5.6e-05 / 0.125 |" in said
    assert "| rescue-2x4 | LP | – / – |" in said


def test_cells_that_were_searched_alike_are_made_by_one_command():
    def cell(scenario, method, draws):
        return Cell(scenario, method, draws, 0.1, "median", 0, "", None, [])

    cells = [cell("m10v10", method, 8 if method == "lp" else 32) for method in METHODS]
    lines = Record([*cells, *(cell("w15v17", method, 32) for method in METHODS)]).commands
    begin = "python -m paper tables settings --rerun --draws"
    assert lines == [
        f"{begin} 8 --minutes 0.1 --seed 0 --only m10v10-lp",
        f"{begin} 32 --minutes 0.1 --seed 0 --only m10v10-amax",
        f"{begin} 32 --minutes 0.1 --seed 0 --only m10v10-quad",
        f"{begin} 32 --minutes 0.1 --seed 0 --only 'w15v17-*'",
    ]


@pytest.mark.parametrize(
    ("flags", "words"), [(["--draws", "3"], "give --rerun with it"), (["--rerun", "--only", "x"], "no cell")]
)
def test_mistakes_get_a_sentence(flags, words, capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["tables", "settings", *flags, *(["--record", str(tmp_path / "r.json")] if "--rerun" in flags else [])])
    assert words in capsys.readouterr().err
