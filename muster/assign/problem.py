"""A batch as arrays for the compiled core, its output, and InputErrors that name an invalid entry."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muster.assign.outcomes import NOT_ALIVE
from muster.assign.switching import less_switch_cost, refuse_cost_alone
from muster.data import Bools, Floats, Ints, Problem
from muster.errors import InputError
from muster.kernels import core

# Numbers beyond this size are refused: sums of them would overflow ...
LARGEST = 1e100
# ... and so are contributions and capacities below this size that are not 0: ratios of them would.
SMALLEST = 1e-100
# A capacity is respected up to this share of itself, since sums of contributions are rounded.
CAPACITY_TOLERANCE = 1e-11

_NONE: Floats = np.zeros((0, 0, 0))
_NO_MASK: Bools = np.zeros((0, 0, 0), np.bool_)
_NO_ROUTES: Ints = np.zeros((0, 0, 0), np.int64)


class ProblemArrays(NamedTuple):
    """A Problem as contiguous arrays. Blocks that are not given have no rows."""

    scores: Floats
    """[B, N, M]"""
    task_scores: Floats
    """[B, M, M], or [0, 0, 0] for none"""
    contributions: Floats
    """[B, N, M], or [0, 0, 0] for 1"""
    capacities: Floats
    """[B, M]"""
    agent_alive: Bools
    """[B, N]"""
    task_alive: Bools
    """[B, M]"""
    allowed: Bools
    """[B, N, M], or [0, 0, 0] for all; the other entries of a pair that is not allowed are never read."""
    by_load: bool
    """Whether task scores act on contributions instead of numbers of agents (QUAD)."""

    def without_task_scores(self) -> ProblemArrays:
        """The same for LP."""
        return self._replace(task_scores=_NONE)

    def for_core(self) -> Any:
        """The same as an object of the compiled core."""
        return core.assign.Problem(*self)


class Output(NamedTuple):
    """Output of the compiled core: the fields of a Solution, status and reason by their codes."""

    assignment: Ints
    values: Floats
    """[5, B] objective, relaxed objective, bound, duality gap, Frank-Wolfe gap"""
    status: Ints
    loads: Floats
    prices: Floats
    reason: Ints
    routes: Ints
    """[B, N, M] the tasks of each agent in order, then -1 (method "routes"); no rows otherwise."""

    @property
    def objective(self) -> Floats:
        """[B]"""
        return self.values[0]

    def for_core(self) -> Any:
        """The same as an object of the compiled core."""
        return core.assign.Output(*self[:6])


def make_output(size: int, n: int, m: int, with_routes: bool) -> Output:
    """Output in which no agent has a task."""
    zeros = np.zeros
    # By position and without np.full, which take long beside a small instance.
    return Output(
        _filled((size, n), -1),
        zeros((5, size)),
        zeros(size, np.int64),
        zeros((size, m)),
        zeros((size, m)),
        _filled((size, n), NOT_ALIVE),
        _filled((size, n, m), -1) if with_routes else _NO_ROUTES,
    )


def _filled(shape: tuple[int, ...], value: int) -> Ints:
    """np.full in half the time."""
    array: Ints = np.empty(shape, np.int64)
    array.fill(value)
    return array


def read_problem(problem: Problem | Any, with_task_scores: bool, by_load: bool = False) -> ProblemArrays:
    """The problem as arrays, its scores less the switch cost. Shapes are checked here, entries by the core."""
    if not isinstance(problem, Problem):
        kind = type(problem).__name__
        raise InputError(f"a solver takes a muster.Problem, got {kind}; muster.assign takes scores as they are")
    scores = as_array("scores", problem.scores, 3, batched=True)
    size, n, m = scores.shape
    task_scores = _NONE
    if problem.task_scores is not None:
        given = _as_fitting("task_scores", problem.task_scores, (size, m, m))
        task_scores = given if with_task_scores else _NONE
    elif with_task_scores:
        task_scores = np.zeros((size, m, m))
    contributions = _NONE
    if problem.contributions is not None:
        if is_one(problem.contributions):
            fit("contributions", problem.contributions, (size, n, m))
        else:
            contributions = _as_fitting("contributions", problem.contributions, (size, n, m))
        if problem.capacities is None:
            raise InputError("contributions were given without capacities; give each task's capacity too")
    if problem.capacities is not None:
        capacities = _as_fitting("capacities", problem.capacities, (size, m))
    elif problem.minimums is not None:
        capacities = np.maximum(1.0, _as_fitting("minimums", problem.minimums, (size, m)))
    else:
        capacities = _constant((size, m), 1.0)
    arrays = ProblemArrays(
        scores,
        task_scores,
        contributions,
        capacities,
        as_mask("agent_alive", problem.agent_alive, (size, n)),
        as_mask("task_alive", problem.task_alive, (size, m)),
        _NO_MASK if problem.allowed is None else as_mask("allowed", problem.allowed, (size, n, m)),
        by_load,
    )
    if problem.previous is None:
        refuse_cost_alone(problem.switch_cost)
        return arrays
    return arrays._replace(scores=_less_switching(problem, arrays))


def read_routes(problem: Problem) -> tuple[Floats, Ints]:
    """End scores and the routes to go on from, [B, N, M] or no rows where there are none."""
    end_scores, routes = _NONE, _NO_ROUTES
    if problem.end_scores is not None:
        end_scores = _as_fitting("end_scores", problem.end_scores, np.shape(problem.scores))
    if problem.routes is not None:
        routes = np.ascontiguousarray(problem.routes, np.int64)
        fit("routes", routes, np.shape(problem.scores))
    return end_scores, routes


def _less_switching(problem: Problem, arrays: ProblemArrays) -> Floats:
    """The scores less the switch cost; InputError for an invalid previous plan or cost."""
    size, n, m = arrays.scores.shape
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
    if cost.ndim and cost.shape != arrays.scores.shape:
        raise InputError(f"switch_cost must be a number or have shape {arrays.scores.shape}, got {cost.shape}")
    if not (np.isfinite(cost) & (cost >= 0)).all():
        raise InputError(f"switch_cost must be finite and not negative, got {cost[~(cost >= 0) | np.isinf(cost)][0]}")
    return less_switch_cost(arrays.scores, previous, arrays.task_alive, cost)


def name_culprit(arrays: ProblemArrays, end_scores: Floats = _NONE) -> None:
    """Raise InputError for the first entry that the core refused."""
    tasks = arrays.task_alive
    counted = arrays.agent_alive[:, :, None] & tasks[:, None, :]
    if arrays.allowed.size:
        counted = counted & arrays.allowed
    refuse("scores", arrays.scores, counted, infinite=-1)
    if arrays.task_scores.size:
        refuse("task_scores", arrays.task_scores, tasks[:, :, None] & tasks[:, None, :])
    if arrays.contributions.size:
        refuse("contributions", arrays.contributions, counted, negative=False)
    if end_scores.size:
        refuse("end_scores", end_scores, counted)
    refuse("capacities", arrays.capacities, tasks, negative=False, infinite=1)
    if arrays.by_load:
        raise InputError(f"task_scores times contributions squared must be within ±{LARGEST:g} to act on loads")
    raise AssertionError("the core refused an instance for no entry")


def as_array(name: str, value: ArrayLike, dimensions: int | None, batched: bool = False) -> Floats:
    """`value` as a contiguous float64 array of so many dimensions."""
    if (
        type(value) is np.ndarray
        and value.dtype == np.float64
        and value.ndim == dimensions
        and value.flags.c_contiguous
    ):
        return value
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a rectangular array of real numbers{ragged(value)}") from None
    if dimensions is not None and array.ndim != dimensions:
        if array.size == 0 and array.ndim < dimensions and not batched:
            # [] and [[]] are how JSON writes matrices without rows or columns.
            return array.reshape(tuple(array.shape[:dimensions]) + (0,) * (dimensions - array.ndim))
        raise InputError(f"{name} must have {dimensions} dimensions, got {array.ndim} (shape {array.shape})")
    return array


def is_one(array: ArrayLike) -> bool:
    """Whether an array is a single 1 broadcast to its shape (`np.broadcast_to`): the core needs no copy of it."""
    return isinstance(array, np.ndarray) and array.size > 1 and not any(array.strides) and array.flat[0] == 1


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


def _as_fitting(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """`value` as a contiguous float64 array of this shape."""
    array = as_array(name, value, len(shape), batched=True)
    fit(name, array, shape)
    return array


def fit(name: str, array: NDArray[Any], expected: tuple[int, ...]) -> None:
    """InputError unless the array has this shape."""
    if array.shape != expected:
        raise InputError(f"{name} must have shape {expected[1:]} to fit the scores, got {array.shape[1:]}")


def as_mask(name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> Bools:
    """`value` as a contiguous mask; everything is True where none is given."""
    if value is None:
        return _constant(shape, True)
    mask = np.ascontiguousarray(value)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise InputError(f"{name} must be bool with shape {shape}, got {mask.dtype} with shape {mask.shape}")
    return mask


@lru_cache(maxsize=16, typed=True)
def _constant(shape: tuple[int, ...], value: bool | float) -> NDArray[Any]:
    """A read-only array, made once: that would take long beside a small instance."""
    array = np.full(shape, value)
    array.setflags(write=False)
    return array


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
    remedy = "; a pair that must not be is forbidden by `allowed`" if name == "scores" and np.isnan(value) else ""
    raise InputError(f"{name} {problem}, got {value} at [{position}]{remedy}")
