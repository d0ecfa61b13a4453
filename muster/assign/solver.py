"""From a Problem to a Solution: read the problem, relax, round, improve, prove, keep the previous plan."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, get_args

import numpy as np

from muster.assign.custom import run_custom
from muster.assign.fixed import Fixed, Needs, read_needs, refuse_unserved
from muster.assign.outcomes import INVALID, LOCAL_OPTIMUM, OPTIMAL, REASONS, STATUS_NAMES, TIME_LIMIT
from muster.assign.problem import Output, ProblemArrays, make_output, name_culprit, read_problem, read_routes
from muster.assign.settings import Effort, InferenceSettings, Method, Rounding, TaskScoresOn
from muster.assign.stop import Deadline
from muster.assign.switching import count_changes
from muster.custom import is_custom
from muster.data import Bools, Floats, Ints, Problem, Solution
from muster.errors import InputError
from muster.kernels import core
from muster.parallel import share_out, thread_count

_EFFORTS, _ROUNDINGS = get_args(Effort), get_args(Rounding)
_STATUS_NAMES = np.array(STATUS_NAMES, dtype=object)
REASON_NAMES = np.array(REASONS, dtype=object)
"""The words of REASONS, to be taken by code."""

# Rounds where only a time limit ends the search.
_ENDLESS = 1_000_000_000


class _Limits(NamedTuple):
    """Limits of an effort."""

    steps: int
    """Of Frank-Wolfe."""
    starts: int
    """Further ones, of LP's integer search and of QUAD."""
    cells: float
    """Of the knapsack tables of LP's branch and bound."""
    iterations: int
    """Of routes."""
    nodes: int
    """Of the branch and bound on which tasks are open."""


_LIMITS = {
    "paper": _Limits(600, 0, 0.0, 0, 0),
    "fast": _Limits(48, 0, 0.0, 300, 20),
    "best": _Limits(60, 12, 2e9, 20_000, 2_000),
    "exact": _Limits(60, 12, math.inf, 0, _ENDLESS),
}
# QUAD's bound is tightened by a concave one up to so many tasks.
_CURVATURE_TASKS = 128
# The power of a route's cost that is summed: with 8, the longest of routes that differ by a tenth counts for double.
_TOTAL_POWER, _MAKESPAN_POWER = 1, 8

_NO_PLAN: Ints = np.zeros((0, 0), np.int64)


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
    """Quantity that task scores act on: "count", the number of agents on each task, as in the paper; or "load", the
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
        objective, relaxed, bound, duality_gap, frank_wolfe_gap = out.values
        return Solution(
            assignment=out.assignment,
            objective=objective,
            relaxed_objective=relaxed,
            bound=bound,
            status=_STATUS_NAMES[out.status],
            duality_gap=duality_gap,
            frank_wolfe_gap=frank_wolfe_gap,
            loads=out.loads,
            prices=out.prices,
            reasons=REASON_NAMES[out.reason],
            seconds=time.perf_counter() - started,
            routes=out.routes if self.method == "routes" else None,
            changes=changes,
        )

    def run(self, problem: Problem) -> tuple[Output, Ints | None]:
        """The core's output for each instance, and how many agents changed where there was a previous plan."""
        if is_custom(self.method):
            return run_custom(self.method, problem, self.assign_all), None
        batch = _Batch(self, problem)  # read the problem, without agents that are fixed
        if batch.method == "amax":
            batch.run(core.assign.solve_amax)
        elif batch.method == "routes":
            batch.run(core.routes.solve_routes, batch.end_scores, batch.routes, batch.out.routes, self._power)
        elif batch.method == "lp":
            batch.run(core.assign.solve_linear)  # relax, round, certify
            if batch.needs is None and self._improves_rounding:
                batch.run_unproven(core.assign.improve_batch)
                if (cells := self._limits(self.effort).cells) > 0.0:
                    batch.run_unproven(core.assign.prove_batch, cells)
        else:
            batch.run(core.assign.solve_quadratic)  # relax by Frank-Wolfe, round, improve, bound
            if self.certify and self.effort in ("best", "exact") and batch.n_tasks <= _CURVATURE_TASKS:
                batch.run_unproven(core.assign.tighten_bounds)
        batch.refuse_invalid()
        if batch.needs is not None:
            batch.meet_minimums(*batch.needs)
        elif problem.previous is not None and batch.method in ("lp", "quad"):
            # Last, so that no later step gives up the kept plan.
            batch.run(core.assign.keep_previous, problem.previous)
        return batch.finish()

    def _read_needs(self, problem: Problem, arrays: ProblemArrays) -> tuple[Needs | None, Fixed | None]:
        """Minimums and fixed agents; InputError where the method supports neither."""
        if problem.minimums is None and problem.fixed is None:
            return None, None
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
    def _improves_rounding(self) -> bool:
        """Whether LP goes on from its rounding; not from the authors', which may exceed capacities."""
        return self.effort != "paper" and self.rounding == "strict"

    def _limits(self, effort: Effort) -> _Limits:
        """Limits of the effort, raised where only a time limit ends it."""
        limits = _LIMITS[effort]
        if self.time_limit is None or effort != "best":
            return limits
        return limits._replace(cells=math.inf, nodes=_ENDLESS)

    @property
    def _power(self) -> int:
        return _MAKESPAN_POWER if self.objective == "makespan" else _TOTAL_POWER

    def _core_settings(self, method: str, effort: Effort) -> Any:
        """The settings as an object of the compiled core."""
        limits = self._limits(effort)
        rounds = limits.starts if method in ("lp", "quad") else 0
        if self.time_limit is not None and (method == "routes" or (method == "quad" and effort == "best")):
            rounds = _ENDLESS
        steps = limits.iterations if method == "routes" else limits.steps
        return core.assign.Settings(
            # "exact" first searches as "best" does.
            effort=min(_EFFORTS.index(effort), _EFFORTS.index("best")),
            steps=steps if self.steps is None else self.steps,
            rounding=_ROUNDINGS.index(self.rounding),
            assign_all=self.assign_all,
            rounds=rounds,
            certify=self.certify or (method == "lp" and self._improves_rounding),
            report_proof=self.certify,
            prove=effort == "exact",
        )


class _Batch:
    """A batch and its output for the compiled core, and the threads to use."""

    def __init__(self, solver: Solver, problem: Problem) -> None:
        arrays = read_problem(problem, solver.method in ("quad", "routes"), by_load=solver.task_scores_on == "load")
        self.end_scores, self.routes = read_routes(problem)
        self.needs, self.fixed = solver._read_needs(problem, arrays)
        self.everyone = arrays.agent_alive
        if self.fixed is not None:
            arrays = self.fixed.take_out(arrays)
        method = solver.method
        if method == "quad" and solver.effort != "paper" and not arrays.task_scores.any():
            # Without task scores QUAD is LP, but for the paper's procedure.
            method, arrays = "lp", arrays.without_task_scores()
        # Where there are minimums, a quick answer without them is where their own search begins.
        effort: Effort = "fast" if self.needs is not None and solver.effort != "paper" else solver.effort
        self.size, n, self.n_tasks = arrays.scores.shape
        self.solver, self.method, self.arrays, self.previous = solver, method, arrays, problem.previous
        self.out = make_output(self.size, n, self.n_tasks, with_routes=method == "routes")
        self.arguments = arrays.for_core(), solver._core_settings(method, effort), self.out.for_core()
        # Below this much work, waking the threads costs more than they save.
        small = self.size == 1 or arrays.scores.size * (1 if method == "amax" else 20) < 20_000
        self.threads = 1 if small else solver.threads or thread_count()
        self.deadline = Deadline(solver.time_limit)

    def run(self, kernel: Callable[..., None], *more: Any) -> None:
        """Run a kernel on all instances."""
        self._share(self.size, kernel, more)

    def run_unproven(self, kernel: Callable[..., None], *more: Any) -> None:
        """Run a kernel on the instances that are not proven yet."""
        status = self.out.status
        if _are_optimal(status) or self.deadline.is_over():
            return
        rows = np.flatnonzero((status != OPTIMAL) & (status != INVALID))
        if rows.size:
            self._share(rows.size, kernel, (rows, *more))

    def _share(self, size: int, kernel: Callable[..., None], more: tuple[Any, ...]) -> None:
        deadline = self.deadline
        if self.threads == 1:
            kernel(0, size, *self.arguments, deadline.flag, deadline.left(), *more)
            return

        def work(begin: int, end: int) -> None:
            kernel(begin, end, *self.arguments, deadline.flag, deadline.left(), *more)

        share_out(size, self.threads, work)

    def refuse_invalid(self) -> None:
        """Raise InputError for the first entry that the core refused."""
        if not _are_optimal(self.out.status) and INVALID in self.out.status:
            name_culprit(self.arrays, self.end_scores)

    def meet_minimums(self, minimums: Floats, required: Bools) -> None:
        """Give tasks their minimums or nothing; UnservedError where one that is required cannot have it."""
        arrays, _, out = self.arguments
        self.arguments = arrays, self.solver._core_settings(self.method, self.solver.effort), out
        previous = _NO_PLAN if self.previous is None else self.previous
        nodes = self.solver._limits(self.solver.effort).nodes
        self.run(core.assign.meet_minimums, minimums, required, previous, nodes)
        refuse_unserved(Needs(minimums, required), self.arrays, self.out)

    def finish(self) -> tuple[Output, Ints | None]:
        """The output, and how many agents changed where there was a previous plan."""
        out, solver = self.out, self.solver
        if self.needs is None and self.method == "lp" and not solver.certify:
            _, _, bound, duality_gap, _ = out.values
            bound.fill(np.nan)
            duality_gap.fill(np.nan)
            out.prices.fill(0.0)
        if solver.effort == "exact" and (self.method == "quad" or self.needs is not None):
            # An answer without a proof was cut short.
            out.status[out.status == LOCAL_OPTIMUM] = TIME_LIMIT
        if self.fixed is not None:
            self.fixed.put_back(out)
        if self.previous is None:
            return out, None
        return out, count_changes(out.assignment, self.previous, self.everyone, self.arrays.task_alive)


def _are_optimal(status: Ints) -> bool:
    """Whether all codes are OPTIMAL, which is 0; without numpy's overhead for a single instance."""
    return not (status[0] if status.size == 1 else status.any())


def solve(problem: Problem, method: Method = "quad", **settings: Any) -> Solution:
    """Solve a batch with a Solver of these settings."""
    return Solver(method=method, **settings)(problem)
