"""The table of best settings: the paper's as printed, ours from a record."""

from muster.search.space import Choice, load_space
from paper.__main__ import main
from paper.tables.engine import Record
from paper.tables.settings import COLUMNS, ENVS, METHODS, Cell, Settings, commands_of, paper_settings


def test_the_paper_prints_nine_and_the_record_names_the_best():
    assert len(paper_settings()) == 9
    for cell in Settings().load().cells:
        assert len(cell.found) == cell.trials
        done = [trial["value"] for trial in cell.found if trial["state"] == "done"]
        assert cell.best_trial["value"] == max(done)
        assert {"a2c.learning_rate", "a2c.sigma"} <= set(cell.best_trial["settings"])


def holds(what, value):
    """Whether the value could have been sampled."""
    if isinstance(what, Choice):
        return value in what.values
    return what.low <= value <= what.high and (not what.integer or value == int(value))


def test_the_papers_best_settings_and_our_trials_lie_in_its_ranges():
    """A typing error in one of them would mostly leave its range."""
    for (scenario, _), settings in paper_settings().items():
        space = load_space("paper", ENVS[scenario])
        assert all(holds(space.sampled[name], value) for name, value in settings.items())
    for cell in Settings().load().cells:
        space = load_space("paper", ENVS[cell.scenario])
        for trial in cell.found:
            assert all(holds(space.sampled[name], value) for name, value in trial["settings"].items())


def test_every_row_is_printed_with_dashes_where_nothing_is_known(tmp_path, capsys):
    best = {"number": 3, "state": "done", "value": 0.25, "settings": dict.fromkeys(COLUMNS.values(), 0.125)}
    cell = Cell("w15v17", "lp", 1, 0.1, "median", 0, "muster search …", 3, [best])
    Record({}, [cell]).save(tmp_path / "r.json")
    main(["tables", "settings", "--record", str(tmp_path / "r.json"), "--markdown"])
    said = capsys.readouterr().out
    assert "| w15v17 | LP | 5.6e-05 / 0.125 |" in said
    assert "| rescue-2x4 | LP | – / – |" in said
    assert len([line for line in said.splitlines() if line.startswith("| ")]) == 2 + len(ENVS) * len(METHODS)


def test_cells_that_were_searched_alike_are_made_by_one_command():
    def cell(scenario, method, trials):
        return Cell(scenario, method, trials, 0.1, "median", 0, "", None, [])

    cells = [cell("m10v10", method, 8 if method == "lp" else 32) for method in METHODS]
    lines = commands_of(Record({}, [*cells, *(cell("w15v17", method, 32) for method in METHODS)]))
    begin = "python -m paper tables settings --rerun --trials"
    assert lines == [
        f"{begin} 8 --minutes 0.1 --seed 0 --only m10v10-lp",
        f"{begin} 32 --minutes 0.1 --seed 0 --only m10v10-amax",
        f"{begin} 32 --minutes 0.1 --seed 0 --only m10v10-quad",
        f"{begin} 32 --minutes 0.1 --seed 0 --only 'w15v17-*'",
    ]
