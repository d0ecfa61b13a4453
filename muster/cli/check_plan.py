"""`muster check-plan`: feasibility and value of a plan, and a better plan if there is one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import tyro

from muster.assign.as_json import verdict_as_json
from muster.assign.settings import Method
from muster.cli.problem_files import ProblemFlags, read_csv
from muster.errors import InputError


@dataclass(frozen=True)
class CheckPlan(ProblemFlags):
    """Check an assignment: feasible or not, which constraint it breaks, its value, and what a better plan changes."""

    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """The problem as for `muster solve`; a JSON object may hold the plan as `assignment`: a task (or null) for each
    agent, or a task by agent; - reads JSON from standard input."""
    plan: str | None = None
    """CSV with the columns agent and task, such as `muster solve --out` writes."""
    method: Method = "quad"
    """Objective of the plan and of the better one: amax, lp (within capacities) or quad (with task-task scores)."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Print the verdict; exit with status 1 if a constraint is broken."""
        problem = self.read(extra=("assignment",))
        assignment, task_scores_on = problem.pop("assignment", None), problem.pop("task_scores_on")
        if (assignment is None) == (self.plan is None):
            raise InputError("give the plan once: as 'assignment' in the problem's JSON, or as --plan FILE.csv")
        if self.plan is not None:
            assignment = read_csv(self.plan, "a table with the columns agent and task", ("agent", "task"))
        from muster.assign import check_plan

        verdict = check_plan(
            problem,
            assignment,
            method=self.method,
            effort=self.effort,
            assign_all=self.assign_all,
            time_limit=self.time_limit,
            task_scores_on=task_scores_on,
            sense="min" if self.minimise else "max",
        )
        print(json.dumps(verdict_as_json(verdict), allow_nan=False) if self.json else verdict)
        if not verdict.feasible:
            raise SystemExit(1)
