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


def solve(data: dict[str, Any], deadline: float, size_limit: int) -> dict[str, Any]:
    """The answer to a body of /solve."""
    body, arguments = read_solve(data, size_limit)
    solution = assign(**arguments, time_limit=allowed_time(body, deadline))
    answer = answer_as_json(solution)
    if body.explain:
        try:
            why = solution.explain(time_limit=max(0.0, 0.9 * (deadline - time.monotonic())))
        except TimeLimitError:
            raise Refusal(
                "time_limit", "the explanation was not ready in time; ask without explain", "explain"
            ) from None
        answer["explanation"] = {"agents": rows_as_json(why.agents), "tasks": rows_as_json(why.tasks)}
    return answer


def read_solve(data: dict[str, Any], size_limit: int) -> tuple[SolveBody, dict[str, Any]]:
    """A body of /solve, and the arguments of `muster.assign` that it asks for, without a time limit."""
    body = check_body(SolveBody, data)
    fields, (n, m) = read_problem(body, size_limit)
    if body.previous is not None:
        fields["previous"] = read_plan(body.previous, "previous", n, m)
    if body.switch_cost is not None:
        fields["switch_cost"] = read_cost(body.switch_cost, n, m)
    if body.end_scores is not None:
        fields["end_scores"] = read_block(body.end_scores, "end_scores", (n, m))
    if body.routes is not None:
        rows = read.read_list(body.routes, "routes", n)
        fields["routes"] = [
            read.read_tasks(row, f"routes[{i}]", None, m, null=False).tolist() for i, row in enumerate(rows)
        ]
    chosen = ("method", "effort", "rounding", "assign_all", "crowd", "objective", "sense")
    return body, fields | {name: getattr(body, name) for name in chosen}


def check_plan(data: dict[str, Any], deadline: float, size_limit: int) -> dict[str, Any]:
    """The answer to a body of /check."""
    body = check_body(CheckBody, data)
    fields, (n, m) = read_problem(body, size_limit)
    verdict = check(
        fields,
        read_plan(body.assignment, "assignment", n, m),
        method=body.method,
        effort=body.effort,
        assign_all=body.assign_all,
        crowd=body.crowd,
        sense=body.sense,
        time_limit=allowed_time(body, deadline),
    )
    return verdict_as_json(verdict)


def read_problem(body: ProblemBody, size_limit: int) -> tuple[dict[str, Any], tuple[int, int]]:
    """The arguments of `muster.assign` that both addresses know, and how many agents and tasks there are."""
    given = body.scores
    fields: dict[str, Any] = {}
    if isinstance(given, dict) or (isinstance(given, list) and given and isinstance(given[0], dict)):
        n, m = count_named(given)
        check_size(n, m, size_limit)
        fields["scores"] = given
    else:
        if isinstance(given, list):
            check_size(len(given), max((len(row) for row in given if isinstance(row, list)), default=0), size_limit)
        fields["scores"] = read.read_array(given, "scores", (None, None), null=-np.inf)
        n, m = fields["scores"].shape
        check_size(n, m, size_limit)
    if body.method in ("quad", "routes"):
        check_size(m, m, size_limit, "tasks, which may all be paired under this method")
    if body.task_scores is not None:
        fields["task_scores"] = read_block(body.task_scores, "task_scores", (m, m))
    if body.contributions is not None:
        pairs = not n or has_rows(body.contributions)
        fields["contributions"] = read_block(body.contributions, "contributions", (n, m) if pairs else (n,))
    if body.capacities is not None:
        fields["capacities"] = read_block(body.capacities, "capacities", (m,), null=np.inf)
    if isinstance(body.minimums, (int, float)) and not isinstance(body.minimums, bool):
        fields["minimums"] = read.read_number(body.minimums, "minimums")
    elif body.minimums is not None:
        fields["minimums"] = read_block(body.minimums, "minimums", (m,))
    if body.fixed is not None:
        fields["fixed"] = read_plan(body.fixed, "fixed", n, m)
    if body.allowed is not None:
        fields["allowed"] = read.read_mask(body.allowed, "allowed", (n, m))
    for field, length in (("agents", n), ("tasks", m)):
        if getattr(body, field) is not None:
            fields[field] = read.read_names(getattr(body, field), field, length)
    if not isinstance(fields["scores"], np.ndarray):
        return fields, (n, m)
    if "tasks" in fields and "agents" not in fields:
        fields["agents"] = list(range(n))
    if "agents" in fields and "tasks" not in fields:
        fields["tasks"] = list(range(m))
    return fields, (n, m)


def read_block(value: Any, name: str, shape: tuple[int, ...], null: float | None = None) -> Any:
    """Numbers in lists of that shape; or by name, as they are, once each is seen to be a number."""
    if not isinstance(value, dict):
        return read.read_array(value, name, shape, null=null)
    for where, entry in leaves(value, name):
        if entry is not None:
            read.read_number(entry, where)
    return value


def has_rows(value: Any) -> bool:
    """Whether a value is a list of lists."""
    if isinstance(value, np.ndarray):
        return value.ndim == 2
    return isinstance(value, list) and bool(value) and isinstance(value[0], list)


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
        for where, entry in leaves(scores, "scores"):
            if entry is not None:
                read.read_number(entry, where)
        for agent, row in scores.items():
            if not isinstance(row, dict):
                where = f"scores.{read.clip(agent)}"
                refuse(f"{where} must be an object {{task: score}}, got {read.describe(row)}", where)
        return len(scores), len({task for row in scores.values() for task in row})
    agents: set[str] = set()
    tasks: set[str] = set()
    for k, row in enumerate(scores):
        where = f"scores[{k}]"
        if not isinstance(row, dict) or not {"agent", "task", "score"} <= row.keys():
            refuse(f"{where} must be a record with agent, task and score, got {read.describe(row)}", where)
        read.check_keys(row, ("agent", "task", "score", "contribution"))
        for key in row.keys() & {"score", "contribution"}:
            read.read_number(row[key], f"{where}.{key}")
        for key, names in (("agent", agents), ("task", tasks)):
            if not isinstance(row[key], str):
                refuse(f"{where}.{key} must be a name, got {read.describe(row[key])}", f"{where}.{key}")
            names.add(row[key])
    return len(agents), len(tasks)


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


def read_cost(value: Any, n: int, m: int) -> Any:
    """A number, or one for each agent or pair; not negative."""
    if isinstance(value, (list, dict, np.ndarray)):
        cost = read_block(value, "switch_cost", (n, m) if has_rows(value) else (n,))
    else:
        cost = read.read_number(value, "switch_cost")
    least = [entry for _, entry in leaves(cost, "") if entry is not None] if isinstance(cost, dict) else cost
    if np.min(least, initial=0.0) < 0.0:
        refuse("switch_cost must not be negative", "switch_cost")
    return cost


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
