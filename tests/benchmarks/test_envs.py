from __future__ import annotations

import json

import pytest

from benchmarks import envs
from benchmarks.__main__ import main


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envs, "SECONDS", 0.01)
    monkeypatch.setattr(envs, "ENVS", ("rescue:2x4", "rescue:5x10"))
    monkeypatch.setattr(envs, "BATTLES", (("battle:m2v2", "c", 2),))
    monkeypatch.setattr(envs, "LEARNED", (("rescue:2x4", "rescue-2x4-lp-dm"),))


@pytest.mark.usefixtures("quick")
def test_absent_peers_are_skipped_with_a_note(monkeypatch, capsys):
    monkeypatch.setenv("MUSTER_PEERS", "nowhere/python")
    main(["envs", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["peers"] == []
    assert "peers skipped: no nowhere/python" in found["note"]
    assert all(row["steps_per_second"] > 0 for row in found["environments"])


@pytest.mark.usefixtures("quick")
def test_peers_are_set_beside_ours(monkeypatch, capsys):
    peers = [
        {"env": "slow", "beside": "rescue:5x10", "steps_per_second": 1.0},
        {"env": "war", "beside": "battle:m2v2", "steps_per_second": 1.0},
        {"env": "absent", "skipped": "not installed"},
    ]
    monkeypatch.setattr(envs, "measure_peers", lambda: (peers, ""))
    main(["envs"])
    table = capsys.readouterr().out
    assert "| rescue:5x10 |" in table
    assert "| slow | 1 | |" in table
    assert "| battle:m2v2, 2 in a batch |" in table
    assert "| war | 1 | battle:m2v2 |" in table
    assert "| rescue:2x4, 256 in a batch |" in table
    assert "| absent | skipped: not installed | | |" in table
