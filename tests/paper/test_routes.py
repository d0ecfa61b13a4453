"""The table of learned routes: what its cells mean, and running part of it again."""

from __future__ import annotations

import json

import numpy as np
import pytest

from muster.cli.main import main
from muster.errors import InputError
from muster.evaluation.evaluate import evaluate
from muster.learning.settings import TrainSettings
from muster.learning.train import make_learner
from paper.tables.places import committed_record
from paper.tables.routes import METHOD, MUDDY, TESTS, Record, find, run_table, seeds_of


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """Two that plan on distances, and one that does so in mud."""
    folder = tmp_path_factory.mktemp("routes")
    for name, env in (("es-s0", ""), ("es-s1", ""), ("mud-es-s0", ",mud=0.3")):
        policy = make_learner(TrainSettings(env=f"rescue:2x4{env}", inference="routes", steps=1)).policy()
        policy.variant(header={**policy.header, "cpu_minutes": 0.0}).save(
            folder / f"rescue-2x4-routes-dm-{name}.safetensors",
        )
    return folder


def test_cells_say_how_far_from_the_bar_and_how_much_of_the_gap_is_closed(policies):
    record = run_table(12, 5, "x", policies, tests=["2x4"])
    best = evaluate("topline", "rescue:2x4", 12, 5).mean
    dry = find(record, METHOD, "dry", "2x4")
    assert dry.seeds == [0, 1]
    assert dry.above == pytest.approx(evaluate("routes-distance", "rescue:2x4", 12, 5).mean / best - 1)
    assert dry.closed is None
    found = {name: find(record, name, MUDDY, "2x4").closed for name in ("routes-distance", "routes-known", METHOD)}
    assert found == pytest.approx({"routes-distance": 0.0, "routes-known": 1.0, METHOD: 0.0})


def test_a_part_that_is_run_again_leaves_the_rest(policies, tmp_path, capsys):
    path = tmp_path / "routes.json"
    run_table(4, 5, "x", policies, tests=["2x4"]).save(path)
    before = Record.load(path)
    where = ["--record", str(path), "--policies", str(policies), "--episodes", "4", "--seed", "5"]
    main(["tables", "routes", "--rerun", *where, "--only", "*-mud-*", "--tests", "5x10", "--json"])
    after = {(cell["policy"], cell["ground"], cell["test"]) for cell in json.loads(capsys.readouterr().out)["cells"]}
    assert {cell.key for cell in before.cells} < after
    assert (METHOD, MUDDY, "5x10") in after
    with pytest.raises(InputError, match="4 episodes of seed 5"):
        run_table(9, 5, "x", policies, before=Record.load(path))


def test_the_committed_record_is_printed_whole(capsys):
    record = Record.load(committed_record("routes"))
    assert record.episodes == 1000
    for ground, tests in TESTS.items():
        for test in tests:
            seeds = seeds_of(record, ground, test)
            assert len(seeds) == 3
            assert find(record, METHOD, ground, test).mean == pytest.approx(np.mean([cell.mean for cell in seeds]))
    main(["tables", "routes", "--markdown"])
    assert "not run" not in capsys.readouterr().out
