"""The table of pursuit: printing it, and running part of it again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from muster.cli.main import main
from muster.errors import InputError
from muster.evaluation.evaluate import evaluate
from paper.tables import pursuit as table
from paper.tables.places import committed_record
from paper.tables.pursuit import Record, find, run_table
from tests.policy.policy_files import write_random_policy


@pytest.fixture(scope="module")
def policies(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pursuit")
    for seed in range(2):
        write_random_policy(folder / f"pursuit-4x2-lp-dm-es-s{seed}.safetensors", "pursuit:4x2", "lp", seed)
    write_random_policy(folder / "pursuit-4x2-amax-dm-three-es-s0.safetensors", "pursuit:4x2,needed=3", "amax", 0)
    return folder


def test_a_cell_is_the_evaluation_and_its_difference_from_the_best_rule(policies):
    record = run_table(20, 7, "x", policies, tests=["8x4"])
    steps = {name: evaluate(name, "pursuit:8x4", 20, 7).records.outcome for name in table.RULES}
    runs = [
        evaluate(str(policies / f"pursuit-4x2-lp-dm-es-s{k}.safetensors"), "pursuit:8x4", 20, 7).records.outcome
        for k in range(2)
    ]
    best = min(steps, key=lambda name: steps[name].mean())
    one, both = find(record, "pursuit-4x2-lp-dm-es-s1", 2, "8x4"), find(record, "lp-dm-es", 2, "8x4")
    assert one.mean == runs[1].mean()
    assert one.best_rule == both.best_rule == best
    assert one.difference == pytest.approx((runs[1] - steps[best]).mean())
    assert both.mean == pytest.approx(np.mean(runs))
    assert both.seeds == [0, 1]
    assert both.difference_ci95[0] <= both.difference <= both.difference_ci95[1]
    assert find(record, "closest", 2, "8x4").mean == steps["closest"].mean()
    assert find(record, "closest", 2, "8x4").verdict == ""
    three = evaluate(str(policies / "pursuit-4x2-amax-dm-three-es-s0.safetensors"), "pursuit:8x4,needed=3", 20, 7)
    assert find(record, "amax-dm-es", 3, "8x4").mean == three.records.outcome.mean()
    assert find(record, "amax-dm-es", 3, "8x4").failed == three.failed / 20


def test_only_replaces_its_own_cells(policies):
    whole = run_table(4, 0, "x", policies, tests=["4x2", "8x4"])
    assert len({cell.key for cell in whole.cells}) == len(whole.cells) == 2 * (3 + 2 + 1 + 3 + 1 + 1)
    part = run_table(4, 0, "y", policies, only="*three*", tests=["8x4"], before=whole)
    assert part == whole


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"tests": ["9x9"]}, "no test size in this table '9x9'"),
        ({"only": "nobody"}, "no policy in .* is named 'nobody'"),
        ({"before": Record(5, 0, "x", [])}, "the record has 5 episodes of seed 0 in every cell"),
    ],
)
def test_what_cannot_be_run_is_refused(policies, bad, message):
    with pytest.raises(InputError, match=message):
        run_table(4, 0, "x", policies, **bad)


def test_a_cell_that_is_run_again_is_as_recorded(capsys, tmp_path):
    record = Record.load(committed_record("pursuit"))
    flags = ["--episodes", str(record.episodes), "--seed", str(record.seed), "--record", str(tmp_path / "new.json")]
    main(["tables", "pursuit", "--rerun", "--only", "pursuit-4x2-lp-dm-es-s0", "--tests", "4x2", *flags])
    said = capsys.readouterr()
    # Three rules and the run itself; the method's row is of all seeds in the record, and of this one here.
    assert said.err.count(", as recorded\n") == 4


def test_the_committed_table_prints(capsys):
    main(["tables", "pursuit"])
    shown = capsys.readouterr().out
    for words in ("2 needed", "3 needed", "quad-dm-es", "lp-distance", "each seed", "40x20"):
        assert words in shown
    main(["tables", "pursuit", "--markdown"])
    assert "| 2 needed | 4x2 | 8x4 |" in capsys.readouterr().out
    main(["tables", "pursuit", "--json"])
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert {cell["verdict"] for cell in found["cells"]} <= {"", "better", "even", "worse"}


def test_learning_beats_the_best_rule_at_every_size_as_the_document_says():
    record = Record.load(committed_record("pursuit"))
    for test in table.TESTS:
        assert "better" in {find(record, f"{name}-dm-es", 2, test).verdict for name in ("lp", "quad")}
