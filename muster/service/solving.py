"""POST /solve and POST /check: the solver behind an address."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from muster.assign import assign
from muster.assign import check_plan as check
from muster.assign.as_json import answer_as_json, rows_as_json, verdict_as_json
from muster.assign.solver import is_stopped
from muster.service import reading
from muster.service.bodies import CheckBody, ProblemBody, SolveBody, checked
from muster.service.refusals import Refusal

MOST_OBJECTS = 5000
"""Agents or tasks at most: a round of local search takes time with their square, and is not stopped half way."""
LONGEST_NAME = 200
"""Letters of a name at most."""


def solve(data: dict[str, Any], deadline: float, size_limit: int) -> dict[str, Any]:
    """The answer to a body of /solve."""
    body = checked(SolveBody, data)
    fields, (n, m) = read_problem(body, size_limit)
    if body.previous is not None:
        fields["previous"] = read_plan(body.previous, "previous", n, m)
    if body.switch_cost is not None:
        fields["switch_cost"] = read_cost(body.switch_cost, n, m)
    if body.end_scores is not None:
        fields["end_scores"] = reading.matrix(body.end_scores, "end_scores", (n, m))
    if body.routes is not None:
        rows = reading.checked_list(body.routes, "routes", n)
        fields["routes"] = [reading.tasks(r, f"routes[{i}]", None, m, null=False).tolist() for i, r in enumerate(rows)]
    solution = assign(
        **fields,
        method=body.method,
        effort=body.effort,
        rounding=body.rounding,
        assign_all=body.assign_all,
        crowd=body.crowd,
        objective=body.objective,
        time_limit=allowed_time(body, deadline),
    )
    answer = answer_as_json(solution)
    if body.explain:
        why = solution.explain()
        # What was not solved to its end explains nothing.
        if is_stopped():
            raise Refusal("time_limit", "the explanation was not ready in time; ask without explain", "explain")
        answer["explanation"] = {"agents": rows_as_json(why.agents), "tasks": rows_as_json(why.tasks)}
    return answer


def check_plan(data: dict[str, Any], deadline: float, size_limit: int) -> dict[str, Any]:
    """The answer to a body of /check."""
    body = checked(CheckBody, data)
    fields, (n, m) = read_problem(body, size_limit)
    verdict = check(
        fields,
        read_plan(body.assignment, "assignment", n, m),
        method=body.method,
        effort=body.effort,
        assign_all=body.assign_all,
        crowd=body.crowd,
        time_limit=allowed_time(body, deadline),
    )
    return verdict_as_json(verdict)


def read_problem(body: ProblemBody, size_limit: int) -> tuple[dict[str, Any], tuple[int, int]]:
    """The arguments of `muster.assign` that both addresses know, and how many agents and tasks there are."""
    rows = body.scores if reading.is_list(body.scores, True) else reading.checked_list(body.scores, "scores")
    check_size(len(rows), max((len(row) for row in rows if reading.is_list(row)), default=0), size_limit)
    scores = reading.matrix(rows, "scores", null=-np.inf)
    n, m = scores.shape
    if body.method in ("quad", "routes"):
        check_size(m, m, size_limit, "tasks, which may all be paired under this method")
    fields: dict[str, Any] = {"scores": scores}
    if body.task_scores is not None:
        fields["task_scores"] = reading.matrix(body.task_scores, "task_scores", (m, m))
    if body.contributions is not None:
        given = body.contributions
        whole = not n or reading.is_list(given, of_lists=True)
        read = reading.matrix(given, "contributions", (n, m)) if whole else reading.vector(given, "contributions", n)
        fields["contributions"] = read
    if body.capacities is not None:
        fields["capacities"] = reading.vector(body.capacities, "capacities", m, null=np.inf)
    if body.allowed is not None:
        fields["allowed"] = reading.mask(body.allowed, "allowed", (n, m))
    for field, length in (("agents", n), ("tasks", m)):
        if getattr(body, field) is not None:
            fields[field] = read_names(getattr(body, field), field, length)
    if "tasks" in fields and "agents" not in fields:
        fields["agents"] = list(range(n))
    if "agents" in fields and "tasks" not in fields:
        fields["tasks"] = list(range(m))
    return fields, (n, m)


def read_names(value: Any, name: str, length: int) -> list[str]:
    """Names, all different."""
    row = reading.checked_list(value, name, length)
    seen: set[str] = set()
    for k, entry in enumerate(row):
        where = f"{name}[{k}]"
        if not isinstance(entry, str) or not 0 < len(entry) <= LONGEST_NAME:
            error = f"{where} must be a name of 1 to {LONGEST_NAME} letters, got {reading.kind_of(entry)}"
            raise Refusal("input", error, where)
        if entry in seen:
            raise Refusal("input", f"{where} is the name {reading.clipped(entry)!r} again", where)
        seen.add(entry)
    return row


def read_plan(value: Any, name: str, n: int, m: int) -> Any:
    """A task by name or number, or null, for each agent; or {agent: task}."""
    if isinstance(value, dict):
        entries = [(f"{name}.{reading.clipped(key)}", entry) for key, entry in value.items()]
    else:
        value = reading.checked_list(value, name, n)
        entries = [(f"{name}[{k}]", entry) for k, entry in enumerate(value)]
    for where, entry in entries:
        if type(entry) is int and not 0 <= entry < m:
            raise Refusal("input", f"{where} must be a task from 0 to {m - 1}, got {reading.kind_of(entry)}", where)
        if entry is not None and type(entry) not in (int, str):
            raise Refusal("input", f"{where} must be a task or null, got {reading.kind_of(entry)}", where)
    return value


def read_cost(value: Any, n: int, m: int) -> Any:
    """A number, or one for each agent or pair; not negative."""
    if not reading.is_list(value):
        cost: Any = reading.number(value, "switch_cost")
    elif reading.is_list(value, of_lists=True):
        cost = reading.matrix(value, "switch_cost", (n, m))
    else:
        cost = reading.vector(value, "switch_cost", n)
    if np.min(cost, initial=0.0) < 0.0:
        raise Refusal("input", "switch_cost must not be negative", "switch_cost")
    return cost


def allowed_time(body: ProblemBody, deadline: float) -> float | None:
    """The request's own limit, if it fits into what the service gives it."""
    left = deadline - time.monotonic()
    if body.time_limit is not None and body.time_limit >= left:
        error = f"time_limit must be less than the {left:.3g} s that this request has left, got {body.time_limit:g}"
        raise Refusal("input", error, "time_limit")
    return body.time_limit


def check_size(n: int, m: int, limit: int, what: str = "agents and tasks") -> None:
    """Refuse what is larger than the service takes."""
    if max(n, m) > MOST_OBJECTS:
        raise Refusal("too_large", f"{n} x {m} {what}: at most {MOST_OBJECTS:,} of a kind are taken")
    if n * m > limit:
        raise Refusal("too_large", f"{n} x {m} {what} are {n * m:,} pairs; at most {limit:,} are taken")
