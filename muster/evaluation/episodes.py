"""Run a fixed set of episodes in a batch; a slot whose episode ends takes the next one, so the batch stays full."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.identity import follow
from muster.envs.vector import BatchEnv, Policy
from muster.rng import Seeds
from muster.rollout import Transition, act_with, reset, rollout


@dataclass(frozen=True, slots=True)
class Episodes:
    """Results of E episodes, in the order of their seeds; they do not depend on the batch size."""

    seeds: Seeds
    """[E]"""
    outcome: Floats
    """[E] steps or 1 for a win, as the environment's metric says."""
    steps: Ints
    """[E] decisions taken."""
    reward: Floats
    """[E] sum of the rewards."""
    truncated: Bools
    """[E] the episode hit the step limit."""
    seconds: float
    """Time for everything: environment and policy."""
    policy_seconds: float
    """Time in the policy alone, for the whole batch at each step."""
    changes: Floats | None = None
    """[E] sum over the decisions after the first of `changed_share`."""
    metrics: dict[str, Floats] = field(default_factory=dict)
    """[E] further metrics of the environment, by name; NaN for an episode without that metric."""

    @property
    def decisions(self) -> int:
        """Assignments made: one for each step of each episode."""
        return int(self.steps.sum())

    @property
    def changes_per_decision(self) -> float | None:
        """Mean share of agents that change from one living task to another; None if all episodes have one decision."""
        later = self.decisions - len(self.steps)
        return None if self.changes is None or later == 0 else float(self.changes.sum() / later)


def run_episodes(
    env: BatchEnv,
    policy: Policy,
    seeds: Seeds,
    progress: Callable[[int], None] | None = None,
    record: Callable[[Transition], None] | None = None,
) -> Episodes:
    """Run the episode of each seed to its end.

    `progress` is called with the number of episodes that a step ended, `record` with every transition.
    """
    n_episodes = len(seeds)
    outcome, reward, changes = np.zeros(n_episodes), np.zeros(n_episodes), np.zeros(n_episodes)
    steps = np.zeros(n_episodes, np.int64)
    truncated = np.zeros(n_episodes, np.bool_)
    metrics: dict[str, Floats] = {}
    last: LastDecision | None = None
    episode: Ints = np.full(env.n_envs, -1, np.int64)
    """[B] index of the episode in each slot."""
    active: Bools = np.zeros(env.n_envs, np.bool_)
    n_started = 0

    def start_episodes(slots: Ints) -> None:
        nonlocal n_started
        slots = slots[: n_episodes - n_started]
        episode[slots] = np.arange(n_started, n_started + len(slots))
        active[slots] = True
        if len(slots):
            reset(env, policy, slots, seeds[episode[slots]])
            n_started += len(slots)

    policy_seconds = 0.0
    start = time.perf_counter()
    if n_episodes < env.n_envs:
        # Slots without an episode are observed too, and so must be reset.
        spare = np.arange(n_episodes, env.n_envs)
        reset(env, policy, spare, np.resize(seeds, len(spare)))
    start_episodes(np.arange(env.n_envs))
    for transition in rollout(env, act_with(policy, env), active):
        observation, action, result, slots, ended, seconds = transition
        if record:
            record(transition)
        policy_seconds += seconds
        if last is not None:
            later = slots[steps[episode[slots]] > 0]
            changes[episode[later]] += changed_share(last, observation, action)[later]
        last = LastDecision(action, observation.agent_ids, observation.task_ids)
        reward[episode[slots]] += result.reward[slots]
        steps[episode[slots]] += 1
        if ended.size:
            outcome[episode[ended]] = env.outcome()[ended]
            truncated[episode[ended]] = result.truncated[ended]
            for name, values in env.metrics().items():
                metrics.setdefault(name, np.full(n_episodes, np.nan))[episode[ended]] = values[ended]
            start_episodes(ended)
            if progress:
                progress(int(ended.size))
        # An environment reuses the memory of an observation once no reference to it is left.
        del transition, observation
    seconds = time.perf_counter() - start
    return Episodes(seeds, outcome, steps, reward, truncated, seconds, policy_seconds, changes, metrics)


class LastDecision(NamedTuple):
    """The part of a decision that the next one is compared with."""

    assignment: Ints
    agent_ids: Ints | None
    task_ids: Ints | None


def changed_share(before: LastDecision, observation: BatchObservation, assignment: Ints) -> Floats:
    """[B] share of the living agents whose task of the last decision is still alive and who now have another.

    Agents and tasks are matched by their ids if they have any, since they may move to another index. Losing a task
    without getting another is not a change.
    """
    alive, ids = observation.agent_alive, observation.task_ids
    last = before.assignment
    if observation.agent_ids is not None and before.agent_ids is not None:
        last = follow(last, before.agent_ids, observation.agent_ids)
    # Only agents with a task before and now can change.
    slots, agents = np.nonzero((last >= 0) & (assignment >= 0) & alive)
    old, new = last[slots, agents], assignment[slots, agents]
    if ids is None or before.task_ids is None:
        left = (old != new) & observation.task_alive[slots, old]
        return _share(slots[left], alive)
    old, new = before.task_ids[slots, old], ids[slots, new]
    moved = (old != new) & (old >= 0)
    slots, old = slots[moved], old[moved]
    still = ((ids[slots] == old[:, None]) & observation.task_alive[slots]).any(axis=1)
    return _share(slots[still], alive)


def _share(slots: Ints, alive: Bools) -> Floats:
    """[B] changes per living agent, from the slot of each change."""
    return np.bincount(slots, minlength=len(alive)) / np.maximum(alive.sum(1), 1)
