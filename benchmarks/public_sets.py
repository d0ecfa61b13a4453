"""Problems that others made, or of the kinds that they published: generalised assignment, diversity, plain assignment.

Generalised assignment: OR-Library's and Yagiura's types c, d and e, jobs as agents, machines as tasks, every job
assigned, read from ../shared/public/gap beside the repository or made here. Maximum diversity: 50 of 500 elements with
the largest sum of distances, made here in the manner of MDPLIB's MDG-a (uniform distances) and GKD-c (Euclidean ones).
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from muster.data import Floats, Problem
from muster.errors import InputError

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "public" / "gap"
SIZES = ((5, 100), (10, 100), (20, 100), (20, 200))
"""Machines and jobs of what is made where there are no files."""
SMALL_SIZES = (
    (5, 15), (5, 20), (5, 25), (5, 30), (8, 24), (8, 32), (8, 40), (8, 48), (10, 30), (10, 40), (10, 50), (10, 60)
)  # fmt: skip
"""Those of OR-Library's small ones."""
SENSES = ("max", "min")


class Public(NamedTuple):
    """One problem, to be maximised."""

    name: str
    sense: str
    """What its own numbers want: a minimum is a maximum of (largest cost + 1 - cost)."""
    scores: Floats
    contributions: Floats
    capacities: Floats
    best_known: float
    """In its own numbers; NaN if none is published."""
    top: float
    """Largest cost + 1: where costs are to be minimised, scores are this minus the cost."""

    @property
    def problem(self) -> Problem:
        """A batch of one."""
        return Problem(self.scores[None], None, self.contributions[None], self.capacities[None])

    def in_own_numbers(self, value: float) -> float:
        """What an objective, or a bound, is in the problem's own numbers."""
        return value if self.sense == "max" else self.scores.shape[0] * self.top - value


def make_gap(kind: str, machines: int, jobs: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Costs and uses [jobs, machines] and capacities of type c, d or e, as published."""
    rng = np.random.default_rng(seed)
    shape = (machines, jobs)
    if kind == "c":
        use, cost = rng.integers(5, 26, shape), rng.integers(10, 51, shape)
    elif kind == "d":
        use = rng.integers(1, 101, shape)
        cost = 111 - use + rng.integers(-10, 11, shape)
    elif kind == "e":
        use = np.floor(1 - 10 * np.log(1 - rng.random(shape))).astype(np.int64)
        cost = np.floor(1000 / use - 10 * rng.random(shape)).astype(np.int64)
    else:
        raise InputError(f"generalised assignment has the types c, d and e, got {kind!r}")
    return cost.T.astype(float), use.T.astype(float), np.floor(0.8 * use.sum(axis=1) / machines)


def read_gap(path: Path) -> tuple[Floats, Floats, Floats]:
    """The same from a file: machines m, jobs n; m rows of n costs, m rows of n uses, m capacities."""
    with gzip.open(path, "rt", encoding="ascii") as file:
        numbers = np.array(file.read().split(), dtype=float)
    m, n = int(numbers[0]), int(numbers[1])
    if numbers.size != 2 + 2 * m * n + m:
        raise InputError(f"{path.name} should hold {2 + 2 * m * n + m} numbers for {m} machines, got {numbers.size}")
    cost, use = numbers[2 : 2 + 2 * m * n].reshape(2, m, n)
    return cost.T.copy(), use.T.copy(), numbers[2 + 2 * m * n :].copy()


def both_senses(name: str, data: tuple[Floats, Floats, Floats], known: dict[str, float]) -> Iterator[Public]:
    """A problem to be maximised and to be minimised."""
    cost, use, capacity = data
    for sense in SENSES:
        top = float(cost.max()) + 1.0
        scores = cost if sense == "max" else top - cost
        best = known.get(sense, np.nan)
        yield Public(name, sense, scores, use, capacity, best, top)


def gap_problems() -> Iterator[Public]:
    """Those of the folder if it is there, else of every published type and size by the generator (seed 0)."""
    if FOLDER.is_dir():
        with (FOLDER / "bounds.csv").open(encoding="ascii") as file:
            bounds = {(row["instance"], row["sense"]): float(row["upper"]) for row in csv.DictReader(file)}
        for path in sorted(FOLDER.glob("*.txt.gz")):
            name = path.name.removesuffix(".txt.gz")
            known = {sense: bounds[name, sense] for sense in SENSES if (name, sense) in bounds}
            yield from both_senses(name, read_gap(path), known)
        return
    for kind in "cde":
        for machines, jobs in SIZES:
            name = f"{kind}{machines:02}{jobs} made here"
            yield from both_senses(name, make_gap(kind, machines, jobs, seed=0), {})


def small_problems(machines: int, jobs: int, seeds: range) -> Iterator[Public]:
    """Small ones of type c by the generator, in both senses."""
    for seed in seeds:
        yield from both_senses(f"c{machines:02}{jobs}, seed {seed}", make_gap("c", machines, jobs, seed), {})


def make_diversity(kind: str, elements: int, seed: int) -> Floats:
    """Distances [elements, elements]: uniform in [0, 10] ("MDG-a"), or of points in 2 to 21 dimensions ("GKD-c")."""
    rng = np.random.default_rng(seed)
    if kind == "MDG-a":
        upper = np.triu(rng.uniform(0.0, 10.0, (elements, elements)), 1)
        return upper + upper.T
    points = rng.uniform(0.0, 10.0, (elements, int(rng.integers(2, 22))))
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))


def diversity_problem(distance: Floats, chosen: int) -> Problem:
    """So many agents that each take an element of their own; every pair of elements taken is worth its distance."""
    elements = len(distance)
    return Problem(np.zeros((1, chosen, elements)), 0.5 * distance[None])
