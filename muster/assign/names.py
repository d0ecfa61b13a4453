"""Names of agents and tasks; dictionaries, series and frames by name as arrays in the order of the names."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from muster.assign.problem import as_array
from muster.data import Floats, Ints
from muster.errors import InputError, suggestion

Name = Hashable
MOST_COMPARED = 20
"""Unknown names for which a near one is looked for, which takes long where there are thousands."""


class Names:
    """Names of agents 0, 1, … and of tasks 0, 1, …"""

    __slots__ = ("_agent", "_task", "agents", "tasks")

    def __init__(self, agents: Iterable[Name], tasks: Iterable[Name]) -> None:
        self.agents, self.tasks = tuple(agents), tuple(tasks)
        self._agent, self._task = index_of("agent", self.agents), index_of("task", self.tasks)

    def agent(self, name: Name) -> int:
        """The number of an agent."""
        return look_up("agent", name, self._agent)

    def task(self, name: Name) -> int:
        """The number of a task."""
        return look_up("task", name, self._task)

    def has(self, agent: Name, task: Name) -> bool:
        """Whether both names exist."""
        return agent in self._agent and task in self._task

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Names) and (self.agents, self.tasks) == (other.agents, other.tasks)

    def __hash__(self) -> int:
        return hash((self.agents, self.tasks))


def index_of(kind: str, names: Sequence[Name]) -> dict[Name, int]:
    """Name -> number; InputError for a duplicate or an invalid name."""
    index: dict[Name, int] = {}
    for k, name in enumerate(names):
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise InputError(f"names of {kind}s must be text or whole numbers, got {name!r}")
        if name in index:
            raise InputError(f"{kind} {name!r} is there twice; names must differ")
        index[name] = k
    return index


def look_up(kind: str, name: Name, index: Mapping[Name, int]) -> int:
    """The number of a name, or a sentence with the nearest one."""
    try:
        return index[name]
    except (KeyError, TypeError):
        near = suggestion(name, (known for known in index if isinstance(known, str))) if isinstance(name, str) else ""
        raise InputError(f"no {kind} {name!r}{near if len(index) <= 30 or 'mean' in near else ''}") from None


def respelt(unknown: Iterable[Name], free: Iterable[Name]) -> tuple[Name, Name] | None:
    """An unknown name, and a free one that differs in case, punctuation or type only, as 'Van 1' from 'van-1'."""
    known = {_parts(name): name for name in free}
    return next(((name, known[_parts(name)]) for name in unknown if _parts(name) and _parts(name) in known), None)


def _parts(name: Name) -> tuple[str, ...]:
    """Words and numbers of a name: 1-12 is not 11-2."""
    return tuple(re.findall(r"[^\W\d_]+|\d+", str(name).casefold()))


def alike(unknown: Iterable[Name], free: Iterable[Name], cutoff: float = 0.6) -> tuple[Name, Name] | None:
    """An unknown name and a free one near it; names with numbers are near without being meant for each other."""
    words, known = (
        {name for name in names if isinstance(name, str) and not re.search(r"\d", name)} for names in (unknown, free)
    )
    for name in sorted(words)[:MOST_COMPARED]:
        if near := difflib.get_close_matches(name, known, n=1, cutoff=cutoff):
            return name, near[0]
    return None


def is_frame(value: object) -> bool:
    """Whether it is a pandas or polars frame, or behaves as one."""
    return hasattr(value, "to_numpy") and hasattr(value, "columns")


def plain_list(column: Any) -> list[Any]:
    """A column of a frame as Python's own values."""
    if isinstance(column, list):
        return column
    return list(column.tolist() if hasattr(column, "tolist") else column.to_list())


def is_missing(value: object) -> bool:
    """None or NaN, which is how frames and JSON write an empty cell."""
    return value is None or (isinstance(value, float) and value != value)


def entries(label: str, value: Any, kind: str) -> Iterator[tuple[Name, Any]] | None:
    """(name, entry) of a dictionary, a pandas series or a frame with two columns; None for other values."""
    if isinstance(value, Mapping):
        return iter(value.items())
    if is_frame(value):
        columns = [str(column) for column in value.columns]
        if len(columns) != 2:
            raise InputError(f"{label} must have two columns, the {kind}'s name and the number, got {columns}")
        return iter(zip(*(plain_list(value[column]) for column in value.columns), strict=True))
    if hasattr(value, "index") and hasattr(value, "to_dict"):
        return iter(value.to_dict().items())
    return None


def vector(label: str, value: Any, kind: str, names: Names, absent: float | None = None) -> Any:
    """Numbers by name in the order of the names; anything else as it is. Without `absent`, each needs an entry."""
    found = entries(label, value, kind)
    if found is None:
        return value
    known = names.agents if kind == "agent" else names.tasks
    find = names.agent if kind == "agent" else names.task
    filled: dict[int, Any] = {}
    for name, entry in found:
        try:
            index = find(name)
        except InputError as error:
            raise InputError(f"{label}: {error}") from None
        if index in filled:
            raise InputError(f"{label} has {kind} {name!r} twice; give one number for each {kind}")
        filled[index] = entry
    for index, name in enumerate(known):
        if is_missing(filled.get(index)):
            if absent is not None:
                filled[index] = absent
                continue
            given = [str(known[k]) for k in filled]
            near = difflib.get_close_matches(str(name), given, n=1, cutoff=0.6)
            told = f"; is {near[0]!r} meant for it?" if near else ""
            raise InputError(f"{label} has no entry for {kind} {name!r}; give one for each {kind}{told}")
    return as_array(label, [filled[index] for index in range(len(known))], 1)


def matrix(label: str, value: Any, names: Names, absent: float, rows: str = "agent") -> Any:
    """A matrix from numbers by name of row ("agent" or "task") and task, `absent` elsewhere; an array stays as it is.

    Pairs, nested dictionaries and wide frames are.
    """
    found = pairs(label, value)
    if found is None:
        return value
    find = names.agent if rows == "agent" else names.task
    height = len(names.agents if rows == "agent" else names.tasks)
    filled: Floats = np.full((height, len(names.tasks)), absent)
    seen: set[tuple[int, int]] = set()
    for row, column, entry in found:
        try:
            pair = find(row), names.task(column)
        except InputError as error:
            raise InputError(f"{label}: {error}") from None
        if pair in seen:
            raise InputError(f"{label} has the pair ({row!r}, {column!r}) twice")
        seen.add(pair)
        if not is_missing(entry):
            filled[pair] = number(label, entry, (row, column))
    return filled


def pairs(label: str, value: Any) -> Iterator[tuple[Name, Name, Any]] | None:
    """(row, column, entry) of a table by two names; None if the value is no such table."""
    if isinstance(value, Mapping):
        return _pairs_of_mapping(label, value)
    if is_frame(value):
        if len(value.columns) == 3:
            first, second, third = (plain_list(value[column]) for column in value.columns)
            if any(isinstance(name, str) for name in second):
                return iter(zip(first, second, third, strict=True))
        agents, tasks, cells = wide(value)
        return ((row, column, cells[i][j]) for i, row in enumerate(agents) for j, column in enumerate(tasks))
    return None


def _pairs_of_mapping(label: str, value: Mapping[Any, Any]) -> Iterator[tuple[Name, Name, Any]]:
    for key, entry in value.items():
        if isinstance(key, tuple) and len(key) == 2:
            yield (*key, entry)
        elif isinstance(entry, Mapping):
            for column, inner in entry.items():
                yield key, column, inner
        else:
            raise InputError(
                f"{label} as a dictionary must be {{row: {{column: number}}}} or {{(row, column): number}}, "
                f"got {entry!r} under {key!r}"
            )


def wide(frame: Any) -> tuple[list[Name], list[Name], list[list[Any]]]:
    """Row names, column names and cells of a wide frame.

    The rows are named by the first column, if that holds no numbers, or else by a pandas frame's index.
    """
    columns = list(frame.columns)
    cells = [plain_list(frame[column]) for column in columns]
    if columns and (not hasattr(frame, "index") or any(isinstance(cell, str) for cell in cells[0])):
        rows, columns, cells = cells[0], columns[1:], cells[1:]
    else:
        rows = plain_list(frame.index) if hasattr(frame, "index") else []
    return rows, columns, [list(row) for row in zip(*cells, strict=True)] if cells else [[] for _ in rows]


def number(label: str, entry: Any, where: object) -> float:
    """A cell as a number."""
    if not isinstance(entry, (int, float, np.number)):
        raise InputError(f"{label} must be numbers, got {entry!r} at {where}")
    return float(entry)


def as_assignment(label: str, value: Any, names: Names | None, n: int, m: int, others: bool = True) -> Ints:
    """An assignment by name or by number as task indices [N], -1 for none.

    A dictionary, series or frame may leave out who has no task. With `others` it may also name agents that are not
    there any more, and tasks that are gone, which count as none: a previous plan may.
    """
    if hasattr(value, "assignment"):
        value = _assignment_of(value, names)
    assigned: Ints = np.full(n, -1, np.int64)
    found = None
    if isinstance(value, Mapping) or is_frame(value) or hasattr(value, "to_dict"):
        found = entries(label, _first_two(value), "agent")
    if found is not None:
        if names is None:
            # Without names there is nothing to tell who is gone.
            names, others = Names(range(n), range(m)), False
        given: dict[Name, Name] = {}
        for agent, task in found:
            if agent in given:
                raise InputError(f"{label} has agent {agent!r} twice; give each agent one task, or none")
            given[agent] = None if is_missing(task) or task in ("", -1) else task
            try:
                if given[agent] is not None and (not others or names.has(agent, task)):
                    assigned[names.agent(agent)] = names.task(task)
            except InputError as error:
                raise InputError(f"{label}: {error}") from None
            except TypeError:
                raise InputError(f"{label} must be one task for each agent, got {task!r} for {agent!r}") from None
        if others:
            if not given.keys() & set(names.agents) and set(given.values()) & set(names.agents):
                raise InputError(f"{label} must be {{agent: task}}, got {{task: agent}}: {value!r:.80}")
            _refuse_respelt(label, "agent", given, names.agents)
            _refuse_respelt(label, "task", given.values(), names.tasks)
        return assigned
    listed = list(value) if isinstance(value, (list, tuple, np.ndarray)) else None
    if listed is None or len(listed) != n:
        got = type(value).__name__ if listed is None else f"{len(listed)} entries"
        raise InputError(f"{label} must say each of the {n} agents' task (None for none), got {got}")
    for i, task in enumerate(listed):
        assigned[i] = _task_number(label, task, names, m, i)
    return assigned


def _refuse_respelt(label: str, kind: str, given: Iterable[Name], known: Sequence[Name]) -> None:
    """Raise InputError for a name that is not there but for its spelling; warn of one that is near to another."""
    there, gone = set(known), set(given) - {None}
    unknown, free = gone - there, there - gone
    if not unknown:
        return
    if found := respelt(unknown, free):
        raise InputError(f"{label}: no {kind} {found[0]!r}; is {found[1]!r} meant?")
    if found := alike(unknown, free, 0.8):
        warnings.warn(
            f"{label} names {kind} {found[0]!r}, which is not there and counts as none; is {found[1]!r} meant?",
            stacklevel=6,
        )


def _assignment_of(solution: Any, names: Names | None) -> Any:
    """The assignment of another answer, by name where both have names."""
    other = getattr(solution, "names", None)
    if names is None or other is None or other == names:
        return solution.assignment
    return {other.agents[i]: other.tasks[j] for i, j in enumerate(solution.assignment) if j >= 0}


def _first_two(value: Any) -> Any:
    """Of a frame such as a plan that was written to a file, the columns agent and task."""
    if is_frame(value) and {"agent", "task"} <= set(map(str, value.columns)):
        return value[["agent", "task"]]
    return value


def _task_number(label: str, task: Any, names: Names | None, m: int, i: int) -> int:
    if is_missing(task):
        return -1
    if names is not None and not isinstance(task, (int, np.integer)):
        return names.task(task)
    integral = isinstance(task, (int, np.integer)) and not isinstance(task, bool)
    if integral and -1 <= int(task) < m:
        return int(task)
    raise InputError(f"{label} must be tasks from 0 to {m - 1}, or -1 for none, got {task!r} for agent {i}")
