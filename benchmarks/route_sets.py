"""Instances of routing: rescue's static start, uniform multiple travelling salesmen, and mTSPLib, as costs."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from muster.data import Floats, Problem

# Coordinates have no copyright, but these are not ours either: they lie beside the repository.
MTSPLIB = Path(__file__).resolve().parents[3] / "shared" / "public" / "mtsp"
UNIFORM_SEED = 3333
# Cities -> salesmen. The seed's instances are the test files of a learned solver, which has them for these numbers.
UNIFORM = {50: (5, 10), 100: (5, 15), 200: (10, 20), 500: (50,), 1000: (100,)}
STATIC = ((100, 200), (200, 400))
STATIC_GRID = 64
PUBLISHED = {
    "eil51": (222.7, 159.6, 124.0, 112.1),
    "berlin52": (4110.0, 3244.0, 2441.0, 2441.0),
    "eil76": (280.9, 197.3, 150.3, 139.6),
    "rat99": (728.8, 587.2, 469.3, 443.9),
}
"""Longest tours of CPLEX runs with these numbers of salesmen; proven for eil51 and eil76 with 2 only."""
SALESMEN = (2, 3, 5, 7)


class Instance(NamedTuple):
    """What routes cost: from where agents start, from task to task, and to where they end."""

    set: str
    name: str
    first: Floats
    """[N, M]"""
    follow: Floats
    """[M, M]"""
    last: Floats | None
    """[N, M]; None: anywhere."""

    @property
    def problem(self) -> Problem:
        """As PLAN takes it: costs are negative scores."""
        last = None if self.last is None else -self.last[None]
        return Problem(scores=-self.first[None], task_scores=-self.follow[None], end_scores=last)


def salesmen(set_: str, name: str, places: Floats, m: int) -> Instance:
    """m tours from the first place [K, 2] through all others and back, Euclidean and not rounded."""
    way = np.sqrt(((places[:, None] - places[None]) ** 2).sum(-1))
    out = np.repeat(way[:1, 1:], m, axis=0)
    return Instance(set_, name, out, np.ascontiguousarray(way[1:, 1:]), out)


def uniform(instances: int) -> Iterator[Instance]:
    """The first so many of every number of cities, with every number of salesmen."""
    for n, numbers in UNIFORM.items():
        places = np.random.RandomState(UNIFORM_SEED).uniform(size=(100, n, 2))
        for m in numbers:
            for k in range(instances):
                yield salesmen(f"uniform {n}, {m}", str(k), places[k], m)


def static(instances: int) -> Iterator[Instance]:
    """The start of search and rescue: ambulances and victims on distinct cells of a grid, king's moves, no way back."""
    for n, m in STATIC:
        for k in range(instances):
            cells = np.random.default_rng([k, n, m]).permutation(STATIC_GRID**2)[: n + m]
            rows, columns = np.divmod(cells, STATIC_GRID)
            way = np.maximum(abs(rows[:, None] - rows), abs(columns[:, None] - columns)).astype(np.float64)
            first, follow = np.ascontiguousarray(way[:n, n:]), np.ascontiguousarray(way[n:, n:])
            yield Instance(f"static {n}x{m}", str(k), first, follow, None)


def mtsplib(folder: Path = MTSPLIB) -> Iterator[Instance]:
    """The four instances with every number of salesmen; nothing where the folder is absent."""
    for name in PUBLISHED:
        if (folder / f"{name}.csv").exists():
            with (folder / f"{name}.csv").open(encoding="utf-8") as file:
                rows = [row[-2:] for row in csv.reader(file) if row and row[-1].strip("-").replace(".", "").isdigit()]
            places = np.array(rows, dtype=np.float64)
            for m in SALESMEN:
                yield salesmen("mTSPLib", f"{name} {m}", places, m)
