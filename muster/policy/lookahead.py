"""Look-ahead: before each decision candidates are rolled out on copies of the environment, and the best one acts.

The copies have new random seeds: candidates know the present state, but not the future. All candidates of all
environments run in one batch. An episode's decisions depend on its own seed, not on the batch.

With one future candidates are policies (`muster.policy.candidates`): the policy itself, the best one of the last
decision, and new ones. With several they are first decisions, after which the policy itself acts. All are tried in the
same futures (common random numbers), and one replaces the policy's own decision only if it is significantly better: the
best of several noisy means would often be worse.
"""

from __future__ import annotations

import math
import time
from itertools import islice

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.registry import another
from muster.envs.vector import BatchEnv, Policy, State
from muster.errors import InputError
from muster.policy.candidates import NOISE_STD, Candidates, NoisyScores, OtherWeights, vary_decisions
from muster.policy.decision import decide
from muster.policy.learned import LearnedPolicy, adapt
from muster.policy.noise import draw_normals
from muster.rng import Seeds, episode_seeds
from muster.rollout import Act, rollout

LOOKAHEAD_STREAM = np.uint64(0x5851F42D4C957F2D)
RETURN_WEIGHT = 0.5
"""Weight of the return relative to a win."""
ROUND = 4
"""Candidates a round, where a time limit decides how many are tried."""
MOST_COPIES = 4096
MOST_PAIRS = 2_000_000
"""Most copies, and agent-task pairs in them, that run at once: bounds the memory."""


class LookAhead(Policy):
    """A learned policy with look-ahead in the environment `env`."""

    def __init__(self, policy: LearnedPolicy, env: BatchEnv) -> None:
        if policy.rollouts is None:
            raise InputError(f"{policy.name} does not say how to look ahead: give policy.with_rollouts(…)")
        self.name = policy.name
        self.env = env
        self.settings = settings = policy.rollouts
        self.policy = policy
        self.candidates: Candidates
        usual = "theta" if policy.spec.kind == "dm" and settings.futures == 1 else "scores"
        if (settings.candidates or usual) == "theta":
            self.candidates = OtherWeights(policy, settings.size, env)
        else:
            self.candidates = NoisyScores(policy, settings.size, env)
        self.seeds: Seeds = np.zeros(env.n_envs, np.uint64)
        self.decisions: Ints = np.zeros(env.n_envs, np.int64)
        self.best: Floats32 = np.zeros((env.n_envs, self.candidates.width), np.float32)
        """[B, width] the candidate that was best at the last decision."""
        self._copies: dict[int, BatchEnv] = {}

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Forget the best candidates of the last episodes in these slots."""
        self.seeds[slots] = np.asarray(seeds, np.uint64) ^ LOOKAHEAD_STREAM
        self.decisions[slots] = 0
        self.best[slots] = 0.0

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the best candidate's assignment; -1 where no episode is in progress."""
        return np.maximum(self.actions(observation), -1)

    def actions(self, observation: BatchObservation) -> Ints:
        """As `act`, with IDLE for agents that prefer to do nothing, in an environment that reads reasons."""
        env, settings = self.env, self.settings
        assignment: Ints = np.full(observation.agent_alive.shape, -1, np.int64)
        going, state = np.flatnonzero(env.running()), env.get_state()
        each = settings.rollouts or ROUND
        several = settings.futures > 1
        most = max(1, min(MOST_COPIES // each, MOST_PAIRS // (each * env.n_agents * env.n_tasks)))
        for begin in range(0, len(going), most):
            slots = going[begin : begin + most]
            if several:
                assignment[slots] = self._decide_over_futures(slots, state, each, observation.take(slots))
            else:
                assignment[slots] = self._decide(slots, state, each)
            self.decisions[slots] += 1
        return assignment

    def _decide(self, slots: Ints, state: State, each: int) -> Ints:
        """[S, N] actions with one future: rounds of `each` candidates a slot, one or as many as the time allows."""
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
                moves[:, 1:2] = np.where(known[:, None].any(axis=2, keepdims=True), known[:, None], moves[:, 1:2])
            values, first = self._try(slots, state, moves, rounds)
            # Ties go to the policy itself, then to the best candidate of the last decision.
            top = values.argmax(axis=1)
            better = values[rows, top] > worth
            worth = np.where(better, values[rows, top], worth)
            self.best[slots[better]] = moves[rows, top][better]
            assignment[better] = first[rows, top][better]
            rounds += 1
        return assignment

    def _decide_over_futures(self, slots: Ints, state: State, each: int, observation: BatchObservation) -> Ints:
        """[S, N] actions: the policy's own, or the best of the candidates that are significantly better.

        A round that is not finished in time does not count.
        """
        until = self.settings.until
        over = math.inf if until is None else time.perf_counter() + until * len(slots)
        policy, reasons = self.policy, self.env.reads_reasons
        own = decide(observation, policy.spec, policy.scorer, policy.solver)
        first = own.actions(reasons)[:, None]
        chosen, best = first[:, 0].copy(), np.zeros(len(slots))
        rounds = 0
        while each > 1 and (rounds == 0 or (until is not None and time.perf_counter() < over)):
            draws = self._draw(slots, each - 1, rounds)
            others = vary_decisions(own, policy, draws, self.settings.size or NOISE_STD).actions(reasons)
            moves = np.concatenate([first, others.reshape(len(slots), each - 1, -1)], axis=1)
            worth = self._value(slots, state, moves, over)
            if worth is None:
                break
            top, gain = best_beyond_chance(worth, self.settings.standard_errors)
            better = gain > best
            best = np.where(better, gain, best)
            chosen[better] = moves[better, top[better]]
            rounds += 1
        return chosen

    def _value(self, slots: Ints, state: State, moves: Ints, over: float) -> Floats | None:
        """[S, K, F] values of first decisions [S, K, N] in each of the slot's futures; None if the time is over."""
        n_slots, each, n_agents = moves.shape
        n_futures = self.settings.futures
        alike = (moves[:, :, None] == moves[:, None]).all(axis=3).argmax(axis=2)
        """[S, K] first candidate with the same decision: only that one is tried, and none where all are the same."""
        tried = (alike == np.arange(each)) & alike.any(axis=1, keepdims=True)
        rows, columns = np.nonzero(tried)
        futures = episode_seeds(0, self._fresh(slots, 1).astype(np.int64)[:, None] + np.arange(n_futures))
        sources, seeds = np.repeat(slots[rows], n_futures), futures[rows].reshape(-1)
        first = np.repeat(moves[rows, columns], n_futures, axis=0)
        values = np.zeros(len(sources))
        most = max(1, min(MOST_COPIES, MOST_PAIRS // (self.env.n_agents * self.env.n_tasks)))
        for begin in range(0, len(sources), most):
            part = slice(begin, begin + most)
            copies, running = self._copy(sources[part], state, seeds[part])
            padded = np.full((copies.n_envs, n_agents), -1, np.int64)
            padded[: running.sum()] = first[part]
            size = len(sources[part])
            worth = self._play(copies, _first_then(padded, self._own), running, over)
            if worth is None:
                return None
            values[part] = worth[:size]
        worth = np.zeros((n_slots, each, n_futures))
        worth[rows, columns] = values.reshape(-1, n_futures)
        return worth[np.arange(n_slots)[:, None], alike]

    def _own(self, observation: BatchObservation) -> Ints:
        """The policy's own actions in copies."""
        decision = decide(observation, self.policy.spec, self.policy.scorer, self.policy.solver)
        return decision.actions(self.env.reads_reasons)

    def _draw(self, slots: Ints, each: int, part: int) -> Floats32:
        """[S, each, width] standard normals from each episode's seed and the number of its decision."""
        size = each * self.candidates.width
        return draw_normals(self._fresh(slots, 2 * part), size).reshape(len(slots), each, -1)

    def _fresh(self, slots: Ints, use: int) -> Seeds:
        """[S] seeds for one use at the present decision of each slot's episode."""
        return episode_seeds(use, (self.seeds[slots] + self.decisions[slots].astype(np.uint64)).astype(np.int64))

    def _try(self, slots: Ints, state: State, moves: Floats32, part: int) -> tuple[Floats, Ints]:
        """Values [S, K] of the candidates [S, K, width], and their first assignments [S, K, N]."""
        n_slots, each, width = moves.shape
        size = n_slots * each
        copies, running = self._copy(np.repeat(slots, each), state, np.repeat(self._fresh(slots, 2 * part + 1), each))
        filled = np.zeros((copies.n_envs, width), np.float32)
        filled[:size] = moves.reshape(size, width)
        self.candidates.prepare(filled, copies.observe())
        first: list[Ints] = []

        def act(observation: BatchObservation) -> Ints:
            action = self.candidates.act(observation)
            if not first:
                first.append(action)
            return action

        worth = self._play(copies, act, running)
        assert worth is not None
        return worth[:size].reshape(n_slots, each), first[0][:size].reshape(n_slots, each, -1)

    def _copy(self, sources: Ints, state: State, seeds: Seeds) -> tuple[BatchEnv, Bools]:
        """Copies of slots `sources` [P] with new seeds, padded to a power of 2; and the mask of those not padding."""
        size = 1 << (len(sources) - 1).bit_length()
        if size not in self._copies:
            self._copies[size] = adapt(self.policy, another(self.env, size))
        copies = self._copies[size]
        spare = size - len(sources)
        sources = np.concatenate([sources, np.full(spare, sources[0])])
        copies.set_state({name: array[sources] for name, array in state.items()})
        copies.reseed(np.concatenate([seeds, np.zeros(spare, np.uint64)]))
        return copies, np.arange(size) < size - spare

    def _play(self, copies: BatchEnv, act: Act, running: Bools, over: float = math.inf) -> Floats | None:
        """Values [P] of acting so to the end or to the horizon; None if that is not reached in time.

        `running` [P] is modified in place.
        """
        cut = self.settings.cut
        returns = np.zeros(copies.n_envs)
        failed = np.zeros(copies.n_envs, np.bool_)
        for transition in islice(rollout(copies, act, running), cut or copies.max_steps):
            returns += transition.result.reward
            failed |= transition.result.truncated
            if time.perf_counter() > over:
                return None
        critic = self.policy.critic if cut else None
        if critic and running.any():
            returns += np.where(running, critic(self.policy.spec.read(copies.observe())), 0.0)
        return worth_of(copies, returns, running | failed, critic is not None)


def _first_then(first: Ints, act: Act) -> Act:
    """A function that returns `first` for the first decision, and acts as `act` afterwards."""
    rest = [first]
    return lambda observation: rest.pop() if rest else act(observation)


def best_beyond_chance(worth: Floats, standard_errors: float) -> tuple[Ints, Floats]:
    """[S] candidate with the largest significant gain on candidate 0, and its mean gain, 0 where none is significant.

    `worth` [S, K, F] has the values of K candidates in F common futures. The gain is the mean difference from candidate
    0 over the futures; it is significant where it exceeds `standard_errors` of its standard errors.
    """
    gaps = worth - worth[:, :1]
    mean, error = gaps.mean(axis=2), gaps.std(axis=2, ddof=1) / math.sqrt(worth.shape[2])
    gain = np.where(mean > standard_errors * error, mean, 0.0)
    top = gain.argmax(axis=1)
    return top, gain[np.arange(len(worth)), top]


def worth_of(env: BatchEnv, returns: Floats, unfinished: Bools, valued: bool) -> Floats:
    """[B] value of an episode by its metric: win + 0.5·return, the return, or -(steps + tasks left).

    With a critic's value at the horizon (`valued`) it is the return for metric "steps" too.
    """
    if env.metric == "win_rate":
        return env.outcome() + RETURN_WEIGHT * returns
    if env.metric == "return" or valued:
        return returns
    left = env.observe().task_alive.sum(axis=1) * unfinished
    return -env.outcome() - left
