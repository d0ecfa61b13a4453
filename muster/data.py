"""The frozen types that carry everything: environment -> BatchObservation -> Problem -> Solution.

Letters in shapes: B batch, N agents, M tasks, F features (see docs/glossary.md). Arrays are padded to the
largest instance of the batch; `*_alive` is True where an agent or task is really there and still counts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BatchObservation:
    """What a policy sees of B environments. Any feature block may have width 0."""

    agent_features: Floats32
    """[B, N, Fa]"""
    task_features: Floats32
    """[B, M, Ft]"""
    pair_features: Floats32
    """[B, N, M, Fp]"""
    task_pair_features: Floats32
    """[B, M, M, Fq]"""
    agent_alive: Bools
    """[B, N]"""
    task_alive: Bools
    """[B, M] False for a task that is solved, dead or padding: it takes no agent."""
    contributions: Floats
    """[B, N, M] how much of a task's capacity an agent uses up."""
    capacities: Floats
    """[B, M]"""
    planes: Floats32 | None = None
    """[B, C, H, W] for grid environments."""
    agent_cells: Ints | None = None
    """[B, N, 2] row and column of each agent in `planes`."""
    task_cells: Ints | None = None
    """[B, M, 2]"""
    allowed: Bools | None = None
    """[B, N, M] False where the agent must not take the task; None means all may. What is forbidden is not scored."""
    prior: Floats | None = None
    """[B, N, M] what one would use as scores without learning (-distance, profit); a model corrects it."""
    task_prior: Floats | None = None
    """[B, M, M] likewise for task scores."""
    global_features: Floats32 | None = None
    """[B, Fg] what every pair sees: the time of day, demand, density."""
    previous: Ints | None = None
    """[B, N] the task that each agent had after the last decision, -1 for none, or if it has gone since."""
    agent_ids: Ints | None = None
    """[B, N] who is in each slot, where slots are used again; None means that they never are."""
    task_ids: Ints | None = None
    """[B, M] likewise."""
    switch_cost: Floats | None = None
    """[B, N, M] what is taken from a pair's score where the agent still has another task (`previous`)."""
    minimums: Floats | None = None
    """[B, M] a task gets contributions of at least so much, or no agent; None means 0."""

    @property
    def batch(self) -> int:
        """B"""
        return int(self.agent_features.shape[0])

    @property
    def pairs(self) -> Bools:
        """[B, N, M] True for an agent and a task that live, and that it may take."""
        there = self.agent_alive[:, :, None] & self.task_alive[:, None, :]
        return there if self.allowed is None else there & self.allowed

    @property
    def task_pairs(self) -> Bools:
        """[B, M, M] True for two tasks that live."""
        return self.task_alive[:, :, None] & self.task_alive[:, None, :]

    def take(self, rows: Ints) -> BatchObservation:
        """The observation of some of the environments, in that order; a row may come several times."""
        parts: dict[str, Any] = {}
        for entry in fields(self):
            array = getattr(self, entry.name)
            parts[entry.name] = None if array is None else array[rows]
        return BatchObservation(**parts)

    def problem(self, scores: Floats, task_scores: Floats | None = None) -> Problem:
        """The assignment problem of these scores, with the limits and masks that are observed."""
        return Problem(
            scores=scores,
            task_scores=task_scores,
            contributions=self.contributions,
            capacities=self.capacities,
            agent_alive=self.agent_alive,
            task_alive=self.task_alive,
            allowed=self.allowed,
            minimums=self.minimums,
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """Maximise sum h·b + c'gc over assignments b, where c_j counts the agents on task j, or is its load.

    Each agent takes at most one task and the contributions to a task stay within its capacity.
    """

    scores: Floats
    """[B, N, M] h; -inf forbids a pair."""
    task_scores: Floats | None = None
    """[B, M, M] g, neither symmetric nor definite; None means 0."""
    contributions: Floats | None = None
    """[B, N, M]; None means 1."""
    capacities: Floats | None = None
    """[B, M]; None means 1, or the minimum where that is more; +inf means unlimited."""
    agent_alive: Bools | None = None
    """[B, N]; None means all."""
    task_alive: Bools | None = None
    """[B, M]; None means all."""
    allowed: Bools | None = None
    """[B, N, M] False forbids a pair in every procedure, and its other entries may be anything; None means all."""
    end_scores: Floats | None = None
    """[B, N, M] PLAN: what it is worth for an agent to end with a task, such as -(the way home); None means 0."""
    routes: Ints | None = None
    """[B, N, M] PLAN: routes to go on from (`Solution.routes` of the last decision), -1 behind the last stop."""
    previous: Ints | None = None
    """[B, N] the task that each agent had before, -1 for none: no answer is worth less than that, where it still can
    be, and search begins there too. None means that there was no plan before."""
    switch_cost: Floats | float = 0.0
    """A number or [B, N, M]: taken from a pair's score where the agent still has another task (`previous`)."""
    minimums: Floats | None = None
    """[B, M] a task gets contributions of at least so much, or no agent; None means 0."""
    serve_all: bool = False
    """Whether every task has to get its minimum."""
    fixed: Ints | None = None
    """[B, N] the task that an agent has to take, -1 for an agent that is free; None means that all are."""


@dataclass(frozen=True, slots=True, repr=False)
class Solution:
    """An assignment and the certificate that goes with it.

    For a batch every field has a leading B; for one instance (see `muster.assign`) it has none and the
    scalars are Python numbers and strings.
    """

    assignment: Ints
    """[B, N] task index, or -1 for unassigned."""
    objective: Floats
    """[B] value of `assignment`, less what its changes cost."""
    relaxed_objective: Floats
    """[B] value of the relaxed solution that was rounded."""
    bound: Floats
    """[B] no assignment that the settings allow is worth more (assign_all: of those that assign everyone); NaN if
    nothing is proven. AMAX: its own objective; LP: what the prices prove; QUAD: what pair terms can add at most, the
    tangent where c'gc is concave, or a proof; at effort "paper" only where that is seen at a glance."""
    status: Any
    """[B] one of `muster.assign.STATUSES`."""
    duality_gap: Floats
    """[B] dual minus primal value of the (last) linear programme; NaN for AMAX."""
    frank_wolfe_gap: Floats
    """[B] <gradient, vertex - point> where Frank-Wolfe stopped; NaN unless QUAD."""
    loads: Floats
    """[B, M] contributions that each task receives."""
    prices: Floats
    """[B, M] worth of one more unit of each task's capacity (the linear programme's duals)."""
    reasons: Any
    """[B, N] why an agent has no task ("" where it has one): see `muster.assign.REASONS`."""
    seconds: float = 0.0
    """Time spent solving the whole batch."""
    routes: Any = None
    """PLAN: [B, N, M] the tasks of each agent in order, then -1; a list of lists for one instance; None otherwise."""
    changes: Any = None
    """[B] agents who left a task that is still there (`previous`) for another; None without a plan before."""

    @property
    def integer_gap(self) -> Any:
        """By which share of the bound the objective may lie below the best: 0 is proven optimal, NaN means no bound."""
        size = np.maximum(np.abs(self.bound), np.abs(self.objective))
        return (np.subtract(self.bound, self.objective) / np.where(size == 0.0, 1.0, size))[()]

    @property
    def convergence_gap(self) -> Any:
        """How far the relaxation is from proven convergence: Frank-Wolfe's gap for QUAD, the duality gap for LP.

        It says nothing about what rounding lost: that is `integer_gap`.
        """
        return np.where(np.isnan(self.frank_wolfe_gap), self.duality_gap, self.frank_wolfe_gap)[()]

    def _facts(self) -> dict[str, str]:
        """What there is to say in a line."""
        assigned = int(np.count_nonzero(self.assignment >= 0))
        facts = {"assigned": f"{assigned} of {self.assignment.size}"}
        if np.ndim(self.objective) == 0:
            facts["objective"] = f"{self.objective:.6g}"
            if np.isfinite(self.bound):
                facts["bound"] = f"{self.bound:.6g}"
            facts["status"] = str(self.status)
        else:
            facts = {"instances": str(len(self.assignment)), **facts}
            names, counts = np.unique(np.asarray(self.status, dtype=str), return_counts=True)
            facts["status"] = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
        return facts | {"seconds": f"{self.seconds:.3g}"}

    def __repr__(self) -> str:
        return f"Solution({'; '.join(f'{name} {value}' for name, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in self._facts().items())
        return f"<table><caption>Solution</caption>{rows}</table>"
