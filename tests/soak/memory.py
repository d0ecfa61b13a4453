"""Memory that stays as it is: after many updates on a tiny env, and over an evaluation of very many episodes."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import muster
from muster.learning.settings import ESSettings, PPOSettings, TrainSettings
from muster.learning.train import run_training

EIGHT_HOURS = {"es": 10_200, "ppo": 32_400}
"""Updates in 8 CPU hours on battle:zh10v10 with QUAD at most, by the rates of the runs in paper/battle/runs with usual
settings: evolution's 66 in 187 s, the actor-critic's 110 in 98 s. On battle:m10v10 they are 47,000 and 78,000.
"""
STEPS = {"es": 14, "ppo": 4}
"""Of an update on the tiny environment, about."""


def peak() -> float:
    """Megabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def held() -> float:
    """Megabytes that this process has now; the peak of a process that did much before would never grow."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def growth_of_training(learner: str, updates: int) -> float:
    """Megabytes that memory grows by, over the second half of so many updates of a whole run.

    The env is tiny, and an update of the actor-critic one step of its optimisers. Rows, checkpoints and evaluations
    come once in about as many updates as with the usual settings.
    """
    each = STEPS[learner]
    settings = TrainSettings(
        "rescue:1x2,grid=4",
        inference="lp",
        learner="es" if learner == "es" else "ppo",
        es=ESSettings(pairs=1, episodes=2),
        num_envs=0 if learner == "es" else 2,
        ppo=PPOSettings(rollout_length=2, minibatches=1),
        steps=10**12,
        log_every=50 * each,
        evaluate_episodes=20,
    )
    found: list[float] = []

    def hear(row: Mapping[str, Any], progress: float) -> bool:
        if row["updates"] >= (len(found) + 1) * updates / 2:
            found.append(held())
        return len(found) == 2

    with TemporaryDirectory(prefix="soak-") as folder:
        run_training(settings, Path(folder) / "run", report=hear)
    return found[1] - found[0]


def growth_of_evaluation(episodes: int) -> float:
    """Megabytes that the peak grows by from a tenth of the episodes to all of them."""
    muster.evaluate("closest", "rescue:1x1,grid=2", episodes=max(1, episodes // 10), seed=0)
    before = peak()
    muster.evaluate("closest", "rescue:1x1,grid=2", episodes=episodes, seed=0)
    return peak() - before
