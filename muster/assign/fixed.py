"""Fixed agents, which are taken out of a batch before it is solved, and the minimums of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from muster.assign.names import Names
from muster.assign.outcomes import ASSIGNED
from muster.assign.problem import CAPACITY_TOLERANCE, Output, ProblemArrays
from muster.data import Bools, Floats, Ints, Problem
from muster.errors import InputError


class Needs(NamedTuple):
    """Minimum loads of the tasks of a batch."""

    minimums: Floats
    """[B, M] the least load of a task that has agents."""
    required: Bools
    """[B, M] whether the task has to reach its minimum."""


class NamedError(InputError):
    """An error about agents and tasks, by number or (`named`) by name."""

    def __init__(self, text: str, agents: Sequence[int] = (), tasks: Sequence[int] = (), names: Names | None = None):
        self.about = (text, agents, tasks)
        named_agents = agents if names is None else [repr(names.agents[i]) for i in agents]
        named_tasks = tasks if names is None else [repr(names.tasks[j]) for j in tasks]
        super().__init__(text.format(agents=named_agents, tasks=named_tasks))

    def named(self, names: Names) -> NamedError:
        """The same with names."""
        return type(self)(*self.about, names=names)


class UnservedError(NamedError):
    """No plan was found that serves every task that has to be served."""


def read_needs(problem: Problem, arrays: ProblemArrays) -> Needs | None:
    """Minimums of living tasks, or None where there are none; InputError for an invalid one."""
    if problem.minimums is None:
        return None
    minimums: Floats = np.ascontiguousarray(problem.minimums, np.float64)
    if minimums.shape != arrays.capacities.shape:
        raise InputError(
            f"minimums must have shape {arrays.capacities.shape[1:]} to fit the scores, got {minimums.shape[1:]}"
        )
    wrong = arrays.task_alive & ~((minimums >= 0.0) & np.isfinite(minimums))
    if wrong.any():
        where = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise InputError(f"minimums must be finite and not negative, got {minimums[where]} at {list(where[1:])}")
    above = arrays.task_alive & (arrays.capacities > 0.0) & (minimums > arrays.capacities * (1.0 + CAPACITY_TOLERANCE))
    if above.any():
        b, j = (int(k) for k in np.argwhere(above)[0])
        least, most = minimums[b, j], arrays.capacities[b, j]
        raise NamedError(f"task {{tasks[0]}} has minimum {least:.9g}, above its capacity {most:.9g}", tasks=[j])
    minimums = np.where(arrays.task_alive, minimums, 0.0)
    return Needs(minimums, np.full(minimums.shape, bool(problem.serve_all)))


def refuse_unserved(needs: Needs, arrays: ProblemArrays, out: Output) -> None:
    """Raise UnservedError for the first instance with a task that has to reach its minimum and does not."""
    short = needs.required & (needs.minimums > 0.0) & (out.loads < needs.minimums * (1.0 - CAPACITY_TOLERANCE))
    if not short.any():
        return
    b = int(np.argwhere(short)[0, 0])
    allowed = arrays.agent_alive[b, :, None] & (arrays.scores[b] > -np.inf)
    if arrays.allowed.size:
        allowed = allowed & arrays.allowed[b]
    use = arrays.contributions[b] if arrays.contributions.size else np.ones(allowed.shape)
    can_get = np.where(allowed, use, 0.0).sum(axis=0)
    tasks, parts = np.flatnonzero(short[b]).tolist(), []
    for k, j in enumerate(tasks[:6]):
        least = needs.minimums[b, j]
        why = f" and can get {can_get[j]:.9g} at most" if can_get[j] < least * (1.0 - CAPACITY_TOLERANCE) else ""
        parts.append(f"task {{tasks[{k}]}} needs {least:.9g} more{why}")
    rest = f"; and {len(tasks) - 6} others" if len(tasks) > 6 else ""
    text = f"not every task that has to be served can be: in the best plan found, {'; '.join(parts)}{rest}"
    raise UnservedError(text, tasks=tasks)


class Fixed:
    """Agents whose task is given, taken out of a batch.

    Their contributions are taken from their tasks' capacities and minimums, and what their tasks earn with others by
    the task scores is added to the other agents' scores: the same problem, without large penalties.
    """

    def __init__(self, fixed: Ints, arrays: ProblemArrays, with_capacities: bool) -> None:
        size, n, m = arrays.scores.shape
        fixed = np.asarray(fixed)
        if fixed.dtype != np.int64 or fixed.shape != (size, n) or ((fixed < -1) | (fixed >= m)).any():
            raise InputError(
                f"fixed must be a task from 0 to {m - 1}, or -1, for each agent (int64, shape {(size, n)})"
            )
        at = np.nonzero((fixed >= 0) & arrays.agent_alive)
        self.batch, self.agent, self.task = at[0], at[1], fixed[at]
        pair = (self.batch, self.agent, self.task)
        score = arrays.scores[pair]
        fine = arrays.task_alive[self.batch, self.task] & (score > -np.inf)
        if arrays.allowed.size:
            fine &= arrays.allowed[pair]
        if not fine.all():
            k = int(np.flatnonzero(~fine)[0])
            text = "fixed gives agent {agents[0]} task {tasks[0]}, which it may not take"
            raise NamedError(text, [int(self.agent[k])], [int(self.task[k])])
        use = arrays.contributions[pair] if arrays.contributions.size else np.ones(score.size)
        self.taken: Bools = np.zeros((size, m), np.bool_)
        self.taken[self.batch, self.task] = True
        self.load: Floats = np.zeros((size, m))
        np.add.at(self.load, (self.batch, self.task), use)
        over = self.load > arrays.capacities * (1.0 + CAPACITY_TOLERANCE)
        if with_capacities and over.any():
            b, j = (int(k) for k in np.argwhere(over)[0])
            capacity = arrays.capacities[b, j]
            text = f"fixed gives task {{tasks[0]}} a load of {self.load[b, j]:.9g}, above its capacity {capacity:.9g}"
            raise NamedError(text, tasks=[j])
        self.value: Floats = np.bincount(self.batch, score, minlength=size).astype(np.float64)
        self.bonus: Floats = np.zeros((size, m))
        if arrays.task_scores.size:
            count: Floats = np.zeros((size, m))
            np.add.at(count, (self.batch, self.task), use if arrays.by_load else 1.0)
            g = arrays.task_scores
            self.value += np.einsum("bj,bjk,bk->b", count, g, count)
            self.bonus = np.einsum("bjk,bk->bj", g + g.transpose(0, 2, 1), count)

    def take_out(self, arrays: ProblemArrays) -> ProblemArrays:
        """The batch without these agents."""
        alive = arrays.agent_alive.copy()
        alive[self.batch, self.agent] = False
        # Slack, so that rounding errors do not keep out the last agent that fits.
        left = arrays.capacities * (1.0 + 0.1 * CAPACITY_TOLERANCE) - self.load
        left[left < CAPACITY_TOLERANCE * arrays.capacities] = 0.0
        capacities = np.where(self.load > 0.0, left, arrays.capacities)
        scores = arrays.scores
        if self.bonus.any():
            weight = arrays.contributions if arrays.by_load and arrays.contributions.size else 1.0
            scores = scores + weight * self.bonus[:, None, :]
        return arrays._replace(scores=scores, capacities=capacities, agent_alive=alive)

    def less(self, needs: Needs) -> Needs:
        """Minimums less the contributions of fixed agents."""
        left = needs.minimums - self.load
        left[left < CAPACITY_TOLERANCE * needs.minimums] = 0.0
        return Needs(left, needs.required | self.taken)

    def put_back(self, out: Output) -> None:
        """Write these agents and their value to the output."""
        out.assignment[self.batch, self.agent] = self.task
        out.reason[self.batch, self.agent] = ASSIGNED
        out.loads[...] += self.load
        out.values[:3] += self.value  # objective, relaxed objective, bound
