"""From a Problem to a Solution: check the input, choose the kernel, name the result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muster.data import Bools, Floats, Ints, Problem, Solution
from muster.errors import InputError
from muster.inference import amax, batch, linear, plan, quadratic, rounding
from muster.inference import routes as routing
from muster.inference.instance import LARGEST, SMALLEST, Given
from muster.inference.outcomes import INVALID, NOT_ALIVE, REASONS, STATUSES
from muster.inference.settings import Effort, InferenceSettings, Method, Objective, Rounding
from muster.parallel import share_out, thread_count

# The procedures; a new one is a module with a `solve_batch`, entered here and in `settings.Method`.
_PROCEDURES: dict[Method, Callable[..., None]] = {
    "amax": amax.solve_batch,
    "lp": linear.solve_batch,
    "quad": quadratic.solve_batch,
    "plan": plan.solve_batch,
}
_EFFORTS, _ROUNDINGS = get_args(Effort), get_args(Rounding)
_STATUS_NAMES = np.array(STATUSES, dtype=object)
_REASON_NAMES = np.array(REASONS, dtype=object)


@dataclass(frozen=True, slots=True)
class Solver(InferenceSettings):
    """A coordination inference procedure with its settings: call it on a Problem, get a Solution."""

    time_limit: float | None = None
    """Seconds for the whole batch; the best feasible assignments found by then come back."""
    steps: int | None = None
    """Frank-Wolfe steps at most, or PLAN's iterations; None for the effort's own (600, 48, 60; 300, 20,000)."""
    threads: int | None = None
    """Threads for large batches; None for one a core (or NUMBA_NUM_THREADS)."""
    certify: bool = True
    """Fill in duality gap, prices and reasons; a learner's inner loop can do without."""

    def __post_init__(self) -> None:
        InferenceSettings.__post_init__(self)
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"time_limit must be a positive number of seconds, got {self.time_limit}")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"threads must be at least 1, got {self.threads}")
        if self.steps is not None and self.steps < 0:
            raise InputError(f"steps must not be negative, got {self.steps}")

    @classmethod
    def of(cls, settings: InferenceSettings, threads: int | None = None) -> Solver:
        """The procedure of a policy, without certificates: this is its inner loop."""
        choices = {field.name: getattr(settings, field.name) for field in fields(InferenceSettings)}
        return cls(**choices, threads=threads, certify=False)

    def __call__(self, problem: Problem) -> Solution:
        """Solve a batch; every instance is solved on its own, so its answer does not depend on the others."""
        started = time.perf_counter()
        given = _given(problem, quadratic_part=self.method in ("quad", "plan"))
        size, n, m = given.scores.shape
        out = batch.Output(
            assignment=np.full((size, n), -1, np.int64),
            objective=np.zeros(size),
            relaxed=np.zeros(size),
            bound=np.zeros(size),
            status=np.zeros(size, np.int64),
            duality_gap=np.zeros(size),
            frank_wolfe_gap=np.zeros(size),
            loads=np.zeros((size, m)),
            prices=np.zeros((size, m)),
            reason=np.full((size, n), NOT_ALIVE, np.int64),
            routes=np.full((size, n, m) if self.method == "plan" else (0, 0, 0), -1, np.int64),
        )
        self._run(given, out)
        if (out.status == INVALID).any():
            _name_culprit(given)
        return Solution(
            assignment=out.assignment,
            objective=out.objective,
            relaxed_objective=out.relaxed,
            bound=out.bound,
            status=_STATUS_NAMES[out.status],
            duality_gap=out.duality_gap,
            frank_wolfe_gap=out.frank_wolfe_gap,
            loads=out.loads,
            prices=out.prices,
            reasons=_REASON_NAMES[out.reason],
            seconds=time.perf_counter() - started,
            routes=out.routes if self.method == "plan" else None,
        )

    def _run(self, given: Given, out: batch.Output) -> None:
        size, n, m = given.scores.shape
        settings = self._settings()
        solve_batch = _PROCEDURES[self.method]
        # Below this much work, waking the threads costs more than they save.
        small = size * n * m * (1 if self.method == "amax" else 20) < 20_000
        threads = 1 if small else self.threads or thread_count()
        with _deadline(self.time_limit) as stop:

            def solve_part(begin: int, end: int) -> None:
                solve_batch(begin, end, given, settings, out, np.empty((batch.WORKSPACES, n, m)), stop)

            share_out(size, threads, solve_part)

    def _rounds(self) -> int:
        if self.method == "plan":
            return 0 if self.time_limit is None else 1_000_000_000
        if self.effort != "best":
            return 0
        return quadratic.ROUNDS if self.time_limit is None else 1_000_000_000

    def _settings(self) -> batch.Settings:
        effort = _EFFORTS.index(self.effort)
        steps = self.steps
        if steps is None and self.method == "plan":
            steps = plan.ITERATIONS[effort]
        elif steps is None:
            steps = quadratic.STEPS[effort]
        return batch.Settings(
            effort=effort,
            steps=steps,
            rule=(rounding.STRICT, rounding.ORIGINAL)[_ROUNDINGS.index(self.rounding)],
            forced=self.forced,
            rounds=self._rounds(),
            certify=self.certify,
            power=routing.LONGEST if self.objective == "longest" else routing.TOTAL,
        )


def solve(problem: Problem, method: Method = "quad", **settings: Any) -> Solution:
    """Solve a batch with a Solver of these settings."""
    return Solver(method=method, **settings)(problem)


def assign(
    scores: ArrayLike,
    task_scores: ArrayLike | None = None,
    contributions: ArrayLike | None = None,
    capacities: ArrayLike | None = None,
    *,
    method: Method = "quad",
    effort: Effort = "fast",
    rounding: Rounding = "strict",
    forced: bool = False,
    allowed: ArrayLike | None = None,
    objective: Objective = "longest",
    end_scores: ArrayLike | None = None,
    routes: Sequence[Sequence[int]] | None = None,
    time_limit: float | None = None,
) -> Solution:
    """Assign agents to tasks so that sum h·b + c'gc is large, where c_j counts the agents on task j.

    `scores` h is [N, M] (-inf forbids a pair), `task_scores` g is [M, M]. Each agent takes at most one task and the
    `contributions` [N, M] (or [N]; default 1) to a task stay within its entry of `capacities` [M] (default 1, +inf for
    no limit). `allowed` [N, M] is False for pairs that must not be; their other entries are not looked at. AMAX looks
    at neither task scores nor capacities, LP at no task scores; their objectives leave them out.

    PLAN makes routes: h is what it is worth for an agent to go to a task first, g for whoever leaves task j to go on to
    task k, `end_scores` [N, M] to end there; costs are negative scores. Every task is visited by as many agents as its
    capacity takes, the `objective` is the longest route or the total, `routes` are those to go on from.

    >>> import muster
    >>> muster.assign([[3.0, 2.0], [2.5, 0.5]], method="lp").assignment
    array([1, 0])
    """
    h = _array("scores", scores, 2)
    n, m = h.shape
    mu = None
    if contributions is not None:
        given = _array("contributions", contributions, None)
        if given.shape not in ((n, m), (n,)):
            raise InputError(f"contributions must have shape {(n, m)} or {(n,)} to fit the scores, got {given.shape}")
        mu = (given if given.ndim == 2 else np.repeat(given[:, None], m, axis=1))[None]
    if method != "plan" and not (objective == "longest" and end_scores is None and routes is None):
        raise InputError(f"objective, end_scores and routes are for method 'plan', not for {method!r}")
    solver = _solver(method, effort, rounding, forced, objective, time_limit)
    solution = solver(
        Problem(
            scores=h[None],
            task_scores=None if task_scores is None else _array("task_scores", task_scores, 2)[None],
            contributions=mu,
            capacities=None if capacities is None else _array("capacities", capacities, 1)[None],
            allowed=None if allowed is None else np.asarray(allowed)[None],
            end_scores=None if end_scores is None else _array("end_scores", end_scores, 2)[None],
            routes=None if routes is None else _padded_routes(routes, n, m)[None],
        )
    )
    stops = None
    if solution.routes is not None:
        stops = [[int(task) for task in route if task >= 0] for route in solution.routes[0]]
    return Solution(
        assignment=solution.assignment[0],
        objective=float(solution.objective[0]),  # type: ignore[arg-type]
        relaxed_objective=float(solution.relaxed_objective[0]),  # type: ignore[arg-type]
        bound=float(solution.bound[0]),  # type: ignore[arg-type]
        status=solution.status[0],
        duality_gap=float(solution.duality_gap[0]),  # type: ignore[arg-type]
        frank_wolfe_gap=float(solution.frank_wolfe_gap[0]),  # type: ignore[arg-type]
        loads=solution.loads[0],
        prices=solution.prices[0],
        reasons=solution.reasons[0],
        seconds=solution.seconds,
        routes=stops,
    )


def _padded_routes(routes: Sequence[Sequence[int]], n: int, m: int) -> Ints:
    """Routes as an array [N, M] with -1 behind the last stop; InputError for what are no routes."""
    if len(routes) != n:
        raise InputError(f"routes must be a list of {n}, one for each agent, got {len(routes)}")
    padded: Ints = np.full((n, m), -1, np.int64)
    for i, route in enumerate(routes):
        stops = np.asarray(route)
        whole = stops.size == 0 or (stops.ndim == 1 and stops.dtype.kind in "iu")
        if not whole or (stops.size and not (stops.min() >= 0 and stops.max() < m)) or len(set(route)) < len(route):
            raise InputError(f"routes[{i}] must list different tasks from 0 to {m - 1}, got {list(route)}")
        padded[i, : stops.size] = stops
    return padded


def _solver(*settings: Any) -> Solver:
    """The Solver of these settings. Checking them takes as long as solving a small instance, so it is done once."""
    try:
        return _known_solver(*settings)
    except TypeError:
        # Something that cannot be a setting; the check says so.
        return Solver(*settings)


@lru_cache(maxsize=128, typed=True)
def _known_solver(*settings: Any) -> Solver:
    return Solver(*settings)


@contextmanager
def _deadline(seconds: float | None) -> Iterator[Ints]:
    """A flag that the kernels look at between steps, raised by a timer: they run without the interpreter's lock."""
    stop = np.zeros(1, np.int64)
    if seconds is None:
        yield stop
        return
    timer = threading.Timer(seconds, stop.fill, args=(1,))
    timer.daemon = True
    timer.start()
    try:
        yield stop
    finally:
        timer.cancel()


def _given(problem: Problem, quadratic_part: bool) -> Given:
    """The problem as the contiguous arrays of the kernels; absent blocks have no rows. The kernels check entries."""
    scores = _array("scores", problem.scores, 3, batched=True)
    size, n, m = scores.shape
    agent_alive = _mask("agent_alive", problem.agent_alive, (size, n))
    task_alive = _mask("task_alive", problem.task_alive, (size, m))
    task_scores = np.zeros((0, 0, 0))
    if problem.task_scores is not None:
        given = _array("task_scores", problem.task_scores, 3, batched=True)
        _shape("task_scores", given, (size, m, m))
        if quadratic_part:
            task_scores = given
    if quadratic_part and problem.task_scores is None:
        task_scores = np.zeros((size, m, m))
    contributions = np.zeros((0, 0, 0))
    if problem.contributions is not None:
        contributions = _array("contributions", problem.contributions, 3, batched=True)
        _shape("contributions", contributions, (size, n, m))
        if problem.capacities is None:
            raise InputError("contributions were given without capacities; give each task's capacity too")
    capacities = np.ones((size, m))
    if problem.capacities is not None:
        capacities = _array("capacities", problem.capacities, 2, batched=True)
        _shape("capacities", capacities, (size, m))
    allowed = np.zeros((0, 0, 0), np.bool_)
    if problem.allowed is not None:
        allowed = _mask("allowed", problem.allowed, (size, n, m))
    end_scores, before = np.zeros((0, 0, 0)), np.zeros((0, 0, 0), np.int64)
    if problem.end_scores is not None:
        end_scores = _array("end_scores", problem.end_scores, 3, batched=True)
        _shape("end_scores", end_scores, (size, n, m))
    if problem.routes is not None:
        before = np.ascontiguousarray(problem.routes, np.int64)
        _shape("routes", before, (size, n, m))
        before = _writeable(before)
    return Given(scores, task_scores, contributions, capacities, agent_alive, task_alive, allowed, end_scores, before)


def _name_culprit(given: Given) -> None:
    """Raise for the first entry that a kernel refused."""
    tasks = given.task_alive
    counted = given.agent_alive[:, :, None] & tasks[:, None, :]
    if given.allowed.size:
        counted = counted & given.allowed
    _check("scores", given.scores, counted, infinite=-1)
    if given.task_scores.size:
        _check("task_scores", given.task_scores, tasks[:, :, None] & tasks[:, None, :])
    if given.contributions.size:
        _check("contributions", given.contributions, counted, negative=False)
    if given.end_scores.size:
        _check("end_scores", given.end_scores, counted)
    _check("capacities", given.capacities, tasks, negative=False, infinite=1)
    raise AssertionError("a kernel refused an instance for no entry")


def _array(name: str, value: ArrayLike, dimensions: int | None, batched: bool = False) -> Floats:
    """`value` as a contiguous float64 array of so many dimensions."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a rectangular array of real numbers{_ragged(value)}") from None
    array = _writeable(array)
    if dimensions is not None and array.ndim != dimensions:
        if array.size == 0 and array.ndim < dimensions and not batched:
            # [] and [[]] are how JSON writes matrices without rows or columns.
            return array.reshape(tuple(array.shape[:dimensions]) + (0,) * (dimensions - array.ndim))
        raise InputError(f"{name} must have {dimensions} dimensions, got {array.ndim} (shape {array.shape})")
    return array


def _writeable(array: NDArray[Any]) -> NDArray[Any]:
    """The array or a copy: numba would compile every kernel once more for arrays that are read-only."""
    return array if array.flags.writeable else array.copy()


def _ragged(value: object) -> str:
    """The tail of an error message: the first row of another length, or the first entry that is no number."""
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


def _shape(name: str, array: NDArray[Any], expected: tuple[int, ...]) -> None:
    if array.shape != expected:
        raise InputError(f"{name} must have shape {expected[1:]} to fit the scores, got {array.shape[1:]}")


def _mask(name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> Bools:
    if value is None:
        return np.ones(shape, np.bool_)
    mask = np.ascontiguousarray(value)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise InputError(f"{name} must be bool with shape {shape}, got {mask.dtype} with shape {mask.shape}")
    return _writeable(mask)


def _check(name: str, array: Floats, counted: Bools, negative: bool = True, infinite: int = 0) -> None:
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
