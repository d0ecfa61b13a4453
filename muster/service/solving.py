"""POST /solve: the solver behind an address."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from muster.inference import assign
from muster.service import reading
from muster.service.bodies import SolveBody, checked
from muster.service.refusals import Refusal
from muster.service.replies import number


def solve(data: dict[str, Any], deadline: float, size_limit: int) -> dict[str, Any]:
    """The answer to a body of /solve."""
    body = checked(SolveBody, data)
    scores = reading.matrix(body.scores, "scores", null=-np.inf)
    n, m = scores.shape
    check_size(n, m, size_limit)
    given: dict[str, Any] = {}
    if body.task_scores is not None:
        check_size(m, m, size_limit)
        given["task_scores"] = reading.matrix(body.task_scores, "task_scores", (m, m))
    if body.contributions is not None:
        flat = bool(body.contributions) and not isinstance(body.contributions[0], list)
        given["contributions"] = (
            reading.vector(body.contributions, "contributions", n)
            if flat
            else reading.matrix(body.contributions, "contributions", (n, m))
        )
    if body.capacities is not None:
        given["capacities"] = reading.vector(body.capacities, "capacities", m, null=np.inf)
    if body.allowed is not None:
        given["allowed"] = reading.mask(body.allowed, "allowed", (n, m))
    if body.end_scores is not None:
        given["end_scores"] = reading.matrix(body.end_scores, "end_scores", (n, m))
    if body.routes is not None:
        given["routes"] = [
            reading.whole_numbers(route, f"routes[{i}]").tolist()
            for i, route in enumerate(reading.checked_list(body.routes, "routes", n))
        ]
    left = deadline - time.monotonic()
    if body.time_limit is not None and body.time_limit > left:
        raise Refusal("input", f"time_limit must be less than the {left:.3g} s that a request has", "time_limit")
    solution = assign(
        scores,
        **given,
        method=body.method,
        effort=body.effort,
        rounding=body.rounding,
        forced=body.forced,
        objective=body.objective,
        time_limit=body.time_limit,
    )
    routes = {} if solution.routes is None else {"routes": solution.routes}
    return {
        "assignment": [None if task < 0 else int(task) for task in solution.assignment],
        "objective": solution.objective,
        "relaxed_objective": solution.relaxed_objective,
        "bound": number(float(solution.bound)),
        "integer_gap": number(float(solution.integer_gap)),
        "status": solution.status,
        "loads": solution.loads.tolist(),
        "prices": solution.prices.tolist(),
        "unassigned": {str(i): reason for i, reason in enumerate(solution.reasons) if reason},
        "seconds": solution.seconds,
        **routes,
    }


def check_size(n: int, m: int, limit: int) -> None:
    """Refuse what is larger than the service takes."""
    if n * m > limit:
        raise Refusal("too_large", f"{n} x {m} is {n * m:,} pairs; at most {limit:,} are taken")
