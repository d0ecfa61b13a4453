"""What if one thing were otherwise: an instance solved again without a pair, or with one given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from muster.assign.instance import allowed_pairs, capacities_of, contributions_of
from muster.assign.problem import CAPACITY_TOLERANCE
from muster.assign.solver import Solver, check_stopped
from muster.assign.switching import less_switch_cost
from muster.data import Floats, Ints, Problem

# Entries of the scores that are solved at once.
CHUNK = 1_000_000

Pair = tuple[int, int]


class Probe:
    """One instance, with what its changes cost taken from its scores, to be solved again and again."""

    def __init__(self, problem: Problem, solver: Solver) -> None:
        self.problem = problem
        # As good as the answer that is explained: small instances are proven only where it certifies.
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
        self.both: Floats = np.zeros((m, m))
        if problem.task_scores is not None and solver.method == "quad":
            self.both = problem.task_scores[0] + problem.task_scores[0].T
        # What an agent counts for on a task, to the task scores.
        self.weight = self.use if solver.crowd == "load" else np.ones((n, m))
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
            size = len(part)
            found = self.solver(
                Problem(
                    scores=_repeat(self.scores, size),
                    task_scores=self._task_scores(size),
                    contributions=_repeat(self.use, size),
                    capacities=_repeat(self.capacity, size),
                    allowed=allowed,
                )
            )
            check_stopped("the explanation")
            yield from zip(found.objective.tolist(), found.assignment, strict=True)

    def given(self, pairs: Sequence[Pair]) -> Iterator[tuple[float, Ints]]:
        """Value and assignment of the best plan in which agent i takes task j, for each pair (i, j).

        The agent is taken out, its task's capacity is less what it uses, and every other agent's score of a task is
        more by what the two tasks earn together: the same problem, without a penalty that would have to be large.
        """
        for part in self._chunks(pairs):
            size = len(part)
            scores, capacity = _repeat(self.scores, size), _repeat(self.capacity, size)
            alive = np.ones((size, self.scores.shape[0]), np.bool_)
            for k, (i, j) in enumerate(part):
                alive[k, i] = False
                scores[k] += self.weight[i, j] * self.weight * self.both[j]
                # What rounding would take from the last agent that fits is left to it.
                capacity[k, j] = max(0.0, capacity[k, j] * (1.0 + 0.1 * CAPACITY_TOLERANCE) - self.use[i, j])
                if capacity[k, j] < CAPACITY_TOLERANCE * self.capacity[j]:
                    capacity[k, j] = 0.0
            found = self.solver(
                Problem(
                    scores=scores,
                    task_scores=self._task_scores(size),
                    contributions=_repeat(self.use, size),
                    capacities=capacity,
                    agent_alive=alive,
                    allowed=_repeat(self.allowed, size),
                )
            )
            check_stopped("the explanation")
            for k, (i, j) in enumerate(part):
                plan = found.assignment[k]
                plan[i] = j
                own = 0.5 * self.weight[i, j] ** 2 * self.both[j, j]
                yield float(found.objective[k] + self.scores[i, j] + own), plan

    def _chunks(self, pairs: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
        step = max(1, CHUNK // max(1, self.scores.size))
        for begin in range(0, len(pairs), step):
            yield pairs[begin : begin + step]

    def _task_scores(self, size: int) -> Floats | None:
        given = self.problem.task_scores
        return None if given is None or self.solver.method != "quad" else _repeat(given[0], size)


def _repeat(array: np.ndarray, size: int) -> np.ndarray:
    return np.repeat(array[None], size, axis=0)
