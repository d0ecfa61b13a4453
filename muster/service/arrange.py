"""Situations that the page arranges: objects where they were dragged to, and what a policy decides there."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from muster.assign.settings import Method
from muster.envs.scene import as_places
from muster.envs.size import resized
from muster.errors import InputError
from muster.evaluation.explain import explain, plain_assignment, score_decision
from muster.evaluation.packing import around, stage_json
from muster.policy.learned import LearnedPolicy
from muster.rng import episode_seeds
from muster.service.act import as_situation, check_shape
from muster.service.environments import Environments
from muster.service.episodes import EpisodeBody
from muster.service.schema import Body, Index, LimitRow, Rows

MOST_OBJECTS = 400


class Arrangement(Body):
    """Where agents and tasks are: x and y of each."""

    env: str
    policy: str
    agents: Rows
    tasks: Rows
    capacities: LimitRow | None = None
    method: Method | None = None
    agent: Index | None = None


def begin(body: EpisodeBody, environments: Environments) -> dict[str, Any]:
    """Where agents and tasks are when an episode begins: something to drag."""
    env = environments.make(body.env)
    env.reset(np.arange(1), episode_seeds(body.seed, np.arange(1)))
    scene = env.renderer().scene(0)
    agents, tasks = as_places("agents", scene.agents), as_places("tasks", scene.tasks)
    seen = env.observe()
    alive = seen.task_alive[0][: len(tasks)]
    capacities = np.where(np.isfinite(seen.capacities[0]), seen.capacities[0], 0)[: len(tasks)]
    bounds = scene.stage.bounds or around(np.concatenate([agents, tasks]))
    return {
        "env": env.name,
        "stage": stage_json(scene.stage, bounds) | {"follows": False},
        "agents": np.round(agents[seen.agent_alive[0][: len(agents)]], 3).tolist(),
        "tasks": np.round(tasks[alive], 3).tolist(),
        "capacities": np.round(capacities[alive], 3).tolist(),
    }


def decide(body: Arrangement, environments: Environments) -> dict[str, Any]:
    """What a policy decides in a situation, explained; and the request to /act that has the same answer."""
    n, m = len(body.agents), len(body.tasks)
    for name, found in (("agents", body.agents), ("tasks", body.tasks)):
        if len(found) and found.shape[1:] != (2,):
            raise InputError(f"{name} must have x and y each, got {list(found.shape)}")
        if len(found) > MOST_OBJECTS:
            raise InputError(f"{name} are at most {MOST_OBJECTS} here, got {len(found)}")
    if body.agent is not None and body.agent >= n:
        raise InputError(f"agent must be from 0 to {n - 1}, got {body.agent}")
    # Its own checks first: the text decides what is made.
    environments.make(body.env)
    env = environments.make(resized(body.env, n, m))
    policy = environments.find_policy(body.policy, env)
    env.renderer().arrange(0, body.agents, body.tasks)
    seen = env.observe()
    if body.capacities is not None:
        check_shape(body.capacities, (m,), "capacities")
        if (body.capacities < 0).any():
            raise InputError(f"capacities must not be negative, got {body.capacities.min():g}")
        seen = dataclasses.replace(seen, capacities=body.capacities[None])
    answer = explain(score_decision(policy, env, seen), body.method, body.agent)
    if isinstance(policy, LearnedPolicy):
        answer["played"] = answer["assignment"]
    else:
        policy.reset(np.arange(1), np.zeros(1, np.uint64))
        answer["played"] = plain_assignment(policy.act(seen)[0])
    scene = env.renderer().scene(0)
    for name, shown, looks in (("agent", scene.agents, scene.agent_looks), ("task", scene.tasks, scene.task_looks)):
        placed = as_places(f"{name}s", shown)
        answer[f"{name}s"] = np.round(placed, 3).tolist()
        answer[f"{name}_looks"] = np.broadcast_to(looks, len(placed)).tolist()
    served = environments.policies.now.get(body.policy)
    if served is not None:
        answer["act"] = {"policy": served.name, "situation": as_situation(served, seen)}
    return answer
