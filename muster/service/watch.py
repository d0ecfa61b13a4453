"""The page's own routes: episodes, explanations, situations that it arranges, training runs.

They change with the page; the service's other routes are in the OpenAPI document.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field
from starlette.routing import Route

from muster.assign.settings import InferenceSettings, Method
from muster.data import Problem
from muster.envs.scene import as_places
from muster.envs.size import resized
from muster.errors import InputError
from muster.evaluation import runs
from muster.evaluation.explain import Scored, explain, plain_assignment, score_decision
from muster.evaluation.packing import around, pack, stage_json
from muster.policy.learned import LearnedPolicy
from muster.rng import episode_seeds
from muster.service.act import as_situation, check_shape
from muster.service.episodes import Environments, Episodes
from muster.service.schema import Body, Index, LimitRow, Rows, Table
from muster.service.solve import check_size

if TYPE_CHECKING:
    from muster.service.app import Service

SLOW = "this took too long; choose a smaller environment, or fewer rollouts"
MAX_OBJECTS = 400
"""Agents or tasks of a situation that the page arranges."""


class EpisodeBody(Body):
    """The episode of a seed."""

    env: str
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


class FilmBody(EpisodeBody):
    """One or two policies on one episode."""

    policies: Annotated[list[str], Field(min_length=1, max_length=2)]


class UnderstandBody(EpisodeBody):
    """One decision of an episode."""

    policy: str
    step: Index
    method: Method | None = None
    agent: Index | None = None


class Arrangement(Body):
    """A situation: x and y of each agent and task."""

    env: str
    policy: str
    agents: Rows
    tasks: Rows
    capacities: LimitRow | None = None
    method: Method | None = None
    agent: Index | None = None


class ExplainBody(Body):
    """A table of scores."""

    scores: Table
    contributions: Rows | None = None
    capacities: LimitRow | None = None
    method: Method = "lp"
    assign_all: bool = False
    agent: Index | None = None


class CurveBody(Body):
    """A run."""

    run: str


def watch_routes(service: Service) -> list[Route]:
    """The routes, on one service's policies and threads."""
    environments = Environments(service.settings, service.policies)
    episodes, folder = Episodes(environments), service.settings.runs

    def show_runs() -> dict[str, Any]:
        found = list(map(without_path, runs.read_runs(folder)))
        return {"folder": str(folder), "runs": found, "command": runs.train_command(folder)}

    def show_films(body: FilmBody, deadline: float) -> dict[str, Any]:
        films = []
        for policy in body.policies:
            episode = episodes.find(body.env, body.seed, policy, deadline)
            with episode.lock:
                films.append(episode.film)
        return pack(films)

    def understand(body: UnderstandBody, deadline: float) -> dict[str, Any]:
        episode = episodes.find(body.env, body.seed, body.policy, deadline)
        with episode.lock:
            scored = score_decision(episode.policy, episode.env, episode.observe(body.step))
        check_agent(body.agent, episode.env.n_agents)
        answer = explain(scored, body.method, body.agent)
        return answer | {"played": plain_assignment(episode.replay.assignments[body.step])}

    limit = service.settings.size_limit
    get = {
        "environments": service.get(lambda: {"environments": environments.as_json()}),
        "runs": service.get(show_runs),
    }
    post = {
        "curve": service.post(CurveBody, lambda body, _: without_path(runs.read_curve(folder, body.run)), SLOW),
        "episode": service.post(FilmBody, show_films, SLOW),
        "understand": service.post(UnderstandBody, understand, SLOW),
        "begin": service.post(EpisodeBody, lambda body, _: begin(body, environments), SLOW),
        "situation": service.post(Arrangement, lambda body, _: arrange(body, environments), SLOW),
        "explain": service.post(ExplainBody, lambda body, _: explain_table(body, limit), SLOW),
    }
    routes = [Route(f"/watch/{name}", handle) for name, handle in get.items()]
    return routes + [Route(f"/watch/{name}", handle, methods=["POST"]) for name, handle in post.items()]


def begin(body: EpisodeBody, environments: Environments) -> dict[str, Any]:
    """The places of agents and tasks at the start of an episode."""
    env = environments.make(body.env)
    env.reset(np.arange(1), episode_seeds(body.seed, np.arange(1)))
    scene, observation = env.renderer().scene(0), env.observe()
    agents, tasks = as_places("agents", scene.agents), as_places("tasks", scene.tasks)
    alive = observation.task_alive[0][: len(tasks)]
    capacities = np.where(np.isfinite(observation.capacities[0]), observation.capacities[0], 0)[: len(tasks)]
    bounds = scene.stage.bounds or around(np.concatenate([agents, tasks]))
    return {
        "env": env.name,
        "stage": stage_json(scene.stage, bounds) | {"follows": False},
        "agents": np.round(agents[observation.agent_alive[0][: len(agents)]], 3).tolist(),
        "tasks": np.round(tasks[alive], 3).tolist(),
        "capacities": np.round(capacities[alive], 3).tolist(),
    }


def arrange(body: Arrangement, environments: Environments) -> dict[str, Any]:
    """A policy's decision in a situation, explained, and the body of /act that has the same answer."""
    n, m = len(body.agents), len(body.tasks)
    for name, places in (("agents", body.agents), ("tasks", body.tasks)):
        if len(places) and places.shape[1:] != (2,):
            raise InputError(f"{name} must have x and y each, got {list(places.shape)}")
        if len(places) > MAX_OBJECTS:
            raise InputError(f"{name} are at most {MAX_OBJECTS} here, got {len(places)}")
    check_agent(body.agent, n)
    # Before its size is changed: the name must be one that the page may run.
    environments.make(body.env)
    env = environments.make(resized(body.env, n, m))
    policy = environments.find_policy(body.policy, env)
    env.renderer().arrange(0, body.agents, body.tasks)
    observation = env.observe()
    if body.capacities is not None:
        check_shape(body.capacities, (m,), "capacities")
        if (body.capacities < 0).any():
            raise InputError(f"capacities must not be negative, got {body.capacities.min():g}")
        observation = dataclasses.replace(observation, capacities=body.capacities[None])
    answer = explain(score_decision(policy, env, observation), body.method, body.agent)
    if isinstance(policy, LearnedPolicy):
        answer["played"] = answer["assignment"]
    else:
        policy.reset(np.arange(1), np.zeros(1, np.uint64))
        answer["played"] = plain_assignment(policy.act(observation)[0])
    scene = env.renderer().scene(0)
    for name, drawn, looks in (("agent", scene.agents, scene.agent_looks), ("task", scene.tasks, scene.task_looks)):
        places = as_places(f"{name}s", drawn)
        answer[f"{name}s"] = np.round(places, 3).tolist()
        answer[f"{name}_looks"] = np.broadcast_to(looks, len(places)).tolist()
    if served := environments.policies.now.get(body.policy):
        answer["act"] = {"policy": served.name, "situation": as_situation(served, observation)}
    return answer


def explain_table(body: ExplainBody, size_limit: int) -> dict[str, Any]:
    """The assignment of a table of scores, explained."""
    n, m = body.scores.shape
    check_size(n, m, size_limit)
    check_agent(body.agent, n)
    if body.method == "routes":
        raise InputError("method: a table of scores says nothing of going from task to task, so there are no routes")
    limits = {"capacities": np.ones(m)} | body.given("capacities", "contributions")
    problem = Problem(body.scores[None], **{name: value[None] for name, value in limits.items()})
    settings = InferenceSettings(body.method, assign_all=body.assign_all)
    return explain(Scored(problem, settings, "the scores of the table"), None, body.agent)


def check_agent(agent: int | None, n: int) -> None:
    """Refuse the number of an agent that there is not."""
    if agent is not None and agent >= n:
        raise InputError(f"agent must be from 0 to {n - 1}, got {agent}")


def without_path(run: dict[str, Any]) -> dict[str, Any]:
    """The description of a run, with whether it has a policy in place of the path."""
    return {**run, "policy": bool(run["policy"])}
