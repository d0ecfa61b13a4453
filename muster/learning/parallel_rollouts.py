"""Rollouts by several workers, each with a block of every environment's slots; the run itself learns.

Every slot has episodes of its own, and noise comes from one generator: each worker draws it for all slots and keeps
that of its block. So the rollout is the same however it is divided. A worker's state comes back with its part of the
rollout, so that another can replace it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.data import BatchObservation, Bools, Floats
from muster.errors import InputError
from muster.learning.envs import make_env
from muster.learning.learner import Arrays, SlotEpisodes, State
from muster.learning.metrics import EpisodeMetrics, mean_metrics
from muster.learning.rollouts import NO_SCORES, Acting, Collector, Draws, Recording, Rollout, standard_deviation
from muster.learning.settings import TrainSettings
from muster.learning.workers import Job, WorkerPool, shares
from muster.models.critic import EntityCritic
from muster.models.direct import Parameters, Scores, make_model
from muster.models.spec import ModelSpec
from muster.policy.decision import decide


class Restore(NamedTuple):
    """Message: the states of the block's environments."""

    states: Sequence[State]


class Weights(NamedTuple):
    """Parameters to act with."""

    model: Parameters
    critic: Parameters
    with_g: bool


class Collect(NamedTuple):
    """Message: collect a rollout in one of the environments."""

    env: int
    weights: Weights
    generator: dict[str, Any]
    """Of the noise."""


class Part(NamedTuple):
    """A block's part of a rollout."""

    states: Arrays
    """Arrays over T·b states: of the observation, of the scores, and the assignment."""
    after: Arrays
    rewards: Floats
    """[T, b]"""
    ended: Bools
    metrics: EpisodeMetrics
    """Of the episodes that ended, in that order."""
    returns: Floats
    """Their sums of rewards."""
    state: State
    """Of the environment after the rollout."""
    generator: dict[str, Any]


@dataclass(frozen=True)
class BlockJob(Job):
    """To run a block of each environment's slots."""

    settings: TrainSettings
    spec: ModelSpec
    inference: InferenceSettings
    sizes: Sequence[int]
    """Slots of each environment, all blocks together."""
    ranges: Sequence[tuple[int, int]]
    """Those of this block."""

    def make(self) -> BlockHandler:
        """With environments for this block alone."""
        return BlockHandler(self)


class BlockHandler:
    """A worker's block of every environment."""

    def __init__(self, job: BlockJob) -> None:
        settings, self.job = job.settings, job
        self.own = settings.ppo if settings.learner == "ppo" else settings.a2c
        self.solver = Solver.of(job.inference, threads=1)
        self.rng = np.random.default_rng(0)
        self.collectors = []
        for k, (name, block, size) in enumerate(zip(settings.envs, job.ranges, job.sizes, strict=True)):
            env, episodes = make_env(settings, name, block[1] - block[0]), SlotEpisodes(size, settings.seed, k, block)
            self.collectors.append(Collector(env, episodes, self.own.noise, job.spec.task_scores))

    def handle(self, message: Restore | Collect) -> Part | None:
        """What the message asks for."""
        if isinstance(message, Restore):
            for collector, state in zip(self.collectors, message.states, strict=True):
                collector.set_state(*state)
            return None
        job, k, weights = self.job, message.env, message.weights
        self.rng.bit_generator.state = message.generator
        model = make_model(job.spec, weights.model, weights.with_g)
        acting = Acting(
            steps=self.own.rollout_length,
            discount=self.own.discount,
            decide=lambda observation, explore: decide(observation, job.spec, model, self.solver, explore),
            read=job.spec.read,
            values=EntityCritic(weights.critic),
            keep_history=job.settings.learner == "ppo",
        )
        draws = Draws(self.rng, self.collectors[k].noise.gumbel, job.sizes[k], *job.ranges[k])
        return self._part(self.collectors[k], self.collectors[k].record(acting, draws))

    def _part(self, collector: Collector, recording: Recording) -> Part:
        found = recording.rollout()
        states = {f"observation/{name}": array for name, array in _present(found.observation).items()}
        states |= {"assignment": found.assignment}
        for name in ("explored", "scores", "history"):
            h, g = getattr(found, name)
            states |= {f"{name}/h": h} if h.size else {}
            states |= {} if g is None else {f"{name}/g": g}
        return Part(
            states,
            _present(found.after),
            found.rewards,
            found.ended,
            recording.episodes.values(),
            recording.episodes.rewards(),
            collector.get_state(),
            dict(self.rng.bit_generator.state),
        )


class ParallelCollectors:
    """The environments of a run, in blocks that the workers of a pool run."""

    def __init__(self, pool: WorkerPool, collectors: Sequence[Collector]) -> None:
        self.pool, self.collectors = pool, collectors
        self.ranges = [shares(collector.env.n_envs, pool.size) for collector in collectors]
        self.blocks: list[list[State]] = []
        """[worker][environment] as they were after the last update."""
        self.set_state()

    def set_state(self) -> None:
        """Go on from the state of the collectors here."""
        self.blocks = [[] for _ in range(self.pool.size)]
        for collector, ranges in zip(self.collectors, self.ranges, strict=True):
            arrays, plain = collector.get_state()
            for block, (begin, end) in zip(self.blocks, ranges, strict=True):
                block.append((split(arrays, begin, end, collector.env.n_envs, collector.env.name), plain))

    def get_state(self) -> list[State]:
        """Of every environment, all blocks together."""
        found = []
        for k in range(len(self.collectors)):
            parts = [block[k] for block in self.blocks]
            found.append((join_blocks([arrays for arrays, _ in parts]), parts[0][1]))
        return found

    def collect(self, weights: Weights, rng: np.random.Generator) -> list[Rollout]:
        """A rollout of every environment; `rng` is left as if it had drawn the noise itself."""
        rollouts, workers = [], range(self.pool.size)
        for k in range(len(self.collectors)):
            message = Collect(k, weights, dict(rng.bit_generator.state))
            answers = self.pool.call(
                {index: [message] for index in workers}, lambda index: [Restore(self.blocks[index])]
            )
            parts: list[Part] = [answers[index] for index in workers]
            rng.bit_generator.state = parts[0].generator
            for block, part in zip(self.blocks, parts, strict=True):
                block[k] = part.state
            rollouts.append(self._rollout(k, parts))
        return rollouts

    def _rollout(self, k: int, parts: Sequence[Part]) -> Rollout:
        """The rollout of one process, from the blocks' parts."""
        buffers, size, steps = self.collectors[k].buffers, self.collectors[k].env.n_envs, len(parts[0].rewards)
        rewards, ended = (np.concatenate([getattr(part, name) for part in parts], 1) for name in ("rewards", "ended"))
        blocks = {name: [part.states[name] for part in parts] for name in parts[0].states}
        states = {name: _interleave(name, arrays, steps, buffers) for name, arrays in blocks.items()}
        seen = {name.partition("/")[2]: array for name, array in states.items() if name.startswith("observation/")}
        after = {name: np.concatenate([part.after[name] for part in parts]) for name in parts[0].after}
        names = {name: None for part in parts for name in part.metrics}
        metrics = {name: _by_time([part.metrics.get(name) for part in parts], parts, ended) for name in names}
        returns = _by_time([part.returns for part in parts], parts, ended)

        def scores(name: str) -> Scores:
            return states.get(f"{name}/h", NO_SCORES[0]), states.get(f"{name}/g")

        return Rollout(
            observation=_observation(seen),
            last=_observation({name: array[-size:] for name, array in seen.items()}),
            scores=scores("scores"),
            explored=scores("explored"),
            history=scores("history"),
            assignment=states["assignment"],
            rewards=rewards,
            ended=ended,
            after=_observation(after),
            metrics=mean_metrics(metrics, len(returns)),
            reward_std=standard_deviation(returns),
        )


def assign_blocks(
    pool: WorkerPool, settings: TrainSettings, spec: ModelSpec, inference: InferenceSettings, sizes: Sequence[int]
) -> None:
    """Give every worker its block of each environment's slots."""
    ranges = zip(*(shares(size, pool.size) for size in sizes), strict=True)
    pool.assign([BlockJob(settings, spec, inference, tuple(sizes), one) for one in ranges])


def split(arrays: Arrays, begin: int, end: int, size: int, name: str) -> Arrays:
    """The rows of some slots."""
    for key, array in arrays.items():
        if array.ndim <= _axis(key) or array.shape[_axis(key)] != size:
            raise InputError(
                f"the state of {name} cannot be divided: {key.removeprefix('env/')} must have a row for each of "
                f"{size} slots, and has shape {array.shape}; leave out --workers"
            )
    return {key: array[:, begin:end] if _axis(key) else array[begin:end] for key, array in arrays.items()}


def join_blocks(parts: Sequence[Arrays]) -> Arrays:
    """The rows of all slots; histories that are longer in one block than in another are filled up."""
    found = {}
    for key in parts[0]:
        arrays, axis = [part[key] for part in parts], _axis(key)
        longest = [max(array.shape[d] for array in arrays) for d in range(arrays[0].ndim)]
        filled = []
        for array in arrays:
            missing = [(0, 0 if d == axis else longest[d] - array.shape[d]) for d in range(array.ndim)]
            # As environments do it themselves: no task where no step was taken.
            filled.append(np.pad(array, missing, constant_values=-1 if key == "env/history" else 0))
        found[key] = np.concatenate(filled, axis)
    return found


def _axis(key: str) -> int:
    """Which axis of an array of a collector's state counts the slots."""
    return 1 if key.startswith("noise_") and key.endswith("/queue") else 0


def _present(observation: BatchObservation) -> Arrays:
    arrays = {entry.name: getattr(observation, entry.name) for entry in fields(BatchObservation)}
    return {name: array for name, array in arrays.items() if array is not None}


def _observation(arrays: Arrays) -> BatchObservation:
    return BatchObservation(**{entry.name: arrays.get(entry.name) for entry in fields(BatchObservation)})  # type: ignore[arg-type]


def _interleave(name: str, arrays: Sequence[NDArray[Any]], steps: int, buffers: Arrays) -> NDArray[Any]:
    """[T·B, ...] from blocks [T·b, ...], in memory that is used again."""
    blocks = [array.reshape(steps, len(array) // steps, *array.shape[1:]) for array in arrays]
    shape = (steps, sum(block.shape[1] for block in blocks), *blocks[0].shape[2:])
    if name not in buffers or buffers[name].shape != shape:
        buffers[name] = np.empty(shape, arrays[0].dtype)
    np.concatenate(blocks, axis=1, out=buffers[name])
    return buffers[name].reshape(steps * shape[1], *shape[2:])


def _by_time(values: Sequence[Floats | None], parts: Sequence[Part], ended: Bools) -> Floats:
    """Metrics of the blocks' episodes in the order in which one process would have seen them end."""
    whole: Floats = np.full(ended.shape, np.nan)
    begin = 0
    for found, part in zip(values, parts, strict=True):
        end = begin + part.ended.shape[1]
        if found is not None:
            whole[:, begin:end][part.ended] = found
        begin = end
    return whole[ended]
