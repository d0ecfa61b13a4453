"""Checks of the contract: each takes a function that makes a batch, and raises FailedCheckError where it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation
from muster.envs.checks.probes import (
    FailedCheckError,
    Make,
    UncheckedError,
    digest_episodes,
    permuted,
    possible_pairs,
    random_assignment,
    require,
    same,
    scribble,
    seeded_assignment,
    started,
)
from muster.envs.env import Env
from muster.envs.history import pack_generator
from muster.envs.identity import Ids, tasks_now
from muster.envs.padding import BLOCKS, observation_of
from muster.envs.scene import Scene
from muster.envs.singles import BatchOfSingles
from muster.envs.vector import BatchEnv, Step
from muster.errors import InputError, MusterError
from muster.rng import episode_seeds

Check = Callable[[Make], None]
PATIENCE = 200
"""Steps of random actions in which there must be something to decide."""


def shapes_and_types(make: Make) -> None:
    """Every array has its shape and dtype; numbers are finite; the step's arrays are [B]."""
    env = started(make, 3)
    n_envs, n, m = env.n_envs, env.n_agents, env.n_tasks
    rng = np.random.default_rng(0)
    for _ in range(5):
        observation = env.observe()
        for name, block in BLOCKS.items():
            array = getattr(observation, name)
            if array is not None:
                sizes = {"N": n, "M": m, "F": None}
                expect(name, array, (n_envs, *(sizes[axis] for axis in block.axes)), block.kind)
                finite = block.kind not in (np.float32, np.float64) or name == "capacities" or np.isfinite(array).all()
                require(bool(finite), f"{name} holds a number that is not finite")
        if observation.planes is not None:
            expect("planes", observation.planes, (n_envs, None, None, None), np.float32)
        stays = not env.agents_stay or bool(observation.agent_alive.all())
        require(stays, "an agent is not alive, though agents_stay says that all are")
        require(bool((observation.contributions >= 0).all()), "a contribution is negative")
        require(bool((observation.capacities >= 0).all()), "a capacity is negative")
        if observation.minimums is not None:
            closed = ~observation.task_alive | (observation.capacities == 0)
            require(bool((observation.minimums >= 0).all()), "a minimum is negative")
            fine = closed | (observation.minimums <= observation.capacities)
            require(bool(fine.all()), "a minimum is above its task's capacity")
        result = env.step(random_assignment(observation, rng))
        for name, kind in (("reward", np.floating), ("terminated", np.bool_), ("truncated", np.bool_)):
            array = getattr(result, name)
            require(array.shape == (n_envs,), f"{name} has shape {array.shape}, not {(n_envs,)}")
            require(np.issubdtype(array.dtype, kind), f"{name} has dtype {array.dtype}")
    require(env.outcome().shape == (n_envs,), f"outcome has shape {env.outcome().shape}, not {(n_envs,)}")


def masks(make: Make) -> None:
    """Sooner or later some agent may take some task; no task for anyone is a legal choice; a foreign one is not."""
    env = started(make, 3)
    env.step(np.full((3, env.n_agents), -1))
    # Below -1 an environment may have actions of its own.
    try:
        env.step(np.full((3, env.n_agents), env.n_tasks))
    except InputError:
        pass
    else:
        raise FailedCheckError(f"step takes the task {env.n_tasks}, though tasks are 0 to {env.n_tasks - 1}")
    env, rng = started(make, 3), np.random.default_rng(0)
    steps = min(env.max_steps, PATIENCE)
    for _ in range(steps):
        observation = env.observe()
        if possible_pairs(observation).any():
            return
        env.step(random_assignment(observation, rng))
    why = "`allowed` forbids every pair" if observation.allowed is not None else "no agent or no task is alive"
    raise FailedCheckError(f"in 3 episodes of {steps} steps there is nothing to decide: {why}")


def forbidden_is_not_done(make: Make) -> None:
    """A masked agent, or one sent where `allowed` forbids, stays without a task, or the step is refused."""
    env, twin, rng = started(make, 3), started(make, 3), np.random.default_rng(0)
    for t in range(min(env.max_steps, 40)):
        observation = env.observe()
        forbidden = observation.task_alive[:, None, :] & ~possible_pairs(observation)
        agents = forbidden.any(axis=2)
        assignment = random_assignment(observation, rng)
        wrong = np.where(agents, forbidden.argmax(axis=2), assignment)
        try:
            one = env.step(wrong)
        except InputError:
            return
        two = twin.step(np.where(agents, -1, assignment))
        fine = all(np.array_equal(left, right) for left, right in zip(one, two, strict=True))
        require(fine and same(env.observe(), twin.observe()), f"a forbidden pair is carried out at step {t}")


def ids_tell_apart(make: Make) -> None:
    """No id twice at once; `previous` names the task that the agent was given last, wherever the two are now."""
    env, rng = started(make, 3), np.random.default_rng(0)
    before, given, running = env.observe(), None, np.ones(3, np.bool_)
    if before.previous is None:
        return
    for t in range(min(env.max_steps, 60)):
        observation = env.observe()
        assert observation.previous is not None
        for name in ("agent_ids", "task_ids"):
            ids = getattr(observation, name)
            twice = ids is not None and any(len(set(row[row >= 0])) < (row >= 0).sum() for row in ids)
            require(not twice, f"{name} holds the same id twice at step {t}")
        expected = (
            np.full_like(observation.previous, -1)
            if given is None
            else tasks_now(given, _ids(before), _ids(observation))
        )
        differs = (observation.previous >= 0) & (observation.previous != expected) & running[:, None]
        require(not differs.any(), f"previous is not the task that was given, or has become, at step {t}")
        before, given = observation, random_assignment(observation, rng)
        result = env.step(given)
        running &= ~(result.terminated | result.truncated)


def _ids(observation: BatchObservation) -> Ids:
    return Ids(observation.agent_ids, observation.task_ids)


def seeds_decide(make: Make) -> None:
    """The same seed gives the same episode, and another seed another one."""
    seeds = episode_seeds(1, np.arange(8))
    first, again = digest_episodes(make(8), seeds), digest_episodes(make(8), seeds)
    require(first == again, "the same seed gave two different episodes")
    other = digest_episodes(make(8), episode_seeds(2, np.arange(8)), choices=seeds)
    require(first != other, "different seeds gave the same episodes")


def batch_does_not_matter(make: Make) -> None:
    """An episode is the same alone, in any slot of any batch, and in a slot that was used before."""
    seeds = episode_seeds(3, np.arange(7))
    together = digest_episodes(make(7), seeds)
    for k in (0, 3, 6):
        require(
            digest_episodes(make(1), seeds[k : k + 1])[0] == together[k], f"episode {k} of 7 differs when run alone"
        )
    used = make(7)
    digest_episodes(used, episode_seeds(4, np.arange(7)))
    require(digest_episodes(used, seeds) == together, "an episode depends on what was run in its slot before")
    require(digest_episodes(make(7), seeds[::-1].copy())[::-1] == together, "an episode depends on its slot")


def endings(make: Make) -> None:
    """Terminated and truncated never together; truncated exactly at the limit; then the slot stands still, reward 0."""
    env = started(make, 4)
    rng = np.random.default_rng(0)
    running = np.ones(4, np.bool_)
    steps = np.zeros(4, np.int64)
    outcome, earned = np.zeros(4), np.zeros(4)
    for _ in range(env.max_steps):
        before = env.observe()
        result = env.step(random_assignment(before, rng))
        steps += running
        earned += result.reward
        require(not (result.terminated & result.truncated)[running].any(), "an episode ended in both ways at once")
        require(not result.reward[~running].any(), "an ended episode still gives reward")
        early = result.truncated & running & (steps != env.max_steps)
        require(not early.any(), f"truncated before the limit of {env.max_steps} steps")
        ended = running & (result.terminated | result.truncated)
        said = np.array_equal(env.running(), running & ~ended) or type(env).running is BatchEnv.running
        require(said, f"running() says {env.running()} where {running & ~ended} is true")
        outcome[ended] = env.outcome()[ended]
        after = env.observe()
        for name in ("agent_features", "task_features", "agent_alive", "task_alive"):
            still = np.array_equal(getattr(before, name)[~running], getattr(after, name)[~running])
            require(still, f"{name} changes after the episode ended")
        running &= ~ended
        if not running.any():
            break
    require(not running.any(), f"an episode goes on after max_steps = {env.max_steps}")
    env.step(random_assignment(env.observe(), rng))
    require(np.array_equal(outcome, env.outcome()), "the outcome changes after the episode ended")
    if env.metric == "steps":
        require(np.array_equal(outcome, steps), f"metric 'steps' counts {outcome}, but {steps} steps were taken")
    elif env.metric in ("return", "agreement"):
        close = np.allclose(outcome, earned, rtol=1e-9, atol=1e-9)
        require(close, f"metric {env.metric!r} gives {outcome}, but the rewards add up to {earned}")
    else:
        require(bool(np.isin(outcome, (0, 1)).all()), f"metric 'win_rate' gives {outcome}, not 0 or 1")


def rewards(make: Make) -> None:
    """Rewards are finite, and what an episode earns does not depend on saving or on the company it is in."""
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


def nothing_mutated(make: Make) -> None:
    """Observing changes nothing; a step leaves its argument, earlier observations, scenes and states alone."""
    env = started(make, 3)
    rng, renderer = np.random.default_rng(0), env.renderer()
    for _ in range(4):
        if isinstance(env, BatchOfSingles):
            _looking_changes_nothing(env)
        first, second = env.observe(), env.observe()
        require(same(first, second), "observing twice gives two different observations")
        scribble(second)
        second = env.observe()
        require(same(first, second), "writing to an observation changes the environment")
        scene = renderer.scene(0)
        shown = _arrays_of(scene)
        assignment = random_assignment(first, rng)
        given = assignment.copy()
        env.step(assignment)
        require(np.array_equal(assignment, given), "step changes the assignment it is given")
        require(same(first, second), "a step changes an observation made before it")
        for name, array in _arrays_of(scene).items():
            require(np.array_equal(array, shown[name]), f"a step changes {name!r} of a scene made before it")
        kept = env.get_state()
        copies = {name: array.copy() for name, array in kept.items()}
        env.step(random_assignment(env.observe(), rng))
        for name, array in kept.items():
            require(np.array_equal(array, copies[name]), f"a step changes {name!r} of a state saved before it")


def _arrays_of(scene: Scene) -> dict[str, NDArray[Any]]:
    """Copies of all that a scene shows."""
    arrays = {field.name: getattr(scene, field.name) for field in fields(scene) if field.name not in ("text", "stage")}
    return {name: np.array(array) for name, array in arrays.items() if array is not None}


def _looking_changes_nothing(env: BatchOfSingles) -> None:
    """A user's observe() may be called at any time, or not at all."""
    generators = [pack_generator(rng) for rng in env.generators]
    once, again = ([single.observe() for single in env.singles] for _ in range(2))
    require(
        same(observation_of(once), observation_of(again)), "observe() called twice gives two different observations"
    )
    drawn = any((pack_generator(rng) != was).any() for rng, was in zip(env.generators, generators, strict=True))
    require(not drawn, "observe() draws random numbers, so that looking changes the episode; draw them in step()")


def numbering_does_not_matter(make: Make) -> None:
    """Renumber agents and tasks: the observation and the assignment are renumbered, nothing else changes."""
    rng = np.random.default_rng(7)
    env, twin = started(make, 3), started(make, 3)
    agents, tasks = rng.permutation(env.n_agents), rng.permutation(env.n_tasks)
    if not twin.permute(agents, tasks):
        raise UncheckedError("this environment does not offer permute()")
    # Task index -1 stays -1: the last place of `renumbered` is what index -1 finds.
    renumbered = np.append(np.argsort(tasks), -1)
    for t in range(20):
        observation, other = env.observe(), twin.observe()
        require(
            same(permuted(observation, agents, tasks), other), f"the observation is not just renumbered at step {t}"
        )
        assignment = random_assignment(observation, rng)
        one, two = env.step(assignment), twin.step(renumbered[assignment[:, agents]])
        for name, left, right in zip(Step._fields, one, two, strict=True):
            close = np.allclose(left, right, rtol=1e-9, atol=1e-12)
            require(close, f"{name} depends on the numbering at step {t}: {left} and {right}")


def expect(name: str, array: NDArray[Any], shape: tuple[int | None, ...], kind: type) -> None:
    """An array has that shape (None: any size) and dtype."""
    fits = array.ndim == len(shape) and all(want in (None, size) for want, size in zip(shape, array.shape, strict=True))
    require(fits, f"{name} has shape {array.shape}, not {tuple('any' if s is None else s for s in shape)}")
    require(array.dtype == kind, f"{name} has dtype {array.dtype}, not {np.dtype(kind)}")


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


CHECKS: dict[str, Check] = {
    "shapes and types": shapes_and_types,
    "masks": masks,
    "what is forbidden is not done": forbidden_is_not_done,
    "ids tell apart": ids_tell_apart,
    "seeds decide": seeds_decide,
    "the batch does not matter": batch_does_not_matter,
    "endings": endings,
    "rewards add up": rewards,
    "nothing is mutated": nothing_mutated,
    "a saved state resumes": state_resumes,
    "copies are alike": copies_are_alike,
    "fresh random numbers": fresh_numbers,
    "the numbering does not matter": numbering_does_not_matter,
}
