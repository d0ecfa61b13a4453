"""The environment checks: each takes a function that makes a batch, and raises FailedCheckError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation
from muster.envs.batch_checks import check_observation, check_step
from muster.envs.checks import reproducibility
from muster.envs.checks.probes import (
    FailedCheckError,
    Make,
    UncheckedError,
    permuted,
    random_assignment,
    require,
    same,
    scribble,
    started,
    try_baseline,
)
from muster.envs.features import FeatureNames, widths_of
from muster.envs.history import pack_generator
from muster.envs.identity import Ids, tasks_now
from muster.envs.padding import observation_of
from muster.envs.scene import Scene
from muster.envs.singles import BatchOfSingles
from muster.envs.vector import BatchEnv, Step
from muster.errors import InputError, in_words

Check = Callable[[Make], None]
PATIENCE = 200
"""Steps of random actions within which some agent must have a possible task."""

BASELINE_STEPS = 10
"""Steps that each baseline decides."""


def shapes_and_types(make: Make) -> None:
    """Arrays of observations and steps have their shapes and dtypes, and finite values within their limits."""
    env = started(make, 3)
    rng = np.random.default_rng(0)
    for _ in range(5):
        observation = env.observe()
        check_observation(env, observation)
        all_alive = not env.agents_stay or bool(observation.agent_alive.all())
        require(all_alive, "an agent is not alive, though agents_stay says that all are")
        require(bool((observation.contributions >= 0).all()), "a contribution is negative")
        require(bool((observation.capacities >= 0).all()), "a capacity is negative")
        if observation.minimums is not None:
            closed = ~observation.task_alive | (observation.capacities == 0)
            require(bool((observation.minimums >= 0).all()), "a minimum is negative")
            feasible = closed | (observation.minimums <= observation.capacities)
            require(bool(feasible.all()), "a minimum is above its task's capacity")
        _named_columns(env, widths_of(observation))
        check_step(env, env.step(random_assignment(observation, rng)))
    require(env.outcome().shape == (3,), f"outcome has shape {env.outcome().shape}, not (3,)")


def _named_columns(env: BatchEnv, widths: Mapping[str, int]) -> None:
    """Require feature names, positions and distances to be of columns that there are."""
    FeatureNames.of(widths, env.feature_names(), env.name)
    columns = [(kind, column, "positions") for kind in ("agent", "task") for column in env.positions]
    columns += [(kind, column, "distances") for kind, column in zip(("pair", "task_pair"), env.distances, strict=False)]
    for kind, column, attribute in columns:
        fits = not widths[kind] or column < widths[kind]
        require(fits, f"{attribute} names column {column} of {kind} features, of which there are {widths[kind]}")


def masks(make: Make) -> None:
    """Some agent has a possible task within `PATIENCE` steps; no task for all is accepted, an index beyond M is not."""
    env = started(make, 3)
    env.step(np.full((3, env.n_agents), -1))
    # Below -1 an environment may have actions of its own.
    try:
        env.step(np.full((3, env.n_agents), env.n_tasks))
    except InputError:
        pass
    except Exception as error:
        raise FailedCheckError(
            f"step must refuse the task {env.n_tasks}, which this check gives on purpose, by an InputError; it raised "
            f"{in_words(error)}"
        ) from error
    else:
        raise FailedCheckError(f"step takes the task {env.n_tasks}, though tasks are 0 to {env.n_tasks - 1}")
    env, rng = started(make, 3), np.random.default_rng(0)
    steps = min(env.max_steps, PATIENCE)
    for _ in range(steps):
        observation = env.observe()
        if observation.pairs.any():
            return
        env.step(random_assignment(observation, rng))
    why = "`allowed` forbids every pair" if observation.allowed is not None else "no agent or no task is alive"
    raise FailedCheckError(f"in 3 episodes of {steps} steps there is nothing to decide: {why}")


def baselines_decide(make: Make) -> None:
    """Every baseline that can be made for the environment decides, and step takes its assignments."""
    env = make(3)
    for made in env.baselines().values():
        try:
            policy = made(env)
        except InputError:  # a baseline may be for some settings only
            continue
        try_baseline(env, policy, min(env.max_steps, BASELINE_STEPS))


def forbidden_is_not_done(make: Make) -> None:
    """Forbidden pairs, and agents that are not alive, count as no task, or the step is refused."""
    env, twin, rng = started(make, 3), started(make, 3), np.random.default_rng(0)
    for t in range(min(env.max_steps, 40)):
        observation = env.observe()
        forbidden = observation.task_alive[:, None, :] & ~observation.pairs
        agents = forbidden.any(axis=2)
        assignment = random_assignment(observation, rng)
        wrong = np.where(agents, forbidden.argmax(axis=2), assignment)
        try:
            result = env.step(wrong)
        except InputError:
            return
        expected = twin.step(np.where(agents, -1, assignment))
        equal = all(np.array_equal(*arrays, equal_nan=True) for arrays in zip(result, expected, strict=True))
        require(equal and same(env.observe(), twin.observe()), f"a forbidden pair is carried out at step {t}")


def ids_tell_apart(make: Make) -> None:
    """Ids are unique; `previous` is the task of the agent's last assignment, at the present indices of both."""
    env, rng = started(make, 3), np.random.default_rng(0)
    before, running = env.observe(), np.ones(3, np.bool_)
    if before.previous is None:
        return
    assignment = np.full_like(before.previous, -1)
    for t in range(min(env.max_steps, 60)):
        observation = env.observe()
        assert observation.previous is not None
        for name in ("agent_ids", "task_ids"):
            ids = getattr(observation, name)
            twice = ids is not None and any(len(set(row[row >= 0])) < (row >= 0).sum() for row in ids)
            require(not twice, f"{name} holds the same id twice at step {t}")
        expected = tasks_now(assignment, _ids(before), _ids(observation))
        differs = (observation.previous >= 0) & (observation.previous != expected) & running[:, None]
        require(not differs.any(), f"previous is not the task that was given, or has become, at step {t}")
        before, assignment = observation, random_assignment(observation, rng)
        result = env.step(assignment)
        running &= ~(result.terminated | result.truncated)


def _ids(observation: BatchObservation) -> Ids:
    return Ids(observation.agent_ids, observation.task_ids)


def endings(make: Make) -> None:
    """An episode terminates or is truncated at max_steps, not both; then its slot stays as it is."""
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
        correct = np.array_equal(env.running(), running & ~ended) or type(env).running is BatchEnv.running
        require(correct, f"running() says {env.running()} where {running & ~ended} is true")
        outcome[ended] = env.outcome()[ended]
        after = env.observe()
        for name in ("agent_features", "task_features", "agent_alive", "task_alive"):
            unchanged = np.array_equal(getattr(before, name)[~running], getattr(after, name)[~running])
            require(unchanged, f"{name} changes after the episode ended")
        running &= ~ended
        if not running.any():
            break
    require(not running.any(), f"an episode goes on after max_steps = {env.max_steps}")
    for name, values in env.metrics().items():
        require(values.shape == (4,), f"metric {name!r} has shape {values.shape}, not (4,)")
    env.step(random_assignment(env.observe(), rng))
    require(np.array_equal(outcome, env.outcome()), "the outcome changes after the episode ended")
    if env.metric == "steps":
        require(np.array_equal(outcome, steps), f"metric 'steps' counts {outcome}, but {steps} steps were taken")
    elif env.metric in ("return", "agreement"):
        close = np.allclose(outcome, earned, rtol=1e-9, atol=1e-9)
        require(close, f"metric {env.metric!r} gives {outcome}, but the rewards add up to {earned}")
    else:
        require(bool(np.isin(outcome, (0, 1)).all()), f"metric 'win_rate' gives {outcome}, not 0 or 1")


def nothing_mutated(make: Make) -> None:
    """observe() changes nothing; step() leaves its argument, earlier observations, scenes and states unchanged."""
    env = started(make, 3)
    rng, renderer = np.random.default_rng(0), env.renderer()
    for _ in range(4):
        if isinstance(env, BatchOfSingles):
            _check_observe(env)
        first, second = env.observe(), env.observe()
        require(same(first, second), "observing twice gives two different observations")
        scribble(second)
        second = env.observe()
        require(same(first, second), "writing to an observation changes the environment")
        scene = renderer.scene(0)
        shown = _arrays_of(scene)
        assignment = random_assignment(first, rng)
        copy = assignment.copy()
        env.step(assignment)
        require(np.array_equal(assignment, copy), "step changes the assignment it is given")
        require(same(first, second), "a step changes an observation made before it")
        for name, array in _arrays_of(scene).items():
            require(np.array_equal(array, shown[name]), f"a step changes {name!r} of a scene made before it")
        state = env.get_state()
        copies = {name: array.copy() for name, array in state.items()}
        env.step(random_assignment(env.observe(), rng))
        for name, array in state.items():
            require(np.array_equal(array, copies[name]), f"a step changes {name!r} of a state saved before it")


def _arrays_of(scene: Scene) -> dict[str, NDArray[Any]]:
    """Copies of the arrays of a scene."""
    arrays = {field.name: getattr(scene, field.name) for field in fields(scene) if field.name not in ("text", "stage")}
    return {name: np.array(array) for name, array in arrays.items() if array is not None}


def _check_observe(env: BatchOfSingles) -> None:
    """A custom observe() returns the same when called twice, and draws no random numbers."""
    generators = [pack_generator(rng) for rng in env.generators]
    first, second = (observation_of([single.observe() for single in env.singles]) for _ in range(2))
    require(same(first, second), "observe() called twice gives two different observations")
    drawn = any((pack_generator(rng) != was).any() for rng, was in zip(env.generators, generators, strict=True))
    require(not drawn, "observe() draws random numbers, so that observing changes the episode; draw them in step()")


def numbering_does_not_matter(make: Make) -> None:
    """Renumbering agents and tasks renumbers the observation and changes no reward or ending."""
    rng = np.random.default_rng(7)
    env, twin = started(make, 3), started(make, 3)
    agents, tasks = rng.permutation(env.n_agents), rng.permutation(env.n_tasks)
    if not twin.permute(agents, tasks):
        raise UncheckedError("this environment does not offer permute()")
    # The last entry is what index -1, no task, becomes.
    renumbered = np.append(np.argsort(tasks), -1)
    for t in range(20):
        observation = env.observe()
        equal = same(permuted(observation, agents, tasks), twin.observe())
        require(equal, f"the observation is not just renumbered at step {t}")
        assignment = random_assignment(observation, rng)
        results = env.step(assignment), twin.step(renumbered[assignment[:, agents]])
        for name, left, right in zip(Step._fields, *results, strict=True):
            close = np.allclose(left, right, rtol=1e-9, atol=1e-12)
            require(close, f"{name} depends on the numbering at step {t}: {left} and {right}")


CHECKS: dict[str, Check] = {
    "shapes and types": shapes_and_types,
    "masks": masks,
    "the seed determines the episode": reproducibility.seeds_decide,
    "forbidden pairs are not carried out": forbidden_is_not_done,
    "ids are unique and stay": ids_tell_apart,
    "the batch does not matter": reproducibility.batch_does_not_matter,
    "baselines decide": baselines_decide,
    "endings": endings,
    "rewards add up": reproducibility.rewards,
    "nothing is mutated": nothing_mutated,
    "a saved state resumes": reproducibility.state_resumes,
    "copies with the same seed agree": reproducibility.copies_are_alike,
    "fresh random numbers": reproducibility.fresh_numbers,
    "the numbering does not matter": numbering_does_not_matter,
}
