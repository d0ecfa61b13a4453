"""The table of fleets: what is evaluated, and how seeds are put together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from muster.assign.settings import InferenceSettings
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


def test_a_methods_cell_is_the_mean_of_its_seeds_day_by_day(folder: Path, again) -> None:
    record = again("fleet")(policies=folder, tests=("300",))
    together = record.find(policy="lp-dm by es", test="300")
    seeds = [record.find(policy=f"fleet-24-lp-dm-es-s{seed}") for seed in range(2)]
    assert [cell.seeds for cell in seeds] == [[0], [1]]
    assert together.mean == pytest.approx(np.mean([cell.mean for cell in seeds]))
    assert together.cpu_minutes == 1.5
    match, worth = (record.find(policy=name) for name in ("match", "worth"))
    assert together.gains["match"][0] == pytest.approx(together.mean - match.mean)
    assert set(worth.gains) == {"match"}
    one = evaluate(LearnedPolicy.load(folder / "fleet-24-lp-dm-es-s0.safetensors"), table.TESTS["300"], 4)
    assert seeds[0].mean == one.mean


def test_hindsight_and_its_bound_are_evaluated_on_recorded_days(tmp_path: Path, monkeypatch, again) -> None:
    day = [(60 * k, k % 3, (k + 1) % 3) for k in range(20)]
    monkeypatch.setattr(table, "TESTS", {"24": f"fleet:3,trips={write_town(tmp_path, day, day[::-1])},set=test"})
    cell = again("fleet")(policies=tmp_path, tests=("24",)).find(policy="hindsight")
    assert cell.upper_bound >= cell.mean
    assert cell.episodes == 2


def test_a_part_that_is_run_again_leaves_the_rest(folder: Path, again) -> None:
    rerun = again("fleet")
    keys = [rerun.table.key_of(cell) for cell in rerun(policies=folder, tests=("300",)).cells]
    found = rerun(policies=folder, only="*-s1", tests=("300",))
    assert [rerun.table.key_of(cell) for cell in found.cells] == keys
    with pytest.raises(InputError, match="no test in this table '12'"):
        rerun(policies=folder, tests=("12",))


def test_without_the_published_days_a_sentence_says_what_still_runs(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(table, "CHECKOUT", tmp_path)
    with pytest.raises(InputError, match="--tests 300"):
        table.env_of("24")
    assert table.env_of("300") == "fleet:300,city=large"
