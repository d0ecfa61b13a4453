"""What two workers gain over one, on the clock: needs an idle machine.

    python -m benchmarks.workers

It takes about two minutes. The same updates are made by 1 and by 2 workers in turn; it prints steps a second, the ratio
on the clock, and what explains it: CPU seconds of either, and of an update with 2 the share of the workers' time in
which they were idle, and its messages. On a busy machine only CPU seconds and messages mean anything.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np

from muster.learning.learners import make_learner, make_pool
from muster.learning.metrics import Metrics
from muster.learning.settings import TrainSettings
from muster.learning.workers import WorkerPool, closing

ENVS = {
    "ES, battle:w15v17": {"env": "battle:w15v17", "learner": "es", "inference": "quad"},
    "ES, a Python environment": {"env": "examples.delivery:Delivery", "learner": "es", "inference": "lp"},
    "PPO, a Python environment": {"env": "examples.delivery:Delivery", "learner": "ppo", "inference": "lp"},
}


class Pace:
    """A learner's updates against the clock."""

    def __init__(self, settings: TrainSettings, pool: WorkerPool | None) -> None:
        self.pool, self.learner = pool, make_learner(settings, pool)
        self.steps, self.seconds, self.cpu_seconds = 0, 0.0, 0.0
        self.rows: list[Metrics] = []
        self.learner.update()  # starts the workers

    def update(self) -> None:
        """One more."""
        if self.pool:
            self.pool.metrics()
        steps, began, cpu = self.learner.steps, time.perf_counter(), self._cpu()
        self.learner.update()
        self.seconds += time.perf_counter() - began
        self.cpu_seconds += self._cpu() - cpu
        self.steps += self.learner.steps - steps
        if self.pool:
            self.rows.append(self.pool.metrics())

    def _cpu(self) -> float:
        return time.process_time() + (self.pool.cpu_seconds if self.pool else 0.0)


def speed(name: str, seconds: float) -> dict[str, Any]:
    """Environment steps a second with 1 and with 2 workers, which take turns, update by update."""
    settings = {count: TrainSettings(**ENVS[name], steps=1, workers=count) for count in (1, 2)}  # type: ignore[arg-type]
    with closing(make_pool(settings[2])) as pool:
        one, two = Pace(settings[1], None), Pace(settings[2], pool)
        until = time.perf_counter() + seconds
        while not one.steps or time.perf_counter() < until:
            one.update()
            two.update()
            print(f"{name}: {one.seconds:.1f} s with 1, {two.seconds:.1f} s with 2", file=sys.stderr, flush=True)
    assert one.steps == two.steps  # the same bits, so the same episodes
    return {
        "what": name,
        "updates": len(two.rows),
        "steps_per_second": {"1": round(one.steps / one.seconds), "2": round(two.steps / two.seconds)},
        "ratio": round(one.seconds / two.seconds, 3),
        "cpu_seconds": {"1": round(one.cpu_seconds, 2), "2": round(two.cpu_seconds, 2)},
        **{key: round(float(np.mean([row[key] for row in two.rows])), 3) for key in two.rows[0]},
    }


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--seconds", type=float, default=25.0, help="of each row, after the first updates")
    given = asked.parse_args()
    for name in ENVS:
        print(json.dumps(speed(name, given.seconds)), flush=True)


if __name__ == "__main__":
    main()
