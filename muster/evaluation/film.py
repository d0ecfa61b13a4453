"""An episode as scenes: what a viewer needs to show it, beside who decided what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.registry import make
from muster.envs.renderer import Renderer
from muster.envs.scene import Scene, checked
from muster.envs.vector import BatchEnv
from muster.evaluation.replay import Replay, ending
from muster.rng import episode_seeds


@dataclass(frozen=True, slots=True)
class Moment:
    """What there is before a decision."""

    scene: Scene
    agent_alive: Bools
    """[N] as observed, or as the scene says."""
    task_alive: Bools
    """[M]"""
    task_ids: Ints | None
    """[M] who is in each place, where places are used again."""


@dataclass(frozen=True, slots=True)
class Film:
    """The moments of an episode of T decisions."""

    replay: Replay
    moments: list[Moment]
    """T + 1: the last one is the end."""
    loads: Floats
    """[T, M] contributions that each task is assigned, as a share of its capacity."""
    crowded: Bools
    """[T, M] whether a task would be filled even without one of its agents."""
    ending: str
    """In words."""
    seconds_per_step: float


def film(replay: Replay, env: BatchEnv | None = None) -> Film:
    """Run a replay again in slot 0 and keep its scenes."""
    env = env or make(replay.env)
    env.reset(np.arange(1), episode_seeds(replay.seed, np.arange(1)))
    observation = env.observe()
    renderer = env.renderer()
    moments, loads, crowded = [moment(renderer, observation)], [], []
    for assignment, _ in zip(replay.assignments, replay.steps(env), strict=True):
        load, crowd = shares(observation, 0, assignment)
        loads.append(load)
        crowded.append(crowd)
        observation = env.observe()
        moments.append(moment(renderer, observation))
    return Film(replay, moments, np.array(loads), np.array(crowded), ending(replay, env), renderer.seconds_per_step)


def moment(renderer: Renderer, observation: BatchObservation, slot: int = 0) -> Moment:
    """What there is to see now."""
    env = renderer.env
    scene = checked(renderer.scene(slot), env.n_agents, env.n_tasks, env.name)
    return Moment(
        scene,
        _alive(scene.agent_alive, len(np.asarray(scene.agents)), observation.agent_alive[slot]),
        _alive(scene.task_alive, len(np.asarray(scene.tasks)), observation.task_alive[slot]),
        None if observation.task_ids is None else observation.task_ids[slot],
    )


def shares(observation: BatchObservation, slot: int, assignment: Ints) -> tuple[Floats, Bools]:
    """[M] how full an assignment [N] makes each task, and whether it would be full with one agent less."""
    total, least = np.zeros(observation.task_alive.shape[1]), np.full(observation.task_alive.shape[1], np.inf)
    for agent in np.flatnonzero(assignment >= 0):
        task = assignment[agent]
        part = observation.contributions[slot, agent, task]
        total[task] += part
        least[task] = min(least[task], part)
    capacity = np.maximum(observation.capacities[slot], 1e-9)
    crowded = np.isfinite(least) & (total - np.where(np.isfinite(least), least, 0) >= capacity * (1 - 1e-9))
    return np.where(np.isfinite(capacity), total / capacity, 0.0), crowded


def _alive(shown: object, count: int, observed: Bools) -> Bools:
    """[K] padded to what the environment may have; objects that the scene does not place are not there."""
    alive = np.zeros(len(observed), np.bool_)
    alive[:count] = observed[:count] if shown is None else np.asarray(shown, np.bool_)
    return alive
