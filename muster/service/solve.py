"""POST /solve and POST /check: the solver behind an address."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from muster.assign import assign
from muster.assign import check_plan as check
from muster.assign.as_json import answer_as_json, rows_as_json, verdict_as_json
from muster.errors import TimeLimitError
from muster.service import body as read
from muster.service.body import refuse
from muster.service.refusal import Refusal
from muster.service.schema import CheckBody, ProblemBody, SolveBody, check_body

MOST_OBJECTS = 5000
"""Agents or tasks at most: a round of local search takes time with their square."""
NUMBERS = {"task_scores": None, "contributions": None, "capacities": np.inf, "minimums": None}
"""Fields of numbers, and what null stands for in them; whether they fit the scores `muster.assign` knows."""


def solve(data: dict[str, Any], deadline: float, size_limit: int) -> dict[str, Any]:
    """The answer to a body of /solve."""
    body, arguments = read_solve(data, size_limit)
    solution = assign(**arguments, time_limit=allowed_time(body, deadline))
    answer = answer_as_json(solution)
    if body.explain:
        try:
            why = solution.explain(time_limit=max(0.0, 0.9 * (deadline - time.monotonic())))
        except TimeLimitError:
            told = "the explanation was not ready in time; ask without explain"
            raise Refusal("time_limit", told, "explain") from None
        answer["explanation"] = {"agents": rows_as_json(why.agents), "tasks": rows_as_json(why.tasks)}
    return answer


def read_solve(data: dict[str, Any], size_limit: int) -> tuple[SolveBody, dict[str, Any]]:
    """A body of /solve, and the arguments of `muster.assign` that it asks for, without a time limit."""
    body = check_body(SolveBody, data)
    fields, n, m = read_problem(body, size_limit)
    if body.previous is not None:
        fields["previous"] = read_plan(body.previous, "previous", n, m)
    for name in ("switch_cost", "end_scores"):
        if getattr(body, name) is not None:
            fields[name] = read_numbers(getattr(body, name), name)
    if body.routes is not None:
        rows = read.read_list(body.routes, "routes", n)
        fields["routes"] = [
            read.read_tasks(row, f"routes[{i}]", None, m, null=False).tolist() for i, row in enumerate(rows)
        ]
    chosen = ("method", "effort", "rounding", "assign_all", "task_scores_on", "objective", "sense")
    return body, fields | {name: getattr(body, name) for name in chosen}


def check_plan(data: dict[str, Any], deadline: float, size_limit: int) -> dict[str, Any]:
    """The answer to a body of /check."""
    body = check_body(CheckBody, data)
    fields, n, m = read_problem(body, size_limit)
    chosen = {name: getattr(body, name) for name in ("method", "effort", "assign_all", "task_scores_on", "sense")}
    plan = read_plan(body.assignment, "assignment", n, m)
    return verdict_as_json(check(fields, plan, **chosen, time_limit=allowed_time(body, deadline)))


def read_problem(body: ProblemBody, size_limit: int) -> tuple[dict[str, Any], int, int]:
    """The arguments of `muster.assign` that both routes take, and how many agents and tasks there are."""
    given = body.scores
    named = isinstance(given, dict) or (isinstance(given, list) and bool(given) and isinstance(given[0], dict))
    if named:
        n, m = count_named(given)
        fields = {"scores": given}
    else:
        if isinstance(given, list):
            # Before so much is made an array of.
            check_size(len(given), max((len(row) for row in given if isinstance(row, list)), default=0), size_limit)
        fields = {"scores": read.read_array(given, "scores", (None, None), null=-np.inf)}
        n, m = fields["scores"].shape
    check_size(n, m, size_limit)
    if body.method in ("quad", "routes"):
        check_size(m, m, size_limit, "tasks, which may all be paired under this method")
    for name, null in NUMBERS.items():
        if getattr(body, name) is not None:
            fields[name] = read_numbers(getattr(body, name), name, null)
    if body.fixed is not None:
        fields["fixed"] = read_plan(body.fixed, "fixed", n, m)
    if body.allowed is not None:
        fields["allowed"] = read.read_mask(body.allowed, "allowed", (n, m))
    for name, length in (("agents", n), ("tasks", m)):
        if getattr(body, name) is not None:
            fields[name] = read.read_names(getattr(body, name), name, length)
        elif not named and (body.agents is not None or body.tasks is not None):
            fields[name] = list(range(length))
    return fields, n, m


def read_numbers(value: Any, name: str, null: float | None = None) -> Any:
    """A number, numbers in a list or in rows as an array, or numbers by name as they are."""
    if isinstance(value, dict):
        for where, entry in leaves(value, name):
            if entry is not None:
                read.read_number(entry, where)
        return value
    if not isinstance(value, (list, np.ndarray)):
        return read.read_number(value, name)
    has_rows = value.ndim == 2 if isinstance(value, np.ndarray) else bool(value) and isinstance(value[0], list)
    return read.read_array(value, name, (None, None) if has_rows else (None,), null=null)


def leaves(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """(name, entry) of what objects within objects hold."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{where}.{read.clip(key)}")
    else:
        yield where, value


def count_named(scores: Any) -> tuple[int, int]:
    """How many agents and tasks there are in {agent: {task: score}} or in records; Refusal for what is neither."""
    if isinstance(scores, dict):
        if not scores:
            refuse("scores has no agents: {agent: {task: score}}", "scores")
        for agent, row in read_numbers(scores, "scores").items():
            if not isinstance(row, dict):
                where = f"scores.{read.clip(agent)}"
                refuse(f"{where} must be an object {{task: score}}, got {read.describe(row)}", where)
        return len(scores), len({task for row in scores.values() for task in row})
    names: dict[str, set[str]] = {"agent": set(), "task": set()}
    for k, row in enumerate(scores):
        where = f"scores[{k}]"
        if not isinstance(row, dict) or not {"agent", "task", "score"} <= row.keys():
            refuse(f"{where} must be a record with agent, task and score, got {read.describe(row)}", where)
        read.check_keys(row, ("agent", "task", "score", "contribution"))
        for key, entry in row.items():
            if key not in names:
                read.read_number(entry, f"{where}.{key}")
            elif isinstance(entry, str):
                names[key].add(entry)
            else:
                refuse(f"{where}.{key} must be a name, got {read.describe(entry)}", f"{where}.{key}")
    return len(names["agent"]), len(names["task"])


def read_plan(value: Any, name: str, n: int, m: int) -> Any:
    """A task by name or number, or null, for each agent; or {agent: task}."""
    if isinstance(value, dict):
        entries = [(f"{name}.{read.clip(key)}", entry) for key, entry in value.items()]
    else:
        value = read.read_list(value, name, n)
        entries = [(f"{name}[{k}]", entry) for k, entry in enumerate(value)]
    for where, entry in entries:
        if type(entry) is int and not 0 <= entry < m:
            refuse(f"{where} must be a task from 0 to {m - 1}, got {read.describe(entry)}", where)
        if entry is not None and type(entry) not in (int, str):
            refuse(f"{where} must be a task or null, got {read.describe(entry)}", where)
    return value


def allowed_time(body: ProblemBody, deadline: float) -> float | None:
    """The request's own limit, if it fits into what the service gives it."""
    left = deadline - time.monotonic()
    if body.time_limit is not None and body.time_limit >= left:
        told = f"time_limit must be less than the {left:.3g} s that this request has left, got {body.time_limit:g}"
        refuse(f"{told}; POST /jobs takes longer ones", "time_limit")
    return body.time_limit


def check_size(n: int, m: int, limit: int, what: str = "agents and tasks") -> None:
    """Refuse what is larger than the service takes."""
    if max(n, m) > MOST_OBJECTS:
        raise Refusal("too_large", f"{n} x {m} {what}: at most {MOST_OBJECTS:,} of a kind are taken")
    if n * m > limit:
        raise Refusal("too_large", f"{n} x {m} {what} are {n * m:,} pairs; at most {limit:,} are taken")
