"""Checks of saved states: they resume, their copies are alike, and with fresh random numbers they are not."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from muster.envs.checks.probes import Make, UncheckedError, require, same, seeded_assignment
from muster.envs.env import Env
from muster.envs.history import pack_generator
from muster.envs.singles import BatchOfSingles
from muster.envs.vector import BatchEnv
from muster.errors import MusterError
from muster.rng import episode_seeds


def state_resumes(make: Make) -> None:
    """Saved, restored elsewhere, and continued: bit for bit the same."""
    env, seeds = make(3), episode_seeds(6, np.arange(3))
    env.reset(np.arange(3), seeds)
    for t in range(4):
        env.step(seeded_assignment(env.observe(), seeds, t))
    state, twin = env.get_state(), make(3)
    twin.set_state(state)
    for t in range(4, 40):
        observation = env.observe()
        require(same(observation, twin.observe()), f"the observation differs {t - 4} steps after restoring")
        assignment = seeded_assignment(observation, seeds, t)
        for one, other in zip(env.step(assignment), twin.step(assignment), strict=True):
            require(np.array_equal(one, other), f"a step differs {t - 4} steps after restoring")


def copies_are_alike(make: Make) -> None:
    """Every array of a state has a row a slot; a slot's rows copied to the others make them go on as it does."""
    env, seeds = make(3), episode_seeds(8, np.arange(3))
    env.reset(np.arange(3), seeds)
    for t in range(5):
        env.step(seeded_assignment(env.observe(), seeds, t))
    state = env.get_state()
    for name, array in state.items():
        require(len(array) == 3 if array.ndim else False, f"{name!r} of the state has no row for each slot")
    env.set_state({name: array[[1, 1, 1]] for name, array in state.items()})
    for t in range(5, 20):
        observation = env.observe()
        alike = all(
            array is None or bool((array == array[:1]).all())
            for array in (getattr(observation, field.name) for field in fields(observation))
        )
        require(alike, f"copies of one episode differ {t - 5} steps later")
        env.step(np.tile(seeded_assignment(observation, seeds, t)[:1], (3, 1)))


def fresh_numbers(make: Make) -> None:
    """Copies with fresh random numbers show what was observation before, and go on otherwise: where chance has a part.

    The same seeds give the same copies.
    """
    batch = 8
    env, seeds = make(batch), episode_seeds(9, np.arange(batch))
    env.reset(np.arange(batch), seeds)
    try:
        env.reseed(seeds)
    except MusterError as why:
        raise UncheckedError(str(why)) from None
    env.reset(np.arange(batch), seeds)
    for t in range(5):
        env.step(seeded_assignment(env.observe(), seeds, t))
    state, observation = env.get_state(), env.observe()
    twin, again = make(batch), make(batch)
    for copy in (twin, again):
        copy.set_state(state)
        copy.reseed(episode_seeds(10, np.arange(batch)))
        require(same(observation, copy.observe()), "fresh random numbers change what is observation now")
    before = _generators(env)
    differs = False
    for t in range(5, 65):
        assignment = seeded_assignment(env.observe(), seeds, t)
        results = [one.step(assignment) for one in (env, twin, again)]
        observation, other, third = env.observe(), twin.observe(), again.observe()
        alike = all(np.array_equal(one, two) for one, two in zip(results[1], results[2], strict=True))
        require(alike and same(other, third), f"the same fresh seeds gave two episodes, {t - 5} steps later")
        differs |= not same(observation, other)
    random = env.random
    if isinstance(env, BatchOfSingles):
        # Numbers that are drawn in step() must be other ones; those of redraw() are why it is there.
        random = _generators(env) != before or type(env).single.redraw is not Env.redraw
    if random:
        require(differs, "copies with fresh random numbers go on exactly alike, as if chance had no part: look-ahead "
                "would see the future (redraw() draws anew what reset() has drawn)")  # fmt: skip
    else:
        require(not differs, "fresh random numbers change an environment that says nothing is left to chance")


def _generators(env: BatchEnv) -> list[bytes]:
    """What the generators of a user's objects are about to draw."""
    found = env.generators if isinstance(env, BatchOfSingles) else []
    return [pack_generator(rng).tobytes() for rng in found]
