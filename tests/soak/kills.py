"""kill -9 at random moments of training: every folder can be read, and ends with the bits of an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from muster.learning.run import Run
from muster.policy.files import fingerprint

LEARNERS = {
    "es": ["--learner", "es", "--es.pairs", "2", "--es.episodes", "4"],
    "ppo": ["--learner", "ppo", "--num-envs", "16", "--ppo.rollout-length", "8"],
}
COMMON = ["--steps", "60000", "--log-every", "500", "--evaluate-episodes", "10"]
ENV = "rescue:2x3,grid=5"
CHECKPOINT = "checkpoint.safetensors"
STARTING = 0.2
"""Share of the kills at any moment from the first on; the others wait until the run has saved once."""
PATIENCE = 60.0
"""Seconds in which the workers of a killed run must be gone."""


@dataclass
class Report:
    """What came of the kills of one learner."""

    kills: int = 0
    writing: int = 0
    """Of these, while a checkpoint was half written."""
    early: int = 0
    """Before the run had written its settings: there is nothing to resume, and it is begun again."""
    resumed: int = 0
    bad: list[str] = field(default_factory=list)


def command(learner: str, folder: Path, *more: str) -> list[str]:
    """A run as a user starts it."""
    return [sys.executable, "-m", "muster", "train", ENV, *LEARNERS[learner], *COMMON, "--out", str(folder), *more]


def final_hash(folder: Path) -> str:
    """Of everything that the run would go on from."""
    found = Run(folder).load_checkpoint()
    assert found is not None
    return fingerprint(found[0])


def campaign(folder: Path, learner: str, kills: int, workers: int = 1, seed: int = 0, until: float = np.inf) -> Report:
    """One undisturbed run by one process; then the same with so many, killed and resumed until it was killed so often,
    or until that moment of the monotonic clock; begun anew when it ends.
    """
    report, rng = Report(), np.random.default_rng(seed)
    whole = folder / f"{learner}-whole"
    began = time.monotonic()
    subprocess.run(command(learner, whole), check=True, capture_output=True)
    length = time.monotonic() - began
    expected, number = final_hash(whole), 0
    broken = folder / f"{learner}-0"
    while report.kills < kills and time.monotonic() < until:
        more = ["--resume"] if (broken / "config.toml").exists() else []
        report.early += not more and broken.exists()
        # A file takes whatever it says: a pipe that is not read would fill up.
        with (folder / "said").open("w+b") as said:
            process = subprocess.Popen(
                command(learner, broken, *more, "--workers", str(workers)), stderr=said, stdout=subprocess.DEVNULL
            )
            if _killed(process, broken, rng, length, report):
                _look(report, broken)
                continue
            said.seek(0)
            if process.returncode != 0:
                report.bad.append(f"{broken.name} did not resume: {said.read().decode()[-200:]}")
                return report
        _compare(report, broken, expected)
        number += 1
        broken = folder / f"{learner}-{number}"
    if (broken / "config.toml").exists():
        subprocess.run(command(learner, broken, "--resume"), check=True, capture_output=True)
        _compare(report, broken, expected)
    return report


def _killed(
    process: subprocess.Popen[bytes], folder: Path, rng: np.random.Generator, length: float, report: Report
) -> bool:
    """Whether the process was killed at its moment, or False if it had ended before."""
    if rng.random() >= STARTING:
        before = _written(folder)
        while process.poll() is None and _written(folder) == before:
            time.sleep(0.01)
    with suppress(subprocess.TimeoutExpired):
        process.wait(float(rng.uniform(0.0, 0.3 * length)))
    draft = folder / f"{CHECKPOINT}.part"
    if rng.random() < 0.5:
        until = time.monotonic() + 2.0
        while process.poll() is None and not draft.exists() and time.monotonic() < until:
            pass
    if process.poll() is not None:
        return False
    workers = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    report.kills += 1
    report.writing += draft.exists()
    left = left_behind(workers)
    if left:
        report.bad.append(f"workers of {folder.name} were left behind: {left}")
    return True


def children(pid: int) -> list[int]:
    """Processes that this one has begun and that go on; none where the system does not list them."""
    try:
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def left_behind(workers: list[int], seconds: float = PATIENCE) -> list[int]:
    """Those that have not ended after so long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(Path(f"/proc/{worker}").exists() for worker in workers):
        time.sleep(0.02)
    return [worker for worker in workers if Path(f"/proc/{worker}").exists()]


def _written(folder: Path) -> int:
    path = folder / CHECKPOINT
    return path.stat().st_mtime_ns if path.exists() else 0


def _compare(report: Report, folder: Path, expected: str) -> None:
    report.resumed += 1
    if final_hash(folder) != expected:
        report.bad.append(f"{folder.name} ended with other bits")


def _look(report: Report, folder: Path) -> None:
    """Whether what a killed process left can be read."""
    if not (folder / "config.toml").exists():
        return
    try:
        Run(folder).load_checkpoint()
    except Exception as error:
        report.bad.append(f"{folder.name} cannot be read: {type(error).__name__} {error}")
