"""Explanations of an answer, in numbers that can be checked by solving again.

An agent's margin is what the best plan loses in which it does something else; so its score may fall by that much before
its task is given away, and an agent without a task, or a task without agents, needs a score higher by that much. Where
the procedure proves its optima these numbers are exact; otherwise they are what the procedure itself finds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from muster.assign.instance import minimums_of
from muster.assign.names import Name
from muster.assign.probe import Pair, Probe
from muster.assign.problem import CAPACITY_TOLERANCE
from muster.assign.rows import Row, Rows, text
from muster.assign.solver import Solver
from muster.assign.stop import check_stopped
from muster.data import Floats, Ints, Problem, Solution
from muster.errors import InputError

# How far a score is raised beyond the break-even, as a share of the largest score.
BEYOND = 1e-6
# Pairs that are tried at once, and how many at most where the others have no bound.
TRIED = 6
MOST = 18
# Doublings and halvings where the break-even of one search is not that of the next.
DOUBLINGS, HALVINGS = 30, 8

AGENT_COLUMNS = ("agent", "task", "score", "price", "runner_up", "by", "reason", "needs_score")
TASK_COLUMNS = ("task", "why", "agent", "by", "score", "needs_score", "needs_capacity", "needs_more")


@dataclass(frozen=True, slots=True)
class Explanation:
    """A row for each agent, and one for each task without agents; str() gives them as sentences."""

    agents: Rows
    """agent, task, score, price: its contribution times its task's price; runner_up, by: its task in the best
    plan in which it has another one, and the loss of that plan; without a task, reason and needs_score: the least
    score of the runner-up that would get it in."""
    tasks: Rows
    """task; why: "no agent is allowed", "too few are allowed" (for its minimum; needs_more: what is missing), "no
    capacity" or "worth less"; agent: the one that would serve it, by: the loss of the best
    such plan, score: the agent's now (None, and counted as 0, if it is not allowed); needs_score, needs_capacity:
    the least that would have it served."""

    costs: bool = False
    """Whether scores are costs."""

    def of_costs(self) -> Explanation:
        """The same for costs instead of scores."""
        for row in (*self.agents, *self.tasks):
            for cell in ("score", "needs_score"):
                row[cell] = None if row[cell] is None else 0.0 - row[cell]
        return replace(self, costs=True)

    def __str__(self) -> str:
        said = "\n".join([*map(_agent_sentence, self.agents), *map(_task_sentence, self.tasks)])
        if not self.costs:
            return said
        for word, other in IN_COSTS:
            said = re.sub(word, other, said)
        return said


IN_COSTS = (
    (r"or more\b", "or less"),
    (r"\btoo low\b", "too high"),
    (r"\bscore were higher\b", "cost were lower"),
    (r"\bless in all\b", "more in all"),
    (r"\bis worth (\S+) less\b", r"costs \1 more"),
    (r"\bnegative scores\b", "costs above 0"),
    (r"\bscore\b", "cost"),
)
"""Wording for costs instead of scores."""


def explain(
    problem: Problem,
    solver: Solver,
    solution: Solution,
    names: tuple[Sequence[Name], Sequence[Name]],
    agents: Sequence[int],
    tasks: Sequence[int],
) -> Explanation:
    """Explain the answer for some agents and some tasks, by number; each takes a few solutions more."""
    if solver.method == "routes":
        raise InputError("explanations are for amax, lp and quad: a route's reasons are the other stops")
    case = _Case(problem, solver, solution)
    unserved = [j for j in tasks if not (solution.assignment == j).any()]
    return Explanation(
        Rows([case.agent(i, names) for i in agents], AGENT_COLUMNS),
        Rows([case.task(j, names) for j in unserved], TASK_COLUMNS),
    )


class _Case:
    """An answer with the bounds that limit the search for alternatives."""

    def __init__(self, problem: Problem, solver: Solver, solution: Solution) -> None:
        self.problem, self.solver, self.solution = problem, solver, solution
        self.probe = Probe(problem, solver)
        self.plan = solution.assignment
        self.value = float(solution.objective)
        finite = problem.scores[np.isfinite(problem.scores)]
        self.beyond = BEYOND * (float(np.abs(finite).max()) if finite.size else 1.0)
        self.left_out = int((self.plan < 0).sum())
        # Net value of each pair at the prices, and of each agent's best pair: a plan with a pair is worth at most the
        # dual bound, less what the agent gives up for that pair.
        with np.errstate(invalid="ignore"):
            self.net = np.where(self.probe.allowed, self.probe.scores - self.probe.use * solution.prices, -np.inf)
        self.best = np.maximum(self.net.max(axis=1, initial=-np.inf), 0.0)
        charged = np.flatnonzero(solution.prices > 0.0)
        proven = float((self.probe.capacity[charged] * solution.prices[charged]).sum() + self.best.sum())
        self.bounded = solver.method != "quad" and not solver.assign_all
        self.unproven = proven - self.value

    def agent(self, i: int, names: tuple[Sequence[Name], Sequence[Name]]) -> Row:
        """The row of agent i."""
        j = int(self.plan[i])
        row: Row = dict.fromkeys(AGENT_COLUMNS)
        row.update(agent=names[0][i], reason=str(self.solution.reasons[i]))
        if j >= 0:
            worth, plan = next(self.probe.without([(i, j)]))
            other = int(plan[i])
            row.update(task=names[1][j], score=float(self.problem.scores[0, i, j]))
            row.update(price=float(self.probe.use[i, j] * self.solution.prices[j]))
            row.update(runner_up=names[1][other] if other >= 0 else None, by=self._loss(worth, plan))
            return row
        pairs = [(i, k) for k in np.argsort(-self.net[i], kind="stable") if self.probe.allowed[i, k]]
        pair, loss = self._least(self._within(pairs))
        if pair is not None:
            row.update(runner_up=names[1][pair[1]], by=loss, needs_score=self._needed(pair, loss, _has_task(i)))
        return row

    def task(self, j: int, names: tuple[Sequence[Name], Sequence[Name]]) -> Row:
        """The row of task j, which has no agents."""
        row: Row = dict.fromkeys(TASK_COLUMNS)
        row.update(task=names[1][j], why="worth less")
        pairs = [(int(i), j) for i in np.argsort(self.best - self.net[:, j], kind="stable") if self.probe.allowed[i, j]]
        if not pairs:
            return row | {"why": "no agent is allowed"} | self._if_allowed(j, names[0])
        least = minimums_of(self.problem)[j]
        can_get = float(sum(self.probe.use[pair] for pair in pairs))
        if can_get < least * (1.0 - CAPACITY_TOLERANCE):
            return row | {"why": "too few are allowed", "needs_more": float(least) - can_get}
        case = self
        if not self._within(pairs):
            capacity = self._capacity_for(pairs)
            row.update(why="no capacity", needs_capacity=capacity)
            case = _Case(_with_capacity(self.problem, j, capacity), self.solver, self.solution)
            case.bounded = False
            if case._served(None, _is_served(j)):
                return row
        pair, loss = case._least(case._within(pairs))
        if pair is not None:
            score = float(self.problem.scores[0, pair[0], j])
            needed = case._needed(pair, loss, _is_served(j))
            row.update(agent=names[0][pair[0]], by=loss, score=score, needs_score=needed)
        return row

    def _if_allowed(self, j: int, agents: Sequence[Name]) -> Row:
        """The agent that would take a task which none may take, with the score and, if need be, capacity for it."""
        able = [(int(i), j) for i in np.argsort(self.best, kind="stable") if np.isfinite(self.probe.use[i, j])]
        row: Row = {}
        problem = self.problem
        if able and not self._within(able):
            row["needs_capacity"] = min(float(self.probe.use[pair]) for pair in able)
            problem = _with_capacity(problem, j, row["needs_capacity"])
        case = _Case(_with_allowed(problem, able), self.solver, self.solution)
        pair, loss = case._least(case._within(able))
        if pair is not None:
            case = _Case(_with_allowed(problem, [pair]), self.solver, self.solution)
            needed = case._needed(pair, loss, _is_served(j))
            row.update(agent=agents[pair[0]], by=loss, needs_score=needed)
        return row

    def _within(self, pairs: list[Pair]) -> list[Pair]:
        return [pair for pair in pairs if self.probe.within[pair]]

    def _capacity_for(self, pairs: list[Pair]) -> float:
        """The least capacity that has the task of these pairs served, or lets its least agent in if none does alone."""
        j = pairs[0][1]
        sizes = sorted({float(self.probe.use[pair]) for pair in pairs})
        for capacity in sizes:
            if _Case(_with_capacity(self.problem, j, capacity), self.solver, self.solution)._served(
                None, _is_served(j)
            ):
                return capacity
        return sizes[0]

    def _loss(self, worth: float, plan: Ints) -> float:
        """Value of the answer less that of a plan; infinity if the plan leaves out an agent that has to be assigned."""
        if self.solver.assign_all and int((plan < 0).sum()) > self.left_out:
            return float("inf")
        return max(0.0, self.value - worth)

    def _least(self, pairs: list[Pair]) -> tuple[Pair | None, float]:
        """The pair, the most promising first, whose best plan loses least, and its loss."""
        chosen, least = None, float("inf")
        for begin in range(0, len(pairs), TRIED):
            part = pairs[begin : begin + TRIED]
            promised = float(min(self.best[i] - self.net[i, j] for i, j in part))
            if chosen is not None and (promised - self.unproven >= least if self.bounded else begin >= MOST):
                break
            for pair, (worth, plan) in zip(part, self.probe.given(part), strict=True):
                loss = self._loss(worth, plan)
                if loss < least:
                    chosen, least = pair, loss
        return chosen, least

    def _needed(self, pair: Pair, loss: float, happens: Callable[[Ints], bool]) -> float | None:
        """The least score of a pair at which `happens` holds, found by solving again; None if it never does."""
        score = float(self.problem.scores[0, pair[0], pair[1]])
        rise = loss + self.beyond
        if self._served(_with_score(self.problem, pair, score + rise), happens):
            return score + rise
        low = rise
        for _ in range(DOUBLINGS):
            rise *= 2.0
            if self._served(_with_score(self.problem, pair, score + rise), happens):
                break
            low = rise
        else:
            return None
        for _ in range(HALVINGS):
            middle = 0.5 * (low + rise)
            if self._served(_with_score(self.problem, pair, score + middle), happens):
                rise = middle
            else:
                low = middle
        return score + rise

    def _served(self, problem: Problem | None, happens: Callable[[Ints], bool]) -> bool:
        """Whether `happens` holds in the solution of a problem, by default of this one."""
        assignment = self.solver(self.problem if problem is None else problem).assignment[0]
        check_stopped("the explanation")
        return happens(assignment)


def _has_task(i: int) -> Callable[[Ints], bool]:
    return lambda plan: bool(plan[i] >= 0)


def _is_served(j: int) -> Callable[[Ints], bool]:
    return lambda plan: bool((plan == j).any())


def _with_score(problem: Problem, pair: Pair, score: float) -> Problem:
    scores: Floats = problem.scores.copy()
    scores[0, pair[0], pair[1]] = score
    return replace(problem, scores=scores)


def _with_allowed(problem: Problem, pairs: Sequence[Pair]) -> Problem:
    """The problem with these pairs allowed, at score 0."""
    scores: Floats = problem.scores.copy()
    allowed = None if problem.allowed is None else problem.allowed.copy()
    for i, j in pairs:
        scores[0, i, j] = 0.0
        if allowed is not None:
            allowed[0, i, j] = True
    return replace(problem, scores=scores, allowed=allowed)


def _with_capacity(problem: Problem, j: int, capacity: float) -> Problem:
    shape = problem.scores.shape
    capacities: Floats = np.ones((1, shape[2])) if problem.capacities is None else problem.capacities.copy()
    capacities[0, j] = capacity
    return replace(problem, capacities=capacities)


def _agent_sentence(row: Row) -> str:
    name, by = row["agent"], text(row["by"])
    other = "nothing" if row["runner_up"] is None else row["runner_up"]
    if row["task"] is not None:
        second = "nothing else would do" if row["by"] == float("inf") else f"next best {other}, {by} less in all"
        return f"{name} takes {row['task']} (score {text(row['score'])}, price {text(row['price'])}); {second}"
    if row["runner_up"] is None:
        return f"{name} has no task: {row['reason']}; no task that it may take has capacity for it"
    needed = "" if row["needs_score"] is None else f" with a score of {text(row['needs_score'])} or more"
    return f"{name} has no task: {row['reason']}; it would take {other}{needed}"


def _task_sentence(row: Row) -> str:
    start = f"no agent takes {row['task']}"
    if row["why"] == "no agent is allowed":
        capacity = "" if row["needs_capacity"] is None else f" and a capacity of {text(row['needs_capacity'])}"
        would = f"; {row['agent']} would if it were, with a score of {text(row['needs_score'])} or more{capacity}"
        return f"{start}: no agent is allowed{'' if row['needs_score'] is None else would}"
    if row["why"] == "too few are allowed":
        return f"{start}: it needs {text(row['needs_more'])} more than all who may take it contribute"
    if row["why"] == "worth less" and row["agent"] is None:
        return f"{start}: no plan serves it beside what is fixed"
    score = ""
    if row["agent"] is not None:
        needed = "" if row["needs_score"] is None else f" instead of {text(row['score'])} it would have to be "
        needed += "" if row["needs_score"] is None else text(row["needs_score"])
        score = f"{row['agent']}'s score there is too low by {text(row['by'])}:{needed}" if needed else ""
    if row["why"] == "no capacity":
        enough = f"{start}: its capacity is too small; {text(row['needs_capacity'])} would do"
        return f"{enough} if the score were higher, too: {score}" if row["agent"] is not None else enough
    return f"{start}: the best plan that serves it is worth {text(row['by'])} less{'; ' * bool(score)}{score}"
