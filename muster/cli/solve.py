"""`muster solve`: assign agents to tasks from a file of scores."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from muster.assign.as_json import answer_as_json, rows_as_json
from muster.assign.outcomes import NEGATIVE_SCORES, REASONS
from muster.assign.settings import Method, Objective, Rounding
from muster.cli.problem_files import CsvTable, ProblemFlags, write_csv
from muster.errors import InputError
from muster.storage import check_parent

if TYPE_CHECKING:
    from muster.assign.answer import Answer


@dataclass(frozen=True)
class Solve(ProblemFlags):
    """Assign agents to tasks: scores from a JSON or CSV file in, assignment with its certificate out."""

    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """CSV with the columns agent, task, score and, if wanted, contribution, or with a row per agent and a column per
    task; or JSON with `scores` (a row per agent, a column per task; null forbids a pair) and, if wanted, `task_scores`,
    `contributions`, `capacities`, `allowed`, `agents`, `tasks`, `previous`, `switch_cost`, `task_scores_on`, and for
    routes `end_scores` and `routes`; - reads JSON from standard input."""
    method: Method = "quad"
    """amax: each agent's best task; lp: within capacities; quad: with task-task scores too; routes: routes through
    all tasks, where a task score is the value of going from one task to the next."""
    rounding: Rounding = "strict"
    """Whether a capacity may never be exceeded, or by its last agent as in the authors' code."""
    objective: Objective = "makespan"
    """Objective of routes: the longest route, or the total of all."""
    previous: str | None = None
    """CSV with the columns agent and task, such as an earlier --out: the previous plan."""
    switch_cost: float | None = None
    """Subtracted from an agent's scores for tasks other than its previous one, while that exists; needs --previous."""
    out: str | None = None
    """Write the plan to a file: .csv with agent, task, score, contribution and reason, or .json as --json prints."""
    explain: bool = False
    """Say why: each agent's runner-up and margin, and what it would take to have the unserved tasks served."""
    json: bool = False
    """Print one JSON object instead of tables."""

    def run(self) -> None:
        """Read the problem, solve it, write and print the plan."""
        if self.out is not None:
            if Path(self.out).suffix.lower() not in (".csv", ".json"):
                raise InputError(f"--out writes .csv or .json, got {self.out}")
            check_parent(Path(self.out))
        problem = self.read(previous=self.previous)
        if self.switch_cost is not None:
            problem["switch_cost"] = self.switch_cost
        from muster.assign import assign

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the notes below say the same
            solution = assign(
                **problem,
                method=self.method,
                effort=self.effort,
                rounding=self.rounding,
                sense="min" if self.minimise else "max",
                assign_all=self.assign_all,
                objective=self.objective,
                time_limit=self.time_limit,
            )
        for note in notes(solution, problem, self):
            print(f"muster: {note}", file=sys.stderr)
        if self.out is not None:
            write_plan(solution, self.out)
        why = solution.explain() if self.explain else None
        if self.json:
            reasons = (
                {}
                if why is None
                else {"explanation": {"agents": rows_as_json(why.agents), "tasks": rows_as_json(why.tasks)}}
            )
            print(json.dumps(answer_as_json(solution) | reasons, allow_nan=False))
        else:
            _print_tables(solution, self)
            if why is not None:
                print(why)


def write_plan(solution: Answer, file: str) -> None:
    """Write the plan as CSV or JSON, by the file's suffix."""
    if Path(file).suffix.lower() == ".csv":
        table = solution.table()
        write_csv(file, table, table.columns)
    else:
        Path(file).write_text(json.dumps(answer_as_json(solution), allow_nan=False) + "\n", encoding="utf-8")


def notes(solution: Answer, problem: Mapping[str, Any], settings: Solve) -> list[str]:
    """Remarks on a correct answer that might surprise a user."""
    from muster.assign.answer import NOTHING_ALLOWED

    remarks = [] if solution.assignment.size else ["there are no agents: nothing is assigned"]
    negative, why = REASONS[NEGATIVE_SCORES], set(solution.reasons)
    if negative in why and why <= {negative, NOTHING_ALLOWED}:
        remarks.append(
            "no agent is assigned, since an agent without a task "
            + ("costs 0 and every task more" if settings.minimise else "is worth 0 and every task less")
            + ": --assign-all assigns every agent that fits, --minimums 1 serves every task"
            + ("" if settings.minimise else "; for costs give --minimise")
        )
    if settings.method == "amax" and (solution.loads > solution.capacities).any():
        remarks.append("amax looks at no capacities, and some are exceeded; lp and quad keep within them")
    if settings.method in ("amax", "lp") and "task_scores" in problem:
        remarks.append(f"{settings.method} looks at no task scores; quad does")
    gone = unknown_names(problem.get("previous"), solution)
    if gone:
        more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
        remarks.append(f"the previous plan names {', '.join(gone[:5])}{more}, not there any more; counted as no task")
    return remarks


def unknown_names(previous: Any, solution: Answer) -> list[str]:
    """Agents and tasks of the previous plan that the problem does not have."""
    if isinstance(previous, CsvTable):
        pairs = list(zip(previous["agent"], previous["task"], strict=True))
    elif isinstance(previous, Mapping):
        pairs = list(previous.items())
    else:
        return []
    agents, tasks = set(solution.agents), set(solution.tasks)
    gone = [f"agent {agent!r}" for agent, _ in pairs if agent not in agents]
    return gone + [f"task {task!r}" for task in dict(pairs).values() if task not in (None, "") and task not in tasks]


def _print_tables(solution: Answer, settings: Solve) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    def name(of: object) -> str:
        return escape(str(of))

    agents = Table("agent", "task", "cost" if settings.minimise else "score", title="assignment", title_justify="left")
    for row in solution.table():
        if row["task"] is not None:
            agents.add_row(name(row["agent"]), name(row["task"]), f"{row['score']:.6g}")
        else:
            reason = str(row["reason"])
            reason = reason.replace("negative scores", "costs above 0") if settings.minimise else reason
            agents.add_row(name(row["agent"]), "–", f"[dim]{reason}")
    tasks = Table("task", "agents", "load", "capacity", "price", title="tasks", title_justify="left")
    capacities = solution.capacities
    for j, load in enumerate(solution.loads):
        count = int((solution.assignment == j).sum())
        price = solution.prices[j]
        tasks.add_row(name(solution.tasks[j]), str(count), f"{load:.6g}", f"{capacities[j]:.6g}", f"{price:.6g}")
    console = Console()
    console.print(agents, tasks)
    if solution.routes is not None:
        routes = Table("agent", "route", title="routes", title_justify="left")
        for agent, route in zip(solution.agents, solution.routes, strict=True):
            routes.add_row(name(agent), " → ".join(name(solution.tasks[stop]) for stop in route) or "–")
        console.print(routes)
    procedure = f"{settings.method} ({settings.effort})" if settings.method in ("quad", "routes") else settings.method
    changed = "" if solution.changes is None else f", {solution.changes} changed"
    idle = int((solution.assignment < 0).sum())
    left = f", {idle} of {len(solution.assignment)} without a task" if idle else ""
    took = f"{solution.seconds:.3g} s" if solution.seconds >= 1.0 else f"{solution.seconds * 1e3:.3g} ms"
    objective = solution.objective + 0.0  # never -0
    console.print(
        f"{procedure}: [bold]{solution.status}[/], objective [bold]{objective:.9g}[/], {_describe_gap(solution)}"
        f"{changed}{left}; {took}",
        soft_wrap=True,
    )


def _describe_gap(solution: Answer) -> str:
    """Distance of the objective from the optimum, in words."""
    gap = float(solution.integer_gap)
    if solution.status == "optimal":
        return "which nothing exceeds" if solution.sense == "max" else "and nothing costs less"
    if gap != gap:
        return "no bound is known"
    return f"at most {gap:.2%} {'below' if solution.sense == 'max' else 'above'} the best (bound {solution.bound:.9g})"
