"""Instances to measure solvers on: sizes, regimes of capacity, kinds of task scores."""

from __future__ import annotations

import numpy as np

from muster.data import Floats, Problem

REGIMES = ("unit", "hits", "pair")
"""unit: contribution 1, capacity 1; hits: contribution 20, capacity 1 to 6 hits; pair: contributions of every pair."""

KINDS = ("random", "focus", "spread", "indefinite")
"""g with normal entries; that gathers agents; that keeps neighbouring tasks apart; of rank 4 with both signs."""


def make_instances(
    size: tuple[int, int], regime: str, count: int, seed: int = 0, kind: str | None = None
) -> tuple[Floats, Floats | None, Floats, Floats]:
    """Scores h [B, N, M], task scores g [B, M, M] or None, contributions [B, N, M], capacities [B, M]."""
    n, m = size
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(count, n, m))
    contributions: Floats = np.ones((count, n, m))
    capacities: Floats = np.ones((count, m))
    if regime == "hits":
        contributions *= 20.0
        capacities *= 20.0 * rng.integers(1, 7, (count, m))
    elif regime == "pair":
        contributions = rng.uniform(0.1, 3.0, (count, n, m))
        capacities = rng.uniform(0.1, 4.0, (count, m))
    return scores, None if kind is None else make_task_scores(kind, count, m, rng), contributions, capacities


def make_task_scores(kind: str, count: int, m: int, rng: np.random.Generator) -> Floats:
    """Task scores g [B, M, M] of the given kind."""
    if kind == "random":
        return 0.1 * rng.normal(size=(count, m, m))
    if kind == "focus":
        return np.einsum("bi,ij->bij", rng.uniform(0.1, 0.5, (count, m)), np.eye(m))
    if kind == "spread":
        place = rng.uniform(0, 16, (count, m, 2))
        return -0.5 * np.exp(-np.abs(place[:, :, None] - place[:, None]).max(-1) / 3)
    factors = rng.normal(size=(count, m, 4))
    return 0.1 * np.einsum("bik,k,bjk->bij", factors, np.array([1.0, 1.0, -1.0, -1.0]), factors)


def as_problem(
    arrays: tuple[Floats, Floats | None, Floats, Floats], first: int = 0, last: int | None = None
) -> Problem:
    """Some of the instances as a Problem."""
    h, g, mu, u = (None if array is None else array[first:last] for array in arrays)
    assert h is not None
    return Problem(h, g, mu, u)
