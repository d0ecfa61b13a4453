"""The arguments of `muster.assign`, by name or by number, as a Problem with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from muster.assign.names import Name, Names, alike, as_assignment, entries, is_frame, matrix, respelt, vector
from muster.assign.problem import as_array
from muster.assign.sparse import DENSE, SparseProblem
from muster.assign.switching import refuse_cost_alone
from muster.assign.tables import Table, is_table, read_table, rename_columns
from muster.data import Floats, Ints, Problem
from muster.errors import InputError


class Call(NamedTuple):
    """The arguments of `muster.assign` that describe the problem."""

    scores: Any
    task_scores: Any = None
    contributions: Any = None
    capacities: Any = None
    allowed: Any = None
    end_scores: Any = None
    routes: Any = None
    agents: Sequence[Name] | None = None
    tasks: Sequence[Name] | None = None
    previous: Any = None
    switch_cost: Any = 0.0
    minimums: Any = None
    fixed: Any = None
    columns: Mapping[str, Any] | None = None


def read_call(call: Call) -> tuple[Problem | SparseProblem, Names | None]:
    """The problem [1, N, M], or its pairs where those are few among many, and its names or None."""
    scores = call.scores
    if call.columns is not None:
        scores = rename_columns(scores, call.columns)
    if call.agents is None and call.tasks is None and (type(scores) is np.ndarray or not is_table(scores)):
        return read_arrays(call), None
    mentioned = [*_mentioned("capacities", call.capacities), *_mentioned("minimums", call.minimums)]
    table = read_table(scores, call.agents, call.tasks, mentioned)
    if table.columns is not None and call.tasks is None:
        _refuse_misspelt(mentioned, [table.names.tasks[j] for j in np.unique(table.columns)])
    if table.rows is not None and len(table.names.agents) * len(table.names.tasks) > DENSE:
        return read_pairs(call, table), table.names
    return read_arrays(_by_number(call, table), table.names), table.names


def read_pairs(call: Call, table: Table) -> SparseProblem:
    """The allowed pairs of a large table; InputError for arguments that every pair would need."""
    names = table.names
    n, m = len(names.agents), len(names.tasks)
    for field in ("task_scores", "allowed", "end_scores", "routes", "fixed"):
        if getattr(call, field) is not None:
            raise InputError(f"{field} cannot be given with a table of pairs among {n} agents and {m} tasks")
    assert table.rows is not None
    assert table.columns is not None
    use = np.ones(table.scores.size) if table.contributions is None else table.contributions
    if call.contributions is not None:
        each = _by_agent("contributions", call.contributions, table)
        use = each[table.rows]
        if call.capacities is None:
            raise InputError("contributions were given without capacities; give each task's capacity too")
    minimums, serve_all = _minimums(call.minimums, names, m)
    capacity = _capacities(call.capacities, minimums, names, m)
    capacity = np.ones(m) if capacity is None else capacity
    problem = SparseProblem.of(n, table.rows, table.columns, table.scores, use, capacity)
    if minimums is not None:
        problem = replace(problem, minimums=minimums, serve_all=serve_all)
    if call.previous is None:
        refuse_cost_alone(call.switch_cost)
        return problem
    cost = call.switch_cost
    if isinstance(cost, (int, float)):
        cost = np.full(n, float(cost))
    cost = _by_agent("switch_cost", cost, table)
    if not (np.isfinite(cost) & (cost >= 0)).all():
        raise InputError(f"switch_cost must be finite and not negative, got {cost[~(cost >= 0) | np.isinf(cost)][0]}")
    previous = as_assignment("previous", call.previous, names, n, m)
    return replace(problem, previous=previous, switch_cost=cost)


def _by_agent(label: str, value: Any, table: Table) -> Floats:
    """A number for each agent of a large table."""
    n = len(table.names.agents)
    given = as_array(label, vector(label, value, "agent", table.names), None)
    if given.shape != (n,):
        raise InputError(f"{label} of a table with so many agents must be one number each, {(n,)}, got {given.shape}")
    return given


def read_arrays(call: Call, names: Names | None = None) -> Problem:
    """The problem [1, N, M] of arrays."""
    h = as_array("scores", call.scores, 2)
    n, m = h.shape
    routes = None if call.routes is None else padded_routes(call.routes, n, m)[None]
    previous = None if call.previous is None else as_assignment("previous", call.previous, names, n, m)[None]
    if previous is None and routes is not None and m > 0:
        # Where routes go on, their first stops are the previous plan.
        previous = routes[:, :, 0].copy()
    if previous is None:
        refuse_cost_alone(call.switch_cost)
    minimums, serve_all = _minimums(call.minimums, names, m)
    capacities = _capacities(call.capacities, minimums, names, m)
    return Problem(
        scores=h[None],
        task_scores=None if call.task_scores is None else as_array("task_scores", call.task_scores, 2)[None],
        contributions=None if call.contributions is None else _as_contributions(call.contributions, n, m)[None],
        capacities=None if capacities is None else capacities[None],
        minimums=None if minimums is None else minimums[None],
        serve_all=serve_all,
        fixed=None if call.fixed is None else _fixed(call.fixed, names, n, m)[None],
        allowed=None if call.allowed is None else np.asarray(call.allowed)[None],
        end_scores=None if call.end_scores is None else as_array("end_scores", call.end_scores, 2)[None],
        routes=routes,
        previous=previous,
        switch_cost=0.0 if previous is None else as_switch_cost(call.switch_cost, n, m),
    )


def _as_contributions(contributions: ArrayLike, n: int, m: int) -> Floats:
    given = as_array("contributions", contributions, None)
    if given.shape not in ((n, m), (n,)):
        raise InputError(f"contributions must have shape {(n, m)} or {(n,)} to fit the scores, got {given.shape}")
    return given if given.ndim == 2 else np.repeat(given[:, None], m, axis=1)


def as_switch_cost(cost: ArrayLike, n: int, m: int) -> Floats:
    """A number, [N] or [N, M] as [1, N, M]."""
    given = as_array("switch_cost", cost, None)
    if given.shape not in ((n, m), (n,), ()):
        raise InputError(f"switch_cost must be a number or have shape {(n,)} or {(n, m)}, got shape {given.shape}")
    return np.broadcast_to(given[:, None] if given.ndim == 1 else given, (n, m))[None].copy()


def padded_routes(routes: Sequence[Sequence[int]], n: int, m: int) -> Ints:
    """Routes as an array [N, M] with -1 behind the last stop; InputError if they are invalid."""
    if len(routes) != n:
        raise InputError(f"routes must be a list of {n}, one for each agent, got {len(routes)}")
    padded: Ints = np.full((n, m), -1, np.int64)
    for i, route in enumerate(routes):
        stops = np.asarray(route)
        integral = stops.size == 0 or (stops.ndim == 1 and stops.dtype.kind in "iu")
        if not integral or (stops.size and not (stops.min() >= 0 and stops.max() < m)) or len(set(route)) < len(route):
            raise InputError(f"routes[{i}] must list different tasks from 0 to {m - 1}, got {list(route)}")
        padded[i, : stops.size] = stops
    return padded


def _minimums(given: Any, names: Names | None, m: int) -> tuple[Floats | None, bool]:
    """[M] minimums, 0 for tasks that are not named; and whether all have to be met, as one number for all means."""
    if given is None:
        return None, False
    if np.ndim(given) == 0 and not isinstance(given, Mapping) and isinstance(given, (int, float, np.number)):
        return np.full(m, float(given)), True
    return _by_task("minimums", given, names, m, 0.0), False


def _capacities(given: Any, minimums: Floats | None, names: Names | None, m: int) -> Floats | None:
    """[M] capacities; for a task that is not named 1, or its minimum if that is more."""
    if given is None:
        return None if minimums is None else np.maximum(1.0, minimums)
    capacities = _by_task("capacities", given, names, m, np.nan)
    if entries("capacities", given, "task") is None:
        return capacities
    return np.where(np.isnan(capacities), 1.0 if minimums is None else np.maximum(1.0, minimums), capacities)


def _by_task(label: str, given: Any, names: Names | None, m: int, absent: float) -> Floats:
    """[M] a number for each task, by name or in order."""
    known = Names((), range(m)) if names is None else names
    array = as_array(label, vector(label, given, "task", known, absent), 1)
    if array.shape != (m,):
        raise InputError(f"{label} must have shape {(m,)} to fit the scores, got {array.shape}")
    return array


def _fixed(given: Any, names: Names | None, n: int, m: int) -> Ints:
    """[N] the task that each agent has to take, -1 for an agent that is free."""
    return as_assignment("fixed", given, names, n, m, others=False)


def _refuse_misspelt(mentioned: Sequence[Name], scored: Sequence[Name]) -> None:
    """Raise InputError for a task without scores whose name is nearly that of one which is not mentioned."""
    unscored, free = set(mentioned) - set(scored), set(scored) - set(mentioned)
    if found := respelt(unscored, free) or alike(unscored, free):
        raise InputError(f"no score has task {found[0]!r}; is {found[1]!r} meant?")


def _mentioned(label: str, given: Any) -> list[Name]:
    """The tasks that capacities or minimums by name mention: some may have no score."""
    found = entries(label, given, "task")
    return [] if found is None else [name for name, _ in found]


def _by_number(call: Call, table: Table) -> Call:
    """The call with every argument that is given by name in the order of the names."""
    names = table.names
    contributions = call.contributions
    if table.contributions is not None and contributions is not None:
        raise InputError("contributions came twice: in the table of scores and by themselves; give one of them")
    scores = table.scores
    if table.rows is not None:
        scores = _spread(table, table.scores, -np.inf)
        if table.contributions is not None:
            contributions = _spread(table, table.contributions, 1.0)
    return Call(
        scores=scores,
        task_scores=matrix("task_scores", call.task_scores, names, 0.0, rows="task"),
        contributions=per_agent_or_pair("contributions", contributions, names, 1.0),
        capacities=call.capacities,
        allowed=_allowed(call.allowed, names),
        end_scores=matrix("end_scores", call.end_scores, names, 0.0),
        routes=_routes_by_number(call.routes, names),
        previous=call.previous,
        switch_cost=per_agent_or_pair("switch_cost", call.switch_cost, names, 0.0),
        minimums=call.minimums,
        fixed=call.fixed,
    )


def _spread(table: Table, values: Floats, absent: float) -> Floats:
    """Values of pairs as a matrix."""
    filled: Floats = np.full((len(table.names.agents), len(table.names.tasks)), absent)
    filled[table.rows, table.columns] = values
    return filled


def per_agent_or_pair(label: str, value: Any, names: Names, absent: float) -> Any:
    """Numbers by agent, or by agent and task."""
    flat = hasattr(value, "to_dict") and not is_frame(value)
    if is_frame(value):
        # One number each, unless the second column is a task.
        flat = len(value.columns) == 2 and value.columns[1] not in names.tasks
    if isinstance(value, Mapping):
        key, entry = next(iter(value.items()), (None, None))
        flat = not isinstance(key, tuple) and not isinstance(entry, Mapping)
    return vector(label, value, "agent", names) if flat else matrix(label, value, names, absent)


def _allowed(allowed: Any, names: Names) -> Any:
    """`allowed` by name: pairs that are not mentioned are forbidden."""
    given = matrix("allowed", allowed, names, 0.0)
    return given if given is allowed else given != 0.0


def _routes_by_number(routes: Any, names: Names) -> Any:
    """{agent: [tasks]}, or a list of routes, with names turned to numbers."""
    if routes is None:
        return None
    if isinstance(routes, Mapping):
        for name in routes:
            names.agent(name)
        routes = [routes.get(name, ()) for name in names.agents]
    return [[names.task(stop) if isinstance(stop, str) else stop for stop in route] for route in routes]
