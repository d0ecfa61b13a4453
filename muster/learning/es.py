"""Evolution strategies (ES) on the parameters of a direct or linear model, from returns alone.

The candidates of an update are antithetic pairs theta ± sigma·e_k with orthogonal directions e_k. All run the same
episodes, in one batch or divided among workers, and their fitness is shaped by rank. Adam ascends

    sum over the K pairs of (rank(theta + sigma·e_k) - rank(theta - sigma·e_k))·e_k / (2·K·sigma)

The policy has parameters theta; for a linear model, which takes large steps on few episodes, their mean over the run's
later half.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.data import BatchObservation, Floats, Ints
from muster.envs.vector import BatchEnv
from muster.learning.envs import make_env
from muster.learning.learner import CANDIDATES, WEIGHTS, Arrays, Learner, Setup, State, stream, training_seeds
from muster.learning.metrics import EpisodeMetrics, Metrics, combine, episode_metrics, mean_metrics
from muster.learning.optimiser import Adam, cosine_decay
from muster.learning.rollouts import check_finite
from muster.learning.settings import ESSettings, TrainSettings
from muster.learning.workers import Job, WorkerPool, shares
from muster.models.direct import init_parameters, parameter_shapes, unflatten
from muster.models.spec import ModelSpec, Parameters
from muster.policy.decision import Scorer, decide
from muster.policy.learned import make_scorer
from muster.rollout import rollout

ALIKE = 20
"""Updates with all candidates equally fit, after which the user gets advice; a few in a row happen by chance."""
WIN_WEIGHT, RETURN_WEIGHT = 1.0, 0.5
"""Fitness of an episode that can be won: WIN_WEIGHT·win + RETURN_WEIGHT·return."""
AVERAGED_FROM = 0.5
"""Progress of the run at which averaging begins."""
PRODUCT_UNIT = 0.3
"""Step size of a linear model's products, relative to its other weights: they are many, and with equal steps their
noise drowns what the others learn."""
ROUTES_ITERATIONS = 60
"""Iterations of the routes' search while learning: enough for a few agents, and most of an update's time."""


class CandidateResults(NamedTuple):
    """Metrics of the candidates' episodes in one environment."""

    values: EpisodeMetrics
    """[candidates, episodes] by name: reward (the return), outcome, and the environment's own metrics."""
    steps: int
    """Environment steps."""

    @classmethod
    def joined(cls, rows: Sequence[Sequence[CandidateResults]]) -> CandidateResults:
        """Results of all candidates from those of workers: a row for each range of candidates, a column of episodes."""
        parts = [part for row in rows for part in row]

        def values(part: CandidateResults, name: str) -> Floats:
            """[candidates, episodes] of one metric; NaN where the worker's episodes do not have it."""
            return part.values.get(name, np.full(part.values["reward"].shape, np.nan))

        names = dict.fromkeys(name for part in parts for name in part.values)
        blocks = {name: np.block([[values(part, name) for part in row] for row in rows]) for name in names}
        return cls(blocks, sum(part.steps for part in parts))

    def mean(self) -> Metrics:
        """Mean of each metric over all episodes, for the log."""
        flat = {name: values.ravel() for name, values in self.values.items()}
        return mean_metrics(flat, len(flat["reward"]))


class Generation(NamedTuple):
    """The candidates of one update; sent to workers as a message."""

    theta: Floats
    """[D] parameters that are perturbed."""
    generator: dict[str, Any]
    """State of the random generator of the perturbations."""
    begun: Sequence[int]
    """Episodes so far, of each environment."""

    def perturbations(self, pairs: int) -> Floats:
        """[pairs, D] orthogonal directions e_k."""
        rng = np.random.default_rng(0)
        rng.bit_generator.state = self.generator
        return orthogonal(rng.standard_normal((pairs, len(self.theta))))


def flatten(parameters: Parameters, spec: ModelSpec) -> Floats:
    """A model's parameters as a vector theta [D], in units of their step sizes."""
    flat = np.concatenate([parameters[name].ravel() for name in parameter_shapes(spec)])
    return flat.astype(np.float64) / _units(spec)


def restore(theta: Floats, spec: ModelSpec) -> Parameters:
    """The inverse of `flatten`: parameters of theta [D], or of P models from [P, D]."""
    return unflatten(theta * _units(spec), parameter_shapes(spec))


def _units(spec: ModelSpec) -> Floats:
    """[D] step size of each parameter."""
    units = {"h.products": PRODUCT_UNIT}
    shapes = parameter_shapes(spec).items()
    return np.concatenate([np.full(math.prod(shape), units.get(name, 1.0)) for name, shape in shapes])


def orthogonal(noise: Floats) -> Floats:
    """[K, D] directions with the norms of the rows of `noise`, every D of them orthogonal: none is tried twice.

    It matters where there are about as many pairs as weights: a linear model learned on satellites from 3,000 episodes
    earned 1352 with orthogonal directions, 1313 without.
    """
    directions = np.empty_like(noise)
    with _blas().limit(limits=1, user_api="blas"):
        for begin in range(0, len(noise), noise.shape[1]):
            rows = noise[begin : begin + noise.shape[1]]
            directions[begin : begin + len(rows)] = np.linalg.qr(rows.T).Q.T * np.linalg.norm(
                rows, axis=1, keepdims=True
            )
    return directions


@cache
def _blas() -> ThreadpoolController:
    """Controller that keeps numpy's linear algebra to one thread. Its threads wait for one another by spinning, which
    on a busy machine took fifty times the CPU time of an update.
    """
    return ThreadpoolController()


def centred_ranks(fitness: Floats) -> Floats:
    """Fitness shaped by rank: ranks spread evenly over [-1/2, 1/2], ties at the mean of theirs."""
    order = np.argsort(fitness, kind="stable")
    ranks = np.empty(len(fitness))
    ranks[order] = np.arange(len(fitness))
    _, groups = np.unique(fitness, return_inverse=True)
    means = np.bincount(groups, ranks) / np.bincount(groups)
    return means[groups] / max(1, len(fitness) - 1) - 0.5


class CandidateEpisodes:
    """Runs a range of the candidates on the episodes of an update from number `first` on.

    Each candidate has an equal share of every environment's slots, an episode a slot.
    """

    def __init__(
        self,
        envs: Sequence[BatchEnv],
        spec: ModelSpec,
        inference: InferenceSettings,
        settings: ESSettings,
        seed: int,
        candidates: tuple[int, int],
        first: Sequence[int],
    ) -> None:
        self.first = first
        self.envs, self.spec, self.settings, self.seed = envs, spec, settings, seed
        self.begin, self.end = candidates
        self.solver = Solver.of(inference, threads=1)
        if inference.method == "routes":
            self.solver = dataclasses.replace(self.solver, steps=ROUTES_ITERATIONS)

    def run(self, generation: Generation) -> list[CandidateResults]:
        """Results of the candidates in each environment; all run the same new episodes, in one batch."""
        noise = generation.perturbations(self.settings.pairs)
        signed = np.concatenate([noise, -noise])[self.begin : self.end]
        assert self.settings.sigma is not None
        theta = generation.theta + self.settings.sigma * signed
        # Packed for the compiled code once a generation.
        model = make_scorer(self.spec, restore(theta, self.spec))
        return [self._run(k, begun + self.first[k], model) for k, begun in enumerate(generation.begun)]

    def _run(self, k: int, first: int, model: Scorer) -> CandidateResults:
        env, count, steps = self.envs[k], self.end - self.begin, 0
        seeds = training_seeds(self.seed, k, first + np.arange(env.n_envs // count))
        env.reset(np.arange(env.n_envs), np.tile(seeds, count))

        def act(observation: BatchObservation) -> Ints:
            decision = decide(observation, self.spec, model, self.solver)
            check_finite("score", *decision.scores)
            return decision.actions(env.reads_reasons)

        reward, active = np.zeros(env.n_envs), np.ones(env.n_envs, np.bool_)
        for transition in rollout(env, act, active):
            reward += transition.result.reward
            steps += len(transition.active)
        metrics = episode_metrics(env, reward)
        return CandidateResults({name: values.reshape(count, -1) for name, values in metrics.items()}, steps)


class ES(Learner):
    """Evolution strategies: one update evaluates one generation of candidates."""

    name = "es"
    # Rewards of the log differ by the few episodes that all candidates share more than by the policy.
    last_is_best = True

    def __init__(self, setup: Setup, settings: ESSettings, pool: WorkerPool | None = None) -> None:
        """`setup.envs` have slots for all candidates; for one where the workers of a pool run the episodes."""
        super().__init__(setup)
        self.settings, self.pool = settings, pool
        self.rng = stream(self.seed, CANDIDATES)
        self.theta = flatten(init_parameters(self.spec, stream(self.seed, WEIGHTS)), self.spec)
        self.adam = Adam(len(self.theta))
        self.averages = self.spec.kind == "linear"
        """Whether `parameters` are the mean of theta over the later half of the run."""
        self.sum, self.summed = np.zeros_like(self.theta), 0
        """Sum of theta over the later half of the run, and its number of updates."""
        self.begun = [0] * len(self.envs)
        """Episodes that were begun in each environment."""
        candidates = 2 * settings.pairs
        self.episodes = [env.n_envs // (1 if pool else candidates) for env in self.envs]
        """Episodes of each candidate in an update, by environment."""
        first = [0] * len(self.envs)
        self.rollouts = CandidateEpisodes(
            self.envs, self.spec, self.inference, settings, self.seed, (0, candidates), first
        )
        self.alike = 0
        """Consecutive updates, up to the last, in which all candidates were equally fit."""

    def parameters(self) -> Parameters:
        """theta as model parameters, or its mean over the later half of the run."""
        return restore(self.sum / self.summed if self.summed else self.theta, self.spec)

    def start(self, parameters: Parameters) -> None:
        """Set theta, before the first update."""
        self.theta = flatten(parameters, self.spec)

    def update(self, progress: float = 0.0) -> Metrics:
        """Evaluate one generation and move theta; in several environments a candidate has the mean of its ranks."""
        settings = self.settings
        generation = self.next_generation()
        results = run_by_workers(self.pool, generation, self.episodes) if self.pool else self.rollouts.run(generation)
        self.steps += sum(result.steps for result in results)
        fitness = np.array([fitness_of(result, env.metric) for env, result in zip(self.envs, results, strict=True)])
        self.alike = self.alike + 1 if (np.ptp(fitness, axis=1) == 0).all() else 0
        ranks = np.mean([centred_ranks(row) for row in fitness], axis=0)
        pairs = settings.pairs
        assert settings.sigma is not None
        assert settings.learning_rate is not None
        noise = generation.perturbations(pairs)
        with _blas().limit(limits=1, user_api="blas"):
            gradient = (ranks[:pairs] - ranks[pairs:]) @ noise / (2 * pairs * settings.sigma)
        decay = max(0.0, 1.0 - progress) if self.averages else cosine_decay(progress)
        self.theta = self.adam.step(self.theta, gradient, settings.learning_rate * decay)
        if self.averages and progress >= AVERAGED_FROM:
            self.sum, self.summed = self.sum + self.theta, self.summed + 1
        metrics = combine(self.envs, [result.mean() for result in results])
        best = fitness.mean(axis=0).max()
        return metrics | {"fitness": float(fitness.mean()), "fitness_best": float(best)}

    def next_generation(self) -> Generation:
        """Draw the next candidates and advance the episode numbers."""
        generation = Generation(self.theta, dict(self.rng.bit_generator.state), self.begun)
        self.rng.standard_normal((self.settings.pairs, len(self.theta)))
        self.begun = [before + count for before, count in zip(self.begun, self.episodes, strict=True)]
        return generation

    def advice(self) -> str | None:
        """Advice where all candidates are equally fit."""
        if self.alike != ALIKE:
            return None
        return (
            f"all {2 * self.settings.pairs} candidates did exactly equally well in {ALIKE} updates in a row, so "
            "evolution strategies have nothing to go by. If no agent ever gets a task, let the environment give a "
            "prior (Observation.prior) or have every agent assigned (--assign-all True); if all decide alike, try a "
            "larger --es.sigma or a smaller prior"
        )

    def get_state(self) -> State:
        """Checkpoint of theta, Adam, random generator and counters."""
        plain = {
            "rng": self.rng.bit_generator.state,
            "steps": self.steps,
            "begun": self.begun,
            "alike": self.alike,
            "summed": self.summed,
        }
        return {"theta": self.theta.copy(), "sum": self.sum.copy(), **self.adam.get_state()}, plain

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Restore the state that `get_state` returned."""
        self.theta, self.sum = np.array(arrays["theta"]), np.array(arrays["sum"])
        self.adam.set_state(arrays)
        self.rng.bit_generator.state = plain["rng"]
        self.steps, self.alike, self.begun = plain["steps"], plain["alike"], plain["begun"]
        self.summed = plain["summed"]


def fitness_of(results: CandidateResults, metric: str) -> Floats:
    """[2·pairs] mean fitness of every candidate: its return, or win + 0.5·return where episodes can be won."""
    fitness = results.values["reward"]
    if metric == "win_rate":
        fitness = WIN_WEIGHT * results.values["outcome"] + RETURN_WEIGHT * fitness
    return fitness.mean(1)


@dataclass(frozen=True)
class CandidateJob(Job):
    """A worker's job: some of the candidates on some of the episodes."""

    settings: TrainSettings
    spec: ModelSpec
    inference: InferenceSettings
    candidates: tuple[int, int]
    episodes: Sequence[tuple[int, int]]
    """Range of episodes, of each environment."""

    def make(self) -> Callable[[Generation], list[CandidateResults]]:
        """Environments with slots for these candidates and episodes, and the function that runs them."""
        settings, count = self.settings, self.candidates[1] - self.candidates[0]
        envs = [
            make_env(settings, name, count * (last - first))
            for name, (first, last) in zip(settings.envs, self.episodes, strict=True)
        ]
        first = [begin for begin, _ in self.episodes]
        seed = settings.seed
        return CandidateEpisodes(envs, self.spec, self.inference, settings.es, seed, self.candidates, first).run


def run_by_workers(pool: WorkerPool, generation: Generation, episodes: Sequence[int]) -> list[CandidateResults]:
    """Results of all candidates by environment, in the order of the candidates."""
    parts = pool.call([generation] * pool.size)
    columns = columns_of(pool.size, episodes)
    rows = [range(begin, begin + columns) for begin in range(0, pool.size, columns)]
    return [CandidateResults.joined([[parts[index][k] for index in row] for row in rows]) for k in range(len(episodes))]


def columns_of(workers: int, episodes: Sequence[int]) -> int:
    """Number of equal parts into which workers divide the episodes of each environment; the rest divides candidates.

    Candidates may take very unequal times, where some never finish an episode. Workers that run all candidates, each on
    some of the episodes, take the same time.
    """
    return math.gcd(workers, *episodes)


def assign_candidates(
    pool: WorkerPool, settings: TrainSettings, spec: ModelSpec, inference: InferenceSettings, episodes: Sequence[int]
) -> None:
    """Give every worker its candidates and episodes: neighbouring workers have the same candidates."""
    parts = columns_of(pool.size, episodes)
    of_candidates = shares(2 * settings.es.pairs, pool.size // parts)
    of_episodes = list(zip(*(shares(count, parts) for count in episodes), strict=True))
    pool.assign(
        [CandidateJob(settings, spec, inference, row, column) for row in of_candidates for column in of_episodes]
    )
