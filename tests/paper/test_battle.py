"""The table of battles: the paper's win rates, the record and its rerun."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from muster.errors import InputError
from paper.__main__ import main
from paper.tables import battle as battle_table
from paper.tables import heuristics as heuristics_table
from paper.tables.battle import Battle, Cell
from paper.tables.engine import Asked, Record
from paper.tables.engine import rerun as evaluate_again
from tests.policy.policy_files import write_random_policy

FEW = {"battles": 5, "seed_battles": 3, "tests": ("m5v5", "m10v10")}


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
def recorded(first: Path, policies: Path) -> Path:
    """Policies that a record has all cells of, so that `rerun` only reads it."""
    shutil.copy(first.parent / "record.json", policies.parent)
    return policies


def rerun(policies: Path, lines: list[str] | None = None, **changes) -> Record[Cell]:
    asked = Asked(**{"policies": policies, **FEW, **changes})
    return evaluate_again(Battle(), asked, policies.parent / "record.json", ([] if lines is None else lines).append)


def make_cell(seed: int, wins: int, test: str = "w15v17", **changes) -> Cell:
    name = f"battle-w15v17-quad-dm-es-s{seed}"
    cell = Cell(name, "w15v17", "quad-dm", "es", seed, "h", 3.0, 2_000_000, test, "seed", False, wins, 100, 0, "x")
    return replace(cell, **changes)


def test_the_paper_has_17_scenarios_and_known_rates() -> None:
    rows = battle_table.PAPER
    assert len(rows) == 17
    assert rows["w15v17"] == {
        **{"train": "w15v17", "heuristic": "wcnoks", "best": [0.81, 0.02]},
        **{"amax": [0.30, 0.03], "lp": [0.53, 0.03], "quad": [0.89, 0.02]},
    }
    assert [rows["m30v30"][name][0] for name in ("lp", "quad", "amax")] == [0.74, 0.06, 0.36]
    assert (rows["zh10v12"]["best"][0], rows["zh10v12"]["lp"][0], rows["w80v82"]["quad"][0]) == (0.03, 0.06, 0.36)


def test_the_best_heuristics_agree_with_the_table_of_heuristics() -> None:
    for test, rates in heuristics_table.PAPER.items():
        row = battle_table.PAPER[test]
        assert rates[row["heuristic"]] == row["best"][0] == max(rates.values())


def test_policies_are_tested_on_their_own_units() -> None:
    assert battle_table.scenarios_of("w15v17") == ["w15v17", "w30v34", "w30v35", "w60v67", "w60v68", "w80v82"]
    assert len(battle_table.scenarios_of("m10v10")) == 6
    with pytest.raises(InputError, match="no scenario 'w3v3'"):
        battle_table.scenarios_of("w3v3")


def test_the_median_policy_is_chosen_in_the_scenario_trained_on() -> None:
    cells = [make_cell(seed, wins) for seed, wins in enumerate((90, 70, 80, 60))]
    cells += [make_cell(seed, 100 * seed, "w30v34") for seed in range(4)]
    group = ("w15v17", "quad-dm", "es")
    assert battle_table.median_policy(cells, group) == "battle-w15v17-quad-dm-es-s1"
    assert battle_table.median_policy(cells, ("w15v17", "lp-dm", "es")) is None


def test_rows_give_median_spread_and_what_was_not_run() -> None:
    cells = [make_cell(seed, wins) for seed, wins in enumerate((90, 70, 80))]
    cells.append(make_cell(2, 85, role="median", battles=1000))
    rows = battle_table.rows_of(Record({}, cells), "w15v17")
    assert [(row.method, row.learner) for row in rows] == [("amax-dm", ""), ("lp-dm", ""), ("quad-dm", "es")]
    assert rows[2].spread == (0.8, 0.7, 0.9)
    assert rows[2].paper == 0.89
    assert rows[2].median is not None
    assert rows[2].median.rate == 0.085
    assert rows[0].spread is None


def test_records_of_different_simulators_are_told_apart() -> None:
    heuristics = Record({"settings": {"latency": 2, "fog": True}}, [])
    for settings, changed in (({"latency": 2, "fog": True, "newer": 1}, []), ({"latency": 3}, ["latency"])):
        assert battle_table.changed_settings(Record({"settings": settings}, []), heuristics) == changed


def test_a_rerun_is_deterministic_and_evaluates_each_cell_once(recorded: Path) -> None:
    policies = recorded
    record = rerun(policies)
    keys = [Battle().key_of(cell) for cell in record.cells]
    # Four policies on two scenarios; then the median of either group, without and with noise.
    assert len(keys) == len(set(keys)) == 4 * 2 + 2 * 2 * 2
    assert Battle().load(policies.parent / "record.json") == record
    written = (policies.parent / "record.json").read_bytes()
    assert rerun(policies, fresh=True) == record
    assert (policies.parent / "record.json").read_bytes() == written
    assert {cell.battles for cell in record.cells if cell.role == "median" and not cell.noise} == {5}


def test_what_is_done_is_skipped_and_what_changed_is_replaced(recorded: Path) -> None:
    lines: list[str] = []
    before = rerun(recorded, lines)
    assert lines == []
    changed = "battle-m10v10-quad-dm-raw-a2c-s0"
    write_random_policy(recorded / f"{changed}.safetensors", "battle:m10v10", "quad", 8)
    after = rerun(recorded, lines)
    assert {line.split()[0] for line in lines} == {changed}
    assert len(after.cells) == len(before.cells)
    assert [c for c in after.cells if c.policy != changed] == [c for c in before.cells if c.policy != changed]
    assert {c.hash for c in after.where(policy=changed)}.isdisjoint({c.hash for c in before.where(policy=changed)})


def test_only_keeps_the_other_rows_and_the_median_follows(recorded: Path) -> None:
    before = rerun(recorded)
    after = rerun(recorded, only="*-lp-dm-es-s1", seed_battles=4)
    assert {c.battles for c in after.cells if c.policy.endswith("es-s1") and c.role == "seed"} == {4}
    rest = [c for c in before.cells if c.role == "seed" and not c.policy.endswith("es-s1")]
    assert [c for c in after.cells if c.role == "seed" and not c.policy.endswith("es-s1")] == rest
    assert len({c.policy for c in after.cells if c.role == "median" and c.method == "lp-dm"}) == 1


def test_a_policy_that_is_no_longer_the_median_leaves_its_extra_cells(recorded: Path) -> None:
    before = rerun(recorded)
    group = ("m10v10", "lp-dm", "es")
    chosen = battle_table.median_policy(before.cells, group)
    # As if the median seed had won everything and the other two nothing.
    edited = [
        replace(cell, wins=3 if cell.policy == chosen else 0) if cell.group == group and cell.role == "seed" else cell
        for cell in before.cells
    ]
    Record(before.head, edited).save(recorded.parent / "record.json")
    after = rerun(recorded)
    extra = {cell.policy for cell in after.cells if cell.group == group and cell.role == "median"}
    assert extra == {battle_table.median_policy(after.cells, group)}
    assert chosen not in extra


def test_an_interrupted_rerun_loses_nothing(policies: Path) -> None:
    def stop(line: str) -> None:
        raise KeyboardInterrupt

    path, asked = policies.parent / "record.json", Asked(policies=policies, only="*-raw-*", **FEW)
    with pytest.raises(KeyboardInterrupt):
        evaluate_again(Battle(), asked, path, stop)
    assert len(Battle().load(path).cells) == 1
    lines: list[str] = []
    assert len(rerun(policies, lines, only="*-raw-*").cells) == len(lines) + 1 > 2


def test_policies_that_are_gone_leave_the_record(recorded: Path) -> None:
    gone = "battle-m10v10-lp-dm-es-s0"
    assert any(cell.policy == gone for cell in rerun(recorded).cells)
    (recorded / f"{gone}.safetensors").unlink()
    assert not any(cell.policy == gone for cell in rerun(recorded).cells)


def test_mistakes_of_a_rerun_get_one_sentence(recorded: Path, tmp_path: Path, monkeypatch) -> None:
    policies = recorded
    with pytest.raises(InputError, match="no policy there is named 'nothing'"):
        rerun(policies, only="nothing")
    with pytest.raises(InputError, match="there is no folder"):
        rerun(tmp_path / "nowhere")
    with pytest.raises(InputError, match="must be among the tests"):
        rerun(policies, tests=("m5v5",))
    with pytest.raises(InputError, match="no scenario with the units of m10v10 'w15v17'"):
        rerun(policies, tests=("w15v17",))
    monkeypatch.setattr(battle_table, "simulator_settings", lambda: {"latency": 5})
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
    monkeypatch.setattr(battle_table, "scenarios_of", lambda train: FEW["tests"])
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
    assert len({row[0] for row in found["grids"][0]["rows"]} - {""}) == 17
    medians = [cell for cell in found["cells"] if cell["role"] == "median" and cell["learner"] == "es"]
    assert {(cell["noise"], cell["battles"]) for cell in medians} == {(False, 2), (True, 1)}
