"""From a Problem to a Solution: read the problem, relax, round, improve, prove, keep the previous plan."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, get_args

import numpy as np

from muster.assign.custom import run_custom
from muster.assign.fixed import Fixed, Needs, read_needs, refuse_unserved
from muster.assign.outcomes import INVALID, LOCAL_OPTIMUM, OPTIMAL, REASONS, STATUS_NAMES, TIME_LIMIT
from muster.assign.problem import Output, ProblemArrays, make_output, name_culprit, read_problem, read_routes
from muster.assign.settings import Effort, InferenceSettings, Method, Rounding, TaskScoresOn
from muster.assign.switching import count_changes
from muster.custom import is_custom
from muster.data import Ints, Problem, Solution
from muster.errors import InputError, TimeLimitError
from muster.kernels import core
from muster.parallel import share_out, thread_count

_EFFORTS, _ROUNDINGS = get_args(Effort), get_args(Rounding)
_STATUS_NAMES = np.array(STATUS_NAMES, dtype=object)
REASON_NAMES = np.array(REASONS, dtype=object)
"""The words of REASONS, to be taken by code."""

# What each effort spends, in the order of the efforts: Frank-Wolfe steps, further starts (of LP's integer search, of
# QUAD), cells of the knapsack tables of LP's branch and bound, iterations of routes, and nodes of the
# branch and bound on which tasks are open.
_FRANK_WOLFE_STEPS = (600, 48, 60, 60)
_ROUNDS: dict[str, tuple[int, ...]] = {
    "amax": (0, 0, 0, 0),
    "lp": (0, 0, 12, 12),
    "quad": (0, 0, 12, 12),
    "routes": (0, 0, 0, 0),
}
_KNAPSACK_CELLS = (0.0, 0.0, 2e9, math.inf)
_ROUTE_ITERATIONS = (0, 300, 20_000, 0)
_NODES = (0, 20, 2_000, 1_000_000_000)
# Rounds of those that only a time limit ends.
_ENDLESS = 1_000_000_000
# QUAD's bound is tightened by a concave one up to so many tasks.
_CURVATURE_TASKS = 128
# The power of a route's cost that is summed: with 8, the longest of routes that differ by a tenth counts for double.
_TOTAL_POWER, _MAKESPAN_POWER = 1, 8

_NO_PLAN: Ints = np.zeros((0, 0), np.int64)

_FLAG: ContextVar[Ints | None] = ContextVar("stop", default=None)


@dataclass(frozen=True, slots=True)
class Solver(InferenceSettings):
    """A coordination inference procedure with its settings: call it on a Problem, get a Solution."""

    time_limit: float | None = None
    """Seconds for the whole batch; the best feasible assignments found by then come back."""
    steps: int | None = None
    """Frank-Wolfe steps at most, or iterations of routes; None for the effort's own (600, 48, 60; 300, 20,000)."""
    threads: int | None = None
    """Threads for large batches; None for one a core (or MUSTER_NUM_THREADS)."""
    certify: bool = True
    """Fill in duality gap, bound and prices; a learner's inner loop can do without. Of tiny instances "fast" then
    proves fewer: QUAD those of up to 32 assignments instead of 4,096, LP none where the relaxation is not integral."""
    task_scores_on: TaskScoresOn = "count"
    """What task scores act on: "count", the number of agents on each task, as in the paper; or "load", the
    contributions that it gets."""

    def __post_init__(self) -> None:
        InferenceSettings.__post_init__(self)
        if self.task_scores_on == "load" and self.method != "quad":
            raise InputError(f"task_scores_on 'load' is for method 'quad'; got method {self.method!r}")
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
        out, changes = self.run(problem)
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
            reasons=REASON_NAMES[out.reason],
            seconds=time.perf_counter() - started,
            routes=out.routes if self.method == "routes" else None,
            changes=changes,
        )

    def run(self, problem: Problem) -> tuple[Output, Ints | None]:
        """What the core wrote for each instance, and how many agents changed where there was a previous plan."""
        if is_custom(self.method):
            return run_custom(self.method, problem), None
        arrays = read_problem(problem, self.method in ("quad", "routes"), by_load=self.task_scores_on == "load")
        end_scores, begun = read_routes(problem)
        needs, fixed = self._read_needs(problem, arrays)
        everyone = arrays.agent_alive
        if fixed is not None:
            arrays = fixed.take_out(arrays)
        size, n, m = arrays.scores.shape
        out = make_output(size, n, m, with_routes=self.method == "routes")
        method = self.method
        if method == "quad" and self.effort != "paper" and not arrays.task_scores.any():
            # Without task scores QUAD is LP, but for the paper's procedure.
            method, arrays = "lp", arrays.without_task_scores()
        # Where there are minimums, a quick answer without them is where their own search begins.
        first = self if needs is None or self.effort in ("paper", "fast") else replace(self, effort="fast")
        batch = _Batch(first, method, arrays, out)
        if method == "amax":
            batch.run(core.assign.solve_amax)
        elif method == "lp":
            batch.run(core.assign.solve_linear)  # relax, round, certify
            if self._improves_rounding and needs is None:
                batch.run_unproven(core.assign.improve_batch)
                if (cells := self._knapsack_cells) > 0.0:
                    batch.run_unproven(core.assign.prove_batch, cells)
            if not self.certify and needs is None:
                out.bound.fill(np.nan)
                out.duality_gap.fill(np.nan)
                out.prices.fill(0.0)
        elif method == "quad":
            batch.run(core.assign.solve_quadratic)  # relax by Frank-Wolfe, round, improve, bound
            if self.certify and self.effort in ("best", "exact") and m <= _CURVATURE_TASKS:
                batch.run_unproven(core.assign.tighten_bounds)
        else:
            power = _MAKESPAN_POWER if self.objective == "makespan" else _TOTAL_POWER
            batch.run(core.routes.solve_routes, end_scores, begun, out.routes, power)
        if needs is not None:
            previous = _NO_PLAN if problem.previous is None else problem.previous
            second = _Batch(self, method, arrays, out, batch.deadline)
            second.run(core.assign.meet_minimums, *needs, previous, self._nodes)
        elif problem.previous is not None and method in ("lp", "quad"):
            # Last, so that nothing that follows gives up what is kept.
            batch.run(core.assign.keep_previous, problem.previous)
        if self.effort == "exact" and (method == "quad" or needs is not None):
            # What is not proven was cut short.
            out.status[out.status == LOCAL_OPTIMUM] = TIME_LIMIT
        if needs is not None:
            refuse_unserved(needs, arrays, out)
        if fixed is not None:
            fixed.put_back(out)
        changes = None
        if problem.previous is not None:
            changes = count_changes(out.assignment, problem.previous, everyone, arrays.task_alive)
        if not _are_optimal(out.status) and INVALID in out.status:
            name_culprit(arrays, end_scores)
        return out, changes

    def _read_needs(self, problem: Problem, arrays: ProblemArrays) -> tuple[Needs | None, Fixed | None]:
        """Minimums and fixed agents; InputError where the method supports neither."""
        for field in ("minimums", "fixed"):
            if getattr(problem, field) is not None and self.method == "routes":
                raise InputError(f"method 'routes' visits every task and knows no {field}; take lp or quad")
        if problem.minimums is not None and self.method == "amax":
            raise InputError("method 'amax' lets each agent choose alone and knows no minimums; take lp or quad")
        if problem.minimums is not None and self.rounding == "original":
            raise InputError("minimums need rounding 'strict', got 'original'")
        needs = read_needs(problem, arrays)
        if problem.fixed is None:
            return needs, None
        fixed = Fixed(problem.fixed, arrays, with_capacities=self.method != "amax")
        return None if needs is None else fixed.less(needs), fixed

    @property
    def _nodes(self) -> int:
        """Of branch and bound on which tasks are open."""
        timed = self.effort == "best" and self.time_limit is not None
        return _ENDLESS if timed else _NODES[_EFFORTS.index(self.effort)]

    @property
    def _improves_rounding(self) -> bool:
        """Whether LP goes on from its rounding; not from the authors', which may exceed capacities."""
        return self.effort != "paper" and self.rounding == "strict"

    @property
    def _knapsack_cells(self) -> float:
        timed = self.effort == "best" and self.time_limit is not None
        return math.inf if timed else _KNAPSACK_CELLS[_EFFORTS.index(self.effort)]

    def _core_settings(self, method: str) -> Any:
        """The settings as an object of the compiled core."""
        effort = _EFFORTS.index(self.effort)
        rounds, steps = _ROUNDS[method][effort], self.steps
        if self.time_limit is not None and (method == "routes" or (method == "quad" and self.effort == "best")):
            rounds = _ENDLESS
        if steps is None:
            steps = (_ROUTE_ITERATIONS if method == "routes" else _FRANK_WOLFE_STEPS)[effort]
        return core.assign.Settings(
            # What is to be proven is first searched as well as `best` does.
            effort=min(effort, _EFFORTS.index("best")),
            steps=steps,
            rounding=_ROUNDINGS.index(self.rounding),
            assign_all=self.assign_all,
            rounds=rounds,
            certify=self.certify or (method == "lp" and self._improves_rounding),
            report_proof=self.certify,
            prove=self.effort == "exact",
        )


class _Batch:
    """A batch on its way through the compiled core, in as many threads as pay."""

    def __init__(
        self, solver: Solver, method: str, arrays: ProblemArrays, out: Output, deadline: Deadline | None = None
    ) -> None:
        self.size, n, m = arrays.scores.shape
        self.status = out.status
        self.arguments = arrays.for_core(), solver._core_settings(method), out.for_core()
        # Below this much work, waking the threads costs more than they save.
        small = self.size == 1 or self.size * n * m * (1 if method == "amax" else 20) < 20_000
        self.threads = 1 if small else solver.threads or thread_count()
        self.deadline = deadline or Deadline(solver.time_limit)

    def run(self, kernel: Callable[..., None], *more: Any) -> None:
        """Run a kernel on all instances."""
        self._share(self.size, kernel, more)

    def run_unproven(self, kernel: Callable[..., None], *more: Any) -> None:
        """Run a kernel on the instances that are not proven yet."""
        if _are_optimal(self.status) or self.deadline.is_over():
            return
        rows = np.flatnonzero((self.status != OPTIMAL) & (self.status != INVALID))
        if rows.size:
            self._share(rows.size, partial(kernel, rows), more)

    def _share(self, size: int, kernel: Callable[..., None], more: tuple[Any, ...]) -> None:
        def work(begin: int, end: int) -> None:
            kernel(begin, end, *self.arguments, self.deadline.flag, self.deadline.left(), *more)

        if self.threads == 1:
            work(0, size)
        else:
            share_out(size, self.threads, work)


def _are_optimal(status: Ints) -> bool:
    """Whether all codes are OPTIMAL, which is 0; a single instance would notice numpy's way."""
    return not (status[0] if status.size == 1 else status.any())


def solve(problem: Problem, method: Method = "quad", **settings: Any) -> Solution:
    """Solve a batch with a Solver of these settings."""
    return Solver(method=method, **settings)(problem)


class Deadline:
    """When a computation has to end: its time limit, or earlier where the flag is raised (`stoppable`)."""

    def __init__(self, seconds: float | None) -> None:
        given = _FLAG.get()
        self.flag: Ints = np.zeros(1, np.int64) if given is None else given
        """[1] what the core looks at all the time, and raises when time is over."""
        self._end = math.inf if seconds is None else time.perf_counter() + seconds

    def left(self) -> float:
        """Seconds from now on."""
        return math.inf if self._end == math.inf else max(0.0, self._end - time.perf_counter())

    def is_over(self) -> bool:
        """Whether the flag is raised."""
        return bool(self.flag[0])


@contextmanager
def stoppable(flag: Ints) -> Iterator[None]:
    """Let others end what is solved meanwhile: they set `flag` [1] to 1, and the best found by then is the answer.

    Unlike a time limit this changes nothing unless the flag is raised.
    """
    token = _FLAG.set(flag)
    try:
        yield
    finally:
        _FLAG.reset(token)


@contextmanager
def stopped_after(seconds: float | None) -> Iterator[None]:
    """Raise the flag of all that is solved meanwhile after so many seconds; None: leave it to others."""
    if seconds is None:
        yield
        return
    flag: Ints = np.zeros(1, np.int64)
    timer = threading.Timer(seconds, flag.fill, (1,))
    timer.daemon = True
    timer.start()
    try:
        with stoppable(flag):
            yield
    finally:
        timer.cancel()


def check_stopped(what: str) -> None:
    """Raise TimeLimitError if what was solved last was stopped, and tells nothing."""
    if is_stopped():
        raise TimeLimitError(f"{what} was not ready in time")


def is_stopped() -> bool:
    """Whether others have ended what is solved here (`stoppable`)."""
    flag = _FLAG.get()
    return flag is not None and bool(flag[0])
