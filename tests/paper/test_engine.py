"""Records, names from before 0.2.0, and the command."""

from __future__ import annotations

import json
import shlex

import pytest
import tyro

from muster.errors import InputError
from paper.__main__ import main
from paper.run_names import RunName, of_today, policy_files
from paper.tables import engine
from paper.tables.command import TABLES, Tables, table_of
from paper.tables.engine import COMMITS, Asked
from paper.train import RUNS_OF


def test_names_of_runs():
    found = RunName.parse("battle-zh10v10-quad-dm-raw-a2c-s12", "battle")
    assert found == RunName("battle", "zh10v10", "quad", "dm", "raw", "a2c", 12)
    assert found.method == "quad-dm-raw"
    assert RunName.parse("rescue-2x4-lp-pem-es-s0", "rescue").method == "lp-pem"
    for wrong in ("battle-w15v17-quad-dm-s0", "battle-w15v17-qad-dm-es-s0", "rescue-2x4-lp-dm-es-s0", "x"):
        with pytest.raises(ValueError, match="is not named like battle-w15v17-quad-dm-es-s0"):
            RunName.parse(wrong, "battle")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rescue-2x4-quad-dm-played-a2c-s0", "rescue-2x4-quad-dm-a2c-s0"),
        ("rescue-2x4-quad-dm-raw-a2c-s0", "rescue-2x4-quad-dm-raw-a2c-s0"),
        ("battle-m10v10-lp-dm-a2c-s1", "battle-m10v10-lp-dm-ppo-s1"),
        ("lp-dm by a2c", "lp-dm by ppo"),
        ("rescue-5x10-lp-pem-distilled-imitate-s1", "rescue-5x10-lp-pem-distilled-imitation-s1"),
        ("plan-distance", "routes-distance"),
        ("plan-dm", "routes-dm"),
        ("closest", "closest"),
    ],
)
def test_names_from_before_are_translated(old, new):
    assert of_today(old) == new


def test_seeds_are_listed_in_numerical_order(tmp_path):
    for seed in (10, 2, 0):
        (tmp_path / f"battle-w15v17-lp-dm-es-s{seed}.safetensors").touch()
    assert [name.seed for name in policy_files(tmp_path, "battle").values()] == [0, 2, 10]
    assert [name.seed for name in policy_files(tmp_path, "battle", "*-s2").values()] == [2]
    with pytest.raises(ValueError, match="there is no folder"):
        policy_files(tmp_path / "nowhere", "battle")


@pytest.mark.parametrize("name", TABLES)
def test_a_committed_record_says_how_it_was_made(name):
    """Its command is one of the laboratory's; test_records.py looks at the commits."""
    record = table_of(name).load()
    commands = [record.head["command"]] if "command" in record.head else {cell.command for cell in record.cells}
    for command in commands:
        words = shlex.split(command)
        if words[:2] == ["muster", "search"]:
            continue
        assert words[:5] == ["python", "-m", "paper", "tables", name], command
        asked = tyro.cli(Tables, args=words[4:])
        assert asked.rerun, command


@pytest.mark.parametrize("commit", ["0123456789ab, changed", None])
def test_a_changed_tree_makes_no_committed_record(commit, monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "code_commit", lambda: commit)
    table = table_of("heuristics")
    with pytest.raises(InputError, match="code that is committed"):
        engine.rerun(table, Asked(), table.committed, print)
    monkeypatch.setattr(type(table), "committed", tmp_path / "heuristics.json")
    monkeypatch.setattr(type(table), "evaluate", lambda self, asked, record: iter(()))
    with pytest.raises(InputError, match="code that is committed"):
        engine.rerun(table, Asked(), table.committed, print)
    monkeypatch.setattr(engine, "code_commit", lambda: "0123456789ab")
    assert engine.rerun(table, Asked(), table.committed, print).head[COMMITS] == ["0123456789ab"]
    assert table.load(table.committed).head[COMMITS] == ["0123456789ab"]


@pytest.mark.parametrize("name", TABLES)
def test_a_record_that_is_saved_reads_the_same(name, tmp_path):
    """Once translated, names stay."""
    table = table_of(name)
    record = table.load()
    assert len({table.key_of(cell) for cell in record.cells}) == len(record.cells)
    record.save(tmp_path / "again.json")
    assert table.load(tmp_path / "again.json").cells == record.cells


@pytest.mark.parametrize("name", TABLES)
def test_every_table_prints_in_every_form(name, capsys):
    main(["tables", name])
    assert "made with: python -m paper tables" in capsys.readouterr().out
    main(["tables", name, "--markdown"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert set("".join(lines[1].split("|"))) <= set("- ")
    main(["tables", name, "--json"])
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_every_policy_of_a_record_has_its_run(capsys):
    """Names of runs, of files and in translated records are the same."""
    for table in ("rescue", "battle", "pursuit", "fleet", "routes"):
        runs = set(RUNS_OF[table]())
        named = {cell.policy for cell in table_of(table).load().cells if "-s" in cell.policy}
        assert named <= runs
    main(["train", "rescue", "--list", "--only", "rescue-2x4-quad-dm-a2c-s0"])
    assert capsys.readouterr().out.startswith("muster train rescue:2x4 --inference quad")


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["rescue", "--battles", "5", "--rerun"], "--battles is not for the table 'rescue'"),
        (["battle", "--options", "fog=false"], "--options is not for the table 'battle'"),
        (["rescue", "--only", "closest"], "give --rerun with it"),
        (["settings", "--trials", "3"], "give --rerun with it"),
        (["settings", "--rerun", "--only", "x", "--record", "new.json"], "no cell matches 'x'"),
        (["rescue", "--episodes", "1", "--rerun"], "episodes must be at least 2, got 1"),
        (["battle", "--battles", "0", "--rerun"], "battles must be at least 1, got 0"),
        (["battle", "--json", "--markdown"], "not both"),
        (["battle", "--record", "none.json"], "python -m paper tables battle --rerun"),
        (["rescue", "--rerun", "--tests", "2x5", "--record", "new.json"], "did you mean '2x4'"),
    ],
)
def test_mistakes_get_one_sentence(flags, complaint, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(["tables", *flags])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert "Traceback" not in said


def test_a_damaged_record_is_refused(tmp_path, capsys):
    (tmp_path / "bad.json").write_text('{"episodes": 3}')
    with pytest.raises(SystemExit):
        main(["tables", "rescue", "--record", str(tmp_path / "bad.json")])
    assert "is not a record of this table, or damaged" in capsys.readouterr().err
