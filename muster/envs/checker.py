"""The laws that every environment obeys, so that whatever learns, evaluates or replays can rely on them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from muster.data import Ints, Observation
from muster.envs.base import BatchEnv, Step
from muster.errors import InputError
from muster.rng import Seeds, episode_seeds

Make = Callable[[int], BatchEnv]
"""Makes a batch of the environment under test, given its size."""

SPEED_SECONDS = 0.5


class BrokenLawError(Exception):
    """A law does not hold; the message says where."""


class UncheckedError(Exception):
    """A law that cannot be tried here; the message says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one law."""

    law: str
    status: Literal["holds", "broken", "unchecked", "measured"]
    detail: str = ""


def check(env: str | Make) -> list[Finding]:
    """Try every law on an environment string, or on a function that makes a batch of a given size."""
    make = _named(env) if isinstance(env, str) else env
    findings = [_try(law, holds, make) for law, holds in LAWS.items()]
    if not any(finding.status == "broken" for finding in findings):
        findings.append(Finding("speed", "measured", speed(make)))
    return findings


def _named(env: str) -> Make:
    from muster.envs.registry import make

    # An environment string that is wrong is the caller's mistake, not a broken law.
    make(env)
    return lambda n_envs: make(env, n_envs)


def _try(law: str, holds: Callable[[Make], None], make: Make) -> Finding:
    try:
        holds(make)
    except BrokenLawError as broken:
        return Finding(law, "broken", str(broken))
    except UncheckedError as why:
        return Finding(law, "unchecked", str(why))
    except Exception as error:
        return Finding(law, "broken", f"{type(error).__name__}: {error}")
    return Finding(law, "holds")


def shapes_and_types(make: Make) -> None:
    """Every array has its shape and dtype; numbers are finite; the step's arrays are [B]."""
    env = started(make, 3)
    n_envs, n, m = env.n_envs, env.n_agents, env.n_tasks
    rng = np.random.default_rng(0)
    for _ in range(5):
        seen = env.observe()
        expect(seen, "agent_features", (n_envs, n, None), np.float32)
        expect(seen, "task_features", (n_envs, m, None), np.float32)
        expect(seen, "pair_features", (n_envs, n, m, None), np.float32)
        expect(seen, "task_pair_features", (n_envs, m, m, None), np.float32)
        expect(seen, "agent_alive", (n_envs, n), np.bool_)
        expect(seen, "task_alive", (n_envs, m), np.bool_)
        expect(seen, "contributions", (n_envs, n, m), np.float64)
        expect(seen, "capacities", (n_envs, m), np.float64)
        if seen.planes is not None:
            expect(seen, "planes", (n_envs, None, None, None), np.float32)
        for name in ("agent_features", "task_features", "pair_features", "task_pair_features", "contributions"):
            require(bool(np.isfinite(getattr(seen, name)).all()), f"{name} holds a number that is not finite")
        require(bool((seen.contributions >= 0).all()), "a contribution is negative")
        require(bool((seen.capacities >= 0).all()), "a capacity is negative")
        result = env.step(random_assignment(seen, rng))
        for name, kind in (("reward", np.floating), ("terminated", np.bool_), ("truncated", np.bool_)):
            array = getattr(result, name)
            require(array.shape == (n_envs,), f"{name} has shape {array.shape}, not {(n_envs,)}")
            require(np.issubdtype(array.dtype, kind), f"{name} has dtype {array.dtype}")
    require(env.outcome().shape == (n_envs,), f"outcome has shape {env.outcome().shape}, not {(n_envs,)}")


def masks(make: Make) -> None:
    """A running episode has an agent and a task alive; no task for anyone is a legal choice; a foreign one is not."""
    env = started(make, 3)
    seen = env.observe()
    require(bool(seen.agent_alive.any(axis=1).all()), "an episode starts with no agent alive")
    require(bool(seen.task_alive.any(axis=1).all()), "an episode starts with no task alive")
    env.step(np.full((3, env.n_agents), -1))
    # Below -1 a world may have orders of its own.
    try:
        env.step(np.full((3, env.n_agents), env.n_tasks))
    except InputError:
        return
    raise BrokenLawError(f"step takes the task {env.n_tasks}, though tasks are 0 to {env.n_tasks - 1}")


def seeds_decide(make: Make) -> None:
    """The same seed gives the same episode, and another seed another one."""
    seeds = episode_seeds(1, np.arange(8))
    first, again = play(make(8), seeds), play(make(8), seeds)
    require(first == again, "the same seed gave two different episodes")
    other = play(make(8), episode_seeds(2, np.arange(8)), choices=seeds)
    require(first != other, "different seeds gave the same episodes")


def batch_does_not_matter(make: Make) -> None:
    """An episode is the same alone, in any slot of any batch, and in a slot that was used before."""
    seeds = episode_seeds(3, np.arange(7))
    together = play(make(7), seeds)
    for k in (0, 3, 6):
        require(play(make(1), seeds[k : k + 1])[0] == together[k], f"episode {k} of 7 differs when played alone")
    used = make(7)
    play(used, episode_seeds(4, np.arange(7)))
    require(play(used, seeds) == together, "an episode depends on what was played in its slot before")
    require(play(make(7), seeds[::-1].copy())[::-1] == together, "an episode depends on its slot")


def endings(make: Make) -> None:
    """Terminated and truncated never together; truncated exactly at the limit; then the slot stands still, reward 0."""
    env = started(make, 4)
    rng = np.random.default_rng(0)
    running = np.ones(4, np.bool_)
    steps = np.zeros(4, np.int64)
    outcome = np.zeros(4)
    for _ in range(env.max_steps):
        before = env.observe()
        result = env.step(random_assignment(before, rng))
        steps += running
        require(not (result.terminated & result.truncated)[running].any(), "an episode ended in both ways at once")
        require(not result.reward[~running].any(), "an ended episode still gives reward")
        early = result.truncated & running & (steps != env.max_steps)
        require(not early.any(), f"truncated before the limit of {env.max_steps} steps")
        ended = running & (result.terminated | result.truncated)
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
    else:
        require(bool(np.isin(outcome, (0, 1)).all()), f"metric 'win_rate' gives {outcome}, not 0 or 1")


def rewards(make: Make) -> None:
    """Rewards are finite, and what an episode earns does not depend on saving or on the company it is in."""
    env = make(2)
    seeds = episode_seeds(5, np.arange(2))
    totals = []
    for interrupted in (False, True):
        env.start(np.arange(2), seeds)
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
    """Observing changes nothing; a step leaves its argument and earlier observations alone."""
    env = started(make, 3)
    rng = np.random.default_rng(0)
    for _ in range(4):
        first, second = env.observe(), env.observe()
        require(same(first, second), "observing twice gives two different observations")
        scribble(second)
        second = env.observe()
        require(same(first, second), "writing to an observation changes the world")
        assignment = random_assignment(first, rng)
        given = assignment.copy()
        env.step(assignment)
        require(np.array_equal(assignment, given), "step changes the assignment it is given")
        require(same(first, second), "a step changes an observation made before it")
        kept = env.get_state()
        copies = {name: array.copy() for name, array in kept.items()}
        env.step(random_assignment(env.observe(), rng))
        for name, array in kept.items():
            require(np.array_equal(array, copies[name]), f"a step changes {name!r} of a state saved before it")


def state_resumes(make: Make) -> None:
    """Saved, restored elsewhere, and played on: bit for bit the same."""
    env, seeds = make(3), episode_seeds(6, np.arange(3))
    env.start(np.arange(3), seeds)
    for t in range(4):
        env.step(seeded_assignment(env.observe(), seeds, t))
    state, twin = env.get_state(), make(3)
    twin.set_state(state)
    for t in range(4, 40):
        seen = env.observe()
        require(same(seen, twin.observe()), f"the observation differs {t - 4} steps after restoring")
        assignment = seeded_assignment(seen, seeds, t)
        for one, other in zip(env.step(assignment), twin.step(assignment), strict=True):
            require(np.array_equal(one, other), f"a step differs {t - 4} steps after restoring")


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
        seen, other = env.observe(), twin.observe()
        require(same(permuted(seen, agents, tasks), other), f"the observation is not just renumbered at step {t}")
        assignment = random_assignment(seen, rng)
        one, two = env.step(assignment), twin.step(renumbered[assignment[:, agents]])
        for name, left, right in zip(Step._fields, one, two, strict=True):
            close = np.allclose(left, right, rtol=1e-9, atol=1e-12)
            require(close, f"{name} depends on the numbering at step {t}: {left} and {right}")


def speed(make: Make) -> str:
    """Steps and observations a second, in a batch of 64."""
    env = started(make, 64)
    rng = np.random.default_rng(0)
    rounds, stepping, observing = 0, 0.0, 0.0
    while stepping + observing < SPEED_SECONDS or rounds < 3:
        began = time.perf_counter()
        seen = env.observe()
        middle = time.perf_counter()
        assignment = random_assignment(seen, rng)
        asked = time.perf_counter()
        result = env.step(assignment)
        ended = np.flatnonzero(result.terminated | result.truncated)
        if ended.size:
            env.start(ended, episode_seeds(rounds, ended))
        rounds += 1
        stepping += time.perf_counter() - asked
        observing += middle - began
    return f"{64 * rounds / stepping:,.0f} steps/s, {64 * rounds / observing:,.0f} observations/s"


LAWS: dict[str, Callable[[Make], None]] = {
    "shapes and types": shapes_and_types,
    "masks": masks,
    "seeds decide": seeds_decide,
    "the batch does not matter": batch_does_not_matter,
    "endings": endings,
    "rewards add up": rewards,
    "nothing is mutated": nothing_mutated,
    "a saved state resumes": state_resumes,
    "the numbering does not matter": numbering_does_not_matter,
}


def require(condition: bool, otherwise: str) -> None:
    """Raise BrokenLawError with the message, unless the condition holds."""
    if not condition:
        raise BrokenLawError(otherwise)


def expect(seen: Observation, name: str, shape: tuple[int | None, ...], kind: type) -> None:
    """`name` of the observation has that shape (None: any size) and dtype."""
    array = getattr(seen, name)
    fits = array.ndim == len(shape) and all(want in (None, size) for want, size in zip(shape, array.shape, strict=True))
    require(fits, f"{name} has shape {array.shape}, not {tuple('any' if s is None else s for s in shape)}")
    require(array.dtype == kind, f"{name} has dtype {array.dtype}, not {np.dtype(kind)}")


def started(make: Make, n_envs: int) -> BatchEnv:
    """A batch with the same episodes every time."""
    env = make(n_envs)
    slots = np.arange(n_envs)
    env.start(slots, episode_seeds(0, slots))
    return env


def random_assignment(seen: Observation, rng: np.random.Generator) -> Ints:
    """[B, N] any live task for each live agent, or now and then none."""
    # Above 0, so that a task that takes no agent never ties with one that does.
    wish = (1 - rng.random((*seen.agent_alive.shape, seen.task_alive.shape[1]))) * seen.task_alive[:, None]
    idle = ~(seen.agent_alive & seen.task_alive.any(axis=1, keepdims=True))
    idle |= rng.random(idle.shape) < 0.1
    return np.where(idle, -1, wish.argmax(axis=-1))


def seeded_assignment(seen: Observation, seeds: Seeds, t: int) -> Ints:
    """A random assignment that depends on each episode's own seed, step and masks alone."""
    rows = []
    for slot, seed in enumerate(seeds):
        rng = np.random.default_rng([int(seed), t])
        one = Observation(**{f.name: _slot(getattr(seen, f.name), slot) for f in fields(seen)})
        rows.append(random_assignment(one, rng)[0])
    return np.array(rows)


def play(env: BatchEnv, seeds: Seeds, choices: Seeds | None = None, steps: int = 25) -> list[bytes]:
    """Everything that is seen and earned in the first steps of each episode, as bytes to compare.

    The assignments follow from `choices`, or else from the episodes' own seeds.
    """
    choices = seeds if choices is None else choices
    env.start(np.arange(len(seeds)), seeds)
    logs = [b""] * len(seeds)
    for t in range(steps):
        seen = env.observe()
        result = env.step(seeded_assignment(seen, choices, t))
        arrays = [getattr(seen, field.name) for field in fields(seen)] + [*result, env.outcome()]
        for slot in range(len(seeds)):
            logs[slot] += b"".join(array[slot].tobytes() for array in arrays if array is not None)
    return logs


def scribble(seen: Observation) -> None:
    """Overwrite every array that allows it."""
    for field in fields(seen):
        array = getattr(seen, field.name)
        if array is not None and array.flags.writeable:
            array[...] = ~array if array.dtype == np.bool_ else array + 1


def same(one: Observation, other: Observation) -> bool:
    """Are all arrays equal?"""
    return all(_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))


def permuted(seen: Observation, agents: Ints, tasks: Ints) -> Observation:
    """The observation with its agents and tasks renumbered."""
    return Observation(
        agent_features=seen.agent_features[:, agents],
        task_features=seen.task_features[:, tasks],
        pair_features=seen.pair_features[:, agents][:, :, tasks],
        task_pair_features=seen.task_pair_features[:, tasks][:, :, tasks],
        agent_alive=seen.agent_alive[:, agents],
        task_alive=seen.task_alive[:, tasks],
        contributions=seen.contributions[:, agents][:, :, tasks],
        capacities=seen.capacities[:, tasks],
        planes=seen.planes,
        agent_cells=None if seen.agent_cells is None else seen.agent_cells[:, agents],
        task_cells=None if seen.task_cells is None else seen.task_cells[:, tasks],
    )


def _equal(one: object, other: object) -> bool:
    return one is other or (
        isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
    )


def _slot(array: NDArray[Any] | None, slot: int) -> Any:
    return None if array is None else array[slot : slot + 1]
