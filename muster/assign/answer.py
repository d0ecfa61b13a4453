"""The Solution of one instance, with its problem, and agents and tasks by name."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.assign.call import as_switch_cost, padded_routes, per_agent_or_pair
from muster.assign.explain import Explanation, explain
from muster.assign.fixed import NamedError
from muster.assign.instance import allowed_pairs, capacities_of, negated
from muster.assign.names import Name, Names, as_assignment
from muster.assign.outcomes import NEGATIVE_SCORES, STATUS_NAMES
from muster.assign.revise import carry_switch_cost, listed, revise
from muster.assign.rows import Row, Rows
from muster.assign.settings import Sense
from muster.assign.solver import REASON_NAMES, Solver
from muster.assign.sparse import SparseProblem, solve_sparse
from muster.assign.stop import stopped_after
from muster.data import Floats, Ints, Problem, Solution
from muster.errors import InputError, UnknownNameError

CHANGES = (
    "without_agents",
    "without_tasks",
    "with_agents",
    "with_tasks",
    "scores",
    "contributions",
    "capacities",
    "minimums",
    "fixed",
    "task_scores",
    "switch_cost",
)
"""Arguments of `Answer.again` beside the solver's settings."""
NOTHING_ALLOWED = "nothing allowed"
"""The reason of an agent of one instance all of whose pairs are forbidden (in a batch: negative scores)."""
DIFFERENCE = ("agent", "from", "to", "score_from", "score_to", "note")


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Solution):
    """Result of `muster.assign`: the Solution of one instance, with its problem."""

    problem: Problem | SparseProblem | None = None
    """The problem solved, [1, N, M], or its allowed pairs where those are few among many."""
    solver: Solver | None = None
    """The solver that was used."""
    names: Names | None = None
    """Names of agents and tasks; None where they were given by number."""
    sense: Sense = "max"
    """Whether scores are maximised, or costs minimised."""
    before: Answer | None = None
    """The answer that this one revises (`again`)."""

    @property
    def agents(self) -> tuple[Name, ...]:
        """Names of the agents, or 0, 1, …"""
        return tuple(range(len(self.assignment))) if self.names is None else self.names.agents

    @property
    def tasks(self) -> tuple[Name, ...]:
        """Names of the tasks, or 0, 1, …"""
        return tuple(range(len(self.loads))) if self.names is None else self.names.tasks

    @property
    def capacities(self) -> Floats:
        """[M] the capacities."""
        return (
            self.problem.capacity if isinstance(self.problem, SparseProblem) else capacities_of(self._dense_problem())
        )

    @property
    def plan(self) -> dict[Name, Name | None]:
        """Each agent's task by name, None for an agent without one."""
        tasks = self.tasks
        return {
            agent: None if j < 0 else tasks[j] for agent, j in zip(self.agents, self.assignment.tolist(), strict=True)
        }

    def table(self) -> Rows:
        """A row for each agent: its task, score and contribution, or the reason why it has none."""
        tasks = self.tasks
        rows: list[Row] = []
        for i, (agent, j, score, use) in enumerate(
            zip(self.agents, self.assignment.tolist(), *self._scores_and_contributions(), strict=True)
        ):
            has = j >= 0
            rows.append(
                {
                    "agent": agent,
                    "task": tasks[j] if has else None,
                    "score": score if has else None,
                    "contribution": use if has else None,
                    "reason": str(self.reasons[i]),
                }
            )
        return Rows(rows, ("agent", "task", "score", "contribution", "reason"))

    def explain(
        self,
        agents: Iterable[Name] | None = None,
        tasks: Iterable[Name] | None = None,
        time_limit: float | None = None,
    ) -> Explanation:
        """Each agent's task, runner-up, margin and price; each unserved task's reason, and what would have it served.

        For some agents and tasks, by name, or for all. Every figure comes from solving again, a few times for each row;
        TimeLimitError if all of that is not done within `time_limit` seconds.
        """
        names = Names(self.agents, self.tasks)
        chosen_agents = range(len(names.agents)) if agents is None else list(map(names.agent, listed("agents", agents)))
        chosen_tasks = range(len(names.tasks)) if tasks is None else list(map(names.task, listed("tasks", tasks)))
        solver, known = replace(self._used_solver(), time_limit=None), (names.agents, names.tasks)
        worth = replace(self, objective=self._sign * self.objective)
        with stopped_after(time_limit):
            why = explain(self._dense_problem(), solver, worth, known, chosen_agents, chosen_tasks)
        return why if self.sense == "max" else why.of_costs()

    def again(
        self,
        *,
        without_agents: Iterable[Name] = (),
        without_tasks: Iterable[Name] = (),
        with_agents: Mapping[Name, Any] | None = None,
        with_tasks: Mapping[Name, Any] | None = None,
        scores: Any = None,
        contributions: Any = None,
        capacities: Any = None,
        minimums: Any = None,
        fixed: Any = None,
        task_scores: Any = None,
        switch_cost: Any = None,
        **settings: Any,
    ) -> Answer:
        """The answer after some changes, with this one as the previous plan; `difference` lists the agents that change.

        Agents and tasks go by name (or number, where they have none). `with_agents` is {agent: {task: score}},
        `with_tasks` {task: {agent: score}}; `scores`, `contributions`, `capacities`, `minimums` and `task_scores` hold,
        by name, the entries that are changed or new. `fixed` {agent: task} adds agents that have to take a task; None
        frees an agent. `switch_cost` stays as it was unless given; `settings` are the solver's (effort, …).
        """
        known = [field.name for field in fields(Solver)]
        for name in settings:
            if name not in known:
                raise UnknownNameError("change or setting for again()", name, [*CHANGES, *known])
        names = Names(self.agents, self.tasks)
        instance = self._dense_problem()
        problem, now = revise(
            instance if self.sense == "max" else negated(instance),
            names,
            without_agents,
            without_tasks,
            {} if with_agents is None else with_agents,
            {} if with_tasks is None else with_tasks,
            scores,
            contributions,
            capacities,
            minimums,
            fixed,
            task_scores,
        )
        problem = problem if self.sense == "max" else negated(problem)
        n, m = len(now.agents), len(now.tasks)
        cost = carry_switch_cost(self._dense_problem(), names, now)
        if switch_cost is not None:
            cost = as_switch_cost(per_agent_or_pair("switch_cost", switch_cost, now, 0.0), n, m)
        before = as_assignment("previous", self.plan, now, n, m)[None]
        problem = replace(problem, previous=before, switch_cost=cost, routes=self._present_routes(names, now))
        return replace(answer(problem, replace(self._used_solver(), **settings), now, self.sense), before=self)

    def _present_routes(self, names: Names, now: Names) -> Ints | None:
        """Present routes by the new numbers, without agents and tasks that are gone."""
        if self.routes is None:
            return None
        called = dict(zip(names.agents, self.routes, strict=True))
        stops = ([names.tasks[stop] for stop in called.get(name, ())] for name in now.agents)
        kept = [[now.task(stop) for stop in route if stop in now.tasks] for route in stops]
        return padded_routes(kept, len(now.agents), len(now.tasks))[None]

    @property
    def difference(self) -> Rows:
        """Agents whose task differs from that of the answer that `again` revised, and agents that are new or gone."""
        if self.before is None:
            raise InputError("there is nothing to differ from; difference is for answers that again() returned")
        old, new = self.before, self
        then = {row["agent"]: row for row in old.table()}
        now = {row["agent"]: row for row in new.table()}
        rows: list[Row] = []
        for agent in dict.fromkeys([*then, *now]):
            was, is_ = then.get(agent), now.get(agent)
            note = "new" if was is None else "gone" if is_ is None else ""
            origin, target = was and was["task"], is_ and is_["task"]
            if note or origin != target:
                cells = (agent, origin, target, was and was["score"], is_ and is_["score"], note)
                rows.append(dict(zip(DIFFERENCE, cells, strict=True)))
        return Rows(rows, DIFFERENCE)

    def _scores_and_contributions(self) -> tuple[list[float], list[float]]:
        """Each agent's score and contribution at its task; NaN or any number where it has none."""
        problem, plan = self.problem, self.assignment
        if isinstance(problem, SparseProblem):
            pair = problem.pair_of(plan)
            return (self._sign * problem.score[pair]).tolist(), problem.use[pair].tolist()
        problem = self._dense_problem()
        if not (plan >= 0).any():  # there may be no task to index
            return [np.nan] * plan.size, [np.nan] * plan.size
        each = np.arange(plan.size)
        use = np.ones(plan.size) if problem.contributions is None else problem.contributions[0, each, plan]
        return (self._sign * problem.scores[0, each, plan]).tolist(), use.tolist()

    @property
    def integer_gap(self) -> Any:
        """Share of the bound by which the objective may fall short of the optimum: 0 is proven optimal."""
        size = max(abs(self.bound), abs(self.objective))
        return self._sign * (self.bound - self.objective) / (size or 1.0) + 0.0

    @property
    def _sign(self) -> float:
        """1, or -1 for costs: the factor from maximised values to reported ones."""
        return 1.0 if self.sense == "max" else -1.0

    def _dense_problem(self) -> Problem:
        if isinstance(self.problem, SparseProblem):
            size = f"{len(self.assignment)} agents and {len(self.loads)} tasks"
            raise InputError(f"a table of pairs among {size} can be solved, not explained or revised; ask about a part")
        if self.problem is None:
            raise InputError("this solution does not know its problem; take one that muster.assign returned")
        return self.problem

    def _used_solver(self) -> Solver:
        assert self.solver is not None, "an answer with a problem has its solver"
        return self.solver


def answer(problem: Problem | SparseProblem, solver: Solver, names: Names | None, sense: Sense = "max") -> Answer:
    """Solve one instance [1, N, M], or one of pairs; with sense "min" its values are reported as costs."""
    try:
        found = _solve_pairs(problem, solver) if isinstance(problem, SparseProblem) else _solve_one(problem, solver)
    except NamedError as error:
        raise error if names is None else error.named(names) from None
    if solver.assign_all and _equal_contributions(problem):
        # All prices contain the penalty for idle agents: report them relative to the cheapest task.
        found["prices"] = found["prices"] - np.minimum.reduce(found["prices"], initial=np.inf)
    if sense == "min":
        for value in ("objective", "relaxed_objective", "bound"):
            found[value] = 0.0 - found[value]
    return Answer(**found, problem=problem, solver=solver, names=names, sense=sense)


def _equal_contributions(problem: Problem | SparseProblem) -> bool:
    use = problem.use if isinstance(problem, SparseProblem) else problem.contributions
    return use is None or use.size == 0 or bool(use.min() == use.max())


def _solve_pairs(problem: SparseProblem, solver: Solver) -> dict[str, Any]:
    """The fields of its Solution."""
    solution = solve_sparse(problem, solver)
    return {field.name: getattr(solution, field.name) for field in fields(Solution)}


def _solve_one(problem: Problem, solver: Solver) -> dict[str, Any]:
    """The fields of its Solution, made directly: that of a batch would take as long as a small instance."""
    started = time.perf_counter()
    out, changes = solver.run(problem)
    routes = None
    if solver.method == "routes":
        routes = [[int(task) for task in route if task >= 0] for route in out.routes[0]]
    objective, relaxed, bound, duality_gap, frank_wolfe_gap = out.values.ravel().tolist()
    return {
        "assignment": out.assignment[0],
        "objective": objective,
        "relaxed_objective": relaxed,
        "bound": bound,
        "status": STATUS_NAMES[out.status.item()],
        "duality_gap": duality_gap,
        "frank_wolfe_gap": frank_wolfe_gap,
        "loads": out.loads[0],
        "prices": out.prices[0],
        "reasons": _reasons(problem, out.reason[0]),
        "seconds": time.perf_counter() - started,
        "routes": routes,
        "changes": None if changes is None else int(changes[0]),
    }


def _reasons(problem: Problem, codes: Ints) -> NDArray[Any]:
    """The reasons in words; an agent without any allowed pair has that reason instead of negative scores."""
    words = REASON_NAMES.take(codes)
    if NEGATIVE_SCORES in codes.tolist():
        words[(codes == NEGATIVE_SCORES) & ~allowed_pairs(problem).any(axis=1)] = NOTHING_ALLOWED
    return words
