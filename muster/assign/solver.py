"""From a Problem to a Solution: check the input, choose the kernel, name the result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, get_args

import numpy as np

from muster.assign import amax, batch, bending, branch_and_bound, linear, plan, quadratic, rounding, staying, whole
from muster.assign import routes as routing
from muster.assign.bounding import CURVED
from muster.assign.entries import name_culprit, read_problem, read_switching, refuse_others
from muster.assign.given import Given
from muster.assign.outcomes import INVALID, LOCAL_OPTIMUM, NOT_ALIVE, OPTIMAL, REASONS, TIME_LIMIT
from muster.assign.settings import Crowd, Effort, InferenceSettings, Method, Rounding
from muster.assign.statuses import NAMES
from muster.assign.switching import count_changes, refuse_cost_alone
from muster.data import Floats, Ints, Problem, Solution
from muster.errors import InputError
from muster.parallel import share_out, thread_count

# The procedures; a new one is a module with a `solve_batch`, entered here and in `settings.Method`.
_PROCEDURES: dict[Method, Callable[..., None]] = {
    "amax": amax.solve_batch,
    "lp": linear.solve_batch,
    "quad": quadratic.solve_batch,
    "routes": plan.solve_batch,
}
_EFFORTS, _ROUNDINGS = get_args(Effort), get_args(Rounding)
_STATUS_NAMES = np.array(NAMES, dtype=object)
REASON_NAMES = np.array(REASONS, dtype=object)
"""The words of REASONS, to be taken by the kernels' codes."""
_STOP: ContextVar[Ints | None] = ContextVar("stop", default=None)


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
    """Fill in duality gap, bound and prices; a learner's inner loop can do without. Of tiny instances "fast" then
    proves fewer: QUAD those of up to 32 assignments instead of 4,096, LP none where the relaxation is not whole."""
    crowd: Crowd = "count"
    """What task scores act on: "count", the number of agents on each task, as in the paper; or "load", the
    contributions that it gets."""

    def __post_init__(self) -> None:
        InferenceSettings.__post_init__(self)
        if self.crowd == "load" and self.method != "quad":
            raise InputError(f"crowd 'load' is for method 'quad', which has task scores; got method {self.method!r}")
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

    def run(self, problem: Problem) -> tuple[batch.Output, Ints | None]:
        """What the kernels wrote for each instance, and how many agents changed where there was a plan before."""
        refuse_others(problem)
        given = read_problem(problem, self.method in ("quad", "routes"), by_load=self.crowd == "load")
        if problem.previous is not None:
            given = given._replace(scores=read_switching(problem, given))
        else:
            refuse_cost_alone(problem.switch_cost)
        size, n, m = given.scores.shape
        out = batch.Output(
            assignment=_filled((size, n), -1),
            objective=np.zeros(size),
            relaxed=np.zeros(size),
            bound=np.zeros(size),
            status=np.zeros(size, np.int64),
            duality_gap=np.zeros(size),
            frank_wolfe_gap=np.zeros(size),
            loads=np.zeros((size, m)),
            prices=np.zeros((size, m)),
            reason=_filled((size, n), NOT_ALIVE),
            routes=_filled((size, n, m) if self.method == "routes" else (0, 0, 0), -1),
        )
        self._run(given, out, problem.previous)
        if INVALID in out.status:
            name_culprit(given)
        if problem.previous is None:
            return out, None
        return out, count_changes(out.assignment, problem.previous, given.agent_alive, given.task_alive)

    def _run(self, given: Given, out: batch.Output, previous: Ints | None) -> None:
        size, n, m = given.scores.shape
        # QUAD without task scores is LP, but for the paper's procedure.
        linear_only = self.method == "quad" and self.effort != "paper" and not given.task_scores.any()
        method: Method = "lp" if linear_only else self.method
        if linear_only:
            given = given._replace(task_scores=np.zeros((0, 0, 0)))
        settings = self._settings(method)
        solve_batch = _PROCEDURES[method]
        # Below this much work, waking the threads costs more than they save.
        small = size * n * m * (1 if self.method == "amax" else 20) < 20_000
        threads = 1 if small else self.threads or thread_count()
        with deadline(self.time_limit) as stop:

            def solve_part(begin: int, end: int) -> None:
                solve_batch(begin, end, given, settings, out, np.empty((batch.WORKSPACES, n, m)), stop)

            def keep_part(begin: int, end: int) -> None:
                space = np.empty((batch.WORKSPACES, n, m))
                assert previous is not None
                staying.keep_previous(begin, end, given, previous, settings, out, space, stop)

            share_out(size, threads, solve_part)
            if method == "lp" and given.contributions.size:
                self._solve_left(given, settings, out, threads, stop)
            if method == "quad" and self.certify and settings.effort == batch.BEST:
                self._bend(given, settings, out, threads, stop)
            if method == "quad" and self.effort == "exact":
                # What is not proven was cut short.
                out.status[out.status == LOCAL_OPTIMUM] = TIME_LIMIT
            if method == "lp" and self._searches:
                self._make_whole(given, settings, out, threads, stop)
            if previous is not None and method in ("lp", "quad"):
                # Last, so that nothing that follows gives up what is kept.
                share_out(size, threads, keep_part)

    def _solve_left(self, given: Given, settings: batch.Settings, out: batch.Output, threads: int, stop: Ints) -> None:
        """LP where contributions differ by agent and by task: an entry of its own, compiled when it is needed."""
        rows = np.flatnonzero(out.status == linear.LEFT)

        def solve(begin: int, end: int) -> None:
            space = np.empty((batch.WORKSPACES, *given.scores.shape[1:]))
            linear.solve_generalised(rows, begin, end, given, settings, out, space, stop)

        if rows.size:
            share_out(rows.size, threads, solve)

    def _bend(self, given: Given, settings: batch.Settings, out: batch.Output, threads: int, stop: Ints) -> None:
        """Tighten the bounds of QUAD where its answers are not proven and there are not too many tasks to look at."""
        if given.scores.shape[2] > CURVED:
            return
        rows = np.flatnonzero((out.status != OPTIMAL) & (out.status != INVALID))

        def bend(begin: int, end: int) -> None:
            space = np.empty((batch.WORKSPACES, *given.scores.shape[1:]))
            bending.bend_batch(rows, begin, end, given, settings, out, space, stop)

        if rows.size:
            share_out(rows.size, threads, bend)

    @property
    def _searches(self) -> bool:
        """Whether LP goes on from its rounding; not from the authors', which may exceed capacities."""
        return self.effort != "paper" and self.rounding == "strict"

    def _make_whole(self, given: Given, settings: batch.Settings, out: batch.Output, threads: int, stop: Ints) -> None:
        """Search on where the solution of the linear programme had to be rounded and may have lost by it."""
        cells = branch_and_bound.CELLS[_EFFORTS.index(self.effort)]
        if self.effort == "best" and self.time_limit is not None:
            cells = np.inf

        def improve(begin: int, end: int) -> None:
            whole.improve_batch(rows, begin, end, given, settings, out, space(), stop)

        def prove(begin: int, end: int) -> None:
            branch_and_bound.prove_batch(
                rows, begin, end, given, settings, self.effort == "exact", cells, out, space(), stop
            )

        def space() -> Floats:
            return np.empty((batch.WORKSPACES, *given.scores.shape[1:]))

        for part in (improve, prove) if cells > 0.0 else (improve,):
            # Mostly all are OPTIMAL, which is 0, and a single instance would notice the selection.
            if not out.status.any():
                break
            rows = np.flatnonzero((out.status != OPTIMAL) & (out.status != INVALID))
            if rows.size and stop[0] == 0:
                share_out(rows.size, threads, part)
        if not self.certify:
            out.bound.fill(np.nan)
            out.duality_gap.fill(np.nan)
            out.prices.fill(0.0)

    def _rounds(self, method: Method) -> int:
        if method == "lp":
            return whole.SWINGS[_EFFORTS.index(self.effort)]
        if method == "routes":
            return 0 if self.time_limit is None else 1_000_000_000
        if self.effort == "best" and self.time_limit is not None:
            return 1_000_000_000
        return quadratic.ROUNDS if self.effort in ("best", "exact") else 0

    def _settings(self, method: Method) -> batch.Settings:
        # What is to be proven is first searched as well as `best` does.
        effort = _EFFORTS.index("best" if self.effort == "exact" else self.effort)
        steps = self.steps
        if steps is None and method == "routes":
            steps = plan.ITERATIONS[effort]
        elif steps is None:
            steps = quadratic.STEPS[effort]
        return batch.Settings(
            effort=effort,
            steps=steps,
            rule=(rounding.STRICT, rounding.ORIGINAL)[_ROUNDINGS.index(self.rounding)],
            assign_all=self.assign_all,
            rounds=self._rounds(method),
            certify=self.certify or (method == "lp" and self._searches),
            asked=self.certify,
            proving=self.effort == "exact",
            power=routing.LONGEST if self.objective == "makespan" else routing.TOTAL,
        )


def solve(problem: Problem, method: Method = "quad", **settings: Any) -> Solution:
    """Solve a batch with a Solver of these settings."""
    return Solver(method=method, **settings)(problem)


def _filled(shape: tuple[int, ...], value: int) -> Ints:
    """As np.full does, in half the time: small instances notice."""
    array: Ints = np.empty(shape, np.int64)
    array.fill(value)
    return array


@contextmanager
def stoppable(stop: Ints) -> Iterator[None]:
    """Let others end what is solved meanwhile: they set `stop` [1] to 1, and the best found by then is the answer.

    Unlike a time limit this changes nothing as long as nobody does.
    """
    token = _STOP.set(stop)
    try:
        yield
    finally:
        _STOP.reset(token)


def is_stopped() -> bool:
    """Whether others have ended what is solved here (`stoppable`)."""
    stop = _STOP.get()
    return stop is not None and bool(stop[0])


@contextmanager
def deadline(seconds: float | None) -> Iterator[Ints]:
    """A flag that the kernels look at between steps, raised by a timer: they run without the interpreter's lock."""
    given = _STOP.get()
    stop = np.zeros(1, np.int64) if given is None else given
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
