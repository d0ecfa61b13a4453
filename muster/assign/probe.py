"""An instance solved again with one change: without a pair, or with one agent fixed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from muster.assign.fixed import NamedError
from muster.assign.instance import allowed_pairs, capacities_of, contributions_of
from muster.assign.problem import CAPACITY_TOLERANCE
from muster.assign.solver import Solver
from muster.assign.stop import check_stopped
from muster.assign.switching import less_switch_cost
from muster.data import Bools, Floats, Ints, Problem

# Entries of the scores that are solved at once.
CHUNK = 1_000_000

Pair = tuple[int, int]


class Probe:
    """One instance, its scores less the switch cost, to be solved repeatedly."""

    def __init__(self, problem: Problem, solver: Solver) -> None:
        self.problem = problem
        # The same settings: small instances are proven only by a solver that certifies.
        self.solver = solver
        self.scores = problem.scores[0]
        _, n, m = problem.scores.shape
        if problem.previous is not None:
            everything = np.ones((1, m), np.bool_)
            self.scores = less_switch_cost(problem.scores, problem.previous, everything, problem.switch_cost)[0]
        self.allowed, self.use, self.capacity = (
            allowed_pairs(problem),
            contributions_of(problem),
            capacities_of(problem),
        )
        self.within = np.full((n, m), True) if solver.method == "amax" else self.fits()

    def fits(self) -> np.ndarray:
        """[N, M] whether an agent alone is within a task's capacity."""
        return self.use <= self.capacity * (1.0 + CAPACITY_TOLERANCE)

    def without(self, pairs: Sequence[Pair]) -> Iterator[tuple[float, Ints]]:
        """Value and assignment of the best plan in which agent i does not take task j, for each pair (i, j)."""
        for part in self._chunks(pairs):
            allowed = np.repeat(self.allowed[None], len(part), axis=0)
            for k, (i, j) in enumerate(part):
                allowed[k, i, j] = False
            fixed = self._fixed(len(part))
            for k, (i, _) in enumerate(part):
                fixed[k, i] = -1
            yield from self._solve(allowed, fixed)

    def given(self, pairs: Sequence[Pair]) -> Iterator[tuple[float, Ints]]:
        """Value and assignment of the best plan in which agent i takes task j, for each pair (i, j)."""
        for part in self._chunks(pairs):
            fixed = self._fixed(len(part))
            for k, (i, j) in enumerate(part):
                fixed[k, i] = j
            yield from self._solve(_repeat(self.allowed, len(part)), fixed)

    def _solve(self, allowed: Bools, fixed: Ints) -> Iterator[tuple[float, Ints]]:
        """Value and assignment of the best plans; -inf where no plan reaches all required minimums."""
        size = len(allowed)
        given = Problem(
            scores=_repeat(self.scores, size),
            task_scores=self._task_scores(size),
            contributions=_repeat(self.use, size),
            capacities=_repeat(self.capacity, size),
            minimums=None if self.problem.minimums is None else _repeat(self.problem.minimums[0], size),
            serve_all=self.problem.serve_all,
            fixed=fixed,
            allowed=allowed,
        )
        try:
            found = self.solver(given)
        except NamedError:
            if size == 1:
                yield -np.inf, np.full(fixed.shape[1], -1, np.int64)
                return
            for k in range(size):
                yield from self._solve(allowed[k : k + 1], fixed[k : k + 1])
            return
        check_stopped("the explanation")
        yield from zip(found.objective.tolist(), found.assignment, strict=True)

    def _fixed(self, size: int) -> Ints:
        _, n, _ = self.problem.scores.shape
        if self.problem.fixed is None:
            return np.full((size, n), -1, np.int64)
        return _repeat(self.problem.fixed[0], size)

    def _chunks(self, pairs: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
        step = max(1, CHUNK // max(1, self.scores.size))
        for begin in range(0, len(pairs), step):
            yield pairs[begin : begin + step]

    def _task_scores(self, size: int) -> Floats | None:
        given = self.problem.task_scores
        return None if given is None or self.solver.method != "quad" else _repeat(given[0], size)


def _repeat(array: np.ndarray, size: int) -> np.ndarray:
    return np.repeat(array[None], size, axis=0)
