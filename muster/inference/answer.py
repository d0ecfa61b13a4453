"""The Solution of one instance, with the problem that it answers and the names that it was asked in."""

from __future__ import annotations

from dataclasses import dataclass

from muster.data import Problem, Solution
from muster.errors import InputError
from muster.inference.naming import Name, Names
from muster.inference.rows import Row, Rows
from muster.inference.solver import Solver


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Solution):
    """What `muster.assign` returns: the Solution of one instance, which knows its problem."""

    problem: Problem | None = None
    """What was solved, [1, N, M]."""
    solver: Solver | None = None
    """How."""
    names: Names | None = None
    """What agents and tasks are called; None where they were given by number."""

    @property
    def agents(self) -> tuple[Name, ...]:
        """What the agents are called: their names, or 0, 1, …"""
        return tuple(range(len(self.assignment))) if self.names is None else self.names.agents

    @property
    def tasks(self) -> tuple[Name, ...]:
        """What the tasks are called."""
        return tuple(range(len(self.loads))) if self.names is None else self.names.tasks

    @property
    def plan(self) -> dict[Name, Name | None]:
        """Each agent's task by name, None for none."""
        tasks = self.tasks
        return {
            agent: None if j < 0 else tasks[j] for agent, j in zip(self.agents, self.assignment.tolist(), strict=True)
        }

    def table(self) -> Rows:
        """A row for each agent: its task, score and contribution, or the reason why it has none."""
        problem, tasks = self._asked(), self.tasks
        rows: list[Row] = []
        for i, agent in enumerate(self.agents):
            j = int(self.assignment[i])
            score = float(problem.scores[0, i, j]) if j >= 0 else None
            use = 1.0 if problem.contributions is None else float(problem.contributions[0, i, j])
            rows.append(
                {
                    "agent": agent,
                    "task": tasks[j] if j >= 0 else None,
                    "score": score,
                    "contribution": use if j >= 0 else None,
                    "reason": str(self.reasons[i]),
                }
            )
        return Rows(rows, ("agent", "task", "score", "contribution", "reason"))

    def _asked(self) -> Problem:
        if self.problem is None or self.solver is None:
            raise InputError("this solution does not know its problem; take one that muster.assign returned")
        return self.problem


def answer(problem: Problem, solver: Solver, names: Names | None) -> Answer:
    """Solve one instance [1, N, M]."""
    solution = solver(problem)
    routes = solution.routes
    if routes is not None:
        routes = [[int(task) for task in route if task >= 0] for route in routes[0]]
    return Answer(
        assignment=solution.assignment[0],
        objective=float(solution.objective[0]),  # type: ignore[arg-type]
        relaxed_objective=float(solution.relaxed_objective[0]),  # type: ignore[arg-type]
        bound=float(solution.bound[0]),  # type: ignore[arg-type]
        status=solution.status[0],
        duality_gap=float(solution.duality_gap[0]),  # type: ignore[arg-type]
        frank_wolfe_gap=float(solution.frank_wolfe_gap[0]),  # type: ignore[arg-type]
        loads=solution.loads[0],
        prices=solution.prices[0],
        reasons=solution.reasons[0],
        seconds=solution.seconds,
        routes=routes,
        changes=None if solution.changes is None else int(solution.changes[0]),
        problem=problem,
        solver=solver,
        names=names,
    )
