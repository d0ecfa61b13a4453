from __future__ import annotations

from examples.past_decisions import Options, main


def test_decisions_are_written_down_learned_and_compared(tmp_path):
    env = "fleet:4,city=small"
    options = Options(past=env, future=env, days=8, minutes=0.02, test_days=8, out=tmp_path)
    earned = main(options)
    assert list(earned) == ["greedy", "match", "worth", "copy of hindsight"]
    assert earned["copy of hindsight"] > 0
    assert (tmp_path / "decisions.jsonl.gz").exists()
