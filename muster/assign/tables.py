"""Tables of scores: frames long or wide, dictionaries, records, sparse matrices, arrays with names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from muster.assign.names import Name, Names, is_frame, is_missing, number, plain_list, wide
from muster.assign.problem import as_array
from muster.data import Floats, Ints
from muster.errors import InputError

LONG = ("agent", "task", "score")


class Table(NamedTuple):
    """Scores with the names that came with them: a matrix, or the allowed pairs alone."""

    names: Names
    scores: Floats
    """[N, M], or [P] of the pairs"""
    rows: Ints | None = None
    """[P] each pair's agent"""
    columns: Ints | None = None
    """[P] each pair's task"""
    contributions: Floats | None = None
    """[P], where they came in the same table"""


def is_table(scores: object) -> bool:
    """Whether scores are anything but an array."""
    if isinstance(scores, list):
        return bool(scores) and isinstance(scores[0], Mapping)
    return isinstance(scores, Mapping) or is_frame(scores) or hasattr(scores, "tocoo")


def read_table(
    scores: Any, agents: Sequence[Name] | None, tasks: Sequence[Name] | None, more_tasks: Sequence[Name] = ()
) -> Table:
    """Scores of any form.

    `agents` and `tasks` name the rows and columns of a matrix; where the scores come with names, they say the order and
    may name some that have no score, as `more_tasks` may.
    """
    if hasattr(scores, "tocoo"):
        return _from_sparse(scores.tocoo(), agents, tasks)
    if isinstance(scores, list) and is_table(scores):
        return _from_records(scores, agents, tasks, more_tasks)
    if isinstance(scores, Mapping):
        return _from_mapping(scores, agents, tasks, more_tasks)
    if is_frame(scores):
        columns = {str(column): column for column in scores.columns}
        if all(column in columns for column in LONG):
            listed = {name: plain_list(scores[column]) for name, column in columns.items()}
            return _from_columns(listed, agents, tasks, more_tasks)
        _refuse_half_long(list(columns), scores)
        rows, names, cells = wide(scores)
        values = [[_cell(cell, rows[i], names[j]) for j, cell in enumerate(row)] for i, row in enumerate(cells)]
        return _reordered(
            Names(rows, names), np.array(values, np.float64).reshape(len(rows), len(names)), agents, tasks
        )
    matrix = as_array("scores", scores, 2)
    n, m = matrix.shape
    return Table(Names(_listed("agents", agents, n), _listed("tasks", tasks, m)), matrix)


def rename_columns(scores: Any, columns: Mapping[str, Any]) -> Any:
    """A table of pairs with its columns called agent, task, score and contribution."""
    unknown = sorted(set(columns) - {*LONG, "contribution"})
    if unknown:
        raise InputError(f"columns are those of agent, task, score and contribution, got {unknown[0]!r}")
    if is_frame(scores):
        listed = {column: plain_list(scores[column]) for column in scores.columns}
    elif isinstance(scores, list) and is_table(scores):
        listed = {field: [record.get(field) for record in scores] for field in scores[0]}
    else:
        raise InputError("columns are for tables of pairs: frames or records with a row for each pair")
    for column in columns.values():
        if column not in listed:
            raise InputError(f"the table has no column {column!r}, got {', '.join(map(str, listed))}")
    names = {column: name for name, column in columns.items()}
    # A column that already has the name of another is one of those that are ignored.
    kept = {
        names.get(column, column): cells for column, cells in listed.items() if column in names or column not in columns
    }
    return [dict(zip(kept, row, strict=True)) for row in zip(*kept.values(), strict=True)] or kept


def _refuse_half_long(columns: list[str], scores: Any) -> None:
    """Raise if a table is meant as one of pairs: by some of its columns' names, or by names in the second of three."""
    words = [column.strip().lower() for column in columns]
    named = len(columns) == 3 and any(isinstance(cell, str) and cell for cell in plain_list(scores[scores.columns[1]]))
    if named or "score" in words or {"agent", "task"} <= set(words):
        raise InputError(
            f"a table of pairs has the columns agent, task and score, got {', '.join(columns)}; rename them, or say "
            "which is which by columns (--columns agent=…,task=…,score=…); for costs, sense='min' (--minimise)"
        )


def _cell(cell: Any, agent: Name, task: Name) -> float:
    """A cell of a wide table; an empty one forbids the pair."""
    return -np.inf if is_missing(cell) or cell == "" else number("scores", cell, (agent, task))


def _listed(label: str, names: Sequence[Name] | None, count: int) -> Sequence[Name]:
    if names is None:
        return range(count)
    given = plain_list(names) if hasattr(names, "to_numpy") else list(names)
    if len(given) != count:
        raise InputError(f"{label} must name each of the {count} in the scores, got {len(given)} names")
    return given


def _reordered(names: Names, matrix: Floats, agents: Sequence[Name] | None, tasks: Sequence[Name] | None) -> Table:
    """A named matrix in the given order of names; agents and tasks that it lacks have no allowed pair."""
    if agents is None and tasks is None:
        return Table(names, matrix)
    wanted = Names(names.agents if agents is None else agents, names.tasks if tasks is None else tasks)
    filled: Floats = np.full((len(wanted.agents), len(wanted.tasks)), -np.inf)
    rows = [wanted.agent(name) for name in names.agents]
    columns = [wanted.task(name) for name in names.tasks]
    filled[np.ix_(rows, columns)] = matrix
    return Table(wanted, filled)


def _from_sparse(coo: Any, agents: Sequence[Name] | None, tasks: Sequence[Name] | None) -> Table:
    """Every stored entry of a sparse matrix is an allowed pair, a stored 0 too."""
    n, m = coo.shape
    names = Names(_listed("agents", agents, n), _listed("tasks", tasks, m))
    rows, columns = np.asarray(coo.row, np.int64), np.asarray(coo.col, np.int64)
    _refuse_twice(rows, columns, names)
    return Table(names, as_array("scores", coo.data, 1), rows, columns)


def _from_mapping(
    scores: Mapping[Any, Any],
    agents: Sequence[Name] | None,
    tasks: Sequence[Name] | None,
    more_tasks: Sequence[Name],
) -> Table:
    """{agent: {task: score}}, {(agent, task): score} or {agent: [scores]}."""
    first = next(iter(scores.values()), None)
    if isinstance(first, (list, tuple, np.ndarray)) and not isinstance(next(iter(scores)), tuple):
        if agents is not None:
            scores = {name: scores[name] for name in agents}
        return read_table(list(scores.values()), list(scores), tasks)
    listed: dict[str, list[Any]] = {name: [] for name in LONG}
    known: list[Name] = []
    for key, entry in scores.items():
        if isinstance(key, tuple) and len(key) == 2:
            found: Any = [(key[0], key[1], entry)]
        elif isinstance(entry, Mapping):
            known.append(key)
            found = [(key, task, score) for task, score in entry.items()]
        else:
            raise InputError(
                "scores as a dictionary must be {agent: {task: score}}, {(agent, task): score} or {agent: [scores]}, "
                f"got {entry!r} under {key!r}"
            )
        for agent, task, score in found:
            # JSON's null, which forbids a pair in a matrix too.
            if score is not None:
                listed["agent"].append(agent)
                listed["task"].append(task)
                listed["score"].append(score)
    # Agents without any score are listed too.
    return _from_columns(listed, agents, tasks, more_tasks, known)


def _from_records(
    records: list[Any], agents: Sequence[Name] | None, tasks: Sequence[Name] | None, more_tasks: Sequence[Name]
) -> Table:
    """[{"agent": …, "task": …, "score": …, "contribution": …}, …]"""
    fields = list(records[0])
    for k, record in enumerate(records):
        if not isinstance(record, Mapping) or (list(record) != fields and set(record) != set(fields)):
            raise InputError(f"scores as records must all have the fields {fields}, got {record!r} at {k}")
    if not set(LONG) <= set(fields):
        raise InputError(f"scores as records must have agent, task and score, got {fields}")
    listed = {field: [record[field] for record in records] for field in fields}
    return _from_columns(listed, agents, tasks, more_tasks)


def _from_columns(
    listed: Mapping[str, list[Any]],
    agents: Sequence[Name] | None,
    tasks: Sequence[Name] | None,
    more_tasks: Sequence[Name],
    known: Sequence[Name] = (),
) -> Table:
    """Columns agent, task, score and, if there is one, contribution: a row for each allowed pair."""
    unknown = [str(name) for name in listed if name not in (*LONG, "contribution")]
    if unknown:
        warnings.warn(f"columns of the scores that are ignored: {', '.join(unknown)}", stacklevel=6)
    agent_index = {name: i for i, name in enumerate(known if agents is None else agents)}
    task_index = {} if tasks is None else {name: j for j, name in enumerate(tasks)}
    rows = _numbers("agent", listed["agent"], agent_index, agents is None)
    columns = _numbers("task", listed["task"], task_index, tasks is None)
    for name in more_tasks if tasks is None else ():
        task_index.setdefault(name, len(task_index))
    names = Names(agent_index, task_index)
    _refuse_twice(rows, columns, names)
    use = listed.get("contribution")
    return Table(
        names,
        _column("score", listed["score"], rows, columns, names),
        rows,
        columns,
        None if use is None else _column("contribution", use, rows, columns, names),
    )


def _numbers(kind: str, column: list[Any], index: dict[Name, int], open_ended: bool) -> Ints:
    """The number of each name, in the order in which they first come up unless that is given."""
    try:
        if open_ended:
            return np.array([index.setdefault(name, len(index)) for name in column], np.int64)
        return np.array([index[name] for name in column], np.int64)
    except KeyError as error:
        raise InputError(f"the scores have {kind} {error.args[0]!r}, which {kind}s does not name") from None
    except TypeError:
        raise InputError(f"names of {kind}s must be text or whole numbers") from None


def _column(label: str, column: list[Any], rows: Ints, columns: Ints, names: Names) -> Floats:
    """A column of numbers without gaps."""
    try:
        values = np.array(column, np.float64)
    except (TypeError, ValueError):
        values = np.array([np.nan if is_missing(entry) else number(label, entry, k) for k, entry in enumerate(column)])
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        k = missing[0]
        pair = f"{names.agents[rows[k]]!r}, {names.tasks[columns[k]]!r}"
        raise InputError(f"the {label} of ({pair}) is missing; leave a pair that must not be out of the table")
    return values


def _refuse_twice(rows: Ints, columns: Ints, names: Names) -> None:
    key = np.sort(rows * max(1, len(names.tasks)) + columns)
    twice = np.flatnonzero(key[1:] == key[:-1])
    if twice.size:
        agent, task = divmod(int(key[twice[0]]), len(names.tasks))
        raise InputError(f"the pair ({names.agents[agent]!r}, {names.tasks[task]!r}) is there twice")
