"""`python -m benchmarks`: how fast, and how good, beside peers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from muster.errors import InputError

# What is measured -> the module whose `run(json)` measures it.
BENCHMARKS = {
    "inference": "benchmarks.inference",
    "envs": "benchmarks.envs",
    "training": "benchmarks.training",
    "routes": "benchmarks.routes",
    "public": "benchmarks.public",
}

# Option -> what it is for.
OPTIONS = {
    "instances": ("routes",),
    "peer_seconds": ("routes",),
    "record": ("routes", "public"),
    "limits": ("public",),
    "proof": ("public",),
}


LENGTHS = {
    "inference": "some minutes",
    "envs": "some minutes",
    "training": "some minutes",
    "routes": "up to half an hour",
    "public": "half an hour or more",
}


@dataclass(frozen=True)
class Bench:
    """Measure speed on this machine, beside the nearest peers where they are installed."""

    which: Positional[Literal["inference", "envs", "training", "routes", "public"]]
    """inference: assignments a second, beside GLOP, HiGHS, scipy and lap (extra `bench`), some minutes;
    envs: steps a second of the environments alone; training: of the learner, and where its time goes;
    routes: plans beside OR-Tools' routing (extra `bench`), half an hour, of which OR-Tools takes nearly all;
    public: problems that others made, beside HiGHS's and other mixed-integer solvers, half an hour."""
    json: bool = False
    """Print one JSON object."""
    instances: int | None = None
    """routes: instances of each size (3)."""
    peer_seconds: float | None = None
    """routes: processor seconds for OR-Tools on each instance (60; rescue's at most 10); 0 leaves it out."""
    record: Path | None = None
    """routes, public: JSON file to keep the figures in, with a Markdown page beside it; for routes, OR-Tools' runs in
    it are taken over."""
    limits: tuple[float, ...] | None = None
    """public: seconds that each solver has for a problem (0.1 1 10)."""
    proof: float | None = None
    """public: seconds that effort exact and HiGHS have beside that, to prove their answers (60: half an hour more)."""

    def run(self) -> None:
        """Measure and print."""
        given = {name: value for name in OPTIONS if (value := getattr(self, name)) is not None}
        for name in given:
            if self.which not in OPTIONS[name]:
                wanted = " and ".join(OPTIONS[name])
                raise InputError(f"--{name.replace('_', '-')} is for python -m benchmarks {wanted}, not {self.which}")
        print(f"muster: measuring, which takes {LENGTHS[self.which]}", file=sys.stderr, flush=True)
        import_module(BENCHMARKS[self.which]).run(self.json, **given)
