"""kill -9 at random moments of training: every folder can be read, and ends with the bits of an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from muster.learning.run import Run
from muster.policy.files import fingerprint

LEARNERS = {
    "es": ["--learner", "es", "--es.pairs", "2", "--es.episodes", "4"],
    "a2c": ["--learner", "a2c", "--a2c.envs", "16", "--a2c.return-steps", "8"],
}
COMMON = ["--steps", "60000", "--log-every", "500", "--checkpoint-every", "500", "--evaluate-episodes", "10"]
ENV = "rescue:2x3,grid=5"


@dataclass
class Tally:
    """What came of the kills of one learner."""

    kills: int = 0
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


def campaign(folder: Path, learner: str, kills: int, seed: int = 0) -> Tally:
    """One undisturbed run; then the same, killed and resumed until it was killed so often; begun anew when it ends."""
    tally, rng = Tally(), np.random.default_rng(seed)
    whole = folder / f"{learner}-whole"
    began = time.monotonic()
    subprocess.run(command(learner, whole), check=True, capture_output=True)
    length = time.monotonic() - began
    expected, number = final_hash(whole), 0
    broken = folder / f"{learner}-0"
    while tally.kills < kills:
        more = ["--resume"] if (broken / "config.toml").exists() else []
        tally.early += not more and broken.exists()
        process = subprocess.Popen(command(learner, broken, *more), stderr=subprocess.PIPE)
        # Mostly in the part that trains, which follows the start of the interpreter.
        wait = float(rng.uniform(0.02, 0.5 * length))
        try:
            _, said = process.communicate(timeout=wait)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            tally.kills += 1
            _look(tally, broken)
            continue
        if process.returncode != 0:
            tally.bad.append(f"{broken.name} did not resume: {said.decode()[-200:]}")
            return tally
        tally.resumed += 1
        if final_hash(broken) != expected:
            tally.bad.append(f"{broken.name} ended with other bits")
        number += 1
        broken = folder / f"{learner}-{number}"
    if (broken / "config.toml").exists():
        subprocess.run(command(learner, broken, "--resume"), check=True, capture_output=True)
        tally.resumed += 1
        if final_hash(broken) != expected:
            tally.bad.append(f"{broken.name} ended with other bits")
    return tally


def _look(tally: Tally, folder: Path) -> None:
    """Whether what a killed process left can be read."""
    if not (folder / "config.toml").exists():
        return
    try:
        Run.reopen(folder)[0].load_checkpoint()
    except Exception as error:
        tally.bad.append(f"{folder.name} cannot be read: {type(error).__name__} {error}")
