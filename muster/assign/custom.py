"""A custom inference procedure, package.module:Name: a function from a Problem to an assignment [B, N].

An object with `__call__` will do as well; options in the name are its constructor's. One that reads the task scores g
has the attribute `task_scores = True`; one with a parameter `assign_all` gets that setting. One with a certificate
returns an object with `assignment` and `bound` [B], such as a Solution: no assignment is worth more than the bound.
The result is checked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from muster.assign.outcomes import ASSIGNED, BETTER_LEFT_OUT, FEASIBLE, NO_CAPACITY, NOT_ALIVE, OPTIMAL
from muster.assign.problem import CAPACITY_TOLERANCE, Output, ProblemArrays, make_output, read_problem
from muster.custom import construct, is_custom, naming
from muster.data import Bools, Floats, Ints, Problem
from muster.errors import InputError

TOLERANCE = 1e-9
"""Relative, of a bound that is reached."""
Procedure = Callable[..., Any]


@lru_cache(maxsize=64)
def procedure(method: str) -> Procedure:
    """The function or object of that name."""
    found = construct("inference", method)
    if not callable(found):
        raise InputError(f"{method} must be a function of a Problem, or an object with __call__, got {found!r:.80}")
    return found


def reads_task_scores(method: str) -> bool:
    """Whether a procedure, ours or custom, weighs pairs of tasks (g)."""
    if not is_custom(method):
        return method in ("quad", "routes")
    return bool(getattr(procedure(method), "task_scores", False))


@lru_cache(maxsize=64)
def reads_assign_all(method: str) -> bool:
    """Whether a custom procedure has a parameter of that name."""
    try:
        return "assign_all" in inspect.signature(procedure(method)).parameters
    except ValueError:  # written in another language
        return False


def run_custom(method: str, problem: Problem, assign_all: bool) -> Output:
    """The procedure's answer, checked and completed; InputError where it is no assignment of the problem."""
    arrays = read_problem(problem, with_task_scores=reads_task_scores(method))
    arguments = {"assign_all": assign_all} if reads_assign_all(method) else {}
    with naming(method):
        answer = procedure(method)(problem, **arguments)
        assignment = np.asarray(getattr(answer, "assignment", answer))
    size, n, m = arrays.scores.shape
    if assignment.shape != (size, n) or assignment.dtype.kind not in "iu":
        raise InputError(
            f"{method} must return a task index for each agent, whole numbers of shape {(size, n)}, got "
            f"{assignment.dtype} with shape {assignment.shape}"
        )
    assignment = assignment.astype(np.int64)
    out = make_output(size, n, m, with_routes=False)
    fits, used = _possible(arrays), _contributions(arrays)
    if wrong := _violation(problem, arrays, assignment, fits, used, out.loads):
        raise InputError(f"{method} {wrong}")
    out.assignment[...] = assignment
    out.values.fill(np.nan)
    objective, _, bound, _, _ = out.values
    objective[...] = value(arrays, assignment)
    bound[...] = getattr(answer, "bound", np.nan)
    close = TOLERANCE * np.maximum(1.0, np.abs(objective))
    if (bound < objective - close).any():
        raise InputError(f"{method} gave the bound {bound.min():g} on assignments, and one that is worth more")
    out.status[...] = np.where(bound <= objective + close, OPTIMAL, FEASIBLE)
    fitting = fits & (out.loads[:, None, :] + used <= _limits(arrays.capacities)[:, None, :])
    out.reason[...] = np.where(fitting.any(axis=2), BETTER_LEFT_OUT, NO_CAPACITY)
    out.reason[assignment >= 0] = ASSIGNED
    out.reason[~arrays.agent_alive] = NOT_ALIVE
    return out


def value(arrays: ProblemArrays, assignment: Ints) -> Floats:
    """[B] sum h·b + c'gc of assignments."""
    slots, agents = np.nonzero(assignment >= 0)
    tasks = assignment[slots, agents]
    size, _, m = arrays.scores.shape
    worth: Floats = np.bincount(slots, arrays.scores[slots, agents, tasks], minlength=size).astype(np.float64)
    if not arrays.task_scores.size:
        return worth
    counts = np.zeros((size, m))
    np.add.at(counts, (slots, tasks), 1.0)
    return worth + np.einsum("bj,bjl,bl->b", counts, arrays.task_scores, counts)


def _possible(arrays: ProblemArrays) -> Bools:
    """[B, N, M] pairs of the living that are allowed."""
    fits = arrays.agent_alive[:, :, None] & arrays.task_alive[:, None, :] & (arrays.scores > -np.inf)
    return fits & arrays.allowed if arrays.allowed.size else fits


def _contributions(arrays: ProblemArrays) -> Floats:
    return arrays.contributions if arrays.contributions.size else np.ones(arrays.scores.shape)


def _limits(capacities: Floats) -> Floats:
    return capacities * (1 + CAPACITY_TOLERANCE)


def _violation(
    problem: Problem, arrays: ProblemArrays, assignment: Ints, fits: Bools, used: Floats, loads: Floats
) -> str:
    """The first violation of an assignment in words, or ""; writes the `loads` [B, M]."""
    m = fits.shape[2]
    wrong = (assignment < -1) | (assignment >= m)
    if wrong.any():
        return f"must return tasks from 0 to {m - 1}, or -1 for none, got {assignment[wrong][0]}"
    slots, agents = np.nonzero(assignment >= 0)
    tasks = assignment[slots, agents]
    if not (there := fits[slots, agents, tasks]).all():
        agent, task = agents[~there][0], tasks[~there][0]
        return f"gave agent {agent} task {task}: one of them is not alive, or the pair is not allowed"
    np.add.at(loads, (slots, tasks), used[slots, agents, tasks])
    if (over := loads > _limits(arrays.capacities)).any():
        slot, task = np.argwhere(over)[0]
        return (
            f"gave task {task} a load of {loads[slot, task]:g}, beyond its capacity {arrays.capacities[slot, task]:g}"
        )
    if problem.minimums is not None and (short := (loads > 0) & (loads < problem.minimums * (1 - 1e-9))).any():
        slot, task = np.argwhere(short)[0]
        return f"gave task {task} a load of {loads[slot, task]:g}, below its minimum {problem.minimums[slot, task]:g}"
    if problem.fixed is not None and (problem.fixed >= 0).any():
        return "is a custom procedure, which cannot be asked to keep agents fixed"
    return ""
