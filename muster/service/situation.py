"""Situations that the page arranges: objects where they were dragged to, and what a policy decides there."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import numpy as np

from muster.assign.settings import Method
from muster.envs.scene import as_places
from muster.envs.size import resized
from muster.errors import InputError
from muster.evaluation.explain import explain, plain_assignment, score_decision
from muster.evaluation.packing import around, stage_json
from muster.policy.learned import LearnedPolicy
from muster.rng import episode_seeds
from muster.service.act import as_situation
from muster.service.body import plain, read_array, read_integer
from muster.service.environments import Environments

MOST_OBJECTS = 400


def begin(data: dict[str, Any], environments: Environments) -> dict[str, Any]:
    """Where agents and tasks are when an episode begins: something to drag."""
    env = environments.make(data.get("env"))
    seed = read_integer(data.get("seed", 0), "seed", 0, 2**31 - 1)
    env.reset(np.arange(1), episode_seeds(seed, np.arange(1)))
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


def decide(data: dict[str, Any], environments: Environments) -> dict[str, Any]:
    """What a policy decides in a situation, explained; and the request to /act that has the same answer."""
    positions = {}
    for name in ("agents", "tasks"):
        found = positions[name] = read_array(data.get(name), name, (None, None))
        if len(found) and found.shape[1:] != (2,):
            raise InputError(f"{name} must have x and y each, got {list(found.shape)}")
        if len(found) > MOST_OBJECTS:
            raise InputError(f"{name} are at most {MOST_OBJECTS} here, got {len(found)}")
    agents, tasks = positions["agents"], positions["tasks"]
    # Its own checks first: the text decides what is made.
    environments.make(data.get("env"))
    env = environments.make(resized(str(data.get("env")), len(agents), len(tasks)))
    policy = environments.find_policy(data.get("policy"), env)
    env.renderer().arrange(0, agents, tasks)
    seen = env.observe()
    if data.get("capacities") is not None:
        capacities = read_array(data["capacities"], "capacities", (len(tasks),), null=np.inf)
        if (capacities < 0).any():
            raise InputError(f"capacities must not be negative, got {capacities.min():g}")
        seen = dataclasses.replace(seen, capacities=capacities[None])
    agent = data.get("agent")
    chosen = None if agent is None else read_integer(agent, "agent", 0, len(agents) - 1)
    answer = explain(score_decision(policy, env, seen), read_method(data), chosen)
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
    served = environments.policies.now.get(str(data.get("policy")))
    if served is not None:
        answer["act"] = {"policy": served.name, "situation": as_situation(served, seen)}
    return answer


def read_method(data: dict[str, Any]) -> Method | None:
    """The procedure that was asked for; None for the policy's own."""
    method: Method | None = plain(data.get("method"))
    if method is not None and method not in get_args(Method):
        raise InputError(f"method is one of {', '.join(get_args(Method))}, got {method!r:.40}")
    return method
