"""POST /solve and POST /check: the solver over HTTP."""

from __future__ import annotations

import time
from typing import Any

from muster.assign import assign
from muster.assign import check_plan as check
from muster.assign.as_json import answer_as_json, rows_as_json, verdict_as_json
from muster.errors import TimeLimitError
from muster.service.errors import RequestError, refuse
from muster.service.schema import CheckBody, ProblemBody, SolveBody

MAX_OBJECTS = 5000
"""Agents or tasks at most: a round of local search takes time with their square."""
PROBLEM = ("scores", "task_scores", "contributions", "capacities", "minimums", "fixed", "allowed", "agents", "tasks")
SETTINGS = ("method", "effort", "assign_all", "task_scores_on", "sense")
SOLVE_ONLY = ("previous", "switch_cost", "end_scores", "routes", "rounding", "objective")


def solve(body: SolveBody, deadline: float, size_limit: int) -> dict[str, Any]:
    """The answer to a body of /solve."""
    solution = assign(**arguments_of(body, size_limit), time_limit=time_limit_of(body, deadline))
    answer = answer_as_json(solution)
    if body.explain:
        try:
            why = solution.explain(time_limit=max(0.0, 0.9 * (deadline - time.monotonic())))
        except TimeLimitError:
            error = "the explanation was not ready in time; ask without explain"
            raise RequestError("time_limit", error, "explain") from None
        answer["explanation"] = {"agents": rows_as_json(why.agents), "tasks": rows_as_json(why.tasks)}
    return answer


def check_plan(body: CheckBody, deadline: float, size_limit: int) -> dict[str, Any]:
    """The answer to a body of /check."""
    problem, settings = problem_of(body, size_limit), body.given(*SETTINGS)
    return verdict_as_json(check(problem, body.assignment, **settings, time_limit=time_limit_of(body, deadline)))


def arguments_of(body: SolveBody, size_limit: int) -> dict[str, Any]:
    """The arguments of `muster.assign` in a body of /solve, without its time limit."""
    return problem_of(body, size_limit) | body.given(*SETTINGS, *SOLVE_ONLY)


def problem_of(body: ProblemBody, size_limit: int) -> dict[str, Any]:
    """The arguments of `muster.assign` that describe the problem; it checks itself whether they fit each other."""
    scores, n, m = body.scores, 0, 0
    if isinstance(scores, dict):
        n, m = len(scores), len({task for row in scores.values() for task in row})
    elif isinstance(scores, list):
        n, m = len({record["agent"] for record in scores}), len({record["task"] for record in scores})
    else:
        n, m = scores.shape
    check_size(n, m, size_limit)
    if body.method in ("quad", "routes"):
        check_size(m, m, size_limit, "tasks, which may all be paired under this method")
    arguments = body.given(*PROBLEM)
    if not isinstance(scores, (dict, list)) and ("agents" in arguments) != ("tasks" in arguments):
        arguments = {"agents": list(range(n)), "tasks": list(range(m))} | arguments
    return arguments


def time_limit_of(body: ProblemBody, deadline: float) -> float | None:
    """The body's own time limit; RequestError if it is not less than the time that the request has left."""
    left = deadline - time.monotonic()
    if body.time_limit is not None and body.time_limit >= left:
        error = f"time_limit must be less than the {left:.3g} s that this request has left, got {body.time_limit:g}"
        refuse(f"{error}; POST /jobs takes longer ones", "time_limit")
    return body.time_limit


def check_size(n: int, m: int, limit: int, objects: str = "agents and tasks") -> None:
    """Refuse problems that are larger than the service takes."""
    if max(n, m) > MAX_OBJECTS:
        raise RequestError("too_large", f"{n} x {m} {objects}: at most {MAX_OBJECTS:,} of a kind are taken")
    if n * m > limit:
        raise RequestError("too_large", f"{n} x {m} {objects} are {n * m:,} pairs; at most {limit:,} are taken")
