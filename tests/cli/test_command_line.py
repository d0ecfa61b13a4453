"""What the command line itself does: its version, wrong words, Ctrl-C."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time

import pytest

import muster
from muster.cli import flags
from muster.cli.main import COMMANDS, main


def refusal(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("muster: ")
    assert said.count("\n") == 1, "one sentence"
    return said


@pytest.mark.parametrize("command", COMMANDS)
def test_flags_that_a_command_is_known_to_take_are_those_of_its_help(command, capsys, monkeypatch):
    known: set[str] = set()
    taken = flags.arguments_of

    def noted(command):
        found = taken(command)
        known.update(found[0])
        return found

    monkeypatch.setattr(flags, "arguments_of", noted)
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9.-]*\w", capsys.readouterr().out))
    of_others = {"--out", "--from-log"} - known  # some help speaks of another command
    assert shown - {"--help"} - of_others == known
    assert command != "train" or len([flag for flag in known if "no-" not in flag]) <= 45


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version(capsys, flag):
    main([flag])
    assert capsys.readouterr().out == f"muster {muster.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("evalute", "closest", "rescue:2x4"), "no command 'evalute'; did you mean 'evaluate'?"),
        (("train", "rescue:2x4", "--config"), "--config needs a value"),
        (("train", "rescue:2x4", "--frm", "x"), "unknown flag --frm; did you mean --from?"),
        (("train", "rescue:2x4", "--ppo.sgma", "3"), "unknown flag --ppo.sgma; did you mean --ppo.sigma?"),
        (("evaluate", "closest", "rescue:2x4", "--epsodes", "5"), "unknown flag --epsodes; did you mean --episodes?"),
        (("envs", "--quux"), "unknown flag --quux; --help lists all flags"),
        (("envs", "foo"), "'foo' is too much: muster envs takes flags only"),
        (("solve",), "give FILE; muster solve --help says more"),
        (("evaluate", "closest"), "give POLICY and ENV; muster evaluate --help says more"),
        (("evaluate", "a", "b", "c"), "'c' is too much: muster evaluate takes POLICY and ENV"),
        (("evaluate", "a", "b", "--seed", "x"), "--seed must be a whole number or sealed, got 'x'"),
        (("evaluate", "a", "b", "--episodes", "--json"), "--episodes needs a value"),
        (("evaluate", "closest", "rescue:2x4", "--seed", "-1"), "whole number from 0 to 2^64 - 1, or 'sealed', got -1"),
        (("replay", "closest", "rescue:2x4", "--seed", str(2**64)), "or 'sealed', got 18446744073709551616"),
        (("evaluate", "closest", "rescue:2x4", "--episodes", str(10**15)), "out of memory; use fewer episodes"),
        (("evaluate", "closest", "rescue:2x4,mud=0,mud=1"), "mud is given twice; give each rescue setting once"),
        (("compare",), "two or more policies and then the environment, got nothing"),
        (("scale", "rescue-2x4-lp-dm"), "give --env; muster scale --help says more"),
        (("plot", "curve", "x"), "did you mean 'curves'?"),
        (("plot", "scores", "x", "--agent", "3"), "--agent takes 2 values, got 3"),
        (("plot", "scores", "x", "--agent", "3", "b"), "--agent must be a whole number, got 'b'"),
        (("serve", "--port", "abc"), "--port must be a whole number, got 'abc'"),
        (("train", "rescue:2x4", "--learner", "pp"), "did you mean 'ppo'?"),
        (("train", "rescue:2x4", "--assign-all", "yes"), "--assign-all must be True or False, got 'yes'"),
        (("train", "rescue:2x4", "--learner=es", "--es.sigma", "-1"), "--es.sigma must be positive, got -1.0"),
        (("evaluate", "nowhere/policy", "rescue:2x4"), "no policy file nowhere/policy"),
        (("replay", "closest", "rescue:2x4", "--out", "nowhere/x.gif"), "no folder 'nowhere'"),
    ],
)
def test_mistakes_get_one_sentence(capsys, arguments, complaint):
    assert complaint in refusal(capsys, *arguments)


def test_a_file_that_cannot_be_written_gets_one_sentence(capsys, tmp_path):
    folder = tmp_path / "x.json"
    folder.mkdir()
    assert str(folder) in refusal(capsys, "replay", "closest", "rescue:2x4", "--out", str(folder))


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_names_every_command(capsys, arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 0
    assert "evaluate" in capsys.readouterr().out


@pytest.mark.parametrize(("policy", "env"), [("topline", "rescue:8x15"), ("wcnoks", "battle:w60v68")])
def test_ctrl_c_says_so_and_leaves_with_130(policy, env):
    """A real signal, while kernels run: in one thread (topline) and in several (battles)."""
    script = (
        "import sys, muster.evaluation.evaluate; from muster.cli.main import main\n"
        "print('begun', flush=True); main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", script, "evaluate", policy, env, "--episodes", "20000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert said.splitlines()[-1] == "muster: interrupted"
    assert process.returncode == 130
