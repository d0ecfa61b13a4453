"""Play a fixed set of episodes; a slot whose episode ends goes on with the next one, so the batch stays full."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.vector import BatchEnv, GivesReasons, Policy, Step
from muster.errors import clear_interrupts
from muster.evaluation.changes import Before, changed_share, keep
from muster.rng import Seeds


@dataclass(frozen=True, slots=True)
class Episodes:
    """What became of E episodes, in the order of their seeds: the same whatever the batch size."""

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
    """[E] sum over the decisions after the first of the share of agents that changed from one living task to another
    (see `muster.evaluation.changes`)."""
    figures: dict[str, Floats] = field(default_factory=dict)
    """[E] further figures of the environment, by name; NaN where an episode has none of that name."""

    @property
    def decisions(self) -> int:
        """Assignments made: one for each step of each episode."""
        return int(self.steps.sum())

    @property
    def changes_per_decision(self) -> float | None:
        """Mean share of agents that change from one living task to another; None where nothing could change."""
        later = self.decisions - len(self.steps)
        return None if self.changes is None or later == 0 else float(self.changes.sum() / later)


class Decision(NamedTuple):
    """One turn of the loop that everything is played in."""

    observation: BatchObservation
    assignment: Ints
    """[B, N]"""
    result: Step
    seconds: float
    """Time in the policy."""


def decide(env: BatchEnv, policy: Policy) -> Decision:
    """Let the policy see what is there, and carry out what it decides: one step of every slot."""
    observation = env.observe()
    asked = time.perf_counter()
    if env.reads_reasons and isinstance(policy, GivesReasons):
        assignment = policy.orders(observation)
    else:
        assignment = policy.act(observation)
    seconds = time.perf_counter() - asked
    return Decision(observation, assignment, env.step(assignment), seconds)


def begin_episodes(env: BatchEnv, policy: Policy, slots: Ints, seeds: Seeds) -> None:
    """Begin the episode of `seeds[k]` in slot `slots[k]`, for the environment and for who plays it."""
    env.reset(slots, seeds)
    policy.reset(slots, seeds)


@clear_interrupts()
def run_episodes(
    env: BatchEnv,
    policy: Policy,
    seeds: Seeds,
    progress: Callable[[int], None] | None = None,
    witness: Callable[[Decision, Ints], None] | None = None,
) -> Episodes:
    """Play the episode of each seed to its end; `progress` hears how many ended, after each step that ended some.

    `witness` sees every decision, and the slots in which it counts.
    """
    n_episodes = len(seeds)
    outcome, reward = np.zeros(n_episodes), np.zeros(n_episodes)
    steps = np.zeros(n_episodes, np.int64)
    changes = np.zeros(n_episodes)
    figures: dict[str, Floats] = {}
    last: Before | None = None
    truncated = np.zeros(n_episodes, np.bool_)
    # Which episode each slot plays; -1 once there is none left for it.
    playing = np.full(env.n_envs, -1, np.int64)
    waiting = 0

    def begin(slots: Ints) -> None:
        nonlocal waiting
        slots, idle = slots[: n_episodes - waiting], slots[n_episodes - waiting :]
        playing[idle] = -1
        if len(slots):
            playing[slots] = np.arange(waiting, waiting + len(slots))
            begin_episodes(env, policy, slots, seeds[playing[slots]])
            waiting += len(slots)

    policy_seconds = 0.0
    began = time.perf_counter()
    begin(np.arange(env.n_envs))
    while (active := np.flatnonzero(playing >= 0)).size:
        decision = decide(env, policy)
        observation, assignment, result, seconds = decision
        if witness:
            witness(decision, active)
        policy_seconds += seconds
        if last is not None:
            later = active[steps[playing[active]] > 0]
            changes[playing[later]] += changed_share(last, observation, assignment)[later]
        last = keep(observation, assignment)
        reward[playing[active]] += result.reward[active]
        steps[playing[active]] += 1
        ended = active[(result.terminated | result.truncated)[active]]
        if ended.size:
            outcome[playing[ended]] = env.outcome()[ended]
            truncated[playing[ended]] = result.truncated[ended]
            for name, values in env.metrics().items():
                figures.setdefault(name, np.full(n_episodes, np.nan))[playing[ended]] = values[ended]
            begin(ended)
            if progress:
                progress(int(ended.size))
        # Environments fill the memory of an observation again once nobody holds it, while it is still in the cache.
        del decision, observation
    seconds = time.perf_counter() - began
    return Episodes(seeds, outcome, steps, reward, truncated, seconds, policy_seconds, changes, figures)
