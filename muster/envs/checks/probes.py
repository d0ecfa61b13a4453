"""What the checks share: random actions that depend on the episode alone, and comparing what was observed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from muster.data import BatchObservation, Bools, Ints
from muster.envs.padding import BLOCKS
from muster.envs.vector import BatchEnv
from muster.rng import Seeds, episode_seeds

Make = Callable[[int], BatchEnv]
"""Makes a batch of the environment under test, given its size."""

AXES = {name: block.axes.rstrip("F") for name, block in BLOCKS.items()}
AXES |= {"planes": "", "agent_cells": "N", "task_cells": "M"}
"""Which of an array's axes, after the batch, are agents (N) and tasks (M)."""


class FailedCheckError(Exception):
    """A check failed; the message says where."""


class UncheckedError(Exception):
    """A check that cannot be run here; the message says why."""


def require(condition: bool, otherwise: str) -> None:
    """Raise FailedCheckError with the message, unless the condition holds."""
    if not condition:
        raise FailedCheckError(otherwise)


def started(make: Make, n_envs: int) -> BatchEnv:
    """A batch with the same episodes every time."""
    env = make(n_envs)
    slots = np.arange(n_envs)
    env.reset(slots, episode_seeds(0, slots))
    return env


def possible_pairs(observation: BatchObservation) -> Bools:
    """[B, N, M] a live agent, a live task, and not forbidden."""
    pairs = observation.agent_alive[:, :, None] & observation.task_alive[:, None, :]
    return pairs if observation.allowed is None else pairs & observation.allowed


def random_assignment(observation: BatchObservation, rng: np.random.Generator) -> Ints:
    """[B, N] any task that it may take for each agent, or now and then none."""
    pairs = possible_pairs(observation)
    # Above 0, so that a task that takes no agent never ties with one that does.
    wish = (1 - rng.random(pairs.shape)) * pairs
    idle = ~pairs.any(axis=2)
    idle |= rng.random(idle.shape) < 0.1
    return np.where(idle, -1, wish.argmax(axis=-1))


def seeded_assignment(observation: BatchObservation, seeds: Seeds, t: int) -> Ints:
    """A random assignment that depends on each episode's own seed, step and masks alone."""
    rows = []
    for slot, seed in enumerate(seeds):
        rng = np.random.default_rng([int(seed), t])
        rows.append(random_assignment(observation.take(np.array([slot])), rng)[0])
    return np.array(rows)


def digest_episodes(env: BatchEnv, seeds: Seeds, choices: Seeds | None = None, steps: int = 25) -> list[bytes]:
    """Digests of everything observed and earned in the first steps of each episode, to compare.

    The assignments follow from `choices`, or else from the episodes' own seeds.
    """
    choices = seeds if choices is None else choices
    env.reset(np.arange(len(seeds)), seeds)
    logs = [hashlib.blake2b() for _ in seeds]
    for t in range(steps):
        observation = env.observe()
        result = env.step(seeded_assignment(observation, choices, t))
        arrays = [getattr(observation, field.name) for field in fields(observation)] + [*result, env.outcome()]
        for slot, log in enumerate(logs):
            for array in arrays:
                if array is not None:
                    log.update(array[slot].tobytes())
    return [log.digest() for log in logs]


def scribble(observation: BatchObservation) -> None:
    """Overwrite every array that allows it."""
    for field in fields(observation):
        array = getattr(observation, field.name)
        if array is not None and array.flags.writeable:
            array[...] = ~array if array.dtype == np.bool_ else array + 1


def same(one: BatchObservation, other: BatchObservation) -> bool:
    """Are all arrays equal?"""
    return all(_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))


def permuted(observation: BatchObservation, agents: Ints, tasks: Ints) -> BatchObservation:
    """The observation with its agents and tasks renumbered."""
    found = _taken(observation, {"N": agents, "M": tasks})
    if found.previous is None:
        return found
    # Task index -1 stays -1: the last place is what index -1 finds.
    return replace(found, previous=np.append(np.argsort(tasks), -1)[found.previous])


def living_agents(observation: BatchObservation, slot: int) -> tuple[BatchObservation, Ints]:
    """What one slot shows, with masked agents left out, and the indices of those that are left."""
    left = np.flatnonzero(observation.agent_alive[slot])
    return _taken(observation.take(np.array([slot])), {"N": left}), left


def _taken(observation: BatchObservation, order: dict[str, Ints]) -> BatchObservation:
    """An observation of the agents and tasks of these indices, in their order; None: all."""
    arrays: dict[str, Any] = {}
    for field in fields(observation):
        array = getattr(observation, field.name)
        for axis, letter in enumerate(AXES[field.name], start=1):
            if array is not None and letter in order:
                array = np.take(array, order[letter], axis=axis)
        arrays[field.name] = array
    return BatchObservation(**arrays)


def _equal(one: object, other: object) -> bool:
    return one is other or (
        isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
    )
