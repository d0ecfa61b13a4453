"""`muster bench`: how fast, and how good, beside peers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from muster.errors import InputError

# What is measured -> the module whose `run(json)` measures it.
BENCHMARKS = {
    "inference": "muster.benchmarks.inference",
    "envs": "muster.benchmarks.envs",
    "training": "muster.benchmarks.training",
    "routes": "muster.benchmarks.routes",
}


@dataclass(frozen=True)
class Bench:
    """Measure speed on this machine, beside the nearest peers where they are installed."""

    which: Positional[Literal["inference", "envs", "training", "routes"]]
    """inference: assignments a second, beside GLOP, HiGHS, scipy and lap (extra `bench`), some minutes;
    envs: steps a second of the environments alone; training: of the learner, and where its time goes;
    routes: plans beside OR-Tools' routing (extra `bench`), half an hour, of which OR-Tools takes nearly all."""
    json: bool = False
    """Print one JSON object."""
    instances: int | None = None
    """routes: instances of each size (3)."""
    peer_seconds: float | None = None
    """routes: processor seconds for OR-Tools on each instance (60; rescue's at most 10); 0 leaves it out."""
    record: Path | None = None
    """routes: JSON file to keep the figures in, with a Markdown page beside it; OR-Tools' runs in it are taken over."""

    def run(self) -> None:
        """Measure and print."""
        options = {"instances": self.instances, "peer_seconds": self.peer_seconds, "record": self.record}
        given = {name: value for name, value in options.items() if value is not None}
        if given and self.which != "routes":
            raise InputError(f"--{next(iter(given)).replace('_', '-')} is for muster bench routes, not {self.which}")
        import_module(BENCHMARKS[self.which]).run(self.json, **given)
