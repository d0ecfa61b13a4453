"""A revised instance: agents or tasks removed or added, other capacities, minimums or scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from muster.assign.names import Name, Names, as_assignment, entries, number, pairs
from muster.data import Floats, Ints, Problem
from muster.errors import InputError


def revise(
    problem: Problem,
    names: Names,
    without_agents: Iterable[Name],
    without_tasks: Iterable[Name],
    with_agents: Mapping[Name, Any],
    with_tasks: Mapping[Name, Any],
    scores: Any,
    contributions: Any,
    capacities: Any,
    minimums: Any,
    fixed: Any,
    task_scores: Any,
) -> tuple[Problem, Names]:
    """The problem [1, N, M] and its names after the changes, without a previous plan."""
    gone = {names.agent(name) for name in listed("without_agents", without_agents)}
    closed = {names.task(name) for name in listed("without_tasks", without_tasks)}
    keep = np.array([i for i in range(len(names.agents)) if i not in gone], np.int64)
    stay = np.array([j for j in range(len(names.tasks)) if j not in closed], np.int64)
    now = Names(
        [*(names.agents[i] for i in keep), *with_agents],
        [*(names.tasks[j] for j in stay), *with_tasks],
    )
    if (with_agents or with_tasks) and problem.end_scores is not None:
        raise InputError("agents and tasks cannot be added where routes end with end_scores; call muster.assign anew")
    h = _grown(problem.scores, keep, stay, now, -np.inf)
    allowed = None if problem.allowed is None else _grown(problem.allowed, keep, stay, now, 1.0) != 0.0
    changed = _changed_scores(h, now, with_agents, with_tasks, scores)
    if allowed is not None:
        # A score that is given now is for a pair that may be.
        allowed[0][changed] = True
    return (
        Problem(
            scores=h,
            task_scores=_task_scores(problem, stay, now, task_scores),
            contributions=_contributions(problem, keep, stay, now, contributions),
            capacities=_capacities(problem, stay, now, capacities),
            minimums=_minimums(problem, stay, now, minimums),
            serve_all=problem.serve_all,
            fixed=_fixed(problem, names, now, fixed),
            allowed=allowed,
            end_scores=None if problem.end_scores is None else problem.end_scores[:, keep][:, :, stay],
        ),
        now,
    )


def carry_switch_cost(problem: Problem, names: Names, now: Names) -> Floats | float:
    """The switch costs of agents that stay; for a new task, the highest of the agent's costs."""
    cost = problem.switch_cost
    if np.ndim(cost) == 0:
        return cost
    keep = [names.agent(name) for name in now.agents if name in names.agents]
    stay = [names.task(name) for name in now.tasks if name in names.tasks]
    carried: Floats = np.zeros((1, len(now.agents), len(now.tasks)))
    given = np.asarray(cost)[0]
    if len(keep) and given.shape[1]:
        carried[0, : len(keep)] = given[keep].max(axis=1, keepdims=True)
        carried[0, : len(keep), : len(stay)] = given[np.ix_(keep, stay)]
    return carried


def listed(label: str, given: Iterable[Name]) -> list[Name]:
    """Names as a list; one name alone is refused, since its letters would be taken for names."""
    if isinstance(given, str):
        raise InputError(f"{label} must be a list of names, got {given!r}; write [{given!r}]")
    return list(given)


def _grown(array: Any, keep: Any, stay: Any, now: Names, fill: float) -> Floats:
    """[1, N, M] of agents and tasks that stay, extended by `fill` for new ones."""
    grown: Floats = np.full((1, len(now.agents), len(now.tasks)), fill)
    grown[0, : len(keep), : len(stay)] = array[0][np.ix_(keep, stay)]
    return grown


def _changed_scores(
    h: Floats, now: Names, with_agents: Mapping[Name, Any], with_tasks: Mapping[Name, Any], scores: Any
) -> tuple[list[int], list[int]]:
    """Write new and changed scores; returns their rows and columns."""
    rows, columns = [], []
    given: list[tuple[Name, Name, Any]] = []
    for agent, row in with_agents.items():
        given += [(agent, task, score) for task, score in _by_name("with_agents", agent, row, now.tasks)]
    for task, column in with_tasks.items():
        given += [(agent, task, score) for agent, score in _by_name("with_tasks", task, column, now.agents)]
    if scores is not None:
        found = pairs("scores", scores)
        if found is None:
            raise InputError("scores to change must be {(agent, task): score} or {agent: {task: score}}")
        given += list(found)
    for agent, task, score in given:
        i, j = now.agent(agent), now.task(task)
        h[0, i, j] = -np.inf if score is None else number("scores", score, (agent, task))
        rows.append(i)
        columns.append(j)
    return rows, columns


def _by_name(label: str, name: Name, given: Any, others: tuple[Name, ...]) -> list[tuple[Name, Any]]:
    """(name, score) of a new agent's or task's scores, by name or in the order of the names."""
    found = entries(label, given, "agent")
    if found is not None:
        return list(found)
    listed = list(given) if isinstance(given, (list, tuple, np.ndarray)) else None
    if listed is None or len(listed) != len(others):
        got = type(given).__name__ if listed is None else f"{len(listed)} entries"
        raise InputError(f"{label}[{name!r}] must be scores by name or {len(others)} scores, got {got}")
    return list(zip(others, listed, strict=True))


def _capacities(problem: Problem, stay: Any, now: Names, given: Any) -> Floats | None:
    if problem.capacities is None and given is None:
        return None
    capacity: Floats = np.ones((1, len(now.tasks)))
    if problem.capacities is not None:
        capacity[0, : len(stay)] = problem.capacities[0][stay]
        capacity[0, len(stay) :] = np.nan
    for task, entry in _entries("capacities", given, "task"):
        capacity[0, now.task(task)] = number("capacities", entry, task)
    missing = np.flatnonzero(np.isnan(capacity[0]))
    if missing.size:
        raise InputError(f"the new task {now.tasks[missing[0]]!r} needs a capacity; give capacities={{task: number}}")
    return capacity


def _minimums(problem: Problem, stay: Any, now: Names, given: Any) -> Floats | None:
    if problem.minimums is None and given is None:
        return None
    # A new task has what all have, where all have the same.
    each = problem.minimums[0] if problem.minimums is not None else np.zeros(1)
    minimum: Floats = np.full((1, len(now.tasks)), each[0] if problem.serve_all and each.size else 0.0)
    if problem.minimums is not None:
        minimum[0, : len(stay)] = problem.minimums[0][stay]
    for task, entry in _entries("minimums", given, "task"):
        minimum[0, now.task(task)] = number("minimums", entry, task)
    return minimum


def _fixed(problem: Problem, names: Names, now: Names, given: Any) -> Ints | None:
    if problem.fixed is None and given is None:
        return None
    before = (
        {} if problem.fixed is None else {names.agents[i]: int(j) for i, j in enumerate(problem.fixed[0]) if j >= 0}
    )
    plan: dict[Name, Name | None] = {
        agent: names.tasks[j] for agent, j in before.items() if now.has(agent, names.tasks[j])
    }
    plan.update({} if given is None else given)
    return as_assignment("fixed", plan, now, len(now.agents), len(now.tasks), others=False)[None]


def _contributions(problem: Problem, keep: Any, stay: Any, now: Names, given: Any) -> Floats | None:
    if problem.contributions is None and given is None:
        return None
    shape = (1, len(now.agents), len(now.tasks))
    use: Floats = np.ones(shape)
    if problem.contributions is not None:
        use = _grown(problem.contributions, keep, stay, now, np.nan)
    if isinstance(given, Mapping) and any(isinstance(key, tuple) for key in given):
        for agent, task, entry in pairs("contributions", given) or ():
            use[0, now.agent(agent), now.task(task)] = number("contributions", entry, (agent, task))
    else:
        for agent, entry in _entries("contributions", given, "agent"):
            use[0, now.agent(agent)] = number("contributions", entry, agent)
    # An agent with the same contribution everywhere has it for a new task, too.
    for i in np.flatnonzero(np.isnan(use[0]).any(axis=1)):
        known = use[0, i][~np.isnan(use[0, i])]
        if not known.size or (known != known[0]).any():
            raise InputError(
                f"agent {now.agents[i]!r} needs a contribution to what is new; "
                "give contributions={agent: number} or {(agent, task): number}"
            )
        use[0, i][np.isnan(use[0, i])] = known[0]
    return use


def _task_scores(problem: Problem, stay: Any, now: Names, given: Any) -> Floats | None:
    if problem.task_scores is None and given is None:
        return None
    g: Floats = np.zeros((1, len(now.tasks), len(now.tasks)))
    if problem.task_scores is not None:
        g[0, : len(stay), : len(stay)] = problem.task_scores[0][np.ix_(stay, stay)]
    for row, column, entry in (() if given is None else pairs("task_scores", given)) or ():
        g[0, now.task(row), now.task(column)] = number("task_scores", entry, (row, column))
    return g


def _entries(label: str, given: Any, kind: str) -> Iterable[tuple[Name, Any]]:
    if given is None:
        return ()
    found = entries(label, given, kind)
    if found is None:
        raise InputError(f"{label} to change must be given by name, got {type(given).__name__}")
    return found
