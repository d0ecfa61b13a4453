"""POST /solve and POST /check: the solver behind an address."""

from __future__ import annotations

import time
from typing import Any

from muster.assign import assign
from muster.assign import check_plan as check
from muster.assign.as_json import answer_as_json, rows_as_json, verdict_as_json
from muster.errors import TimeLimitError
from muster.service.refusal import Refusal
from muster.service.schema import CheckBody, ProblemBody, SolveBody, refuse

MOST_OBJECTS = 5000
"""Agents or tasks at most: a round of local search takes time with their square."""
FIELDS = ("scores", "task_scores", "contributions", "capacities", "minimums", "fixed", "allowed", "agents", "tasks")
SETTINGS = ("method", "effort", "assign_all", "task_scores_on", "sense")
ONLY_SOLVE = ("previous", "switch_cost", "end_scores", "routes", "rounding", "objective")


def solve(body: SolveBody, deadline: float, size_limit: int) -> dict[str, Any]:
    """The answer to a body of /solve."""
    solution = assign(**arguments_of(body, size_limit), time_limit=allowed_time(body, deadline))
    answer = answer_as_json(solution)
    if body.explain:
        try:
            why = solution.explain(time_limit=max(0.0, 0.9 * (deadline - time.monotonic())))
        except TimeLimitError:
            told = "the explanation was not ready in time; ask without explain"
            raise Refusal("time_limit", told, "explain") from None
        answer["explanation"] = {"agents": rows_as_json(why.agents), "tasks": rows_as_json(why.tasks)}
    return answer


def arguments_of(body: SolveBody, size_limit: int) -> dict[str, Any]:
    """The arguments of `muster.assign` that a body of /solve asks for, without a time limit."""
    return problem_of(body, size_limit) | body.given(*SETTINGS, *ONLY_SOLVE)


def check_plan(body: CheckBody, deadline: float, size_limit: int) -> dict[str, Any]:
    """The answer to a body of /check."""
    problem, settings = problem_of(body, size_limit), body.given(*SETTINGS)
    return verdict_as_json(check(problem, body.assignment, **settings, time_limit=allowed_time(body, deadline)))


def problem_of(body: ProblemBody, size_limit: int) -> dict[str, Any]:
    """The arguments of `muster.assign` that both routes take; whether they fit each other it knows itself."""
    n, m = size_of(body.scores)
    check_size(n, m, size_limit)
    if body.method in ("quad", "routes"):
        check_size(m, m, size_limit, "tasks, which may all be paired under this method")
    fields = body.given(*FIELDS)
    if not isinstance(body.scores, (dict, list)) and ("agents" in fields) != ("tasks" in fields):
        fields = {"agents": list(range(n)), "tasks": list(range(m))} | fields
    return fields


def size_of(scores: Any) -> tuple[int, int]:
    """How many agents and tasks there are in rows, in {agent: {task: score}} or in records."""
    if isinstance(scores, dict):
        return len(scores), len({task for row in scores.values() for task in row})
    if isinstance(scores, list):
        return len({record["agent"] for record in scores}), len({record["task"] for record in scores})
    return scores.shape[0], scores.shape[1]


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
