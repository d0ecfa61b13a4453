"""A run goes on bit for bit from where it was killed, stopped or interrupted, and has one writer."""

import dataclasses
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import muster
from muster import InputError
from muster.learning.train import run_training
from muster.storage import sole_writer
from tests.learning.short_runs import assert_same_end, final_state, rows_without_times, small
from tests.learning.test_train import MIXTURE, TOY


@pytest.mark.parametrize("learner", ["ppo", "es"])
def test_a_run_killed_and_resumed_equals_one_that_was_not(learner, tmp_path):
    """Whatever else there is to learn by is interrupted further below, without a process of its own."""
    settings = small(learner, 3000)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_training(settings, whole)
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib; from tests.learning.short_runs import small\n"
            "from muster.learning.train import run_training\n"
            "import muster.learning.run as r, os, signal\n"
            "old = r.Run.save_checkpoint\n"
            "def save(self, *a):\n"
            "    old(self, *a)\n"
            "    if self.rows and self.rows[-1]['steps'] > 900:\n"
            "        print('far enough', flush=True); import time; time.sleep(60)\n"
            "r.Run.save_checkpoint = save\n"
            f"run_training(small({learner!r}, 3000), pathlib.Path(sys.argv[1]))",
            str(broken),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "far enough\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    # Rows written after the checkpoint are cut back.
    with (broken / "metrics.jsonl").open("a") as log:
        log.write('{"steps": 99}\n')
    run_training(settings, broken, resume=True)
    assert rows_without_times(broken) == rows_without_times(whole)
    assert_same_end(whole, broken)
    assert muster.load(str(whole)).parameters.keys() == muster.load(str(broken)).parameters.keys()


def test_an_interrupt_saves_and_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "muster", "train", "rescue:2x3,grid=5", "--out", str(tmp_path / "r")]
    flags = "--learner es --steps 100000000 --log-every 1000 --es.pairs 2 --es.episodes 4"
    child = subprocess.Popen([*command, *flags.split()], stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    child.stderr.readline()
    child.send_signal(signal.SIGINT)
    said = child.stderr.read()
    child.stderr.close()
    assert child.wait() == 130
    assert "--resume" in said
    assert "Traceback" not in said
    assert (tmp_path / "r" / "checkpoint.safetensors").exists()


def test_a_process_told_to_end_saves_first(tmp_path):
    code = (
        "import sys, signal, muster\n"
        "def heard(row, progress):\n"
        "    print('torch' if 'torch' in sys.modules else '', end='', flush=True)\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        f"muster.train({TOY!r}, learner='es', steps=10**9, log_every=100, out=sys.argv[1], report=heard)\n"
        "print('still here')"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "r")], capture_output=True, text=True, check=False
    )
    assert child.returncode == -signal.SIGTERM
    assert child.stdout == "", "evolution neither goes on nor loads torch"
    assert (tmp_path / "r" / "checkpoint.safetensors").exists()


def test_a_run_interrupted_while_g_waits_goes_on_bit_for_bit(tmp_path):
    settings = dataclasses.replace(small("ppo", 3000), env="rescue:6x7,grid=5")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_training(settings, whole)

    def interrupt(row, progress):
        assert progress < 0.5
        signal.raise_signal(signal.SIGINT)

    assert not run_training(settings, broken, report=interrupt).finished
    assert final_state(broken)["learner/actor/0/updates"] == 0
    assert run_training(settings, broken, resume=True).finished
    assert_same_end(whole, broken)
    assert final_state(whole)["learner/actor/0/updates"] > 0


def test_a_second_run_in_the_same_folder_is_refused(tmp_path):
    run_training(small("es", 100), tmp_path / "r")
    with pytest.raises(InputError, match=r"already holds a run.*--resume"):
        run_training(small("es", 100), tmp_path / "r")
    with pytest.raises(InputError, match="holds no run to resume"):
        run_training(small("es", 100), tmp_path / "other", resume=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 4}, "seed is 0 there, not 4"),
        ({"es": {"sigma": 0.2}}, "es.sigma is 0.07 there, not 0.2"),
        (
            {"inference": "lp", "learner": "ppo"},
            "learner is 'es' there, not 'ppo'; inference is 'quad' there, not 'lp'",
        ),
    ],
)
def test_resuming_with_other_settings_is_refused(changes, message, tmp_path):
    out = tmp_path / "r"
    settings = {"learner": "es", "es": {"pairs": 2, "episodes": 2}}
    muster.train(TOY, steps=20, out=out, **settings)
    with pytest.raises(InputError, match=message):
        muster.train(TOY, out=out, resume=True, **changes)
    with pytest.raises(InputError, match="env is"):
        muster.train("rescue:2x4", out=out, resume=True)
    muster.train(TOY, steps=60, out=out, resume=True, seed=0)
    assert json.loads((out / "summary.json").read_text())["steps"] == 64


def test_two_processes_do_not_write_to_one_run(tmp_path):
    out = tmp_path / "r"
    muster.train(TOY, steps=20, learner="es", out=out, es={"pairs": 2, "episodes": 2})
    with sole_writer(out), pytest.raises(InputError, match="is being written to by process"):
        muster.train(TOY, steps=60, out=out, resume=True)


@pytest.mark.parametrize("learner", ["ppo", "a2c", "es", "pem", "linear"])
def test_a_run_on_several_environments_logs_each_and_resumes_bit_for_bit(learner, tmp_path):
    settings = dataclasses.replace(small(learner, 3000), env=MIXTURE)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_training(settings, whole)
    heard = []

    def interrupt(row, progress):
        heard.append(row)
        if len(heard) == 1:
            signal.raise_signal(signal.SIGINT)

    assert not run_training(settings, broken, report=interrupt).finished
    assert run_training(settings, broken, resume=True).finished
    assert_same_end(whole, broken)
    rows = rows_without_times(whole)
    known = set().union(*(row.keys() for row in rows))
    assert known >= {f"{name}/{env}" for name in ("reward", "outcome", "validation") for env in MIXTURE}
    assert rows[-1]["reward"] == pytest.approx(np.mean([rows[-1][f"reward/{env}"] for env in MIXTURE]))
    summary = json.loads((whole / "summary.json").read_text())
    assert (summary["env"], summary["envs"]) == (MIXTURE[0], list(MIXTURE))
    policy = muster.load(whole)
    assert policy.header["envs"] == list(MIXTURE)
    assert muster.evaluate(policy, "rescue:4x6,grid=6", 3).episodes == 3
