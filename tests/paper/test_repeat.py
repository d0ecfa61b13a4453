"""One record of each kind made again: the same bits where nothing but our own arithmetic is in them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import muster
from benchmarks import inference
from paper import bias
from paper.run_names import PAPER

pytestmark = pytest.mark.slow
RUN = PAPER / "repeat"
"""muster train rescue:2x4 --steps 200000 --seed 0"""


def test_a_run_by_steps_has_the_same_weights_and_results(tmp_path):
    # A process of its own, since the tests' own validates runs on fewer episodes.
    command = [sys.executable, "-m", "muster", "train", "--config", str(RUN / "config.toml")]
    subprocess.run([*command, "--out", str(tmp_path / "run")], check=True, capture_output=True)
    found, recorded = muster.load(tmp_path / "run"), muster.load(RUN / "policy.safetensors")
    assert found.parameters.keys() == recorded.parameters.keys()
    for name, array in recorded.parameters.items():
        assert np.array_equal(found.parameters[name], array), name
    again, before = (json.loads((folder / "summary.json").read_text()) for folder in (tmp_path / "run", RUN))
    assert again.keys() == before.keys()
    for name in before.keys() - {"cpu_minutes", "command", "commit"}:
        assert again[name] == before[name], name


@pytest.mark.parametrize(
    ("table", "asked"),
    [
        ("rescue", {"only": "rescue-5x10-quad-dm-es-s0", "tests": ("5x10",)}),
        ("battle", {"only": "battle-m10v10-lp-dm-es-s0", "tests": ("m10v10",)}),
    ],
)
def test_a_row_of_a_table_has_the_same_figures(table, asked, again):
    rerun = again(table)
    rerun(**asked)
    assert rerun.lines
    assert all(line.endswith(", as recorded") for line in rerun.lines), rerun.lines


def test_a_solver_finds_the_same_objectives():
    record = json.loads(Path(inference.__file__).with_suffix(".json").read_text())
    gaps = {(row["regime"], row["kind"]): row for row in record["enumerated"]}
    assert inference.measure_gap("unit", "random") == gaps["unit", "random"]
    quads = {(row["size"], row["regime"], row["kind"]): row for row in record["quad"]}
    found = inference.measure_quad((5, 10), "hits", "random")
    for objective in ("paper_objective", "fast_objective"):
        assert found[objective] == quads["5x10", "hits", "random"][objective]


def test_a_gradient_has_the_same_bias():
    """But for the last digits: numpy's logarithms may differ between machines."""
    found = {
        (row["size"], row["noise"], row["idling"], row["exchanges"]): row for row in bias.one_step(2, 2, 1.0, True)
    }
    assert len(found) == 2
    for row in json.loads(bias.RECORD.read_text())["one_step"]:
        if again := found.pop((row["size"], row["noise"], row["idling"], row["exchanges"]), None):
            for name in ("cosine", "worst", "length"):
                assert again[name] == pytest.approx(row[name], rel=1e-6)
    assert not found
