"""What a caller gave, as the arrays of the kernels, or one sentence about the entry that is no good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muster.assign.given import Given
from muster.assign.instance import LARGEST, SMALLEST
from muster.assign.switching import less_switch_cost
from muster.data import Bools, Floats, Problem
from muster.errors import InputError


def refuse_others(problem: object) -> None:
    """InputError for what is no Problem."""
    if not isinstance(problem, Problem):
        kind = type(problem).__name__
        raise InputError(f"a solver takes a muster.Problem, got {kind}; muster.assign takes scores as they are")


def read_problem(problem: Problem, quadratic_part: bool, by_load: bool = False) -> Given:
    """The problem as the contiguous arrays of the kernels; absent blocks have no rows. The kernels check entries."""
    scores = as_array("scores", problem.scores, 3, batched=True)
    size, n, m = scores.shape
    agent_alive = as_mask("agent_alive", problem.agent_alive, (size, n))
    task_alive = as_mask("task_alive", problem.task_alive, (size, m))
    task_scores = np.zeros((0, 0, 0))
    if problem.task_scores is not None:
        given = as_array("task_scores", problem.task_scores, 3, batched=True)
        fit("task_scores", given, (size, m, m))
        if quadratic_part:
            task_scores = given
    if quadratic_part and problem.task_scores is None:
        task_scores = np.zeros((size, m, m))
    contributions = np.zeros((0, 0, 0))
    if problem.contributions is not None:
        if is_one(problem.contributions):
            fit("contributions", problem.contributions, (size, n, m))
        else:
            contributions = as_array("contributions", problem.contributions, 3, batched=True)
            fit("contributions", contributions, (size, n, m))
        if problem.capacities is None:
            raise InputError("contributions were given without capacities; give each task's capacity too")
    capacities = np.ones((size, m))
    if problem.capacities is not None:
        capacities = as_array("capacities", problem.capacities, 2, batched=True)
        fit("capacities", capacities, (size, m))
    allowed = np.zeros((0, 0, 0), np.bool_)
    if problem.allowed is not None:
        allowed = as_mask("allowed", problem.allowed, (size, n, m))
    end_scores, before = np.zeros((0, 0, 0)), np.zeros((0, 0, 0), np.int64)
    if problem.end_scores is not None:
        end_scores = as_array("end_scores", problem.end_scores, 3, batched=True)
        fit("end_scores", end_scores, (size, n, m))
    if problem.routes is not None:
        before = np.ascontiguousarray(problem.routes, np.int64)
        fit("routes", before, (size, n, m))
        before = as_writeable(before)
    return Given(
        scores,
        task_scores,
        contributions,
        capacities,
        agent_alive,
        task_alive,
        allowed,
        end_scores,
        before,
        by_load,
    )


def read_switching(problem: Problem, given: Given) -> Floats:
    """The scores less what leaving a task costs; InputError for a plan before, or a cost, that cannot be one."""
    size, n, m = given.scores.shape
    previous = np.asarray(problem.previous)
    if previous.dtype != np.int64 or previous.shape != (size, n):
        raise InputError(
            f"previous must hold a task index for each agent (int64, shape {(size, n)}), "
            f"got {previous.dtype} with shape {previous.shape}"
        )
    wrong = (previous < -1) | (previous >= m)
    if wrong.any():
        where = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise InputError(f"previous must be tasks from 0 to {m - 1}, or -1 for none, got {previous[where]} at {where}")
    cost = as_array("switch_cost", problem.switch_cost, None)
    if cost.ndim and cost.shape != given.scores.shape:
        raise InputError(f"switch_cost must be a number or have shape {given.scores.shape}, got {cost.shape}")
    if not (np.isfinite(cost) & (cost >= 0)).all():
        raise InputError(f"switch_cost must be finite and not negative, got {cost[~(cost >= 0) | np.isinf(cost)][0]}")
    return less_switch_cost(given.scores, previous, given.task_alive, cost)


def name_culprit(given: Given) -> None:
    """Raise for the first entry that a kernel refused."""
    tasks = given.task_alive
    counted = given.agent_alive[:, :, None] & tasks[:, None, :]
    if given.allowed.size:
        counted = counted & given.allowed
    refuse("scores", given.scores, counted, infinite=-1)
    if given.task_scores.size:
        refuse("task_scores", given.task_scores, tasks[:, :, None] & tasks[:, None, :])
    if given.contributions.size:
        refuse("contributions", given.contributions, counted, negative=False)
    if given.end_scores.size:
        refuse("end_scores", given.end_scores, counted)
    refuse("capacities", given.capacities, tasks, negative=False, infinite=1)
    if given.by_load:
        raise InputError(f"task_scores times contributions squared must be within ±{LARGEST:g} with crowd 'load'")
    raise AssertionError("a kernel refused an instance for no entry")


def as_array(name: str, value: ArrayLike, dimensions: int | None, batched: bool = False) -> Floats:
    """`value` as a contiguous float64 array of so many dimensions."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a rectangular array of real numbers{ragged(value)}") from None
    array = as_writeable(array)
    if dimensions is not None and array.ndim != dimensions:
        if array.size == 0 and array.ndim < dimensions and not batched:
            # [] and [[]] are how JSON writes matrices without rows or columns.
            return array.reshape(tuple(array.shape[:dimensions]) + (0,) * (dimensions - array.ndim))
        raise InputError(f"{name} must have {dimensions} dimensions, got {array.ndim} (shape {array.shape})")
    return array


def is_one(array: ArrayLike) -> bool:
    """Whether an array is a single 1 spread over its shape (`np.broadcast_to`): the kernels need not be shown it."""
    return isinstance(array, np.ndarray) and array.size > 1 and not any(array.strides) and array.flat[0] == 1


def as_writeable(array: NDArray[Any]) -> NDArray[Any]:
    """The array or a copy: numba would compile every kernel once more for arrays that are read-only."""
    return array if array.flags.writeable else array.copy()


def ragged(value: object) -> str:
    """The tail of an error message: the first row of another length, or the first entry that is no number."""
    if isinstance(value, Mapping):
        return ", got a dictionary; names are for scores that have some (agents=…, tasks=…, or a table)"
    if not isinstance(value, (list, tuple)):
        return f", got {type(value).__name__}"
    rows = [row for row in value if isinstance(row, (list, tuple))]
    if rows and len(rows) != len(value):
        return ", got rows and single numbers mixed"
    for r, row in enumerate(rows):
        if len(row) != len(rows[0]):
            return f"; row 0 has {len(rows[0])} entries but row {r} has {len(row)}"
    for r, row in enumerate(rows or [value]):
        for k, entry in enumerate(row):
            if isinstance(entry, bool) or not isinstance(entry, (int, float)):
                return f", got {entry!r} at [{r}, {k}]" if rows else f", got {entry!r} at [{k}]"
    return ""


def fit(name: str, array: NDArray[Any], expected: tuple[int, ...]) -> None:
    """InputError unless the array has this shape."""
    if array.shape != expected:
        raise InputError(f"{name} must have shape {expected[1:]} to fit the scores, got {array.shape[1:]}")


def as_mask(name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> Bools:
    """`value` as a contiguous mask; everything is True where none is given."""
    if value is None:
        everything: Bools = np.empty(shape, np.bool_)
        everything.fill(True)
        return everything
    mask = np.ascontiguousarray(value)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise InputError(f"{name} must be bool with shape {shape}, got {mask.dtype} with shape {mask.shape}")
    return as_writeable(mask)


def refuse(name: str, array: Floats, counted: Bools, negative: bool = True, infinite: int = 0) -> None:
    """Refuse the first counted entry that is NaN, infinite, too large or (unless `negative`) below 0 or tiny.

    `infinite` is the sign of the infinity that is allowed.
    """
    fine = np.abs(array) <= LARGEST
    if infinite:
        fine |= array == infinite * np.inf
    if not negative:
        fine &= (array >= SMALLEST) | (array == 0)
    bad = counted & ~fine
    if not bad.any():
        return
    where = tuple(int(k) for k in np.argwhere(bad)[0])
    value = float(array[where])
    position = ", ".join(map(str, where[1:])) + (f" of instance {where[0]}" if array.shape[0] > 1 else "")
    if np.isnan(value):
        problem = "must be numbers"
    elif np.isinf(value):
        problem = "must be finite" if not infinite else f"may be {'+' if infinite > 0 else '-'}inf but not this"
    elif not negative and value < 0:
        problem = "must not be negative"
    elif abs(value) > LARGEST:
        problem = f"must be within ±{LARGEST:g}"
    else:
        problem = f"must be 0 or at least {SMALLEST:g}"
    raise InputError(f"{name} {problem}, got {value} at [{position}]")
