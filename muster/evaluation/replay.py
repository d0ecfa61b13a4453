"""Replays: one recorded episode of any environment.

Seed and assignments determine an episode; with a hash of the final state, running it again verifies it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.registry import make
from muster.envs.renderer import Renderer
from muster.envs.scene import Scene, checked
from muster.envs.vector import BatchEnv, Policy, Step
from muster.errors import InputError
from muster.policy.names import resolve
from muster.rng import episode_seeds
from muster.rollout import act_with, reset, rollout
from muster.storage import check_regular

FORMAT = "muster-replay-2"


@dataclass(frozen=True, slots=True)
class Replay:
    """A recorded episode that can be run again."""

    env: str
    """The environment string, settings included."""
    policy: str
    seed: int
    """Seed of the set of episodes, whose first one this is."""
    assignments: Ints
    """[T, N]"""
    rewards: list[float]
    outcome: float
    metric: str
    truncated: bool
    hash: str
    """Hash of the final state: see `state_hash`."""

    def as_dict(self) -> dict[str, Any]:
        """The content of a .json replay."""
        names = ("env", "policy", "seed", "metric", "outcome", "truncated", "hash")
        return {
            "format": FORMAT,
            **{name: getattr(self, name) for name in names},
            "assignments": self.assignments.tolist(),
            "rewards": self.rewards,
        }

    @classmethod
    def load(cls, path: str | Path) -> Replay:
        """Read a .json replay; raises InputError for another kind of file, or a damaged one."""
        check_regular(Path(path))
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"cannot read the replay {str(path)!r}: {error}") from None
        kind = data.get("format") if isinstance(data, dict) else None
        if kind != FORMAT:
            older = isinstance(kind, str) and kind.startswith(("muster-replay", "muster-battle-replay"))
            hint = f" but of the format {kind}; record it again with this version" if older else ""
            raise InputError(f"{str(path)!r} is no replay of the format {FORMAT}{hint}")
        try:
            return cls._from_dict(data)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"the replay {str(path)!r} is damaged: {type(error).__name__} {error}") from None

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Replay:
        for name, kind in (("env", str), ("policy", str), ("seed", int), ("metric", str), ("hash", str)):
            if not isinstance(data[name], kind):
                raise TypeError(f"{name} is {data[name]!r}")
        assignments = np.array(data["assignments"])
        if assignments.ndim != 2 or not np.issubdtype(assignments.dtype, np.integer):
            raise ValueError("assignments are not a list of equally long lists of whole numbers")
        rewards = [float(reward) for reward in data["rewards"]]
        if len(rewards) != len(assignments):
            raise ValueError(f"{len(rewards)} rewards for {len(assignments)} assignments")
        return cls(
            env=data["env"],
            policy=data["policy"],
            seed=data["seed"],
            assignments=assignments.astype(np.int64),
            rewards=rewards,
            outcome=float(data["outcome"]),
            metric=data["metric"],
            truncated=bool(data["truncated"]),
            hash=data["hash"],
        )

    def steps(self, env: BatchEnv) -> Iterator[Step]:
        """Run the episode again in slot 0 of `env`, yielding each step's result."""
        n_agents = self.assignments.shape[1]
        if n_agents != env.n_agents:
            raise InputError(f"a replay of {n_agents} agents cannot run in {env.name}, which has {env.n_agents}")
        env.reset(np.arange(1), episode_seeds(self.seed, np.arange(1)))
        actions: Ints = np.full((env.n_envs, env.n_agents), -1, np.int64)
        for assignment in self.assignments:
            actions[0] = assignment
            yield env.step(actions)

    def verify(self, env: BatchEnv | None = None) -> bool:
        """Whether running it again ends at the last assignment, in the same final state.

        `env` is needed if `make(self.env)` cannot build the environment.
        """
        env = env or make(self.env)
        ends = [bool(step.terminated[0] or step.truncated[0]) for step in self.steps(env)]
        return ends == [False] * (len(ends) - 1) + [True] and state_hash(env) == self.hash


def state_hash(env: BatchEnv, slot: int = 0) -> str:
    """SHA-256 of the state of the episode in `slot`."""
    digest = hashlib.sha256()
    for name, array in sorted(env.get_state().items()):
        digest.update(f"{name} {array.dtype} {array[slot].shape} ".encode())
        digest.update(np.ascontiguousarray(array[slot]).tobytes())
    return digest.hexdigest()


def record(
    policy: str | Policy, env: str | BatchEnv, seed: int = 0, before_each: Callable[[], None] | None = None
) -> Replay:
    """Record the first episode of the set that `seed` names, in slot 0.

    `before_each` is called before each decision and may stop the episode by raising.
    """
    env = make(env) if isinstance(env, str) else env
    bound = resolve(policy, env)
    slots = np.arange(env.n_envs)
    reset(env, bound, slots, episode_seeds(seed, slots))
    assignments, rewards = [], []
    truncated = False
    act = act_with(bound, env)

    def act_unless_stopped(observation: BatchObservation) -> Ints:
        if before_each:
            before_each()
        return act(observation)

    for transition in rollout(env, act_unless_stopped, slots == 0):
        assignments.append(np.array(transition.action[0]))
        rewards.append(float(transition.result.reward[0]))
        truncated = bool(transition.result.truncated[0])
    return Replay(
        env=env.name,
        policy=bound.name,
        seed=seed,
        assignments=np.array(assignments),
        rewards=rewards,
        outcome=float(env.outcome()[0]),
        metric=env.metric,
        truncated=truncated,
        hash=state_hash(env),
    )


def ending(replay: Replay, env: BatchEnv) -> str:
    """The ending and metrics of the episode that `env` has just run, in words."""
    steps = len(replay.assignments)
    if replay.metric in ("return", "agreement"):
        words = f"{replay.metric} {replay.outcome:.2f} after {steps} decisions"
    elif replay.truncated:
        words = f"hit the step limit of {env.max_steps}"
    elif replay.metric == "win_rate":
        words = f"{'won' if replay.outcome else 'lost'} after {steps} decisions"
    else:
        words = f"done in {steps} steps"
    metrics = (f"{name.replace('_', ' ')} {values[0]:.4g}" for name, values in env.metrics().items())
    return ", ".join([words, *metrics])


@dataclass(frozen=True, slots=True)
class Moment:
    """The scene before a decision, or at the end."""

    scene: Scene
    agent_alive: Bools
    """[N] of the scene, else of the observation."""
    task_alive: Bools
    """[M]"""
    task_ids: Ints | None
    """[M] ids, if the environment reuses task indices."""


@dataclass(frozen=True, slots=True)
class Film:
    """The moments of an episode of T decisions."""

    replay: Replay
    moments: list[Moment]
    """T + 1 moments, the last one the end."""
    loads: Floats
    """[T, M] assigned contributions as a share of the capacity."""
    crowded: Bools
    """[T, M] whether the capacity would be used up even without one of the task's agents."""
    ending: str
    """The ending of the episode, in words."""
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


def moment(renderer: Renderer, observation: BatchObservation) -> Moment:
    """The present moment of slot 0."""
    env = renderer.env
    scene = checked(renderer.scene(0), env.n_agents, env.n_tasks, env.name)
    return Moment(
        scene,
        _alive(scene.agent_alive, len(np.asarray(scene.agents)), observation.agent_alive[0]),
        _alive(scene.task_alive, len(np.asarray(scene.tasks)), observation.task_alive[0]),
        None if observation.task_ids is None else observation.task_ids[0],
    )


def shares(observation: BatchObservation, slot: int, assignment: Ints) -> tuple[Floats, Bools]:
    """[M] loads and `crowded` of an assignment [N], as in `Film`."""
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
    """[K] mask of the scene, else of the observation; False for objects beyond the `count` in the scene."""
    alive = np.zeros(len(observed), np.bool_)
    alive[:count] = observed[:count] if shown is None else np.asarray(shown, np.bool_)
    return alive
