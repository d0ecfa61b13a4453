"""`muster.check_plan`: whether a plan is feasible, its value, a bound, and a better plan if one is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from muster.assign.answer import Answer, answer
from muster.assign.call import Call, read_call
from muster.assign.instance import (
    allowed_pairs,
    capacities_of,
    contributions_of,
    loads_of,
    minimums_of,
    negated,
    value_of,
)
from muster.assign.names import Name, Names, as_assignment
from muster.assign.problem import CAPACITY_TOLERANCE
from muster.assign.rows import Rows
from muster.assign.settings import Effort, Method, Sense, TaskScoresOn
from muster.assign.solver import Solver
from muster.assign.sparse import DENSE, SparseProblem
from muster.data import Ints, Problem
from muster.errors import InputError, UnknownNameError

# Arguments of `muster.assign` that do not change the value of a plan by itself.
SWITCHING = ("previous", "switch_cost")

# A plan counts as better when its value is higher by this share.
BETTER_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on a plan: feasibility, value and bound, and a better plan if one was found."""

    feasible: bool
    """Whether it keeps every constraint."""
    broken: tuple[str, ...]
    """A sentence for each constraint that it violates."""
    value: float
    """Its value; NaN where it has a pair that is not allowed."""
    bound: float
    """Upper bound on the value of any feasible plan; NaN if nothing is proven."""
    better: Answer | None
    """A feasible plan of higher value, or a feasible one where this one is not; None if none was found."""
    changes: Rows
    """Changes of the better plan: agent, from, to, and the scores of both."""
    optimal: bool
    """Whether it is proven that no plan has a higher value."""
    sense: Sense = "max"
    """Whether values are maximised, or costs minimised."""

    def __str__(self) -> str:
        lines = ["feasible" if self.feasible else "not feasible", *(f"- {constraint}" for constraint in self.broken)]
        worth, is_worth, exceeds = (
            ("worth", "is worth", "exceeds") if self.sense == "max" else ("cost", "costs", "costs less than")
        )
        value = (
            f"{worth} {self.value:.9g}" if self.value == self.value else f"{worth} unknown: a pair of it has no score"
        )
        proven = "nothing is proven about the best" if np.isnan(self.bound) else f"no plan {exceeds} {self.bound:.9g}"
        lines.append(f"{value}; {proven}")
        if self.better is not None:
            lines += [f"a better plan {is_worth} {self.better.objective:.9g} and changes:", str(self.changes)]
        elif self.feasible:
            lines.append(f"nothing {exceeds} it" if self.optimal else "no better plan was found")
        return "\n".join(lines)


def check_plan(
    problem: Any,
    assignment: Any,
    *,
    method: Method = "quad",
    effort: Effort = "fast",
    assign_all: bool = False,
    time_limit: float | None = None,
    task_scores_on: TaskScoresOn = "count",
    sense: Sense = "max",
) -> Verdict:
    """Check a plan: whether it is feasible, which constraints it violates, its value, and the changes of a better plan.

    `problem` is a dictionary of what `muster.assign` takes ({"scores": …, "capacities": …}), scores alone, a Problem of
    one instance, or an answer, whose settings then hold (what switching costs is left out). `assignment` is a task for
    each agent, by number or name, or {agent: task}. (Environments are checked by `muster check-env ENV`.)

    >>> import muster
    >>> muster.check_plan({"scores": [[3.0, 2.0], [2.5, 0.5]]}, [0, 1], method="lp").better.plan
    {0: 1, 1: 0}
    """
    instance, names, solver = _read(
        problem, Solver(method, effort, assign_all=assign_all, time_limit=time_limit, task_scores_on=task_scores_on)
    )
    if isinstance(problem, Answer):
        sense = problem.sense
    elif sense == "min":
        instance = negated(instance)
    if solver.method == "routes":
        raise InputError("check is for amax, lp and quad: routes are more than an assignment")
    _, n, m = instance.scores.shape
    plan = as_assignment("assignment", assignment, names, n, m, others=False)
    return judge(instance, names, solver, plan, sense)


def judge(problem: Problem, names: Names | None, solver: Solver, plan: Ints, sense: Sense = "max") -> Verdict:
    """The verdict on task indices [N]."""
    sign = 1.0 if sense == "max" else -1.0
    found = answer(replace(problem, previous=plan[None], switch_cost=0.0), solver, names, sense)
    broken = tuple(violations(problem, found, solver, plan))
    value = value_of(problem, plan, solver.method, solver.task_scores_on)
    reached = sign * float(found.objective)
    slack = BETTER_TOLERANCE * max(abs(value), abs(reached))
    better = found if broken or not value >= reached - slack else None
    return Verdict(
        feasible=not broken,
        broken=broken,
        value=sign * value,
        bound=float(found.bound),
        better=better,
        changes=differences(found, plan, found.assignment if better else plan),
        optimal=better is None and found.status == "optimal",
        sense=sense,
    )


def violations(problem: Problem, found: Answer, solver: Solver, plan: Ints) -> list[str]:
    """A sentence for each constraint that a plan violates."""
    agents, tasks = found.agents, found.tasks
    broken = [
        f"agent {agents[i]!r} may not take task {tasks[plan[i]]!r}"
        for i in np.flatnonzero(plan >= 0)
        if not allowed_pairs(problem)[i, plan[i]]
    ]
    if problem.fixed is not None:
        for i in np.flatnonzero((problem.fixed[0] >= 0) & (plan != problem.fixed[0])):
            broken.append(f"agent {agents[i]!r} has to take task {tasks[problem.fixed[0, i]]!r}")
    if solver.method == "amax":
        return broken
    use, capacity = contributions_of(problem), capacities_of(problem)
    loads = loads_of(problem, plan)
    for j in np.flatnonzero(loads > capacity * (1.0 + CAPACITY_TOLERANCE)):
        givers = _listed([agents[i] for i in np.flatnonzero(plan == j)])
        broken.append(f"task {tasks[j]!r} has capacity {capacity[j]:.9g} but gets {loads[j]:.9g} from {givers}")
    least = minimums_of(problem)
    served = np.bincount(plan[plan >= 0], minlength=least.size) > 0
    for j in np.flatnonzero((loads < least * (1.0 - CAPACITY_TOLERANCE)) & (served | problem.serve_all)):
        givers = _listed([agents[i] for i in np.flatnonzero(plan == j)])
        broken.append(
            f"task {tasks[j]!r} needs {least[j]:.9g} but gets {loads[j]:.9g}{' from ' * bool(givers)}{givers}"
        )
    if solver.assign_all:
        for i in np.flatnonzero(plan < 0):
            fitting = allowed_pairs(problem)[i] & (loads + use[i] <= capacity * (1.0 + CAPACITY_TOLERANCE))
            fitting &= loads + use[i] >= least * (1.0 - CAPACITY_TOLERANCE)
            if fitting.any():
                broken.append(
                    f"agent {agents[i]!r} has no task though {tasks[np.argmax(fitting)]!r} has capacity left for it"
                )
    return broken


def differences(found: Answer, before: Ints, after: Ints) -> Rows:
    """A row for each agent whose task differs: from, to, and the scores of both."""
    problem, tasks = found.problem, found.tasks
    assert isinstance(problem, Problem)
    rows = []
    for i in np.flatnonzero(before != after):
        pair = [int(plan[i]) for plan in (before, after)]
        sign = 1.0 if found.sense == "max" else -1.0
        scores = [sign * float(problem.scores[0, i, j]) if j >= 0 else None for j in pair]
        names: list[Name | None] = [tasks[j] if j >= 0 else None for j in pair]
        rows.append(dict(zip(COLUMNS, (found.agents[i], *names, *scores), strict=True)))
    return Rows(rows, COLUMNS)


COLUMNS = ("agent", "from", "to", "score_from", "score_to")


def _listed(names: list[Name]) -> str:
    shown = ", ".join(map(repr, names[:6]))
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


def _read(problem: Any, solver: Solver) -> tuple[Problem, Names | None, Solver]:
    """The problem of one instance, its names and its solver."""
    if isinstance(problem, Answer):
        if problem.problem is None or problem.solver is None:
            raise InputError("this solution does not know its problem; take one that muster.assign returned")
        return _dense(problem.problem), problem.names, problem.solver
    if isinstance(problem, Problem):
        if np.shape(problem.scores)[0] != 1 or problem.agent_alive is not None or problem.task_alive is not None:
            raise InputError("check takes one instance without masks; give scores and capacities of one")
        return problem, None, solver
    if isinstance(problem, str):
        raise InputError(
            f"muster.check_plan checks an assignment, got {problem!r}; an environment is checked by `muster check-env`"
        )
    if isinstance(problem, Mapping) and "scores" in problem:
        for field in problem:
            if field not in Call._fields:
                raise UnknownNameError("field", str(field), Call._fields)
            if field in SWITCHING:
                raise InputError(f"check says what a plan is worth by itself, not after another; leave {field} out")
        instance, names = read_call(Call(**problem))
    else:
        instance, names = read_call(Call(problem))
    return _dense(instance), names, solver


def _dense(problem: Problem | SparseProblem) -> Problem:
    if isinstance(problem, SparseProblem):
        raise InputError(f"check is for up to {DENSE:,} agents times tasks; a table of pairs among more can be solved")
    return problem
