"""Evolution's candidates at play: all of them here, or a share of them in each of several workers.

A candidate is the centre, a perturbation and its sign. Workers draw the perturbations themselves, from the state of the
run's generator, and move the centre themselves, from what all candidates were worth: a message has a few hundred bytes
however many parameters there are. A worker whose centre is not the run's, be it new or its arithmetic another, says so
and is sent the centre itself.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.data import BatchObservation, Floats
from muster.learning.crew import Crew, shares
from muster.learning.episodes import TrainingEpisodes
from muster.learning.learner_settings import ESSettings
from muster.learning.optimiser import Adam
from muster.learning.player import Job
from muster.learning.rollouts import blamed, check_finite, check_rewards
from muster.learning.settings import TrainSettings
from muster.learning.tally import Figures, Values, averaged, own_figures
from muster.learning.worlds import prepare_env
from muster.models.direct import DirectModel, Parameters, Scores, parameter_shapes
from muster.models.spec import ModelSpec
from muster.policy.decision import decide

PLAN_ITERATIONS = 60
"""Of PLAN while learning: enough for the routes of a few agents, and most of the time goes there."""


class Trial(NamedTuple):
    """What the candidates' episodes in one environment came to, candidate by candidate."""

    reward: Floats
    """[episodes] their sums."""
    outcome: Floats
    figures: Values
    """The environment's own."""
    steps: int
    candidates: int

    def averaged(self) -> Figures:
        """For the log."""
        return averaged({"outcome": self.outcome, "reward": self.reward, **self.figures}, len(self.reward))


class Generation(NamedTuple):
    """Candidates that are to be played."""

    theta: Floats
    """Their centre."""
    noise: Floats
    """[pairs, D]"""
    state: dict[str, Any]
    """Of the generator that drew the noise, before it did."""
    begun: Sequence[int]
    """Episodes so far, of each environment."""


class Field(Protocol):
    """Where candidates are played."""

    def play(self, generation: Generation) -> list[Trial]:
        """Every candidate on the same new episodes, environment by environment."""

    def moved(self, worth: Floats, rate: float, adam: Adam) -> None:
        """The centre has moved by what the candidates were worth; `adam` as it was left."""


def flatten(parameters: Parameters, spec: ModelSpec) -> Floats:
    """A model's parameters as a vector [D]."""
    return np.concatenate([parameters[name].ravel() for name in parameter_shapes(spec)]).astype(np.float64)


def unflatten(theta: Floats, spec: ModelSpec) -> Parameters:
    """Parameters [P, ...] from vectors [P, D], or one model's from [D]."""
    parameters, begin = {}, 0
    for name, shape in parameter_shapes(spec).items():
        end = begin + int(np.prod(shape))
        parameters[name] = theta[..., begin:end].reshape(*theta.shape[:-1], *shape).astype(np.float32)
        begin = end
    return parameters


def draw_noise(rng: np.random.Generator, settings: ESSettings, size: int) -> Floats:
    """The perturbations of a generation [pairs, D]."""
    return rng.standard_normal((settings.pairs, size))


def move(theta: Floats, adam: Adam, worth: Floats, noise: Floats, settings: ESSettings, rate: float) -> Floats:
    """The centre after one more generation; `worth` [2·pairs] is by rank."""
    pairs = settings.pairs
    gradient = (worth[:pairs] - worth[pairs:]) @ noise / (2 * pairs * settings.sigma)
    return adam.step(theta, gradient, rate, settings.weight_decay)


class Arena:
    """Plays the candidates from `begin` up to `end`, each in its own share of an environment's environments."""

    def __init__(
        self,
        worlds: Sequence[TrainingEpisodes],
        spec: ModelSpec,
        inference: InferenceSettings,
        settings: ESSettings,
        begin: int,
        end: int,
    ) -> None:
        self.worlds, self.spec, self.settings = worlds, spec, settings
        self.begin, self.end = begin, end
        # One core a run or a worker: they share a machine better than one of them its threads.
        self.solver = Solver.of(inference, threads=1)
        if inference.method == "routes":
            self.solver = dataclasses.replace(self.solver, steps=PLAN_ITERATIONS)
        self._model: DirectModel | None = None

    @property
    def model(self) -> DirectModel:
        """All candidates', each for its own share of the environments."""
        assert self._model is not None
        return self._model

    def scores(self, seen: BatchObservation) -> Scores:
        """h and g of every candidate."""
        return self.model(seen)

    def play(self, generation: Generation) -> list[Trial]:
        """These candidates on the same new episodes, all at once, environment by environment."""
        signed = np.concatenate([generation.noise, -generation.noise])[self.begin : self.end]
        candidates = generation.theta + self.settings.sigma * signed
        # Packed once for all decisions of the generation.
        self._model = DirectModel(unflatten(candidates, self.spec), self.spec.task_scores)
        trials = []
        for world, begun in zip(self.worlds, generation.begun, strict=True):
            world.begun = begun
            trials.append(self._play(world))
        return trials

    def moved(self, worth: Floats, rate: float, adam: Adam) -> None:
        """Nothing to do: each generation brings its centre."""

    def _play(self, world: TrainingEpisodes) -> Trial:
        """Every candidate in its own share of the environments."""
        env, count, steps = world.env, self.end - self.begin, 0
        env.reset(np.arange(env.n_envs), np.tile(world.take(env.n_envs // count), count))
        reward = np.zeros(env.n_envs)
        running = np.ones(env.n_envs, np.bool_)
        moment = 0
        while running.any():
            seen = env.observe()
            with blamed(env, seen, moment):
                decision = decide(seen, self.spec, self.scores, self.solver, limit=self.model.limit)
                check_finite("score", *decision.explored)
            step = env.step(decision.actions(env.reads_reasons))
            check_rewards(env, step.reward, moment)
            reward += step.reward
            steps += int(running.sum())
            running &= ~(step.terminated | step.truncated)
            moment += 1
        return Trial(reward, env.outcome(), own_figures(env), steps, count)


class Stand(NamedTuple):
    """Message: where the run's centre is."""

    theta: Floats
    mean: Floats
    spread: Floats
    updates: int


class Learn(NamedTuple):
    """Message: what the last generation was worth, and which update that makes."""

    worth: Floats
    rate: float
    updates: int


class Play(NamedTuple):
    """Message: play the next generation, if the centre is the one with this digest."""

    state: dict[str, Any]
    begun: Sequence[int]
    digest: bytes


@dataclass(frozen=True)
class CandidateJob(Job):
    """To play the candidates from `begin` up to `end`."""

    settings: TrainSettings
    spec: ModelSpec
    inference: InferenceSettings
    begin: int
    end: int
    episodes: Sequence[tuple[int, int]]
    """Which of each environment's the candidates play."""

    def make(self) -> CandidatePlayer:
        """With environments for these alone."""
        return CandidatePlayer(self)


class CandidatePlayer:
    """A worker's share of the candidates, round a centre that it moves as the run does."""

    def __init__(self, job: CandidateJob) -> None:
        settings, count = job.settings, job.end - job.begin
        worlds = []
        for k, (name, (first, last)) in enumerate(zip(settings.envs, job.episodes, strict=True)):
            env = prepare_env(settings, name, count * (last - first))
            env.threads = 1
            worlds.append(TrainingEpisodes(env, settings.seed, k))
        self.settings = settings.es
        self.skipped = [first for first, _ in job.episodes]
        self.arena = Arena(worlds, job.spec, job.inference, settings.es, job.begin, job.end)
        self.rng = np.random.default_rng(0)
        self.theta: Floats = np.zeros(0)
        self.noise: Floats = np.zeros(0)
        self.adam = Adam(0)

    def handle(self, message: Stand | Learn | Play) -> list[Trial] | None:
        """Follow the centre, or play round it; None where it is another than the run's."""
        if isinstance(message, Stand):
            self.theta, self.noise = message.theta, np.zeros(0)
            self.adam = Adam(len(self.theta), message.updates)
            self.adam.mean, self.adam.spread = message.mean, message.spread
        elif isinstance(message, Learn):
            if self.noise.size and self.adam.updates + 1 == message.updates:
                self.theta = move(self.theta, self.adam, message.worth, self.noise, self.settings, message.rate)
        elif digest(self.theta) == message.digest:
            self.rng.bit_generator.state = message.state
            self.noise = draw_noise(self.rng, self.settings, len(self.theta))
            begun = [before + skipped for before, skipped in zip(message.begun, self.skipped, strict=True)]
            return self.arena.play(Generation(self.theta, self.noise, message.state, begun))
        return None


class SpreadField:
    """Candidates and their episodes in equal shares among the workers of a crew."""

    def __init__(self, crew: Crew, adam: Adam, episodes: Sequence[int]) -> None:
        self.crew, self.adam = crew, adam
        self.columns = columns(crew.size, episodes)
        self.learned: list[Learn] = []

    def play(self, generation: Generation) -> list[Trial]:
        """Every candidate on the same new episodes, env by env; in the order of candidates, whoever played them."""
        theta, adam = generation.theta, self.adam
        stand = Stand(theta, adam.mean, adam.spread, adam.updates)
        play = Play(generation.state, generation.begun, digest(theta))
        everyone = range(self.crew.size)
        found = self.crew.call({seat: [*self.learned, play] for seat in everyone}, lambda seat: [stand])
        elsewhere = [seat for seat in everyone if found[seat] is None]
        if elsewhere:
            found |= self.crew.call({seat: [stand, play] for seat in elsewhere}, lambda seat: [])
        rows = [list(everyone)[begin : begin + self.columns] for begin in everyone[:: self.columns]]
        return [_joined([[found[seat][k] for seat in row] for row in rows]) for k in range(len(generation.begun))]

    def moved(self, worth: Floats, rate: float, adam: Adam) -> None:
        """Tell the workers with the next generation."""
        self.adam, self.learned = adam, [Learn(worth, rate, adam.updates)]


def columns(workers: int, episodes: Sequence[int]) -> int:
    """In how many equal parts workers share the episodes of each env; what else there is to share is candidates.

    Candidates may play for very unequal times, where some never come to an end. Whoever plays them all, on some of the
    episodes, is done when the others are.
    """
    return math.gcd(workers, *episodes)


def spread_candidates(
    crew: Crew, settings: TrainSettings, spec: ModelSpec, inference: InferenceSettings, episodes: Sequence[int]
) -> None:
    """Give every worker its share: neighbouring workers the same candidates on other episodes."""
    parts = columns(crew.size, episodes)
    of_candidates = shares(2 * settings.es.pairs, crew.size // parts)
    of_episodes = list(zip(*(shares(count, parts) for count in episodes), strict=True))
    jobs = [CandidateJob(settings, spec, inference, *row, column) for row in of_candidates for column in of_episodes]
    crew.enlist(jobs)


def digest(theta: Floats) -> bytes:
    """What tells one centre from another."""
    return hashlib.blake2b(theta.tobytes(), digest_size=16).digest()


def _joined(rows: Sequence[Sequence[Trial]]) -> Trial:
    """One trial of all candidates, of rows that have other candidates and columns that have other episodes."""
    trials = [trial for row in rows for trial in row]
    names = {name: None for trial in trials for name in trial.figures}
    counts = [row[0].candidates for row in rows]

    def joined(values: Callable[[Trial], Floats]) -> Floats:
        parts = [[values(trial).reshape(count, -1) for trial in row] for count, row in zip(counts, rows, strict=True)]
        return np.block(parts).ravel()

    def figure(name: str) -> Floats:
        """NaN where a share does not have it."""
        return joined(lambda trial: trial.figures.get(name, np.full(len(trial.reward), np.nan)))

    return Trial(
        joined(lambda trial: trial.reward),
        joined(lambda trial: trial.outcome),
        {name: figure(name) for name in names},
        sum(trial.steps for trial in trials),
        sum(counts),
    )
