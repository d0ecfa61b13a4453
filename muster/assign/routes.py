"""Routes from decision to decision, each improved from those of the last one."""

from __future__ import annotations

import dataclasses

import numpy as np

from muster.assign.problem import Output
from muster.assign.solver import Solver
from muster.data import Ints, Problem


class RouteMemory:
    """A solver that begins each slot's routes from those it found there last."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.routes: Ints = np.zeros((0, 0, 0), np.int64)
        """[B, N, M] of the last decision; none before the first."""

    def forget(self, slots: Ints) -> None:
        """New episodes start in these slots."""
        self.routes[slots[slots < len(self.routes)]] = -1

    def run(self, problem: Problem) -> tuple[Output, Ints | None]:
        """As `Solver.run`, from the routes of the last call on."""
        known = self.routes.shape == problem.scores.shape
        found, changes = self.solver.run(dataclasses.replace(problem, routes=self.routes if known else None))
        self.routes = found.routes.copy()
        return found, changes
