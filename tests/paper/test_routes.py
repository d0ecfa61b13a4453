"""The table of learned routes: what its cells mean, and evaluating part of it again."""

from __future__ import annotations

import numpy as np
import pytest

from muster.errors import InputError
from muster.evaluation.evaluate import evaluate
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from paper.tables.routes import METHOD, TESTS, Routes, seeds_of


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


def test_cells_say_how_far_from_the_bar_and_how_much_of_the_gap_is_closed(policies, again):
    record = again("routes")(episodes=12, seed=5, policies=policies, tests=("2x4",))
    best = evaluate("topline", "rescue:2x4", 12, 5).mean
    dry = record.find(policy=METHOD, ground="dry", test="2x4")
    assert dry.seeds == [0, 1]
    assert dry.above == pytest.approx(evaluate("routes-distance", "rescue:2x4", 12, 5).mean / best - 1)
    assert dry.closed is None
    names = ("routes-distance", "routes-known", METHOD)
    found = {name: record.find(policy=name, ground="mud", test="2x4").closed for name in names}
    assert found == pytest.approx({"routes-distance": 0.0, "routes-known": 1.0, METHOD: 0.0})


def test_a_part_that_is_run_again_leaves_the_rest(policies, again):
    rerun, small = again("routes"), {"seed": 5, "policies": policies}
    before = list(rerun(episodes=4, **small, tests=("2x4",)).cells)
    after = rerun(episodes=4, **small, only="*-mud-*", tests=("5x10",))
    assert after.cells[: len(before)] == before
    assert after.find(policy=METHOD, ground="mud", test="5x10")
    with pytest.raises(InputError, match="with --episodes 4 --seed 5"):
        rerun(episodes=9, **small, only="*-mud-*")


def test_the_committed_record_is_whole():
    record = Routes().load()
    assert record.head["episodes"] == 1000
    for ground, tests in TESTS.items():
        for test in tests:
            seeds = seeds_of(record, ground, test)
            assert len(seeds) == 3
            mean = record.find(policy=METHOD, ground=ground, test=test).mean
            assert mean == pytest.approx(np.mean([cell.mean for cell in seeds]))
