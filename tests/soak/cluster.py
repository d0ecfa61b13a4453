"""Workers of a Ray cluster that are killed again and again, by the system: the run's bits stay what they were."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from muster.learning.cluster import Cluster
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from muster.learning.workers import WorkerPool, closing
from tests.soak.kills import children

LEARNERS = {
    "es": TrainSettings("rescue:2x4", learner="es", inference="quad", es={"pairs": 4, "episodes": 4}),  # type: ignore[arg-type]
    "ppo": TrainSettings("rescue:2x4", inference="lp", num_envs=16, ppo={"rollout_length": 8}),  # type: ignore[arg-type]
}
WORKERS = 2


@dataclass
class Report:
    """What came of the kills of one learner's workers."""

    struck: list[int] = field(default_factory=list)
    """The process of each kill; one that is killed again before it is missed is here twice."""
    replaced: int = 0
    """Workers that the run has missed and replaced."""
    updates: int = 0
    bad: list[str] = field(default_factory=list)

    @property
    def killed(self) -> int:
        """Workers that were killed, each of which must be replaced once."""
        return len(set(self.struck))

    def __str__(self) -> str:
        again = len(self.struck) - self.killed
        told = f"{len(self.struck)} kills in {self.updates:,} updates: {self.replaced} workers replaced"
        return told + (f", {again} struck again before they were missed" if again else "")


def campaign(learner: str, seconds: float, every: float = 10.0, seed: int = 0) -> Report:
    """Train for so long with workers that are killed, and go on for an update by which all are missed; then without."""
    settings, rng, report = LEARNERS[learner], np.random.default_rng(seed), Report()
    blows: list[threading.Timer] = []
    with closing(WorkerPool(Cluster("local", WORKERS), WORKERS)) as pool:
        learning = make_learner(settings, pool)
        until = time.monotonic() + seconds
        due = time.monotonic() + every
        call = pool.call

        def struck(messages):  # type: ignore[no-untyped-def]
            """One of the workers is killed before the messages or, by a thread that waits a little, after them."""
            nonlocal due
            if due <= time.monotonic() < until:
                found = actors(os.getpid())
                if found:
                    blow = threading.Timer(float(rng.uniform(0.0, 0.02)), end, [int(rng.choice(found)), report])
                    blow.start()
                    blows.append(blow)
                due += every
            return call(messages)

        pool.call = struck  # type: ignore[method-assign]
        while time.monotonic() < until:
            began = time.monotonic()
            learning.update()
            report.updates += 1
            time.sleep(2 * min(time.monotonic() - began, 0.5))  # a third of the machine is enough
        for blow in blows:
            blow.join()
        learning.update()
        report.updates += 1
        report.replaced = pool.replaced
        found = learning.get_state()[0]
    plain = make_learner(settings)
    for _ in range(report.updates):
        plain.update()
    wanted = plain.get_state()[0]
    if any(not np.array_equal(wanted[name], found[name]) for name in wanted):
        report.bad.append(f"{learner}: other bits after {report.updates} updates")
    if not report.killed or report.killed != report.replaced:
        report.bad.append(f"{learner}: {report.killed} workers killed, but {report.replaced} replaced")
    return report


def end(pid: int, report: Report) -> None:
    """kill -9, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        report.struck.append(pid)


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
