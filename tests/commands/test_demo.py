from __future__ import annotations

import pytest

from muster.cli import main


def test_demo_compares_and_writes_a_replay(capsys, tmp_path):
    main(["demo", "--episodes", "3", "--minutes", "0.02", "--out", str(tmp_path / "out")])
    said = capsys.readouterr().out
    for words in (
        "AMAX",
        "LP",
        "QUAD",
        "closest",
        "lp-distance",
        "topline",
        "demo-run",
        "rescue:8x15",
        "muster compare",
    ):
        assert words in said
    assert (tmp_path / "out" / "rescue-5x10.gif").stat().st_size > 1000


@pytest.mark.parametrize("arguments", [["--episodes", "0"], ["--minutes", "0"], ["--out", "{file}/out"]])
def test_mistakes_get_one_sentence(capsys, tmp_path, arguments):
    file = tmp_path / "file"
    file.touch()
    arguments = [argument.format(file=file) for argument in arguments]
    with pytest.raises(SystemExit) as left:
        main(["demo", "--episodes", "1", "--minutes", "0.01", *arguments])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("muster: ")
