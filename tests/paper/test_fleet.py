"""The table of fleets: what is played, how seeds are put together, and what it prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from muster.assign.settings import InferenceSettings
from muster.cli.main import main
from muster.envs.registry import make
from muster.errors import InputError
from muster.evaluation.evaluate import evaluate
from muster.models.direct import init_parameters
from muster.models.spec import ModelSpec
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import NoiseSettings
from paper.tables import fleet as table
from tests.envs.fleet.conftest import write_town


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two seeds of a policy that knows nothing, and a table with one small test of four hours."""
    monkeypatch.setattr(table, "TESTS", {"300": "fleet:6,city=small,minutes=12"})
    monkeypatch.setattr(table, "CITY_EPISODES", 4)
    spec = ModelSpec.of(make("fleet:6,city=small").observe(), "dm", task_scores=False)
    for seed in range(2):
        parameters = init_parameters(spec, np.random.default_rng(seed))
        header = {"env": "fleet:24,city=small", "cpu_minutes": 1.0 + seed}
        policy = LearnedPolicy("es", spec, parameters, InferenceSettings("lp"), NoiseSettings(), header)
        policy.save(tmp_path / f"fleet-24-lp-dm-es-s{seed}.safetensors")
    return tmp_path


def test_a_methods_cell_is_the_mean_of_its_seeds_day_by_day(folder: Path) -> None:
    record = table.run_table(0, "here", folder)
    together = table.find(record, "lp-dm by es", "300")
    seeds = table.runs_of(record, "lp-dm by es", "300")
    assert together is not None
    assert [cell.seeds for cell in seeds] == [[0], [1]]
    assert together.mean == pytest.approx(np.mean([cell.mean for cell in seeds]))
    assert together.cpu_minutes == 1.5
    match, worth = (table.find(record, name, "300") for name in ("match", "worth"))
    assert match is not None
    assert worth is not None
    assert together.gains["match"][0] == pytest.approx(together.mean - match.mean)
    assert set(worth.gains) == {"match"}
    one = evaluate(LearnedPolicy.load(folder / "fleet-24-lp-dm-es-s0.safetensors"), table.TESTS["300"], 4)
    assert seeds[0].mean == one.mean


def test_hindsight_and_its_bound_are_played_on_recorded_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = [(60 * k, k % 3, (k + 1) % 3) for k in range(20)]
    monkeypatch.setattr(table, "TESTS", {"24": f"fleet:3,trips={write_town(tmp_path, day, day[::-1])},set=test"})
    record = table.run_table(0, "here", tmp_path)
    cell = table.find(record, "hindsight", "24")
    assert cell is not None
    assert cell.upper_bound is not None
    assert cell.upper_bound >= cell.mean
    assert cell.episodes == 2


def test_a_record_is_read_back_and_run_again_in_part(folder: Path) -> None:
    record = table.run_table(0, "here", folder)
    record.save(folder / "record.json")
    back = table.Record.load(folder / "record.json")
    assert [cell.key for cell in back.cells] == [cell.key for cell in record.cells]
    again = table.run_table(0, "here", folder, only="*-s1", before=back)
    assert {cell.key for cell in again.cells} == {cell.key for cell in record.cells}


def test_without_the_published_days_a_sentence_says_what_still_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(table, "CHECKOUT", tmp_path)
    with pytest.raises(InputError, match="--tests 300"):
        table.world_of("24")
    assert table.world_of("300") == "fleet:300,city=large"


def test_a_test_that_is_not_in_the_table_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="no test in this table '12'"):
        table.run_table(0, "here", folder, tests=("12",))


def test_the_committed_record_prints_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--json"], ["--markdown"]):
        main(["tables", "fleet", *arguments])
        assert "lp-dm by es" in capsys.readouterr().out
