"""Memory that stays as it is: after many updates on a tiny world, and over an evaluation of very many episodes."""

from __future__ import annotations

import resource
from pathlib import Path

import muster
from muster.learning.learner_settings import ESSettings
from muster.learning.settings import A2CSettings, TrainSettings
from muster.learning.train import Loop


def peak() -> float:
    """Megabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def held() -> float:
    """Megabytes that this process has now; the peak of a process that did much before would never grow."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def growth_of_training(learner: str, updates: int) -> float:
    """Megabytes that memory grows by, over the second half of so many updates."""
    settings = TrainSettings(
        "rescue:1x2,grid=4",
        inference="lp",
        learner="es" if learner == "es" else "a2c",
        es=ESSettings(pairs=1, episodes=2),
        a2c=A2CSettings(envs=4, return_steps=4),
    )
    loop = Loop(settings, None)
    for _ in range(updates // 2):
        loop.learner.update(0.0)
    before = held()
    for _ in range(updates - updates // 2):
        loop.learner.update(0.0)
    return held() - before


def growth_of_evaluation(episodes: int) -> float:
    """Megabytes that the peak grows by from a tenth of the episodes to all of them."""
    muster.evaluate("closest", "rescue:1x1,grid=2", episodes=max(1, episodes // 10), seed=0)
    before = peak()
    muster.evaluate("closest", "rescue:1x1,grid=2", episodes=episodes, seed=0)
    return peak() - before
