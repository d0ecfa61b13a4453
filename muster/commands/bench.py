from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from tyro.conf import Positional

# What is measured -> the module whose `run(json)` measures it.
BENCHMARKS = {
    "inference": "muster.benchmarks.inference",
    "envs": "muster.benchmarks.envs",
    "training": "muster.benchmarks.training",
}


@dataclass(frozen=True)
class Bench:
    """Measure speed on this machine, beside the nearest peers where they are installed."""

    which: Positional[Literal["inference", "envs", "training"]]
    """inference: assignments a second, beside GLOP, HiGHS, scipy and lap (extra `bench`), some minutes;
    envs: steps a second of the environments alone; training: of the learner, and where its time goes."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Measure and print."""
        import_module(BENCHMARKS[self.which]).run(self.json)
