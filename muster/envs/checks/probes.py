"""Tools of the checks: random assignments that depend on the episode alone, comparing and renumbering observations."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from muster.data import BatchObservation, Ints
from muster.envs.padding import BLOCKS
from muster.envs.vector import BatchEnv, Policy
from muster.rng import Seeds, episode_seeds

Make = Callable[[int], BatchEnv]
"""Makes a batch of the environment under test, given its size."""

AXES = {name: block.axes.rstrip("F") for name, block in BLOCKS.items()}
AXES |= {"planes": "", "agent_cells": "N", "task_cells": "M"}
"""Axes of each array of an observation after the batch: agents (N) and tasks (M)."""


class FailedCheckError(Exception):
    """A check failed; the message says where."""


class UncheckedError(Exception):
    """A check that cannot be run on this environment; the message says why."""


def require(condition: bool, message: str) -> None:
    """Raise FailedCheckError unless the condition holds."""
    if not condition:
        raise FailedCheckError(message)


def started(make: Make, n_envs: int) -> BatchEnv:
    """A new batch, reset to the same episodes every time."""
    env = make(n_envs)
    slots = np.arange(n_envs)
    env.reset(slots, episode_seeds(0, slots))
    return env


def try_baseline(env: BatchEnv, policy: Policy, steps: int = 1) -> None:
    """Decide by a baseline of the environment, and carry it out; raises what is wrong with it."""
    slots = np.arange(env.n_envs)
    env.reset(slots, episode_seeds(0, slots))
    policy.reset(slots, episode_seeds(0, slots))
    for _ in range(steps):
        env.step(policy.act(env.observe()))


def random_assignment(observation: BatchObservation, rng: np.random.Generator) -> Ints:
    """[B, N] a random possible task for each agent; none with probability 0.1, or if there is none."""
    pairs = observation.pairs
    # Weights in (0, 1], so that an impossible pair never ties with a possible one.
    weights = (1 - rng.random(pairs.shape)) * pairs
    idle = ~pairs.any(axis=2)
    idle |= rng.random(idle.shape) < 0.1
    return np.where(idle, -1, weights.argmax(axis=-1))


def seeded_assignment(observation: BatchObservation, seeds: Seeds, t: int) -> Ints:
    """[B, N] random assignments that depend only on each episode's seed, step and masks."""
    rows = []
    for slot, seed in enumerate(seeds):
        rng = np.random.default_rng([int(seed), t])
        rows.append(random_assignment(observation.take(np.array([slot])), rng)[0])
    return np.array(rows)


def digest_episodes(env: BatchEnv, seeds: Seeds, choices: Seeds | None = None) -> list[bytes]:
    """Hashes of observations, rewards and outcomes in the first 25 steps of each episode.

    The assignments follow from `choices`, or else from the episodes' own seeds.
    """
    choices = seeds if choices is None else choices
    env.reset(np.arange(len(seeds)), seeds)
    logs = [hashlib.blake2b() for _ in seeds]
    for t in range(25):
        observation = env.observe()
        result = env.step(seeded_assignment(observation, choices, t))
        arrays = [getattr(observation, field.name) for field in fields(observation)] + [*result, env.outcome()]
        for slot, log in enumerate(logs):
            for array in arrays:
                if array is not None:
                    log.update(array[slot].tobytes())
    return [log.digest() for log in logs]


def scribble(observation: BatchObservation) -> None:
    """Overwrite every writeable array of an observation."""
    for field in fields(observation):
        array = getattr(observation, field.name)
        if array is not None and array.flags.writeable:
            array[...] = ~array if array.dtype == np.bool_ else array + 1


def same(left: BatchObservation, right: BatchObservation) -> bool:
    """Whether all arrays are equal."""
    return all(_equal(getattr(left, field.name), getattr(right, field.name)) for field in fields(left))


def permuted(observation: BatchObservation, agents: Ints, tasks: Ints) -> BatchObservation:
    """The observation with its agents and tasks renumbered."""
    renumbered = _take(observation, {"N": agents, "M": tasks})
    if renumbered.previous is None:
        return renumbered
    # The last entry is what index -1, no task, becomes.
    return replace(renumbered, previous=np.append(np.argsort(tasks), -1)[renumbered.previous])


def living_agents(observation: BatchObservation, slot: int) -> tuple[BatchObservation, Ints]:
    """The observation of one slot without masked agents, and the indices of the others."""
    alive = np.flatnonzero(observation.agent_alive[slot])
    return _take(observation.take(np.array([slot])), {"N": alive}), alive


def _take(observation: BatchObservation, order: dict[str, Ints]) -> BatchObservation:
    """The observation of the agents ("N") and tasks ("M") of these indices, in their order; all if not named."""
    arrays: dict[str, Any] = {}
    for field in fields(observation):
        array = getattr(observation, field.name)
        for axis, letter in enumerate(AXES[field.name], start=1):
            if array is not None and letter in order:
                array = np.take(array, order[letter], axis=axis)
        arrays[field.name] = array
    return BatchObservation(**arrays)


def _equal(left: object, right: object) -> bool:
    return left is right or (
        isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and np.array_equal(left, right, equal_nan=True)
    )
