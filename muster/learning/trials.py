"""Candidates tried out on copies of the environment: the scores with noise that is kept for a while, each played on.

All candidates of a state are played with the same fresh random numbers: what they differ by is what they do, and none
of them knows what chance will bring in the environment itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.registry import another
from muster.envs.vector import BatchEnv
from muster.errors import InputError, MusterError
from muster.learning.rollouts import check_finite
from muster.models.direct import Scores
from muster.models.spec import ModelSpec
from muster.policy.candidates import HeldNoise
from muster.policy.decision import Inference, Scorer, decide
from muster.rng import Seeds


class Tried(NamedTuple):
    """What came of K candidates in each of S states."""

    first: Ints
    """[K, S, N] their assignments in those states."""
    worth: Floats
    """[K, S] their rewards, and the value of where they were cut, discounted."""
    midway: BatchObservation
    """[K·S] what the copies saw after some decisions."""
    returns: Floats
    """[K·S] what was earned from there on."""
    going: Bools
    """[K·S] whether they had not ended by then."""
    steps: int
    """Environment steps played."""


class Player(NamedTuple):
    """Who decides, and what is expected where a trial is cut."""

    spec: ModelSpec
    scores: Scorer
    solver: Inference
    values: Callable[[BatchObservation], Floats]


class Trials:
    """Plays candidates of the states in `env`, for `horizon` decisions, with noise in the first `hold` of them."""

    def __init__(self, env: BatchEnv, spec: ModelSpec, times: int, hold: int, horizon: int, discount: float) -> None:
        self.env, self.times = env, times
        self.hold, self.horizon, self.discount = hold, horizon, discount
        self.copies = another(env, times * env.n_envs)
        self.copies.show(pair_features=spec.pair_width > 0, planes=False)
        self.copies.threads = env.threads
        try:
            self._copy(np.zeros(env.n_envs, np.uint64))
        except (MusterError, NotImplementedError) as why:
            raise InputError(
                f"candidates are tried on copies of the env with fresh random numbers, and {env.name} cannot be "
                f"copied so: {why}. A critic alone can value them: add --srl.valuation critic"
            ) from None

    def _copy(self, seeds: Seeds) -> None:
        """Every state of now, once for each candidate; all candidates of a state with the same fresh seed [S]."""
        state = self.env.get_state()
        self.copies.set_state({name: np.concatenate([array] * self.times) for name, array in state.items()})
        self.copies.reseed(np.tile(seeds, self.times))

    def play(self, player: Player, noise: Floats32, rng: np.random.Generator) -> Tried:
        """Noise is [K, S, N, M]."""
        copies, states = self.copies, self.env.n_envs
        self._copy(rng.integers(2**63, size=states, dtype=np.uint64))
        midway = int(rng.integers(self.horizon))
        size = copies.n_envs
        earned, factor = np.zeros(size), np.ones(size)
        running, terminated = np.ones(size, np.bool_), np.zeros(size, np.bool_)
        seen = copies.observe()
        held = HeldNoise(noise.reshape(size, *noise.shape[2:]), seen)
        first: Ints = np.zeros(0, np.int64)
        before, marks, steps = seen, (earned, factor, running), 0
        for t in range(self.horizon):
            if t == midway:
                before, marks = seen, (earned.copy(), factor.copy(), running)
            explore = _noisy(held, seen) if t < self.hold else None
            decision = decide(seen, player.spec, player.scores, player.solver, explore)
            check_finite("score", decision.explored[0])
            first = decision.assignment if t == 0 else first
            step = copies.step(decision.actions(copies.reads_reasons))
            check_finite("reward", step.reward)
            earned += factor * step.reward
            steps += int(running.sum())
            factor[running] *= self.discount
            terminated |= step.terminated
            running = running & ~(step.terminated | step.truncated)
            seen = copies.observe()
            if not running.any():
                break
        # What was cut, by the horizon or by the environment's step limit, would have gone on.
        worth = earned + np.where(terminated, 0.0, factor * player.values(player.spec.view(seen)))
        so_far, since, going = marks
        return Tried(
            first=first.reshape(self.times, states, -1),
            worth=worth.reshape(self.times, states),
            midway=player.spec.view(before),
            returns=(worth - so_far) / since,
            going=going if t >= midway else np.zeros(size, np.bool_),
            steps=steps,
        )


def _noisy(held: HeldNoise, seen: BatchObservation) -> Callable[[Scores], Scores]:
    return lambda scores: held.add(scores, seen)
