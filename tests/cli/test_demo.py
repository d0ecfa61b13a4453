from __future__ import annotations

from pathlib import Path

import pytest

from muster.cli.demo import next_commands
from muster.cli.main import main
from tests.policy.policy_files import write_random_policy


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
    assert (tmp_path / "out" / "rescue-5x10.html").stat().st_size > 1000
    for command, _ in next_commands(tmp_path / "out"):
        assert command in said.replace("\n", "")


def test_what_comes_next_works_as_printed(tmp_path, monkeypatch, capsys):
    """Nothing that only a checkout has, and the folder that the demonstration was told to use."""
    monkeypatch.chdir(tmp_path)
    write_random_policy(tmp_path / "mine" / "demo-run" / "best.safetensors", "rescue:2x4")
    for command, _ in next_commands(Path("mine")):
        if "|" not in command:
            words = command.split()[1:]
            quick = {"compare": ["--episodes", "2"], "train": ["--minutes", "0.01"]}
            main(words + quick.get(words[0], []))
    assert (tmp_path / "mine" / "replay.html").exists()


@pytest.mark.parametrize("arguments", [["--episodes", "0"], ["--minutes", "0"], ["--out", "{file}/out"]])
def test_mistakes_get_one_sentence(capsys, tmp_path, arguments):
    file = tmp_path / "file"
    file.touch()
    arguments = [argument.format(file=file) for argument in arguments]
    with pytest.raises(SystemExit) as left:
        main(["demo", "--episodes", "1", "--minutes", "0.01", *arguments])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("muster: ")
