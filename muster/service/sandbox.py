"""Situations of the page's own making: objects where they were dragged to, and what a policy makes of them."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import numpy as np

from muster.assign.settings import Method
from muster.data import BatchObservation, Ints
from muster.envs.scene import as_places
from muster.envs.vector import Policy
from muster.errors import InputError
from muster.evaluation.packing import around, stage_json
from muster.policy.learned import LearnedPolicy
from muster.rng import episode_seeds
from muster.service import reading
from muster.service.served import Served
from muster.service.understanding import explain, judge, plain
from muster.service.worlds import Worlds, sized

MOST_OBJECTS = 400


def begin(data: dict[str, Any], worlds: Worlds) -> dict[str, Any]:
    """Where everyone stands at the start of an episode: something to drag."""
    env = worlds.make(data.get("env"))
    seed = whole(data.get("seed", 0), "seed", 0, 2**31 - 1)
    env.reset(np.arange(1), episode_seeds(seed, np.arange(1)))
    scene = env.renderer().scene(0)
    agents, tasks = as_places("agents", scene.agents), as_places("tasks", scene.tasks)
    seen = env.observe()
    there = seen.task_alive[0][: len(tasks)]
    capacities = np.where(np.isfinite(seen.capacities[0]), seen.capacities[0], 0)[: len(tasks)]
    bounds = scene.stage.bounds or around(np.concatenate([agents, tasks]))
    return {
        "env": env.name,
        "stage": stage_json(scene.stage, bounds) | {"follows": False},
        "agents": np.round(agents[seen.agent_alive[0][: len(agents)]], 3).tolist(),
        "tasks": np.round(tasks[there], 3).tolist(),
        "capacities": np.round(capacities[there], 3).tolist(),
    }


def decide(data: dict[str, Any], worlds: Worlds) -> dict[str, Any]:
    """What a policy makes of a situation, explained; and the request to /act that has the same answer."""
    agents = reading.matrix(data.get("agents"), "agents")
    tasks = reading.matrix(data.get("tasks"), "tasks")
    for name, places in (("agents", agents), ("tasks", tasks)):
        if len(places) and places.shape[1:] != (2,):
            raise InputError(f"{name} must have x and y each, got {list(places.shape)}")
        if len(places) > MOST_OBJECTS:
            raise InputError(f"{name} are at most {MOST_OBJECTS} here, got {len(places)}")
    # Its own checks first: the text decides what is made.
    worlds.make(data.get("env"))
    env = worlds.make(sized(str(data.get("env")), len(agents), len(tasks)))
    policy = worlds.player(data.get("policy"), env)
    env.renderer().arrange(0, agents, tasks)
    seen = env.observe()
    if data.get("capacities") is not None:
        capacities = reading.vector(data["capacities"], "capacities", len(tasks), null=np.inf)
        if (capacities < 0).any():
            raise InputError(f"capacities must not be negative, got {capacities.min():g}")
        seen = dataclasses.replace(seen, capacities=capacities[None])
    agent = data.get("agent")
    answer = explain(
        judge(policy, env, seen),
        method_of(data),
        None if agent is None else whole(agent, "agent", 0, len(agents) - 1),
    )
    answer["played"] = answer["assignment"] if isinstance(policy, LearnedPolicy) else plain(_ask(policy, seen))
    scene = env.renderer().scene(0)
    for name, found, looks in (("agent", scene.agents, scene.agent_looks), ("task", scene.tasks, scene.task_looks)):
        places = as_places(f"{name}s", found)
        answer[f"{name}s"] = np.round(places, 3).tolist()
        answer[f"{name}_looks"] = np.broadcast_to(looks, len(places)).tolist()
    served = worlds.policies.get(str(data.get("policy")))
    if served is not None:
        answer["act"] = {"policy": served.name, "situation": as_situation(served, seen)}
    return answer


def _ask(policy: Policy, seen: BatchObservation) -> Ints:
    policy.reset(np.arange(1), np.zeros(1, np.uint64))
    return policy.act(seen)[0]


def method_of(data: dict[str, Any]) -> Method | None:
    """The procedure that was asked for; None for the policy's own."""
    method = data.get("method")
    if method is not None and method not in get_args(Method):
        raise InputError(f"method is one of {', '.join(get_args(Method))}, got {method!r:.40}")
    return method


def whole(value: Any, name: str, low: int, high: int) -> int:
    """A whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(f"{name} must be a whole number from {low} to {high}, got {value!r:.40}")
    return value


def as_situation(served: Served, seen: BatchObservation) -> dict[str, Any]:
    """What is observed in slot 0 as /act takes it: in the policy's own feature names."""
    names, spec = served.features, served.policy.spec
    unread = {"prior": not spec.reads_prior, "task_prior": not spec.task_prior}

    def rows(features: Any, labels: tuple[str, ...]) -> list[dict[str, float]]:
        return [dict(zip(labels, map(float, row), strict=True)) for row in features[0]]

    def blocks(features: Any, labels: tuple[str, ...]) -> dict[str, Any]:
        return {label: features[0, :, :, k].astype(float).tolist() for k, label in enumerate(labels)}

    found: dict[str, Any] = {"agents": rows(seen.agent_features, names.agent)}
    found["tasks"] = rows(seen.task_features, names.task)
    for key, features, labels in (
        ("pairs", seen.pair_features, names.pair),
        ("task_pairs", seen.task_pair_features, names.task_pair),
    ):
        if labels:
            found[key] = blocks(features, labels)
    if names.global_ and seen.global_features is not None:
        found["global"] = dict(zip(names.global_, map(float, seen.global_features[0]), strict=True))
    found["capacities"] = [None if np.isinf(c) else float(c) for c in seen.capacities[0]]
    for key in ("contributions", "allowed", "prior", "task_prior", "switch_cost"):
        value = getattr(seen, key)
        if value is not None and not unread.get(key):
            found[key] = value[0].tolist()
    if seen.previous is not None:
        found["previous"] = plain(seen.previous[0])
    return found
