"""`muster solve`: assign agents to tasks from a file of scores."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from muster.errors import InputError, UnknownNameError
from muster.inference.settings import Effort, Method, Objective, Rounding

if TYPE_CHECKING:
    from muster.data import Solution

FIELDS = ("scores", "task_scores", "contributions", "capacities", "allowed", "end_scores", "routes")


@dataclass(frozen=True)
class Solve:
    """Assign agents to tasks: scores from a JSON file in, assignment with its certificate out."""

    file: Annotated[str, tyro.conf.Positional]
    """JSON with `scores` (a row per agent, a column per task; null forbids a pair) and, if wanted, `task_scores`,
    `contributions`, `capacities`, `allowed`, and for plan `end_scores` and `routes`; - reads standard input."""
    method: Method = "quad"
    """amax: each agent's best task; lp: within capacities; quad: with task-task scores too; plan: routes through all
    tasks, task scores being what it is worth to go from one to the next."""
    effort: Effort = "fast"
    """How hard quad and plan try."""
    rounding: Rounding = "strict"
    """Whether a capacity may never be exceeded, or by its last agent as in the authors' code."""
    forced: bool = False
    """Assign every agent that fits somewhere, however bad its scores."""
    objective: Objective = "longest"
    """What plan makes short: the longest route, or the total of all."""
    time_limit: float | None = None
    """Seconds; the best feasible assignment found by then comes back."""
    json: bool = False
    """Print one JSON object instead of tables."""

    def run(self) -> None:
        """Read, solve, print."""
        problem = read_problem(self.file)
        from muster.inference import assign

        solution = assign(
            **problem,
            method=self.method,
            effort=self.effort,
            rounding=self.rounding,
            forced=self.forced,
            objective=self.objective,
            time_limit=self.time_limit,
        )
        if self.json:
            print(json.dumps(as_json(solution), allow_nan=False))
        else:
            _print_tables(solution, problem, self)


def read_problem(file: str) -> dict[str, Any]:
    """The arguments of `muster.assign` in a JSON file or on standard input."""
    source = "standard input" if file == "-" else file
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{source} is not text; expected a JSON object with 'scores'") from None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{source} is not JSON ({error.msg}, {where}); expected an object with 'scores'") from None
    except RecursionError:
        raise InputError(f"{source} is nested too deeply; expected an object with 'scores'") from None
    if not isinstance(data, dict):
        raise InputError(f"{source} must hold a JSON object with 'scores', got {_kind(data)}")
    for key in data:
        if key not in FIELDS:
            raise UnknownNameError("field", key, FIELDS)
    if data.get("scores") is None:
        raise InputError(f"{source} has no 'scores': a row per agent with a number per task")
    scores = data["scores"]
    if isinstance(scores, list):
        # JSON has no infinity: null in a row of scores forbids the pair.
        data["scores"] = [
            [float("-inf") if entry is None else entry for entry in row] if isinstance(row, list) else row
            for row in scores
        ]
    return {key: value for key, value in data.items() if value is not None}


def as_json(solution: Solution) -> dict[str, Any]:
    """The fields that scripts rely on, as plain JSON values."""
    routes = {} if solution.routes is None else {"routes": solution.routes}
    return {
        "assignment": [None if task < 0 else int(task) for task in solution.assignment],
        "objective": solution.objective,
        "relaxed_objective": solution.relaxed_objective,
        "bound": _number(float(solution.bound)),
        "integer_gap": _number(float(solution.integer_gap)),
        "duality_gap": _number(float(solution.duality_gap)),
        "frank_wolfe_gap": _number(float(solution.frank_wolfe_gap)),
        "status": solution.status,
        "loads": solution.loads.tolist(),
        "prices": solution.prices.tolist(),
        "unassigned": {str(i): reason for i, reason in enumerate(solution.reasons) if reason},
        "seconds": solution.seconds,
        **routes,
    }


def _number(value: float) -> float | None:
    return None if value != value else value


def _kind(data: object) -> str:
    return {list: "a list", str: "a string", type(None): "null", bool: "a boolean"}.get(type(data), "a number")


def _print_tables(solution: Solution, problem: dict[str, Any], settings: Solve) -> None:
    from rich.console import Console
    from rich.table import Table

    agents = Table("agent", "task", "score", title="assignment", title_justify="left")
    for i, task in enumerate(solution.assignment):
        if task >= 0:
            agents.add_row(str(i), str(task), f"{problem['scores'][i][task]:.6g}")
        else:
            agents.add_row(str(i), "–", f"[dim]{solution.reasons[i]}")
    tasks = Table("task", "agents", "load", "capacity", "price", title="tasks", title_justify="left")
    capacities = problem.get("capacities") or [1.0] * len(solution.loads)
    for j, load in enumerate(solution.loads):
        count = int((solution.assignment == j).sum())
        tasks.add_row(str(j), str(count), f"{load:.6g}", f"{capacities[j]:.6g}", f"{solution.prices[j]:.6g}")
    console = Console()
    console.print(agents, tasks)
    if solution.routes is not None:
        routes = Table("agent", "route", title="routes", title_justify="left")
        for i, route in enumerate(solution.routes):
            routes.add_row(str(i), " → ".join(map(str, route)) or "–")
        console.print(routes)
    procedure = f"{settings.method} ({settings.effort})" if settings.method in ("quad", "plan") else settings.method
    console.print(
        f"{procedure}: [bold]{solution.status}[/], objective [bold]{solution.objective:.9g}[/], {_standing(solution)}, "
        f"{solution.seconds * 1e3:.3g} ms"
    )


def _standing(solution: Solution) -> str:
    """How good the objective is known to be."""
    gap = float(solution.integer_gap)
    if solution.status == "optimal":
        return "which nothing exceeds"
    if gap != gap:
        return "no bound is known"
    return f"at most {gap:.2%} below the best (bound {solution.bound:.9g})"
