"""Answers as plain JSON values: the fields that scripts and clients rely on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.assign.answer import Answer
    from muster.assign.check import Verdict


def answer_as_json(solution: Answer) -> dict[str, Any]:
    """Of `muster.assign`; agents and tasks by name where they have names."""
    tasks, agents = solution.tasks, solution.agents
    named: dict[str, Any] = {}
    if solution.names is not None:
        named = {"agents": list(agents), "tasks": list(tasks)}
    if solution.routes is not None:
        named["routes"] = [[tasks[stop] for stop in route] for route in solution.routes]
    return {
        "assignment": [None if task < 0 else tasks[task] for task in solution.assignment.tolist()],
        "objective": solution.objective,
        "relaxed_objective": solution.relaxed_objective,
        "bound": or_null(float(solution.bound)),
        "integer_gap": or_null(float(solution.integer_gap)),
        "duality_gap": or_null(float(solution.duality_gap)),
        "frank_wolfe_gap": or_null(float(solution.frank_wolfe_gap)),
        "status": solution.status,
        "loads": solution.loads.tolist(),
        "prices": solution.prices.tolist(),
        "unassigned": {str(agents[i]): reason for i, reason in enumerate(solution.reasons) if reason},
        "changes": solution.changes,
        "seconds": solution.seconds,
        **named,
    }


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """Of `muster.check_plan`."""
    better = verdict.better
    return {
        "feasible": verdict.feasible,
        "broken": list(verdict.broken),
        "value": or_null(verdict.value),
        "bound": or_null(verdict.bound),
        "optimal": verdict.optimal,
        "better": None
        if better is None
        else {"assignment": list(better.plan.values()), "objective": better.objective, "status": better.status},
        "changes": rows_as_json(verdict.changes),
    }


def rows_as_json(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a table."""
    return [{name: or_null(cell) for name, cell in row.items()} for row in rows]


def or_null(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
