"""Runs in a folder, also those that are being written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.evaluation.runs import read_curve, read_runs


def write_run(folder: Path, name: str, rows: int, env: str = "rescue:2x4") -> Path:
    place = folder / name
    place.mkdir(parents=True)
    (place / "config.toml").write_text(f'env = "{env}"\nlearner = "es"\n')
    lines = [json.dumps({"steps": 10 * k, "validation": -k, "cpu_seconds": k, "note": "x"}) for k in range(rows)]
    (place / "metrics.jsonl").write_text("".join(line + "\n" for line in lines) + '{"steps": 99')
    return place


def test_the_curve_of_a_run_that_is_being_written(tmp_path: Path):
    write_run(tmp_path, "one", 4000)
    assert [run["name"] for run in read_runs(tmp_path)] == ["one"]
    rows = read_curve(tmp_path, "one")["rows"]
    assert 1000 < len(rows) <= 1501
    assert rows[-1] == {"steps": 39990, "validation": -3999, "cpu_seconds": 3999}
    assert read_runs(tmp_path / "nowhere") == []


@pytest.mark.parametrize("text", ["[1]", '{"baselines": 3}', '{"baselines": {"a": 1, "b": {"mean": NaN}}}', "{", ""])
def test_a_curve_outlives_an_odd_summary_and_card(tmp_path: Path, text: str):
    write_run(tmp_path, "one", 1)
    for name in ("summary.json", "card.json"):
        (tmp_path / "one" / name).write_text(text)
    assert read_curve(tmp_path, "one")["baselines"] == {}
