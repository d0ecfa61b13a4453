"""Workers of a Ray cluster that are killed again and again, by the system: the run's bits stay what they were."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from muster.learning.cluster import Cluster
from muster.learning.crew import Crew, closing
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from tests.soak.kills import children

LEARNERS = {
    "es": TrainSettings("rescue:2x4", learner="es", inference="quad", es={"pairs": 4, "episodes": 4}),  # type: ignore[arg-type]
    "a2c": TrainSettings("rescue:2x4", learner="a2c", inference="lp", a2c={"envs": 16, "return_steps": 8}),  # type: ignore[arg-type]
}
WORKERS = 2


def campaign(learner: str, seconds: float, every: float = 10.0, seed: int = 0) -> tuple[int, int, int, list[str]]:
    """Kills, workers that were replaced, updates, and what was wrong."""
    settings, rng, bad = LEARNERS[learner], np.random.default_rng(seed), []
    updates, kills = 0, 0
    with closing(Crew(Cluster("local", WORKERS), WORKERS)) as crew:
        learning = make_learner(settings, crew)
        until = time.monotonic() + seconds
        due = time.monotonic() + every
        call = crew.call

        def struck(requests, recover):  # type: ignore[no-untyped-def]
            """One of the workers is killed before the messages or, by a thread that waits a little, after them."""
            nonlocal due, kills
            if time.monotonic() >= due:
                found = actors(os.getpid())
                if found:
                    threading.Timer(float(rng.uniform(0.0, 0.02)), end, [int(rng.choice(found))]).start()
                    kills += 1
                due += every
            return call(requests, recover)

        crew.call = struck  # type: ignore[method-assign]
        while time.monotonic() < until:
            began = time.monotonic()
            learning.update()
            updates += 1
            time.sleep(2 * min(time.monotonic() - began, 0.5))  # a third of the machine is enough
        replaced = crew.replaced
        found = learning.get_state()[0]
    plain = make_learner(settings)
    for _ in range(updates):
        plain.update()
    wanted = plain.get_state()[0]
    if any(not np.array_equal(wanted[name], found[name]) for name in wanted):
        bad.append(f"{learner}: other bits after {updates} updates")
    if not replaced:
        bad.append(f"{learner}: {kills} kills, but no worker was replaced")
    return kills, replaced, updates, bad


def end(pid: int) -> None:
    """kill -9, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def actors(pid: int) -> list[int]:
    """Ray's workers among the processes below this one that have a job."""
    found = []
    for child in children(pid):
        try:
            name = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        found += [child] if name.startswith(b"ray::Host") else actors(child)
    return found
