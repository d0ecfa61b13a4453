"""`python -m benchmarks`: names and flags."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import BENCHMARKS, main


def test_every_benchmark_has_help(capsys):
    for name in BENCHMARKS:
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
        assert f"python -m benchmarks {name}" in capsys.readouterr().out


def test_an_unknown_one_gets_a_sentence(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["publik"])
    assert "did you mean 'public'" in capsys.readouterr().err
