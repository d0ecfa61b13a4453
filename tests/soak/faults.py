"""What systems do to programs: full disks, folders that are gone or read-only, signals, clocks that jump.

Each fault is one that a run of `muster` meets in a process of its own; the answer must be one sentence, and what was
saved before must be there.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from muster.learning.run import Run
from tests.soak import kills
from tests.soak.kills import ENV, children, left_behind

LEARNERS = {
    **kills.LEARNERS,
    **{f"{name}, 2 workers": [*flags, "--workers", "2"] for name, flags in kills.LEARNERS.items()},
}
ENDLESS = ["--steps", "100000000", "--log-every", "400"]
RARELY = ["--log-every", "20000"]
"""Rows and checkpoints far enough apart that something happens between two of them, not within one."""
Fault = Callable[[Path, str], str]
# A campaign that itself runs behind nohup or in the background must not hand on that it ignores signals.
LISTENING = """import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""


def run(folder: Path, learner: str, before: str = "", more: list[str] | None = None) -> subprocess.Popen[str]:
    """An endless run in `folder`, in a process that first does `before`."""
    words = ["train", ENV, *LEARNERS[learner], *ENDLESS, *(more or []), "--out", str(folder)]
    code = f"{LISTENING}import os, sys, time, resource\n{before}\nfrom muster.cli.main import main; main({words!r})"
    return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)


def wait_for(path: Path, process: subprocess.Popen[str], seconds: float = 120) -> None:
    """Until there is a file, or the process has ended."""
    until = time.monotonic() + seconds
    while not path.exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)


def ended(process: subprocess.Popen[str], seconds: float = 120) -> str:
    """The last line that it says; its whole word if that holds a traceback."""
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "did not end"
    if "Traceback" in said:
        return "traceback: " + said.strip()[-300:]
    return said.strip().splitlines()[-1] if said.strip() else f"(nothing; status {process.returncode})"


def intact(folder: Path) -> str:
    """What is wrong with the checkpoint of a run."""
    found = Run(folder).load_checkpoint()
    return "" if found else "there is no checkpoint"


def all_gone(workers: list[int], learner: str) -> str:
    """What is wrong with the workers of a run that has ended."""
    wanted = 2 if "workers" in learner else 0
    left = left_behind(workers, 10.0)
    return f"{len(left)} of {len(workers)} workers left behind" if left or len(workers) != wanted else ""


def sentence_about(said: str, words: str) -> str:
    """What is wrong with what was said."""
    return "" if words in said and said.count("\n") == 0 and not said.startswith("traceback") else f"said: {said}"


def told(number: int) -> Fault:
    """The system, or a closed terminal, asks a run to end: it saves first."""

    def fault(folder: Path, learner: str) -> str:
        process = run(folder, learner)
        wait_for(folder / "checkpoint.safetensors", process)
        workers = children(process.pid)
        process.send_signal(number)
        said = ended(process)
        if said.startswith(("traceback", "did not")) or process.returncode != -number:
            return f"status {process.returncode}, said: {said}"
        return intact(folder) or all_gone(workers, learner)

    return fault


def hung_up_behind_nohup(folder: Path, learner: str) -> str:
    """A run that was begun with nohup goes on when its terminal closes."""
    process = run(folder, learner, "signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    wait_for(folder / "checkpoint.safetensors", process)
    process.send_signal(signal.SIGHUP)
    time.sleep(2)
    went_on = process.poll() is None
    process.terminate()
    ended(process)
    return intact(folder) if went_on else "ended by a hang-up that it was told to ignore"


def interrupted(folder: Path, learner: str) -> str:
    """Ctrl-C saves and says how to go on."""
    process = run(folder, learner)
    wait_for(folder / "checkpoint.safetensors", process)
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    return sentence_about(ended(process), "--resume") or intact(folder) or all_gone(workers, learner)


def full_disk(folder: Path, learner: str) -> str:
    """No file may grow beyond a limit that the log reaches after the first checkpoint."""
    limit = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit += "import threading\n"
    limit += (
        f"def shrink():\n    while not os.path.exists({str(folder / 'checkpoint.safetensors')!r}): time.sleep(0.01)\n"
    )
    limit += "    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
    limit += "threading.Thread(target=shrink, daemon=True).start()\n"
    process = run(folder, learner, limit)
    return sentence_about(ended(process), "cannot write") or intact(folder)


def removed(folder: Path, learner: str) -> str:
    """The folder goes away while the run goes on."""
    process = run(folder, learner, more=RARELY)
    wait_for(folder / "checkpoint.safetensors", process)
    folder.rename(folder.with_name(folder.name + "-moved"))
    said = ended(process)
    return sentence_about(said, "was removed while the run went on") or intact(folder.with_name(folder.name + "-moved"))


def clock_jumps(folder: Path, learner: str) -> str:
    """The wall clock goes back a year at every look: CPU time decides, and the run goes on."""
    jump = "clock = [2e9]\ndef back():\n    clock[0] -= 3e7\n    return clock[0]\ntime.time = back\n"
    process = run(folder, learner, jump)
    wait_for(folder / "checkpoint.safetensors", process)
    process.send_signal(signal.SIGTERM)
    said = ended(process)
    return intact(folder) if process.returncode == -signal.SIGTERM else f"said: {said}"


def second_resume(folder: Path, learner: str) -> str:
    """Two processes in one folder: the second is told who the first is."""
    process = run(folder, learner)
    wait_for(folder / "checkpoint.safetensors", process)
    words = ["train", ENV, *LEARNERS[learner], *ENDLESS, "--out", str(folder), "--resume"]
    second = subprocess.run([sys.executable, "-m", "muster", *words], capture_output=True, text=True, check=False)
    process.kill()
    process.communicate()
    said = second.stderr.strip()
    return sentence_about(said, f"is being written to by process {process.pid}") or intact(folder)


def says(words: str, *arguments: str) -> Fault:
    """A command that must be refused with a sentence of these words."""

    def fault(folder: Path, learner: str) -> str:
        del learner
        folder.mkdir(parents=True)
        (folder / "afile").write_text("x")
        given = [word.replace("FOLDER", str(folder)) for word in arguments]
        done = subprocess.run([sys.executable, "-m", "muster", *given], capture_output=True, text=True, check=False)
        wrong = sentence_about(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "", words)
        return wrong or ("" if done.returncode == 2 and "Traceback" not in done.stderr else f"status {done.returncode}")

    return fault


def interrupted_kernel(folder: Path, learner: str) -> str:
    """Ctrl-C in the middle of an evaluation whose time goes into one kernel."""
    del folder, learner
    words = ["evaluate", "topline", "rescue:8x15", "--episodes", "100000"]
    process = subprocess.Popen(
        [sys.executable, "-c", f"{LISTENING}from muster.cli.main import main; main({words!r})"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    said = ended(process)
    return "" if process.returncode == 130 and said.endswith("interrupted") else f"{process.returncode}, said: {said}"


FAULTS: dict[str, Fault] = {
    "SIGTERM": told(signal.SIGTERM),
    "SIGHUP": told(signal.SIGHUP),
    "SIGHUP behind nohup": hung_up_behind_nohup,
    "Ctrl-C": interrupted,
    "disk full": full_disk,
    "folder removed": removed,
    "clock jumps": clock_jumps,
    "two writers": second_resume,
    "--out afile/run": says(
        "cannot write", "train", ENV, "--steps", "100", "--learner", "es", "--out", "FOLDER/afile/run"
    ),
    "--out /proc/foo": says("cannot write", "train", ENV, "--steps", "100", "--learner", "es", "--out", "/proc/foo"),
    "Ctrl-C in a kernel": interrupted_kernel,
}
WITH_BOTH = ("SIGTERM", "SIGHUP", "Ctrl-C", "disk full", "folder removed", "two writers")
"""Tried with both learners."""
WITH_WORKERS = ("SIGTERM", "SIGHUP", "Ctrl-C")
"""And these with workers too."""


def campaign(folder: Path, names: tuple[str, ...] = tuple(FAULTS)) -> dict[str, str]:
    """Fault -> what was wrong, "" if nothing."""
    found = {}
    for number, name in enumerate(names):
        learners = list(LEARNERS) if name in WITH_WORKERS else list(kills.LEARNERS) if name in WITH_BOTH else ["es"]
        for learner in learners:
            label = f"{name} ({learner})" if len(learners) > 1 else name
            found[label] = FAULTS[name](folder / f"{number}-{learner.replace(', ', '-').replace(' ', '-')}", learner)
    return found
