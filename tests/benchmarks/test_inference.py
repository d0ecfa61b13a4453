from __future__ import annotations

import json

import pytest

from benchmarks import inference, inference_process, inference_report
from benchmarks.__main__ import main


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "LP_COUNTS", dict.fromkeys([(5, 10), (80, 82)], (2, 2)) | {(1000, 1000): (1, 1)})
    monkeypatch.setattr(inference, "QUAD_COUNTS", {(5, 10): 2, (80, 82): 1})
    monkeypatch.setattr(inference, "PYTHON_QUAD_COUNTS", {(5, 10): 1})
    monkeypatch.setattr(inference, "ENUMERATED", 1)
    monkeypatch.setattr(
        inference, "measure_in_child", lambda _: {"size": "", "kinds": [{"kind": "", "seconds": 1}], "peak_bytes": 1}
    )
    monkeypatch.setattr(inference_process, "best_wall", lambda _: 0.1)


@pytest.mark.usefixtures("quick")
@pytest.mark.slow
def test_peers_agree_and_absent_ones_are_noted(monkeypatch, capsys):
    real = inference.ask_peer
    missing = "glop skipped: no ortools"

    def ask(peer, groups, notes):
        if peer == "scipy":
            # Without the large instance, which is for the record.
            return real(peer, groups[:-1], notes)
        notes.append(missing)
        return []

    monkeypatch.setattr(inference, "ask_peer", ask)
    main(["inference", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert missing in found["notes"]
    answers = [row["scipy"] for row in found["lp"] if "scipy" in row]
    assert len(answers) == 2
    assert all(answer["agrees"] for answer in answers)
    assert any(one["target"].startswith("QUAD fast") for one in found["targets"])
    assert "## LP, exact" in inference_report.markdown(found)
    inference_report.print_tables(found)
    assert "QUAD, fast beside paper" in capsys.readouterr().out
