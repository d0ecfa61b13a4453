"""The table of battles: the paper's figures, the record and its rerun."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from muster.cli.main import main
from muster.errors import InputError
from paper.tables import battle as battle_table
from paper.tables import battle_rerun
from paper.tables import heuristics as heuristics_table
from paper.tables.battle import Cell, Record
from paper.tables.battle_rerun import Counts, run_table
from paper.tables.run_names import RunName, policy_files
from tests.policy.policy_files import write_random_policy

FEW = Counts(battles=5, seed_battles=3)
TESTS = ["m5v5", "m10v10"]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of policies, and beside it the record of all of them."""
    folder = tmp_path_factory.mktemp("battle") / "policies"
    for seed in range(3):
        write_random_policy(folder / f"battle-m10v10-lp-dm-es-s{seed}.safetensors", "battle:m10v10", "lp", seed)
    write_random_policy(folder / "battle-m10v10-quad-dm-raw-a2c-s0.safetensors", "battle:m10v10", "quad", 7)
    rerun(folder)
    return folder


@pytest.fixture
def policies(first: Path, tmp_path: Path) -> Path:
    """Policies that are in no record yet."""
    return shutil.copytree(first, tmp_path / "policies")


@pytest.fixture
def played(first: Path, policies: Path) -> Path:
    """Policies that a record has all cells of, so that `rerun` only reads it."""
    shutil.copy(first.parent / "record.json", policies.parent)
    return policies


def rerun(policies: Path, **changes) -> Record:
    path = policies.parent / "record.json"
    return run_table(path, policies, changes.pop("counts", FEW), "x", scenarios=TESTS, **changes)


def make_cell(seed: int, wins: int, test: str = "w15v17", **changes) -> Cell:
    name = f"battle-w15v17-quad-dm-es-s{seed}"
    cell = Cell(name, "w15v17", "quad-dm", "es", seed, "h", 3.0, 2_000_000, test, "seed", False, wins, 100, 0, "x")
    return replace(cell, **changes)


def test_the_paper_has_17_scenarios_and_known_figures() -> None:
    rows = battle_table.paper_rows()
    assert len(rows) == 17
    assert rows["w15v17"] == battle_table.Printed(
        "w15v17", "wcnoks", (0.81, 0.02), amax=(0.30, 0.03), lp=(0.53, 0.03), quad=(0.89, 0.02)
    )
    assert (rows["m30v30"].lp[0], rows["m30v30"].quad[0], rows["m30v30"].amax[0]) == (0.74, 0.06, 0.36)
    assert (rows["zh10v12"].best[0], rows["zh10v12"].lp[0], rows["w80v82"].quad[0]) == (0.03, 0.06, 0.36)


def test_the_best_heuristics_agree_with_the_table_of_heuristics() -> None:
    for test, cells in heuristics_table.paper_cells().items():
        row = battle_table.paper_rows()[test]
        assert cells[row.heuristic] == row.best[0] == max(cells.values())


def test_policies_are_tested_on_their_own_units() -> None:
    assert battle_table.scenarios_of("w15v17") == ["w15v17", "w30v34", "w30v35", "w60v67", "w60v68", "w80v82"]
    assert len(battle_table.scenarios_of("m10v10")) == 6
    with pytest.raises(InputError, match="no scenario 'w3v3'"):
        battle_table.scenarios_of("w3v3")


def test_names_of_runs() -> None:
    found = RunName.parse("battle-zh10v10-quad-dm-raw-a2c-s12", "battle")
    assert found == RunName("battle", "zh10v10", "quad", "dm", "raw", "a2c", 12)
    assert found.method == "quad-dm-raw"
    assert RunName.parse("rescue-2x4-lp-pem-es-s0", "rescue").method == "lp-pem"
    for wrong in ("battle-w15v17-quad-dm-s0", "battle-w15v17-qad-dm-es-s0", "rescue-2x4-lp-dm-es-s0", "x"):
        with pytest.raises(InputError, match="is not named like battle-w15v17-quad-dm-es-s0"):
            RunName.parse(wrong, "battle")


def test_seeds_are_listed_in_numerical_order(tmp_path: Path) -> None:
    for seed in (10, 2, 0):
        (tmp_path / f"battle-w15v17-lp-dm-es-s{seed}.safetensors").touch()
    assert [name.seed for name in policy_files(tmp_path, "battle").values()] == [0, 2, 10]
    assert [name.seed for name in policy_files(tmp_path, "battle", "*-s2").values()] == [2]


def test_the_median_policy_is_chosen_in_the_scenario_trained_on() -> None:
    cells = [make_cell(seed, wins) for seed, wins in enumerate((90, 70, 80, 60))]
    cells += [make_cell(seed, 100 * seed, "w30v34") for seed in range(4)]
    group = ("w15v17", "quad-dm", "es")
    assert battle_table.median_policy(cells, group) == "battle-w15v17-quad-dm-es-s1"
    assert battle_table.median_policy(cells, ("w15v17", "lp-dm", "es")) is None


def test_rows_give_median_spread_and_what_was_not_run() -> None:
    cells = [make_cell(seed, wins) for seed, wins in enumerate((90, 70, 80))]
    cells.append(make_cell(2, 85, role="median", battles=1000))
    rows = battle_table.rows_of(Record({}, tuple(cells)), "w15v17")
    assert [(row.method, row.learner) for row in rows] == [("amax-dm", ""), ("lp-dm", ""), ("quad-dm", "es")]
    assert rows[2].spread == (0.8, 0.7, 0.9)
    assert rows[2].paper == (0.89, 0.02)
    assert rows[2].median is not None
    assert rows[2].median.rate == 0.085
    assert rows[0].spread is None


def test_records_of_different_simulators_are_told_apart() -> None:
    heuristics = heuristics_table.Record(1, 10, {"latency": 2, "fog": True}, [])
    assert battle_table.changed_settings(Record({"latency": 2, "fog": True, "newer": 1}), heuristics) == []
    assert battle_table.changed_settings(Record({"latency": 3, "fog": True}), heuristics) == ["latency"]


def test_a_rerun_is_deterministic_and_plays_each_cell_once(played: Path) -> None:
    policies = played
    record = rerun(policies)
    keys = [cell.key for cell in record.cells]
    # Four policies on two scenarios; then the median of either group, without and with noise.
    assert len(keys) == len(set(keys)) == 4 * 2 + 2 * 2 * 2
    assert Record.load(policies.parent / "record.json") == record
    written = (policies.parent / "record.json").read_bytes()
    assert rerun(policies, fresh=True) == record
    assert (policies.parent / "record.json").read_bytes() == written
    assert {cell.battles for cell in record.cells if cell.role == "median" and not cell.noise} == {5}


def test_what_is_done_is_skipped_and_what_changed_is_replaced(played: Path) -> None:
    policies, cells = played, []
    before = rerun(policies)
    rerun(policies, report=cells.append)
    assert cells == []
    changed = "battle-m10v10-quad-dm-raw-a2c-s0"
    write_random_policy(policies / f"{changed}.safetensors", "battle:m10v10", "quad", 8)
    after = rerun(policies, report=cells.append)
    assert {cell.policy for cell in cells} == {changed}
    assert len(after.cells) == len(before.cells)
    assert [c for c in after.cells if c.policy != changed] == [c for c in before.cells if c.policy != changed]
    assert {c.hash for c in after.cells if c.policy == changed} == {cells[0].hash}


def test_only_keeps_the_other_rows_and_the_median_follows(played: Path) -> None:
    before = rerun(played)
    after = rerun(played, only="*-lp-dm-es-s1", counts=replace(FEW, seed_battles=4))
    assert {c.battles for c in after.cells if c.policy.endswith("es-s1") and c.role == "seed"} == {4}
    rest = [c for c in before.cells if c.role == "seed" and not c.policy.endswith("es-s1")]
    assert [c for c in after.cells if c.role == "seed" and not c.policy.endswith("es-s1")] == rest
    assert len({c.policy for c in after.cells if c.role == "median" and c.method == "lp-dm"}) == 1


def test_a_new_policy_file_takes_its_old_cells_away_at_once() -> None:
    old = Record({}, (make_cell(0, 5), make_cell(0, 6, "w30v34"), make_cell(1, 7)))
    new = make_cell(0, 9, hash="other")
    assert old.with_cell(new).cells == (new, make_cell(1, 7))


def test_a_policy_that_is_no_longer_the_median_leaves_its_extra_cells(played: Path) -> None:
    before = rerun(played)
    group = ("m10v10", "lp-dm", "es")
    chosen = battle_table.median_policy(before.cells, group)
    # As if the median seed had won everything and the other two nothing.
    edited = [
        replace(cell, wins=3 if cell.policy == chosen else 0) if cell.group == group and cell.role == "seed" else cell
        for cell in before.cells
    ]
    Record(before.settings, tuple(edited)).save(played.parent / "record.json")
    after = rerun(played)
    extra = {cell.policy for cell in after.cells if cell.group == group and cell.role == "median"}
    assert extra == {battle_table.median_policy(after.cells, group)}
    assert chosen not in extra


def test_an_interrupted_rerun_loses_nothing(policies: Path) -> None:
    path = policies.parent / "record.json"

    def stop(cell: Cell) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rerun(policies, only="*-raw-*", report=stop)
    assert len(Record.load(path).cells) == 1
    played: list[Cell] = []
    assert len(rerun(policies, only="*-raw-*", report=played.append).cells) == len(played) + 1 > 2


def test_policies_that_are_gone_leave_the_record(played: Path) -> None:
    gone = "battle-m10v10-lp-dm-es-s0"
    assert any(cell.policy == gone for cell in rerun(played).cells)
    (played / f"{gone}.safetensors").unlink()
    assert not any(cell.policy == gone for cell in rerun(played).cells)


def test_mistakes_of_a_rerun_get_one_sentence(played: Path, tmp_path: Path, monkeypatch) -> None:
    policies = played
    with pytest.raises(InputError, match="no policy there is named 'nothing'"):
        rerun(policies, only="nothing")
    with pytest.raises(InputError, match="it has no policies"):
        rerun(tmp_path / "nowhere")
    with pytest.raises(InputError, match="seed_battles must be at least 1"):
        Counts(seed_battles=0)
    monkeypatch.setattr(battle_rerun, "simulator_settings", lambda: {"latency": 5})
    with pytest.raises(InputError, match="other settings of the simulator"):
        rerun(policies, only="*-raw-*")
    write_random_policy(policies / "battle-m10v10-lp-dm-es-s9.safetensors", "battle:m5v5")
    with pytest.raises(InputError, match="was trained on battle:m5v5, not on battle:m10v10"):
        rerun(policies)


def test_the_training_s_cost_comes_from_the_run_s_summary(policies: Path) -> None:
    name = "battle-m10v10-lp-dm-es-s0"
    folder = policies.parent / "runs" / name
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text('{"cpu_minutes": 7.5, "steps": 123}')
    cell = rerun(policies, only=name).cells[0]
    assert (cell.cpu_minutes, cell.steps) == (7.5, 123)


def test_the_command_prints_text_markdown_and_json(
    policies: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    monkeypatch.setattr(battle_rerun, "scenarios_of", lambda train: TESTS)
    path = str(policies.parent / "record.json")
    counts = ["--battles", "2", "--seed-battles", "1"]
    main(["tables", "battle", "--rerun", "--record", path, "--policies", str(policies), *counts])
    shown = capsys.readouterr().out
    assert "quad-dm-raw" in shown
    assert "w60v67†" in shown
    assert "not run" in shown
    assert "python -m paper tables battle --rerun --battles 2 --seed-battles 1 --seed 0" in shown
    main(["tables", "battle", "--record", path, "--markdown"])
    lines = capsys.readouterr().out.splitlines()
    tables = [line for line in lines if line.startswith("|")]
    assert lines[0].count("|") == lines[2].count("|")
    assert len([line for line in tables if line.startswith("| m10v10 ")]) == 2
    main(["tables", "battle", "--record", path, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert len(found["scenarios"]) == 17
    row = next(row for row in found["scenarios"][1]["rows"] if row["learner"] == "es")
    assert row["seeds"] == 3
    assert row["median"]["battles"] == 2
    assert row["noise"]["battles"] == 1
    assert row["paper"] == 0.94


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tables", "battle", "--record", "none.json"], "python -m paper tables battle --rerun"),
        (["tables", "battle", "--only", "x"], "give --rerun"),
        (["tables", "battle", "--json", "--markdown"], "not both"),
        (["tables", "battle", "--options", "fog=false"], "is for the table 'heuristics'"),
        (["tables", "rescue", "--markdown"], "not for 'rescue'"),
        (["tables", "battle", "--rerun", "--battles", "0"], "battles must be at least 1"),
    ],
)
def test_mistakes_on_the_command_line_get_one_sentence(arguments, message, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
