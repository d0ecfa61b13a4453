"""Checks that seed, assignments and saved state determine an episode: not the slot, the batch or the past."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from muster.envs.checks.probes import Make, UncheckedError, digest_episodes, require, same, seeded_assignment
from muster.envs.env import Env
from muster.envs.history import pack_generator
from muster.envs.singles import BatchOfSingles
from muster.envs.vector import BatchEnv
from muster.errors import MusterError
from muster.rng import episode_seeds


def seeds_decide(make: Make) -> None:
    """The same seeds give the same episodes, and other seeds others."""
    seeds = episode_seeds(1, np.arange(8))
    first, again = digest_episodes(make(8), seeds), digest_episodes(make(8), seeds)
    require(first == again, "the same seed gave two different episodes")
    other = digest_episodes(make(8), episode_seeds(2, np.arange(8)), choices=seeds)
    require(first != other, "different seeds gave the same episodes")


def batch_does_not_matter(make: Make) -> None:
    """An episode is the same alone, in any slot of a batch, and in a slot that was used before."""
    seeds = episode_seeds(3, np.arange(7))
    together = digest_episodes(make(7), seeds)
    for k in (0, 3, 6):
        alone = digest_episodes(make(1), seeds[k : k + 1])[0]
        require(alone == together[k], f"episode {k} of 7 differs when run alone")
    used = make(7)
    digest_episodes(used, episode_seeds(4, np.arange(7)))
    require(digest_episodes(used, seeds) == together, "an episode depends on what was run in its slot before")
    require(digest_episodes(make(7), seeds[::-1].copy())[::-1] == together, "an episode depends on its slot")


def rewards(make: Make) -> None:
    """Rewards are finite, and their sum is the same if the state is saved and restored in between."""
    env = make(2)
    seeds = episode_seeds(5, np.arange(2))
    totals = []
    for interrupted in (False, True):
        env.reset(np.arange(2), seeds)
        total = np.zeros(2)
        for t in range(30):
            if interrupted and t % 7 == 3:
                fresh = make(2)
                fresh.set_state(env.get_state())
                env = fresh
            result = env.step(seeded_assignment(env.observe(), seeds, t))
            require(bool(np.isfinite(result.reward).all()), "a reward is not finite")
            total += result.reward
        totals.append(total)
    require(np.array_equal(totals[0], totals[1]), f"the same episodes earned {totals[0]} and {totals[1]}")


def state_resumes(make: Make) -> None:
    """A state restored in a new batch continues bit for bit as the batch it was saved from."""
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
        for left, right in zip(env.step(assignment), twin.step(assignment), strict=True):
            require(np.array_equal(left, right), f"a step differs {t - 4} steps after restoring")


def copies_are_alike(make: Make) -> None:
    """Every array of a state has a row for each slot; slots with copies of one slot's rows continue alike."""
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
        arrays = [getattr(observation, field.name) for field in fields(observation)]
        alike = all(array is None or bool((array == array[:1]).all()) for array in arrays)
        require(alike, f"copies of one episode differ {t - 5} steps later")
        env.step(np.tile(seeded_assignment(observation, seeds, t)[:1], (3, 1)))


def fresh_numbers(make: Make) -> None:
    """reseed() keeps the present observation and, if the environment is random, changes what follows.

    The same seeds give the same continuation. Unchecked in a custom environment that draws nothing after reset().
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
        require(same(observation, copy.observe()), "fresh random numbers change the present observation")
    before = _generators(env)
    differs = False
    for t in range(5, 65):
        assignment = seeded_assignment(env.observe(), seeds, t)
        _, result, repeated = (each.step(assignment) for each in (env, twin, again))
        observation, other = env.observe(), twin.observe()
        alike = all(np.array_equal(left, right) for left, right in zip(result, repeated, strict=True))
        require(alike and same(other, again.observe()), f"the same fresh seeds gave two episodes, {t - 5} steps later")
        differs |= not same(observation, other)
    random = env.random
    if isinstance(env, BatchOfSingles):
        # The class is random if step() draws numbers, or if it defines redraw().
        random = _generators(env) != before or type(env).single.redraw is not Env.redraw
    if random:
        require(differs, "copies with fresh random numbers go on exactly alike, as if chance had no part: look-ahead "
                "would see the future (redraw() draws anew what reset() has drawn)")  # fmt: skip
    else:
        require(not differs, "fresh random numbers change an environment that says nothing is left to chance")
        if isinstance(env, BatchOfSingles):
            raise UncheckedError(
                "step() draws nothing, and there is no redraw(); define it if reset() draws what is observed later, "
                "such as orders to come, or look-ahead would see the future"
            )


def _generators(env: BatchEnv) -> list[bytes]:
    """States of the generators of a custom environment; empty for other environments."""
    generators = env.generators if isinstance(env, BatchOfSingles) else []
    return [pack_generator(rng).tobytes() for rng in generators]
