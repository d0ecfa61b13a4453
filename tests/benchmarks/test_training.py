"""`python -m benchmarks training`: rates, shares, and peers that may be absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import training
from benchmarks.__main__ import main


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "SECONDS", 0.01)
    monkeypatch.setattr(training, "UNTIMED", 1)
    monkeypatch.setattr(training, "SIZES", ("2x4",))
    monkeypatch.setattr(training, "BATTLES", ())
    monkeypatch.setattr(training, "PEERS_PYTHON", Path("nowhere/python"))
    monkeypatch.setattr(training, "measure_peers", lambda env: ([{"env": env, "skipped": "not installed"}], "n"))


def test_rates_and_where_the_time_goes(capsys):
    main(["training", "--json"])
    found = json.loads(capsys.readouterr().out)
    methods, learners = ("amax", "lp", "quad"), training.RESCUE_LEARNERS
    expected = [(method, "ppo") for method in methods] + [("quad", learner) for learner in learners[1:]]
    assert [(row["inference"], row["learner"]) for row in found["rows"]] == expected
    for row in found["rows"]:
        assert row["steps_per_second"] > 0
        assert set(row["shares"]) == set(training.PARTS)
        assert sum(row["shares"].values()) == pytest.approx(1.0, abs=0.05)
        assert (row["shares"]["backward"] > 0) == (row["learner"] != "es")
    assert found["peer"] is None


def test_evolution_is_measured_too():
    row = training.measure("rescue:2x4", "lp", "es")
    assert row["shares"]["inference"] > 0
    assert row["shares"]["backward"] == 0


def test_the_table_sets_ours_beside_the_peer_s():
    row = {"env": "rescue:2x4", "inference": "lp", "learner": "ppo", "steps_per_second": 500.0}
    row["shares"] = dict.fromkeys(training.PARTS, 0.1)
    found = {
        "machine": "m",
        "rows": [row],
        "peer": {"a2c": {"2x4": 1000.0}, "ppo": {"2x4": 800.0}},
        "environments": [],
        "note": "",
    }
    assert "| rescue:2x4 | lp | ppo | 500 | 10% | 10% | 10% | 10% | 10% | 10% | 0.50 |" in training.report(found)
    absent = training.report(found | {"peer": None, "note": "a note"})
    assert any(line.startswith("Stable-Baselines3 is not here") for line in absent)
    assert absent[-1] == "a note"
