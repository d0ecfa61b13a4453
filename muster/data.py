"""The frozen types between layers: environment -> BatchObservation -> Problem -> Solution.

Letters in shapes: B batch, N agents, M tasks, F features (see docs/glossary.md). Arrays are padded to the
largest instance of the batch; `*_alive` is False for padding, and for agents and tasks that are gone.
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
    """The observation of B environments. Any feature block may have width 0."""

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
    """[B, N, M] False where the agent must not take the task; None means all may. Forbidden pairs are not scored."""
    prior: Floats | None = None
    """[B, N, M] scores without learning, such as -distance or profit; a model corrects them."""
    task_prior: Floats | None = None
    """[B, M, M] likewise for task scores."""
    global_features: Floats32 | None = None
    """[B, Fg] features of the whole environment, shared by all pairs: the time of day, demand, density."""
    previous: Ints | None = None
    """[B, N] the task that each agent had after the last decision; -1 for none, or one that is gone."""
    agent_ids: Ints | None = None
    """[B, N] identity of the agent at each index; None: an index always means the same agent."""
    task_ids: Ints | None = None
    """[B, M] likewise for tasks."""
    switch_cost: Floats | None = None
    """[B, N, M] subtracted from a pair's score if the agent still has another task (`previous`)."""
    minimums: Floats | None = None
    """[B, M] a task gets contributions of at least so much, or no agent; None means 0."""

    @property
    def batch(self) -> int:
        """B"""
        return int(self.agent_features.shape[0])

    @property
    def pairs(self) -> Bools:
        """[B, N, M] True for pairs of a living agent and a living task that are allowed."""
        alive = self.agent_alive[:, :, None] & self.task_alive[:, None, :]
        return alive if self.allowed is None else alive & self.allowed

    @property
    def task_pairs(self) -> Bools:
        """[B, M, M] True for pairs of living tasks."""
        return self.task_alive[:, :, None] & self.task_alive[:, None, :]

    def take(self, rows: Ints) -> BatchObservation:
        """The observation of the environments `rows`, in that order; rows may repeat."""
        parts: dict[str, Any] = {}
        for entry in fields(self):
            array = getattr(self, entry.name)
            parts[entry.name] = None if array is None else array[rows]
        return BatchObservation(**parts)

    def problem(self, scores: Floats, task_scores: Floats | None = None) -> Problem:
        """The assignment problem of these scores with the observation's contributions, capacities and masks."""
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
    """[B, N, M] False forbids a pair, whatever its score; None means that all pairs are allowed."""
    end_scores: Floats | None = None
    """[B, N, M] routes: score of ending with a task, such as minus the distance home; None means 0."""
    routes: Ints | None = None
    """[B, N, M] routes: those to start from (`Solution.routes` of the last decision), -1 after the last stop."""
    previous: Ints | None = None
    """[B, N] the previous plan, -1 for no task: search starts there too, and the solution is never worse than the part
    of it that is still feasible. None without a previous plan."""
    switch_cost: Floats | float = 0.0
    """A number or [B, N, M]: subtracted from a pair's score if the agent still has another task (`previous`)."""
    minimums: Floats | None = None
    """[B, M] a task gets contributions of at least so much, or no agent; None means 0."""
    serve_all: bool = False
    """Whether every task has to get its minimum."""
    fixed: Ints | None = None
    """[B, N] the task that an agent must take, -1 for a free agent; None means that all are free."""


@dataclass(frozen=True, slots=True, repr=False)
class Solution:
    """An assignment with its certificate.

    For a batch every field has a leading B; for one instance (see `muster.assign`) it has none and the
    scalars are Python numbers and strings.
    """

    assignment: Ints
    """[B, N] task index, or -1 for unassigned."""
    objective: Floats
    """[B] value of `assignment`, switch costs subtracted."""
    relaxed_objective: Floats
    """[B] value of the relaxed solution that was rounded."""
    bound: Floats
    """[B] upper bound on the objective of any assignment that the settings allow; NaN if none is proven. AMAX: its own
    objective; LP: from the prices; QUAD: from the most that pair terms can add, the tangent where c'gc is concave, or a
    proof by search; at effort "paper" only where it costs nothing."""
    status: Any
    """[B] one of `muster.assign.STATUSES`."""
    duality_gap: Floats
    """[B] dual minus primal value of the (last) linear programme; NaN for AMAX."""
    frank_wolfe_gap: Floats
    """[B] <gradient, vertex - point> where Frank-Wolfe stopped; NaN unless QUAD."""
    loads: Floats
    """[B, M] sum of the contributions to each task."""
    prices: Floats
    """[B, M] worth of one more unit of each task's capacity (the linear programme's duals)."""
    reasons: Any
    """[B, N] why an agent has no task ("" where it has one): see `muster.assign.REASONS`."""
    seconds: float = 0.0
    """Time spent solving the whole batch."""
    routes: Any = None
    """routes: [B, N, M] the tasks of each agent in order, then -1; a list of lists for one instance. None otherwise."""
    changes: Any = None
    """[B] number of agents that left a living task (`previous`) for another; None without a previous plan."""

    @property
    def integer_gap(self) -> Any:
        """(bound - objective) / larger of the two in absolute value: 0 is proven optimal, NaN means no bound."""
        size = np.maximum(np.abs(self.bound), np.abs(self.objective))
        return (np.subtract(self.bound, self.objective) / np.where(size == 0.0, 1.0, size))[()]

    @property
    def convergence_gap(self) -> Any:
        """Gap of the relaxation: Frank-Wolfe's for QUAD, the duality gap for LP.

        The loss by rounding is in `integer_gap`.
        """
        return np.where(np.isnan(self.frank_wolfe_gap), self.duality_gap, self.frank_wolfe_gap)[()]

    def _facts(self) -> dict[str, str]:
        """{name: text} of the main results."""
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
