"""What the command line itself does: its version, wrong words, Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

import muster
from benchmarks import routes as benchmarks_of_routes
from muster.cli.main import main
from muster.cli.parsing import sentence
from muster.errors import clear_interrupts


def refusal(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("muster: ")
    assert said.count("\n") == 1, "one sentence"
    return said


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version(capsys, flag):
    main([flag])
    assert capsys.readouterr().out == f"muster {muster.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("evalute", "closest", "rescue:2x4"), "no command 'evalute'; did you mean 'evaluate'?"),
        (("evaluate", "closest", "rescue:2x4", "--epsodes", "5"), "did you mean --episodes?"),
        (("tables", "rescu"), "'rescu'; did you mean 'rescue'?"),
        (("tables", "nothing"), "unknown 'nothing'; there is battle"),
        (("tables",), "python -m paper tables needs {rescue,battle,"),
        (("solve",), "muster: muster solve needs FILE (muster solve --help says more)"),
        (("check-plan",), "muster: muster check-plan needs FILE (muster check-plan --help says more)"),
        (("new",), "muster new needs NAME"),
        (("evaluate",), "muster evaluate needs POLICY and ENV (muster evaluate --help says more)"),
        (("evaluate", "closest"), "muster evaluate needs ENV"),
        (
            ("evaluate", "closest", "rescue:2x4", "--episodes", "five"),
            "--episodes must be a whole number or all, got 'five'",
        ),
        (
            ("evaluate", "a", "b", "--seed", "x"),
            "--seed must be a whole number, got 'x' (muster evaluate --help says more)",
        ),
        (("solve", "x.csv", "--switch-cost", "dear"), "--switch-cost must be a number, got 'dear'"),
        (("solve", "x.csv", "--minimise"), "Unrecognized options: --minimise (muster solve --help says more)"),
        (("train", "rescue:2x4", "--minutes"), "--minutes needs a value"),
        (("train", "rescue:2x4", "--workers", "x"), "--workers must be a whole number or auto, got 'x'"),
        (("train", "rescue:2x4", "--learner", "ppo"), "no --learner 'ppo'; there is a2c, es, imitate, srl"),
        (("train", "rescue:2x4", "--es.weight-decay", "-1"), "--es.weight-decay must be at least 0, got -1.0"),
        (("evaluate", "nowhere/policy", "rescue:2x4"), "no policy file nowhere/policy"),
        (("play", "closest", "rescue:2x4", "--out", "nowhere/x.gif"), "no folder 'nowhere'"),
        (("train", "rescue:2x4", "--a2c.noise.sgma", "3"), "did you mean --a2c.noise.sigma?"),
    ],
)
def test_wrong_words_get_one_sentence_with_the_nearest_right_one(capsys, arguments, complaint):
    assert complaint in refusal(capsys, *arguments)


def test_long_measurements_say_so_first(capsys, monkeypatch):
    monkeypatch.setattr(benchmarks_of_routes, "run", lambda json, **given: print("{}"))
    main(["bench", "routes", "--json"])
    said = capsys.readouterr()
    assert said.out == "{}\n"
    assert said.err == "muster: measuring, which takes up to half an hour\n"


def test_a_file_that_cannot_be_written_gets_one_sentence(capsys, tmp_path):
    folder = tmp_path / "x.json"
    folder.mkdir()
    assert str(folder) in refusal(capsys, "play", "closest", "rescue:2x4", "--out", str(folder))


@pytest.mark.parametrize(
    "box",
    [
        "╭─ T ─╮\n│ Wrong: --a  │\n│ {} │\n│ Perhaps you meant:  │\n│  --b INT │\n╰─╯",
        "T\n{}\nWrong: --a\n{}\nPerhaps you meant:\n  --b INT",
    ],
)
def test_a_box_in_either_alphabet_becomes_a_sentence(box):
    assert sentence(box.format("─" * 9 if "╭" in box else "-" * 9, "-" * 9)) == "Wrong: --a; did you mean --b?"


def test_a_box_of_another_shape_is_passed_on_whole():
    assert sentence("something else\nin two lines") == "something else in two lines"


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_names_every_command(capsys, arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 0
    assert "evaluate" in capsys.readouterr().out


def test_an_interrupt_that_a_kernel_hid_comes_out_as_one():
    hidden = SystemError("returned a result with an exception set")
    hidden.__cause__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), clear_interrupts():
        raise hidden
    with pytest.raises(SystemError), clear_interrupts():
        raise SystemError("something else")


@pytest.mark.parametrize(("policy", "env"), [("topline", "rescue:8x15"), ("wcnoks", "battle:w60v68")])
def test_ctrl_c_says_so_and_leaves_with_130(policy, env):
    """A real signal, while kernels run: in one thread (topline) and in several (battles)."""
    muster.evaluate(policy, env, 1)  # so that the other process finds them compiled
    script = "import sys; from muster.cli.main import main; print('begun', flush=True); main(sys.argv[1:])"
    command = [sys.executable, "-c", script, "evaluate", policy, env, "--episodes", "20000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert said.splitlines()[-1] == "muster: interrupted"
    assert process.returncode == 130
