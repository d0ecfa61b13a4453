"""`muster.assign`: solve one instance, given as arrays or tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, get_args

import numpy as np

from muster.assign.answer import Answer, answer
from muster.assign.call import Call, read_call
from muster.assign.instance import negated
from muster.assign.names import Name
from muster.assign.settings import Effort, Method, Objective, Rounding, Sense, TaskScoresOn
from muster.assign.solver import Solver
from muster.assign.sparse import SparseProblem
from muster.data import Problem
from muster.errors import InputError

_SENSES = get_args(Sense)


def assign(
    scores: Any,
    task_scores: Any = None,
    contributions: Any = None,
    capacities: Any = None,
    minimums: Any = None,
    fixed: Any = None,
    *,
    method: Method = "quad",
    effort: Effort = "fast",
    rounding: Rounding = "strict",
    sense: Sense = "max",
    assign_all: bool = False,
    allowed: Any = None,
    objective: Objective = "makespan",
    end_scores: Any = None,
    routes: Any = None,
    previous: Any = None,
    switch_cost: Any = 0.0,
    time_limit: float | None = None,
    task_scores_on: TaskScoresOn = "count",
    agents: Sequence[Name] | None = None,
    tasks: Sequence[Name] | None = None,
    columns: Mapping[str, Any] | None = None,
) -> Answer:
    """Assign agents to tasks so that sum h·b + c'gc is large, where c_j counts the agents on task j.

    `scores` h is [N, M] (-inf forbids a pair), `task_scores` g is [M, M]. Each agent takes at most one task and the
    `contributions` [N, M] (or [N]; default 1) to a task stay within its entry of `capacities` [M] (default 1, +inf for
    no limit). `minimums` [M] are for tasks that need several agents: such a task gets contributions of at least its
    minimum, or no agent; with the same capacity exactly that much. One number for all, such as `minimums=1`, means that
    every task has to get it, and an error says which cannot. `fixed` {agent: task} are agents that have to take a given
    task. `allowed` [N, M] is False for pairs that must not be; their other entries are not looked at. AMAX looks
    at neither task scores nor capacities, LP at no task scores; their objectives leave them out. With
    `task_scores_on="load"`, for QUAD, c_j is the sum of the contributions to task j instead of a number of agents.

    Method "routes" makes routes: h is what it is worth for an agent to go to a task first, g to go on from task j to
    task k, `end_scores` [N, M] to end there; costs are negative scores. Every task is visited by as many agents as its
    capacity takes, the `objective` is the longest route or the total, `routes` are those to go on from.

    `previous` is the previous plan, as an answer, an assignment or {agent: task}: `switch_cost` (a number, [N] or
    [N, M]) is taken from the score of every other task while an agent's last one is there, `changes` counts those who
    left, and the answer is never worth less than the previous plan where that is still possible. Agents and tasks that
    it names and that are gone count as none.

    Scores may also be a table with names: a pandas or polars frame (columns agent, task, score and, if wanted,
    contribution, a row for each allowed pair; or a row per agent and a column per task, empty where a pair must not
    be), {agent: {task: score}}, {(agent, task): score}, records, or a scipy sparse matrix of the allowed pairs.
    `columns` {"agent": "tech", "task": "job", "score": "worth"} says what columns are called otherwise; further ones
    are ignored. `agents` and `tasks` name the rows and columns of an array. Everything else may then be
    given by name too. A task of a table of pairs that only `capacities` or `minimums` name is one that no agent may
    take.

    With `sense="min"` scores are costs: -inf or +inf forbids a pair, and objective and bound are costs too. An agent
    without a task costs nothing, so give `assign_all=True` or `minimums=1` as well.

    >>> import muster
    >>> muster.assign([[3.0, 2.0], [2.5, 0.5]], method="lp").assignment
    array([1, 0])
    """
    if method != "routes" and not (objective == "makespan" and end_scores is None and routes is None):
        raise InputError(f"objective, end_scores and routes are for method 'routes', not for {method!r}")
    call = Call(
        scores,
        task_scores,
        contributions,
        capacities,
        allowed,
        end_scores,
        routes,
        agents,
        tasks,
        previous,
        switch_cost,
        minimums,
        fixed,
        columns,
    )
    if sense not in _SENSES:
        raise InputError(f"sense must be 'max' or 'min', got {sense!r}")
    problem, names = read_call(call)
    if sense == "min":
        problem = negated(problem)
    settings = method, effort, rounding, assign_all, objective, time_limit, task_scores_on
    try:
        solver = _solver(*settings)
    except TypeError:
        # A setting that cannot be hashed is invalid: the check says so.
        solver = _solver.__wrapped__(*settings)
    found = answer(problem, solver, names, sense)
    if found.objective == 0.0 and not assign_all and method != "routes" and not (found.assignment >= 0).any():
        _warn_idle(problem, sense)
    return found


def _warn_idle(problem: Problem | SparseProblem, sense: Sense) -> None:
    """Warn of an answer without any agent because every pair costs something."""
    scores = problem.score if isinstance(problem, SparseProblem) else problem.scores[problem.scores > -np.inf]
    if scores.size and (scores < 0.0).all():
        why = "every score is negative (costs are minimised by sense='min')" if sense == "max" else "every pair costs"
        warnings.warn(
            f"no agent is assigned: {why}, and an agent without a task is worth 0; assign_all=True assigns every agent "
            "that fits, minimums=1 serves every task",
            stacklevel=4,
        )


@lru_cache(maxsize=128, typed=True)
def _solver(
    method: Any, effort: Any, rounding: Any, assign_all: Any, objective: Any, time_limit: Any, task_scores_on: Any
) -> Solver:
    """The Solver of these settings. Checking them takes as long as solving a small instance, so it is done once."""
    return Solver(method, effort, rounding, assign_all, objective, time_limit, task_scores_on=task_scores_on)
