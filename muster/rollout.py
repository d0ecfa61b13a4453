"""The loop of every episode: observe, act, step.

Evaluation and replay, learners, and look-ahead on copies of a state all iterate over `rollout`; recording, returns and
resets are done in their own loops over its transitions.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.vector import BatchEnv, Policy, Step
from muster.errors import EnvError, InputError, MusterError
from muster.rng import Seeds

Act = Callable[[BatchObservation], Ints]
"""From an observation to actions [B, N]: a task index for each agent, -1 or IDLE for none."""


class Transition(NamedTuple):
    """One decision in every slot and its result."""

    observation: BatchObservation
    """Before the decision. Slots that are not active have no living agents."""
    action: Ints
    """[B, N]"""
    result: Step
    active: Ints
    """Slots whose episodes were in progress."""
    ended: Ints
    """Slots whose episodes ended with this step."""
    seconds: float
    """Time spent in `act`."""


def rollout(env: BatchEnv, act: Act, active: Bools) -> Iterator[Transition]:
    """Yield a transition for each step as long as any slot is `active` [B].

    `active` is modified in place: False for slots whose episodes have ended. A caller that resets some of them sets it
    to True again; one that needs no more steps stops iterating.
    """
    step = 0
    while active.any():
        slots = np.flatnonzero(active)
        observation = env.observe()
        if len(slots) < len(active):
            observation = _only_active(observation, active.copy())
        began = time.perf_counter()
        with naming_bad_values(env, observation, step):
            action = np.asarray(act(observation))
        if action.dtype.kind not in "iu":
            name = getattr(getattr(act, "__self__", None), "name", act)
            raise InputError(
                f"act() of the policy {name} must return a task index for each agent, whole numbers of shape "
                f"{(env.n_envs, env.n_agents)}, got {action!r:.80}"
            )
        seconds = time.perf_counter() - began
        result = env.step(action)
        _check_rewards(env, result.reward, step)
        ended = slots[(result.terminated | result.truncated)[slots]]
        active[ended] = False
        transition = Transition(observation, action, result, slots, ended, seconds)
        # Environments fill the memory of an observation again once no reference to it is left.
        del observation
        yield transition
        del transition
        step += 1


def _only_active(observation: BatchObservation, active: Bools) -> BatchObservation:
    """The observation with no living agents in slots that are not active."""
    return dataclasses.replace(observation, agent_alive=observation.agent_alive & active[:, None])


def act_with(policy: Policy, env: BatchEnv) -> Act:
    """The function by which `policy` acts in `env`: with IDLE where the environment reads reasons."""
    return policy.actions if env.reads_reasons else policy.act


def reset(env: BatchEnv, policy: Policy, slots: Ints, seeds: Seeds) -> None:
    """Begin the episode of `seeds[k]` in slot `slots[k]`, for the environment and for the policy."""
    env.reset(slots, seeds)
    policy.reset(slots, seeds)


@contextmanager
def naming_bad_values(env: BatchEnv, observation: BatchObservation, step: int) -> Iterator[None]:
    """Context that raises EnvError, naming the value, where a decision fails because an observation is not finite.

    It searches only after a failure, so it costs nothing otherwise. `step` counts from the start of the rollout.
    """
    try:
        yield
    except MusterError as failure:
        for entry in dataclasses.fields(BatchObservation):
            array = getattr(observation, entry.name)
            if array is None or array.dtype.kind != "f":
                continue
            fine = np.isfinite(array)
            if entry.name == "capacities":
                fine |= array == np.inf
            if not fine.all():
                slot, *where = np.argwhere(~fine)[0].tolist()
                raise EnvError(
                    f"{entry.name} of {env.name} must be finite, got {array[(slot, *where)]} at {where} in "
                    f"{_position(env, slot, step)}"
                ) from failure
        raise


def _check_rewards(env: BatchEnv, rewards: Floats, step: int) -> None:
    if not np.isfinite(rewards).all():
        slot = int(np.flatnonzero(~np.isfinite(rewards))[0])
        raise EnvError(f"a reward is not finite: {env.name} paid {rewards[slot]} in {_position(env, slot, step)}")


def _position(env: BatchEnv, slot: int, step: int) -> str:
    return f"slot {slot} of {env.n_envs} at step {step} of the rollout"
