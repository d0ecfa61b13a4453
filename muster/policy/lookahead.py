"""Look-ahead: before each decision candidates are played out on copies of the env, and the best one's move is made.

The copies get fresh random numbers: they know what the env is like now, not what chance will bring. Candidates are
the policy itself, whoever was best at the last decision, and new ones (see `muster.policy.candidates`). All candidates
of all envs of a batch are played in one batch. An episode's decisions follow from its own seed, whatever the batch.
"""

from __future__ import annotations

import time
from itertools import islice

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.registry import another
from muster.envs.vector import BatchEnv, Policy, State
from muster.errors import InputError
from muster.policy.candidates import Candidates, NoisyScores, OtherWeights
from muster.policy.learned import LearnedPolicy, adapt
from muster.policy.noise import draw_normals
from muster.rng import Seeds, episode_seeds
from muster.rollout import rollout

LOOKAHEAD_STREAM = np.uint64(0x5851F42D4C957F2D)
RETURN_WEIGHT = 0.5
"""Of the return beside a win."""
ROUND = 4
"""Candidates tried at once where time decides how many."""
MOST_COPIES = 4096
MOST_PAIRS = 2_000_000
"""Copies, and agent-task pairs in them, that are played at once: bounds the memory."""


class LookAhead(Policy):
    """A learned policy that tries its moves in the environment `env` first."""

    def __init__(self, policy: LearnedPolicy, env: BatchEnv) -> None:
        if policy.rollouts is None:
            raise InputError(f"{policy.name} does not say how to look ahead: give policy.with_rollouts(…)")
        self.name = policy.name
        self.env = env
        self.settings = settings = policy.rollouts
        self.policy = policy
        self.candidates: Candidates
        if (settings.candidates or ("theta" if policy.spec.kind == "dm" else "scores")) == "theta":
            self.candidates = OtherWeights(policy, settings.size, env)
        else:
            self.candidates = NoisyScores(policy, settings.size, env)
        self.seeds: Seeds = np.zeros(env.n_envs, np.uint64)
        self.decisions: Ints = np.zeros(env.n_envs, np.int64)
        self.best: Floats32 = np.zeros((env.n_envs, self.candidates.width), np.float32)
        """[B, width] the candidate that was best at the last decision."""
        self._copies: dict[int, BatchEnv] = {}

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """New episodes: nothing was best yet."""
        self.seeds[slots] = np.asarray(seeds, np.uint64) ^ LOOKAHEAD_STREAM
        self.decisions[slots] = 0
        self.best[slots] = 0.0

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the first move of the best candidate; -1 where no episode is under way."""
        return np.maximum(self.actions(observation), -1)

    def actions(self, observation: BatchObservation) -> Ints:
        """As `act`, in an environment that reads reasons with IDLE for agents that prefer to do nothing."""
        env, settings = self.env, self.settings
        assignment: Ints = np.full(observation.agent_alive.shape, -1, np.int64)
        going, state = np.flatnonzero(env.running()), env.get_state()
        each = settings.rollouts or ROUND
        most = max(1, min(MOST_COPIES // each, MOST_PAIRS // (each * env.n_agents * env.n_tasks)))
        for begin in range(0, len(going), most):
            slots = going[begin : begin + most]
            assignment[slots] = self._decide(slots, state, each)
            self.decisions[slots] += 1
        return assignment

    def _decide(self, slots: Ints, state: State, each: int) -> Ints:
        """[S, N] for these slots, with `each` candidates a slot at once: once, or until the time is over."""
        until = self.settings.until
        over = time.perf_counter() + (until or 0.0) * len(slots)
        rows, known = np.arange(len(slots)), self.best[slots]
        worth = np.full(len(slots), -np.inf)
        assignment: Ints = np.zeros((len(slots), self.env.n_agents), np.int64)
        rounds = 0
        while rounds == 0 or (until is not None and time.perf_counter() < over):
            moves = self._draw(slots, each, rounds)
            if rounds == 0:
                moves[:, 0] = 0.0
                moves[:, 1] = np.where(known.any(axis=1, keepdims=True), known, moves[:, 1])
            found, first = self._try(slots, state, moves, rounds)
            # Ties go to the policy itself, then to who was best before.
            top = found.argmax(axis=1)
            better = found[rows, top] > worth
            worth = np.where(better, found[rows, top], worth)
            self.best[slots[better]] = moves[rows, top][better]
            assignment[better] = first[rows, top][better]
            rounds += 1
        return assignment

    def _draw(self, slots: Ints, each: int, part: int) -> Floats32:
        """[S, each, width] standard normals, from each episode's seed and the number of its decision."""
        size = each * self.candidates.width
        return draw_normals(self._fresh(slots, 2 * part), size).reshape(len(slots), each, -1)

    def _fresh(self, slots: Ints, use: int) -> Seeds:
        """[S] seeds for one use at the present decision of each slot's episode."""
        return episode_seeds(use, (self.seeds[slots] + self.decisions[slots].astype(np.uint64)).astype(np.int64))

    def _try(self, slots: Ints, state: State, moves: Floats32, part: int) -> tuple[Floats, Ints]:
        """Worth [S, K] of the candidates [S, K, width] and their first assignments [S, K, N]."""
        n_slots, each, width = moves.shape
        copies, size = self._make_copies(n_slots * each), n_slots * each
        # What fills the batch up is not under way.
        sources = np.concatenate([np.repeat(slots, each), np.full(copies.n_envs - size, slots[0])])
        copies.set_state({name: array[sources] for name, array in state.items()})
        seeds = self._fresh(slots, 2 * part + 1)
        seeds = np.concatenate([np.repeat(seeds, each), np.zeros(copies.n_envs - size, np.uint64)])
        copies.reseed(seeds)
        filled = np.zeros((copies.n_envs, width), np.float32)
        filled[:size] = moves.reshape(size, width)
        worth, first = self._play(copies, filled, np.arange(copies.n_envs) < size)
        return worth[:size].reshape(n_slots, each), first[:size].reshape(n_slots, each, -1)

    def _make_copies(self, size: int) -> BatchEnv:
        """A batch of at least that size, kept for the next time."""
        size = 1 << (size - 1).bit_length()
        if size not in self._copies:
            self._copies[size] = adapt(self.policy, another(self.env, size))
        return self._copies[size]

    def _play(self, copies: BatchEnv, moves: Floats32, running: Bools) -> tuple[Floats, Ints]:
        """Run all candidates to the end, or to the horizon; `running` [P] is modified in place."""
        horizon = self.settings.horizon or copies.max_steps
        earned, first = np.zeros(copies.n_envs), np.zeros(0, np.int64)
        failed = np.zeros(copies.n_envs, np.bool_)
        self.candidates.prepare(moves, copies.observe())
        for transition in islice(rollout(copies, self.candidates.act, running), horizon):
            first = first if first.size else transition.action
            earned += transition.result.reward
            failed |= transition.result.truncated
        critic = self.policy.critic if self.settings.horizon else None
        if critic and running.any():
            earned += np.where(running, critic(self.policy.spec.read(copies.observe())), 0.0)
        return worth_of(copies, earned, running | failed, critic is not None), first


def worth_of(env: BatchEnv, earned: Floats, unfinished: Bools, valued: bool) -> Floats:
    """[B] how well it went: win + 0.5·return, the return, or minus the steps, in which tasks still left count as steps.

    Where a critic has valued what was cut (`valued`), steps are told by what they cost: the return.
    """
    if env.metric == "win_rate":
        return env.outcome() + RETURN_WEIGHT * earned
    if env.metric == "return" or valued:
        return earned
    left = env.observe().task_alive.sum(axis=1) * unfinished
    return -env.outcome() - left
