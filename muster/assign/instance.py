"""A Problem of one instance without its batch: allowed pairs, contributions, capacities, and the value of a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from muster.assign.settings import TaskScoresOn
from muster.assign.sparse import SparseProblem
from muster.data import Bools, Floats, Ints, Problem


def allowed_pairs(problem: Problem) -> Bools:
    """[N, M] the pairs that are allowed."""
    allowed = problem.scores[0] > -np.inf
    return np.asarray(allowed if problem.allowed is None else allowed & problem.allowed[0])


def contributions_of(problem: Problem) -> Floats:
    """[N, M] contributions."""
    return np.ones(problem.scores.shape[1:]) if problem.contributions is None else problem.contributions[0]


def capacities_of(problem: Problem) -> Floats:
    """[M] capacities."""
    if problem.capacities is not None:
        return problem.capacities[0]
    return np.maximum(1.0, minimums_of(problem))


def minimums_of(problem: Problem) -> Floats:
    """[M] minimums, 0 for none."""
    return np.zeros(problem.scores.shape[2]) if problem.minimums is None else problem.minimums[0]


def negated(problem: Problem | SparseProblem) -> Any:
    """The same problem with costs for scores, or the other way round; pairs that are forbidden stay so."""
    if isinstance(problem, SparseProblem):
        return replace(problem, score=-problem.score)
    scores = np.asarray(problem.scores, np.float64)
    g, ends = problem.task_scores, problem.end_scores
    return replace(
        problem,
        scores=np.where(np.isinf(scores), -np.inf, -scores),
        task_scores=None if g is None else -np.asarray(g),
        end_scores=None if ends is None else -np.asarray(ends),
    )


def loads_of(problem: Problem, plan: Ints) -> Floats:
    """[M] the contributions that each task gets."""
    placed = np.flatnonzero(plan >= 0)
    loads = np.bincount(
        plan[placed], contributions_of(problem)[placed, plan[placed]], minlength=problem.scores.shape[2]
    )
    return loads.astype(np.float64)


def value_of(problem: Problem, plan: Ints, method: str, task_scores_on: TaskScoresOn = "count") -> float:
    """Sum h·b + c'gc, where c counts agents or is the loads; NaN where a pair is not allowed."""
    placed = np.flatnonzero(plan >= 0)
    if not allowed_pairs(problem)[placed, plan[placed]].all():
        return float("nan")
    value = float(problem.scores[0, placed, plan[placed]].sum())
    if method == "quad" and problem.task_scores is not None:
        count = np.bincount(plan[placed], minlength=problem.scores.shape[2])
        c = loads_of(problem, plan) if task_scores_on == "load" else count.astype(np.float64)
        value += float(c @ problem.task_scores[0] @ c)
    return value
