"""Evolution strategies on the parameters of a direct or linear model: need rewards only, no gradients.

Candidates are antithetic pairs theta ± sigma·e, the e at right angles to one another. All of them run the same
episodes, in one batch or in shares by several workers; the fitness of a candidate is its rank. The update is Adam's
along the sum of (rank difference)·e. The policy is theta as it stands; of a linear model, which takes large steps on
few episodes, the mean over the run's later half.
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
from muster.models.direct import Parameters, init_parameters, parameter_shapes, unflatten
from muster.models.spec import ModelSpec
from muster.policy.decision import Scorer, decide
from muster.policy.learned import make_scorer
from muster.rollout import rollout

ALIKE = 20
"""Updates in which all candidates do equally well, after which the user is told; a few in a row happen by chance."""
WIN_WEIGHT, RETURN_WEIGHT = 1.0, 0.5
"""Fitness of an episode that can be won: what a win adds, and what the sum of rewards counts for beside it."""
AVERAGED_FROM = 0.5
"""How far the run is when its average begins."""
PRODUCT_UNIT = 0.3
"""Steps of a linear model's products beside those of its other weights: they are many, each of them says little, and
with steps as large they drown what the others learn."""
ROUTES_ITERATIONS = 60
"""Of the routes' search while learning: enough for the routes of a few agents, and most of the time goes there."""


class Trial(NamedTuple):
    """The candidates' episodes in one environment."""

    values: EpisodeMetrics
    """[candidates, episodes] by name: reward (the sum), outcome, and the environment's own metrics."""
    steps: int

    @classmethod
    def joined(cls, rows: Sequence[Sequence[Trial]]) -> Trial:
        """All candidates, from rows that have other candidates and columns that have other episodes."""
        trials = [trial for row in rows for trial in row]

        def values(trial: Trial, name: str) -> Floats:
            """NaN where a share does not have the metric."""
            return trial.values.get(name, np.full(trial.values["reward"].shape, np.nan))

        names = dict.fromkeys(name for trial in trials for name in trial.values)
        found = {name: np.block([[values(trial, name) for trial in row] for row in rows]) for name in names}
        return cls(found, sum(trial.steps for trial in trials))

    def mean(self) -> Metrics:
        """For the log."""
        flat = {name: values.ravel() for name, values in self.values.items()}
        return mean_metrics(flat, len(flat["reward"]))


class Generation(NamedTuple):
    """Candidates to be tried; to a worker, the message that asks for its share of them."""

    theta: Floats
    """Their centre."""
    generator: dict[str, Any]
    """State of the generator that draws their perturbations."""
    begun: Sequence[int]
    """Episodes so far, of each environment."""

    def perturbations(self, pairs: int) -> Floats:
        """[pairs, D]"""
        rng = np.random.default_rng(0)
        rng.bit_generator.state = self.generator
        return orthogonal(rng.standard_normal((pairs, len(self.theta))))


def flatten(parameters: Parameters, spec: ModelSpec) -> Floats:
    """A model's parameters as a vector [D], in units of their steps."""
    flat = np.concatenate([parameters[name].ravel() for name in parameter_shapes(spec)])
    return flat.astype(np.float64) / _units(spec)


def restore(theta: Floats, spec: ModelSpec) -> Parameters:
    """The parameters of a vector [D], or of vectors [P, D]."""
    return unflatten(theta * _units(spec), parameter_shapes(spec))


def _units(spec: ModelSpec) -> Floats:
    """[D] by how much a unit of theta moves each parameter."""
    units = {"h.products": PRODUCT_UNIT}
    shapes = parameter_shapes(spec).items()
    return np.concatenate([np.full(math.prod(shape), units.get(name, 1.0)) for name, shape in shapes])


def orthogonal(noise: Floats) -> Floats:
    """[K, D] rows as long as those of `noise`, each D of them at right angles: no direction is tried twice.

    A linear model has about as few weights as there are pairs: learned on satellites from 3,000 episodes it earned 1352
    so, 1313 with the noise as it is drawn.
    """
    found = np.empty_like(noise)
    with _blas().limit(limits=1, user_api="blas"):
        for begin in range(0, len(noise), noise.shape[1]):
            rows = noise[begin : begin + noise.shape[1]]
            found[begin : begin + len(rows)] = np.linalg.qr(rows.T).Q.T * np.linalg.norm(rows, axis=1, keepdims=True)
    return found


@cache
def _blas() -> ThreadpoolController:
    """The linear algebra of numpy, to be kept to one thread: its threads wait for one another by spinning, which on a
    machine with other work took fifty times the CPU time of an update.
    """
    return ThreadpoolController()


def centred_ranks(fitness: Floats) -> Floats:
    """Ranks spread evenly over [-1/2, 1/2]; ties share the mean of their ranks."""
    order = np.argsort(fitness, kind="stable")
    ranks = np.empty(len(fitness))
    ranks[order] = np.arange(len(fitness))
    _, groups = np.unique(fitness, return_inverse=True)
    means = np.bincount(groups, ranks) / np.bincount(groups)
    return means[groups] / max(1, len(fitness) - 1) - 0.5


class CandidateRollouts:
    """Runs the candidates from `begin` up to `end`, each in its own share of an environment's slots; of the episodes
    of an update, those from `first` on.
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

    def run(self, generation: Generation) -> list[Trial]:
        """These candidates on the same new episodes, all at once, environment by environment."""
        noise = generation.perturbations(self.settings.pairs)
        signed = np.concatenate([noise, -noise])[self.begin : self.end]
        assert self.settings.sigma is not None
        theta = generation.theta + self.settings.sigma * signed
        # Packed once for all decisions of the generation.
        model = make_scorer(self.spec, restore(theta, self.spec))
        return [self._run(k, begun + self.first[k], model) for k, begun in enumerate(generation.begun)]

    def _run(self, k: int, begun: int, model: Scorer) -> Trial:
        env, count, steps = self.envs[k], self.end - self.begin, 0
        seeds = training_seeds(self.seed, k, begun + np.arange(env.n_envs // count))
        env.reset(np.arange(env.n_envs), np.tile(seeds, count))

        def act(observation: BatchObservation) -> Ints:
            decision = decide(observation, self.spec, model, self.solver)
            check_finite("score", *decision.scores)
            return decision.actions(env.reads_reasons)

        reward, active = np.zeros(env.n_envs), np.ones(env.n_envs, np.bool_)
        for transition in rollout(env, act, active):
            reward += transition.result.reward
            steps += len(transition.active)
        found = episode_metrics(env, reward)
        return Trial({name: values.reshape(count, -1) for name, values in found.items()}, steps)


class ES(Learner):
    """One update tries every candidate once on the same episodes."""

    name = "es"
    # Rows of its log differ by which few episodes all candidates shared more than by the policy.
    last_is_best = True

    def __init__(self, setup: Setup, settings: ESSettings, pool: WorkerPool | None = None) -> None:
        """With a pool, which runs the episodes, each environment has the slots of one candidate; without, of all."""
        super().__init__(setup)
        self.settings, self.pool = settings, pool
        self.rng = stream(self.seed, CANDIDATES)
        self.theta = flatten(init_parameters(self.spec, stream(self.seed, WEIGHTS)), self.spec)
        self.adam = Adam(len(self.theta))
        self.averages = self.spec.kind == "linear"
        """Whether the policy is the mean of theta over the later half of the run."""
        self.sum, self.summed = np.zeros_like(self.theta), 0
        """Of theta over the later half of the run, and over how many updates."""
        self.begun = [0] * len(self.envs)
        """Episodes so far, of each environment."""
        candidates = 2 * settings.pairs
        self.episodes = [env.n_envs // (1 if pool else candidates) for env in self.envs]
        """Of every candidate in an update, of each environment."""
        everyone, first = (0, candidates), [0] * len(self.envs)
        self.rollouts = CandidateRollouts(self.envs, self.spec, self.inference, settings, self.seed, everyone, first)
        self.alike = 0
        """Updates, up to the last, in which all candidates did equally well."""

    def parameters(self) -> Parameters:
        """At the centre of the candidates, now or over the later half of the run."""
        return restore(self.sum / self.summed if self.summed else self.theta, self.spec)

    def start(self, parameters: Parameters) -> None:
        """Begin with these values."""
        self.theta = flatten(parameters, self.spec)

    def update(self, progress: float = 0.0) -> Metrics:
        """One generation; in several environments the fitness of a candidate is the mean of its ranks."""
        settings = self.settings
        generation = self.next_generation()
        trials = run_by_workers(self.pool, generation, self.episodes) if self.pool else self.rollouts.run(generation)
        self.steps += sum(trial.steps for trial in trials)
        fitness = np.array([self._fitness(env.metric, trial) for env, trial in zip(self.envs, trials, strict=True)])
        self.alike = self.alike + 1 if (np.ptp(fitness, axis=1) == 0).all() else 0
        ranks = np.mean([centred_ranks(found) for found in fitness], axis=0)
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
        metrics = combine(self.envs, [trial.mean() for trial in trials])
        best = fitness.mean(axis=0).max()
        return metrics | {"fitness": float(fitness.mean()), "fitness_best": float(best)}

    def next_generation(self) -> Generation:
        """New candidates, and the episodes that they share."""
        generation = Generation(self.theta, dict(self.rng.bit_generator.state), self.begun)
        self.rng.standard_normal((self.settings.pairs, len(self.theta)))
        self.begun = [before + count for before, count in zip(self.begun, self.episodes, strict=True)]
        return generation

    def _fitness(self, metric: str, trial: Trial) -> Floats:
        """[2·pairs] of every candidate in one environment."""
        fitness = trial.values["reward"]
        if metric == "win_rate":
            fitness = WIN_WEIGHT * trial.values["outcome"] + RETURN_WEIGHT * fitness
        return fitness.mean(1)

    def advice(self) -> str | None:
        """What to do where all candidates are equally good."""
        if self.alike != ALIKE:
            return None
        return (
            f"all {2 * self.settings.pairs} candidates did exactly equally well in {ALIKE} updates in a row, so "
            "evolution strategies have nothing to go by. If no agent ever gets a task, let the environment give a "
            "prior (Observation.prior) or have every agent assigned (--assign-all True); if all decide alike, try a "
            "larger --es.sigma or a smaller prior"
        )

    def get_state(self) -> State:
        """Everything needed to go on bit for bit."""
        plain = {
            "rng": self.rng.bit_generator.state,
            "steps": self.steps,
            "begun": self.begun,
            "alike": self.alike,
            "summed": self.summed,
        }
        return {"theta": self.theta.copy(), "sum": self.sum.copy(), **self.adam.get_state()}, plain

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.theta, self.sum = np.array(arrays["theta"]), np.array(arrays["sum"])
        self.adam.set_state(arrays)
        self.rng.bit_generator.state = plain["rng"]
        self.steps, self.alike, self.begun = plain["steps"], plain["alike"], plain["begun"]
        self.summed = plain["summed"]


@dataclass(frozen=True)
class CandidateJob(Job):
    """To run some of the candidates on some of the episodes."""

    settings: TrainSettings
    spec: ModelSpec
    inference: InferenceSettings
    candidates: tuple[int, int]
    episodes: Sequence[tuple[int, int]]
    """Which of each environment's."""

    def make(self) -> Callable[[Generation], list[Trial]]:
        """With environments for these alone."""
        settings, count = self.settings, self.candidates[1] - self.candidates[0]
        envs = [
            make_env(settings, name, count * (last - first))
            for name, (first, last) in zip(settings.envs, self.episodes, strict=True)
        ]
        first = [begin for begin, _ in self.episodes]
        seed = settings.seed
        return CandidateRollouts(envs, self.spec, self.inference, settings.es, seed, self.candidates, first).run


def run_by_workers(pool: WorkerPool, generation: Generation, episodes: Sequence[int]) -> list[Trial]:
    """Every candidate on the same new episodes, by environment; in the order of candidates, not of workers."""
    found = pool.call([generation] * pool.size)
    columns = columns_of(pool.size, episodes)
    rows = [range(begin, begin + columns) for begin in range(0, pool.size, columns)]
    return [Trial.joined([[found[index][k] for index in row] for row in rows]) for k in range(len(episodes))]


def columns_of(workers: int, episodes: Sequence[int]) -> int:
    """In how many equal parts workers share the episodes of each environment; what else there is to share is
    candidates.

    Candidates may take very unequal times, where some never come to an end. A worker that runs them all, on some of the
    episodes, is done when the others are.
    """
    return math.gcd(workers, *episodes)


def assign_candidates(
    pool: WorkerPool, settings: TrainSettings, spec: ModelSpec, inference: InferenceSettings, episodes: Sequence[int]
) -> None:
    """Give every worker its share: neighbouring workers the same candidates on other episodes."""
    parts = columns_of(pool.size, episodes)
    of_candidates = shares(2 * settings.es.pairs, pool.size // parts)
    of_episodes = list(zip(*(shares(count, parts) for count in episodes), strict=True))
    pool.assign(
        [CandidateJob(settings, spec, inference, row, column) for row in of_candidates for column in of_episodes]
    )
