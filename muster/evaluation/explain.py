"""Explain a policy's decision: its scores, and the loss of each alternative for an agent.

The loss is exact for the method: the agent is fixed to the other task, all others are assigned again, and the
objectives are compared.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from muster.assign.probe import Probe
from muster.assign.settings import InferenceSettings, Method
from muster.assign.solver import Solver
from muster.custom import is_custom
from muster.data import BatchObservation, Floats, Ints, Problem, Solution
from muster.envs.vector import BatchEnv, Policy
from muster.errors import InputError
from muster.policy.decision import make_problem
from muster.policy.learned import LearnedPolicy
from muster.policy.lookahead import LookAhead

ALTERNATIVES = 8
"""Alternative tasks whose loss is computed: those with the best scores."""


@dataclass(frozen=True, slots=True)
class Scored:
    """An assignment problem and the source of its scores."""

    problem: Problem
    """One instance, B = 1."""
    settings: InferenceSettings
    """The policy's inference."""
    source: str
    """The source of the scores, in words."""
    costs: Floats | None = None
    """[1, M, M] score of going from task to task, for routes; None if there is none."""


def score_decision(policy: Policy, env: BatchEnv, observation: BatchObservation) -> Scored:
    """Scores of a policy in slot 0; for a baseline, the environment's prior or minus the distances."""
    looks_ahead = isinstance(policy, LookAhead)
    if isinstance(policy, LookAhead):
        policy = policy.policy
    if isinstance(policy, LearnedPolicy):
        inputs = policy.read(observation, env.name)
        h, g = policy.score(inputs)
        costs = None if policy.inference.method != "routes" or g is None else np.asarray(g, np.float64)
        source = f"the scores of {policy.name}" + (
            ", which took the best of its candidate rollouts" if looks_ahead else ""
        )
        return Scored(make_problem(inputs, h, g), policy.inference, source, costs)
    settings = InferenceSettings("lp", assign_all=not env.idling)
    if observation.prior is not None:
        source = f"{policy.name} is a baseline without scores; these are what the environment itself suggests"
        return Scored(make_problem(observation, observation.prior, None), settings, source)
    near, between = _minus_distances(env, observation)
    source = f"{policy.name} is a baseline without scores; these say how near each task is (minus the distance)"
    return Scored(make_problem(observation, near, None), settings, source, between)


def _minus_distances(env: BatchEnv, observation: BatchObservation) -> tuple[Floats, Floats]:
    """Minus distances [1, N, M] agent to task and [1, M, M] task to task: Chebyshev on a grid, else Euclidean."""
    if observation.agent_cells is not None and observation.task_cells is not None:
        agents, tasks = observation.agent_cells[:1], observation.task_cells[:1]
        distances = [np.abs(a[:, :, None] - tasks[:, None]).max(-1) for a in (agents, tasks)]
    else:
        scene = env.renderer().scene(0)
        agents, tasks = np.asarray(scene.agents)[None], np.asarray(scene.tasks)[None]
        distances = [np.linalg.norm(a[:, :, None] - tasks[:, None], axis=-1) for a in (agents, tasks)]
    return -distances[0].astype(np.float64), -distances[1].astype(np.float64)


def solve(scored: Scored, method: Method | None, threads: int = 1) -> tuple[Solution, InferenceSettings]:
    """Solve the scores by a method, or by the policy's own if None; the solution and the settings used."""
    settings = scored.settings
    problem = scored.problem
    if method is not None and method != settings.method:
        # routes has no efforts "paper" and "exact", which a policy may have for quad.
        effort = "fast" if method == "routes" else settings.effort
        settings = dataclasses.replace(settings, method=method, effort=effort)
    if settings.method == "routes":
        if scored.costs is None:
            raise InputError(
                "method: routes are made of what it costs to go from task to task, which these scores do not say"
            )
        problem = dataclasses.replace(problem, task_scores=scored.costs)
    solver = dataclasses.replace(Solver.of(settings, threads), certify=True)
    return solver(problem), settings


def explain(scored: Scored, method: Method | None, agent: int | None = None) -> dict[str, Any]:
    """Scores, assignment, prices and loads as JSON values; with `agent`, also the loss of its alternatives."""
    problem = scored.problem
    solution, settings = solve(scored, method)
    _, n, m = problem.scores.shape
    rows = zip(problem.scores[0].tolist(), _possible(problem).tolist(), strict=True)
    answer: dict[str, Any] = {
        "source": scored.source,
        "method": settings.method,
        "own_method": scored.settings.method,
        "assign_all": settings.assign_all,
        "scores": [[finite(x) if ok else None for x, ok in zip(*row, strict=True)] for row in rows],
        "assignment": plain_assignment(solution.assignment[0]),
        "objective": finite(solution.objective[0]),
        "bound": finite(solution.bound[0]),
        "status": solution.status[0],
        "prices": [finite(price) for price in solution.prices[0]],
        "loads": [finite(load) for load in solution.loads[0]],
        "capacities": [1.0] * m if problem.capacities is None else [finite(c) for c in problem.capacities[0]],
        "contributions": _contributions(problem),
        "reasons": {str(i): reason for i, reason in enumerate(solution.reasons[0]) if reason},
        "agent_alive": [True] * n if problem.agent_alive is None else problem.agent_alive[0].tolist(),
        "task_alive": [True] * m if problem.task_alive is None else problem.task_alive[0].tolist(),
    }
    if solution.routes is not None:
        answer["routes"] = [[int(task) for task in route if task >= 0] for route in solution.routes[0]]
    if agent is not None:
        if not 0 <= agent < n:
            raise InputError(f"agent must be from 0 to {n - 1}, got {agent}")
        answer["agent"] = agent
        answer["alternatives"] = alternatives(scored, settings, solution, agent)
    return answer


def alternatives(scored: Scored, settings: InferenceSettings, base: Solution, agent: int) -> list[dict[str, Any]]:
    """For each other task of the agent: the `loss` in objective, and the other agents' changes (`moves`).

    Empty for routes, where an agent's first task depends on its later ones, and for custom inference, which cannot fix
    an agent to a task.
    """
    if settings.method == "routes" or is_custom(settings.method):
        return []
    # A Probe reads `allowed` but not who is alive, so that goes into `allowed`.
    allowed = _possible(scored.problem)[None]
    problem = dataclasses.replace(scored.problem, allowed=allowed, agent_alive=None, task_alive=None)
    current = int(base.assignment[0, agent])
    solver = Solver.of(settings, threads=1)
    probe = Probe(problem, solver)
    scores = problem.scores[0, agent]
    others = [int(task) for task in np.flatnonzero(probe.allowed[agent] & probe.within[agent]) if task != current]
    others = sorted(others, key=lambda task: (-scores[task], task))[:ALTERNATIVES]
    plans = list(zip(others, probe.given([(agent, task) for task in others]), strict=True))
    # With assign_all, idling is not an alternative.
    if current >= 0 and not settings.assign_all:
        plans.append((-1, _without(problem, solver, agent)))
    entries = []
    for task, (objective, plan) in plans:
        changed = [int(i) for i in np.flatnonzero(plan != base.assignment[0]) if i != agent]
        entry: dict[str, Any] = {"task": _task(task), "score": None if task < 0 else finite(scores[task])}
        entry["loss"] = finite(base.objective[0] - objective)
        entry["moves"] = [[i, _task(base.assignment[0, i]), _task(plan[i])] for i in changed]
        entries.append(entry)
    return entries


def _without(problem: Problem, solver: Solver, agent: int) -> tuple[float, Ints]:
    """Objective and assignment of the plan without the agent."""
    alive = np.ones(problem.scores.shape[:2], np.bool_)
    alive[0, agent] = False
    solution = solver(dataclasses.replace(problem, agent_alive=alive))
    return float(solution.objective[0]), solution.assignment[0]


def _possible(problem: Problem) -> Any:
    """[N, M] True for pairs that are allowed, alive and of finite score."""
    possible = np.isfinite(problem.scores[0])
    for mask, axis in ((problem.agent_alive, 1), (problem.task_alive, 0)):
        if mask is not None:
            possible &= np.expand_dims(mask[0], axis)
    return possible if problem.allowed is None else possible & problem.allowed[0]


def _contributions(problem: Problem) -> Any:
    """[N, M] contributions; None if all are 1."""
    if problem.contributions is None or (problem.contributions == 1).all():
        return None
    return [[finite(x) for x in row] for row in problem.contributions[0]]


def finite(value: float) -> float | None:
    """The number; None for infinity and NaN, which JSON does not have."""
    value = float(value)
    return value if value - value == 0.0 else None


def plain_assignment(assignment: Ints) -> list[int | None]:
    """[N] task of each agent, None for unassigned."""
    return [_task(task) for task in assignment]


def _task(task: Any) -> int | None:
    return None if task < 0 else int(task)
