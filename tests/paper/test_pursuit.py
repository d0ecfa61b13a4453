"""The table of pursuit: what its cells mean, and evaluating part of it again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from muster.errors import InputError
from muster.evaluation.evaluate import evaluate
from paper.tables import pursuit as table
from tests.policy.policy_files import write_random_policy


@pytest.fixture(scope="module")
def policies(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pursuit")
    for seed in range(2):
        write_random_policy(folder / f"pursuit-4x2-lp-dm-es-s{seed}.safetensors", "pursuit:4x2", "lp", seed)
    write_random_policy(folder / "pursuit-4x2-amax-dm-three-es-s0.safetensors", "pursuit:4x2,needed=3", "amax", 0)
    return folder


def test_a_cell_is_the_evaluation_and_its_difference_from_the_best_baseline(policies, again):
    record = again("pursuit")(episodes=20, seed=7, policies=policies, tests=("8x4",))
    steps = {name: evaluate(name, "pursuit:8x4", 20, 7).records.outcome for name in table.BASELINES}
    runs = [
        evaluate(str(policies / f"pursuit-4x2-lp-dm-es-s{k}.safetensors"), "pursuit:8x4", 20, 7).records.outcome
        for k in range(2)
    ]
    best = min(steps, key=lambda name: steps[name].mean())
    one, both = (
        record.find(policy="pursuit-4x2-lp-dm-es-s1", needed=2, test="8x4"),
        record.find(policy="lp-dm-es", needed=2, test="8x4"),
    )
    assert one.mean == runs[1].mean()
    assert one.best_baseline == both.best_baseline == best
    assert one.difference == pytest.approx((runs[1] - steps[best]).mean())
    assert both.mean == pytest.approx(np.mean(runs))
    assert both.seeds == [0, 1]
    assert both.difference_ci95[0] <= both.difference <= both.difference_ci95[1]
    assert record.find(policy="closest", needed=2, test="8x4").mean == steps["closest"].mean()
    assert record.find(policy="closest", needed=2, test="8x4").verdict == ""
    three = evaluate(str(policies / "pursuit-4x2-amax-dm-three-es-s0.safetensors"), "pursuit:8x4,needed=3", 20, 7)
    assert record.find(policy="amax-dm-es", needed=3, test="8x4").mean == three.records.outcome.mean()
    assert record.find(policy="amax-dm-es", needed=3, test="8x4").failed == three.failed / 20


def test_only_replaces_its_own_cells(policies, again):
    rerun = again("pursuit")
    small = {"episodes": 4, "policies": policies}
    whole = rerun(**small, tests=("4x2", "8x4"))
    assert len(whole.cells) == 2 * (3 + 2 + 1 + 3 + 1 + 1)
    assert rerun(**small, only="*three*", tests=("8x4",)) == whole
    with pytest.raises(InputError, match="no test in this table '9x9'"):
        rerun(**small, tests=("9x9",))
    with pytest.raises(InputError, match=r"no policy in .* is named 'nobody'"):
        rerun(**small, only="nobody")
    with pytest.raises(InputError, match="with --episodes 4 --seed 0"):
        rerun(episodes=5, policies=policies, only="*three*")


def test_a_cell_that_is_run_again_is_as_recorded(again):
    rerun = again("pursuit")
    rerun(only="pursuit-4x2-lp-dm-es-s0", tests=("4x2",))
    # Three baselines and the run itself; the method's row is of all seeds in the record, and of this one here.
    assert sum(line.endswith(", as recorded") for line in rerun.lines) == 4


def test_learning_beats_the_best_baseline_at_every_size_as_the_document_says():
    record = table.Pursuit().load()
    for test in table.TESTS:
        methods = [record.find(policy=f"{name}-dm-es", needed=2, test=test) for name in ("lp", "quad")]
        assert "better" in {cell.verdict for cell in methods}
