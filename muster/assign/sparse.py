"""Large problems with few allowed pairs, as a list of pairs instead of an array of agents times tasks."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from muster.assign.fixed import UnservedError
from muster.assign.outcomes import ASSIGNED, BELOW_MINIMUM, BETTER_LEFT_OUT, NEGATIVE_SCORES, NO_CAPACITY, REASONS
from muster.assign.problem import CAPACITY_TOLERANCE, LARGEST, SMALLEST, refuse
from muster.assign.solver import Solver
from muster.assign.stop import Deadline
from muster.data import Bools, Floats, Ints, Solution
from muster.errors import InputError
from muster.kernels import core

# A table of pairs among more agents times tasks than this is solved as pairs.
DENSE = 1_000_000

# An assignment is proven optimal when it is within this share of the bound.
PROOF_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class SparseProblem:
    """One instance as a list of allowed pairs, agent by agent."""

    first: Ints
    """[N + 1] the pairs of agent i are first[i] .. first[i + 1] - 1"""
    task: Ints
    """[P]"""
    score: Floats
    """[P] h"""
    use: Floats
    """[P] mu"""
    capacity: Floats
    """[M] u"""
    previous: Ints | None = None
    """[N] the task that each agent had before, -1 for none."""
    switch_cost: Floats | None = None
    """[N] taken from an agent's scores of other tasks than its last."""
    minimums: Floats | None = None
    """[M] a task gets contributions of at least this, or no agent."""
    serve_all: bool = False
    """Whether every task has to get its minimum."""

    @classmethod
    def of(cls, n: int, rows: Ints, columns: Ints, score: Floats, use: Floats, capacity: Floats) -> SparseProblem:
        """From pairs in any order; those with score -inf are left out. Entries are checked."""
        refuse("scores", score[None], np.ones((1, score.size), np.bool_), infinite=-1)
        refuse("contributions", use[None], np.ones((1, use.size), np.bool_), negative=False)
        refuse("capacities", capacity[None], np.ones((1, capacity.size), np.bool_), negative=False, infinite=1)
        allowed = np.flatnonzero(score > -np.inf)
        order = allowed[np.lexsort((columns[allowed], rows[allowed]))]
        return cls(_first(rows[order], n), columns[order].copy(), score[order].copy(), use[order].copy(), capacity)

    @property
    def agent(self) -> Ints:
        """[P] each pair's agent."""
        return _agent(self.first)

    def pair_of(self, assignment: Ints) -> Ints:
        """[N] the pair of each agent and its task, -1 where it has none or the pair is not allowed."""
        found: Ints = np.full(assignment.size, -1, np.int64)
        here = np.flatnonzero(self.task == assignment[self.agent])
        found[self.agent[here]] = here
        return found

    def without(self, tasks: Bools) -> SparseProblem:
        """The same without the pairs of these tasks [M]."""
        kept = ~tasks[self.task]
        first = _first(self.agent[kept], self.first.size - 1)
        return replace(self, first=first, task=self.task[kept], score=self.score[kept], use=self.use[kept])

    def net(self) -> Floats:
        """[P] scores less the switch cost (`muster.assign.switching`)."""
        if self.previous is None or self.switch_cost is None:
            return self.score
        before = self.previous[self.agent]
        return self.score - self.switch_cost[self.agent] * ((before >= 0) & (before != self.task))


def _first(agent: Ints, n: int) -> Ints:
    """[N + 1] where the pairs of each agent begin, given each pair's agent [P]."""
    first: Ints = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(agent, minlength=n), out=first[1:])
    return first


def _agent(first: Ints) -> Ints:
    """[P] each pair's agent."""
    return np.repeat(np.arange(first.size - 1), np.diff(first))


class _Pairs(NamedTuple):
    """The pairs that a plan could use, as arrays for the compiled core."""

    first: Ints
    task: Ints
    score: Floats
    use: Floats
    capacity: Floats
    """[M] in slots where every agent takes one."""
    idle: float
    """Value of leaving an agent out: 0, or very negative where all have to be assigned."""

    def for_core(self) -> Any:
        """The same as an object of the compiled core."""
        return core.sparse.Pairs(*self)


def solve_sparse(problem: SparseProblem, solver: Solver) -> Solution:
    """The Solution of one instance, without a batch: AMAX, or LP, which QUAD is without task scores."""
    if problem.minimums is not None:
        return _solve_minimums(problem, problem.minimums, solver)
    started = time.perf_counter()
    if solver.method == "routes":
        raise InputError(
            "routes are not made of tables with so many pairs; method 'routes' needs all scores in an array"
        )
    if solver.rounding != "strict":
        raise InputError("rounding 'original' is for dense problems; a table of pairs is rounded strictly")
    score, use = problem.net(), problem.use
    capacity = np.full(problem.capacity.size, np.inf) if solver.method == "amax" else problem.capacity
    n = problem.first.size - 1
    idle = 0.0
    if solver.assign_all and score.size:
        size = float(np.abs(score).max())
        # The penalty outweighs any change of the other assignments.
        idle = -2.0 * (n + 1) * size - 1.0
        if abs(idle) > LARGEST:
            raise InputError(f"scores of up to {size:g} are too large to assign all among {n} agents")
    same = float(use[0]) if use.size and use.min() == use.max() and use[0] > 0.0 else None
    slots = np.floor(capacity * (1.0 + CAPACITY_TOLERANCE) / same) if same else capacity
    # Pairs worth no more than leaving the agent out, and contributions that do not fit, are never used.
    usable = (score > idle) & ((slots[problem.task] >= 1.0) if same else _fits(problem, capacity))
    pairs = _kept(problem, score, use / (same or 1.0), slots, idle, usable)
    at, price = np.full(n, -1, np.int64), np.zeros(capacity.size)
    deadline = Deadline(solver.time_limit)
    until = deadline.flag, deadline.left()
    if same:
        done = core.sparse.solve_by_augmenting_paths(pairs.for_core(), at, price, *until)
    else:
        core.sparse.search_assignment(pairs.for_core(), _start(problem, pairs, usable), at, price, *until)
        done = not deadline.is_over()
    dual_bound = _bound(pairs, price)
    _price_closed(problem, pairs, score, use / (same or 1.0), price)
    at = _or_previous(problem, pairs, usable, at)
    return _report(problem, solver, pairs, at, price, same or 1.0, dual_bound, done, time.perf_counter() - started)


def _solve_minimums(problem: SparseProblem, minimums: Floats, solver: Solver) -> Solution:
    """The Solution of one instance with minimums: tasks farthest below theirs are closed until all others reach theirs.

    Then closed tasks are reopened where agents without a task reach the minimum at a gain. Proven optimal only where no
    task was closed.
    """
    started = time.perf_counter()
    if solver.method == "amax":
        raise InputError("method 'amax' lets each agent choose alone and knows no minimums; take lp or quad")
    if problem.serve_all:
        if not ((problem.use >= minimums[problem.task]).all() and (problem.capacity == 1.0).all()):
            raise InputError("among so many pairs, every task can be served where one agent each is enough; give fewer")
        # One agent a task: most tasks are served where most agents are.
        solver = replace(solver, assign_all=True)
    relaxed = found = solve_sparse(replace(problem, minimums=None), solver)
    left = replace(problem, minimums=None)
    while (short := _below_minimum(found, minimums)).any():
        lacking = np.where(short, (minimums - found.loads) / np.maximum(minimums, SMALLEST), 0.0)
        left = left.without(short & (lacking >= np.median(lacking[short])))
        found = solve_sparse(left, solver)
    if problem.serve_all and (found.loads < minimums).any():
        tasks = np.flatnonzero(found.loads < minimums).tolist()
        raise UnservedError(f"not every task can be served: {len(tasks)} are left, such as {{tasks[0]}}", tasks=tasks)
    assignment = _reopen(problem, minimums, found)
    placed = problem.pair_of(assignment)
    placed = placed[placed >= 0]
    objective = float(problem.net()[placed].sum())
    loads = np.bincount(problem.task[placed], problem.use[placed], minlength=minimums.size).astype(np.float64)
    bound = float(relaxed.bound)
    proven = objective >= bound - PROOF_TOLERANCE * max(abs(bound), abs(objective))
    ended = "time_limit" if "time_limit" in (relaxed.status, found.status) else "local_optimum"
    codes = _reasons(problem, solver, assignment, loads)
    below = (assignment < 0) & (codes == REASONS[BETTER_LEFT_OUT])
    codes[below] = REASONS[BELOW_MINIMUM]
    return replace(
        found,
        assignment=assignment,
        objective=objective,  # type: ignore[arg-type]
        relaxed_objective=relaxed.relaxed_objective,
        bound=relaxed.bound,
        duality_gap=relaxed.duality_gap,
        status="optimal" if proven else ended,
        loads=loads,
        prices=relaxed.prices,
        reasons=codes,
        seconds=time.perf_counter() - started,
    )


def _below_minimum(found: Solution, minimums: Floats) -> Bools:
    """[M] whether a task has agents but less than its minimum."""
    served = np.bincount(found.assignment[found.assignment >= 0], minlength=minimums.size) > 0
    return np.asarray(served & (found.loads < minimums * (1.0 - CAPACITY_TOLERANCE)))


def _reopen(problem: SparseProblem, minimums: Floats, found: Solution) -> Ints:
    """The assignment after reopening closed tasks that agents without a task can fill at a gain."""
    assignment: Ints = found.assignment.copy()
    score, agent = problem.net(), problem.agent
    free = assignment < 0
    usable = np.flatnonzero(free[agent] & (minimums[problem.task] > 0.0) & (found.loads[problem.task] == 0.0))
    order = usable[np.lexsort((-score[usable], problem.task[usable]))]
    for pairs in np.split(order, np.flatnonzero(np.diff(problem.task[order])) + 1):
        pairs = pairs[free[agent[pairs]]]
        if not pairs.size:
            continue
        j = problem.task[pairs[0]]
        load = np.cumsum(problem.use[pairs])
        count = int(np.searchsorted(load, minimums[j] * (1.0 - CAPACITY_TOLERANCE))) + 1
        fits = count <= pairs.size and load[count - 1] <= problem.capacity[j] * (1.0 + CAPACITY_TOLERANCE)
        if fits and score[pairs[:count]].sum() > 0.0:
            assignment[agent[pairs[:count]]] = j
            free[agent[pairs[:count]]] = False
    return assignment


def _fits(problem: SparseProblem, capacity: Floats) -> Bools:
    return np.asarray(problem.use <= capacity[problem.task] * (1.0 + CAPACITY_TOLERANCE))


def _kept(problem: SparseProblem, score: Floats, use: Floats, capacity: Floats, idle: float, usable: Bools) -> _Pairs:
    """The usable pairs."""
    first = _first(problem.agent[usable], problem.first.size - 1)
    return _Pairs(first, problem.task[usable], score[usable], use[usable], np.ascontiguousarray(capacity), idle)


def _surplus(pairs: _Pairs, price: Floats) -> Floats:
    """[N] the agents' surplus at these prices: max(idle, max_j h_ij - mu_ij pi_j)."""
    best = np.full(pairs.first.size - 1, pairs.idle)
    np.maximum.at(best, _agent(pairs.first), pairs.score - pairs.use * price[pairs.task])
    return best


def _bound(pairs: _Pairs, price: Floats) -> float:
    """The dual bound of the prices: sum_j u_j pi_j + the agents' surplus."""
    charged = price > 0.0
    return float((pairs.capacity[charged] * price[charged]).sum() + _surplus(pairs, price).sum())


def _price_closed(problem: SparseProblem, pairs: _Pairs, score: Floats, use: Floats, price: Floats) -> None:
    """Give tasks without capacity, which add nothing to the bound, the least price that keeps every agent away."""
    shut = np.flatnonzero((pairs.capacity[problem.task] == 0.0) & (use > 0.0))
    if shut.size:
        best = _surplus(pairs, price)[problem.agent[shut]]
        np.maximum.at(price, problem.task[shut], (score[shut] - best) / use[shut])


def _as_pairs(problem: SparseProblem, usable: Bools, assignment: Ints) -> Ints:
    """An assignment as numbers of kept pairs."""
    number = np.cumsum(usable) - 1
    found = problem.pair_of(assignment)
    possible = (found >= 0) & usable[np.maximum(found, 0)]
    return np.where(possible, number[np.maximum(found, 0)], -1)


def _within(pairs: _Pairs, at: Ints) -> Ints:
    """The assignment without the agents that exceed a capacity; earlier agents stay."""
    kept = at.copy()
    load = np.zeros(pairs.capacity.size)
    for i in np.flatnonzero(at >= 0):
        j, use = pairs.task[at[i]], pairs.use[at[i]]
        if load[j] + use <= pairs.capacity[j] * (1.0 + CAPACITY_TOLERANCE):
            load[j] += use
        else:
            kept[i] = -1
    return kept


def _start(problem: SparseProblem, pairs: _Pairs, usable: Bools) -> Ints:
    """The feasible part of the previous plan; -1 for the other agents."""
    if problem.previous is None:
        return np.full(problem.first.size - 1, -1, np.int64)
    return _within(pairs, _as_pairs(problem, usable, problem.previous))


def _value(pairs: _Pairs, at: Ints) -> float:
    """The value with the penalty for agents left out."""
    placed = at[at >= 0]
    return float(pairs.score[placed].sum()) + pairs.idle * (at.size - placed.size)


def _or_previous(problem: SparseProblem, pairs: _Pairs, usable: Bools, at: Ints) -> Ints:
    """The previous plan where its value is as high and all of it is still possible."""
    if problem.previous is None:
        return at
    before = _as_pairs(problem, usable, problem.previous)
    unit = (
        pairs._replace(use=np.ones(pairs.use.size)) if pairs.use.size and pairs.use.min() == pairs.use.max() else pairs
    )
    had = int((problem.previous >= 0).sum())
    possible = int((_within(unit, before) >= 0).sum()) == had
    value = _value(pairs, at)
    return before if possible and _value(pairs, before) >= value - 1e-12 * abs(value) else at


def _report(
    problem: SparseProblem,
    solver: Solver,
    pairs: _Pairs,
    at: Ints,
    price: Floats,
    unit: float,
    dual_bound: float,
    done: bool,
    seconds: float,
) -> Solution:
    """The Solution with its certificate; a slot of capacity is `unit` in the problem."""
    n, m = at.size, pairs.capacity.size
    value = _value(pairs, at)
    placed = np.flatnonzero(at >= 0)
    assignment: Ints = np.full(n, -1, np.int64)
    assignment[placed] = pairs.task[at[placed]]
    objective = float(pairs.score[at[placed]].sum())
    optimal = value >= dual_bound - PROOF_TOLERANCE * max(abs(dual_bound), abs(value))
    left_out = n - placed.size
    bound = (
        objective if optimal else dual_bound - pairs.idle * left_out if left_out == 0 or pairs.idle == 0.0 else np.nan
    )
    loads = np.bincount(assignment[placed], unit * pairs.use[at[placed]], minlength=m).astype(np.float64)
    changes = None
    if problem.previous is not None:
        before = problem.previous
        changes = int(((before >= 0) & (assignment >= 0) & (assignment != before)).sum())
    return Solution(
        assignment=assignment,
        objective=objective,  # type: ignore[arg-type]
        relaxed_objective=bound if optimal else objective,  # type: ignore[arg-type]
        bound=bound,  # type: ignore[arg-type]
        status="optimal" if optimal else "local_optimum" if done else "time_limit",
        duality_gap=dual_bound - value,  # type: ignore[arg-type]
        frank_wolfe_gap=float("nan"),  # type: ignore[arg-type]
        loads=loads,
        prices=price / unit,
        reasons=_reasons(problem, solver, assignment, loads),
        seconds=seconds,
        changes=changes,
    )


def _reasons(problem: SparseProblem, solver: Solver, assignment: Ints, loads: Floats) -> np.ndarray:
    """[N] the reason in words why an agent has no task."""
    n = assignment.size
    wanted_pairs = np.flatnonzero((problem.net() > 0.0) | solver.assign_all)
    fits = loads[problem.task[wanted_pairs]] + problem.use[wanted_pairs] <= problem.capacity[
        problem.task[wanted_pairs]
    ] * (1.0 + CAPACITY_TOLERANCE)
    wanted = np.bincount(problem.agent[wanted_pairs], minlength=n) > 0
    capacity = np.bincount(problem.agent[wanted_pairs], fits, minlength=n) > 0
    codes = np.where(wanted, np.where(capacity, BETTER_LEFT_OUT, NO_CAPACITY), NEGATIVE_SCORES)
    return np.array(REASONS, dtype=object)[np.where(assignment >= 0, ASSIGNED, codes)]
