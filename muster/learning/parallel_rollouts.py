"""Rollouts by several workers, each with a block of every environment's slots; the run itself learns.

Every slot has episodes of its own, and noise comes from one generator: each worker draws it for all slots and keeps
that of its block. So the rollout is the same however it is divided. A worker gets its block's state and returns it with
its part of the rollout, so that another can take its place at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.errors import InputError
from muster.learning.envs import make_env
from muster.learning.learner import Arrays, SlotEpisodes, State
from muster.learning.rollouts import Acting, Collector, Part, Rollout
from muster.learning.settings import TrainSettings
from muster.learning.workers import Job, WorkerPool, shares
from muster.models.critic import EntityCritic
from muster.models.direct import Parameters, make_model
from muster.models.spec import ModelSpec


class Collect(NamedTuple):
    """Message: collect a rollout in one of the environments."""

    env: int
    state: State
    """Of the block's part of it."""
    model: Parameters
    with_g: bool
    critic: Parameters
    generator: dict[str, Any]
    """Of the noise."""


class Collected(NamedTuple):
    """Answer: a block's part of the rollout, and how the block and the generator stand after it."""

    part: Part
    state: State
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

    def make(self) -> Callable[[Collect], Collected]:
        """With environments for this block alone."""
        return Block(self).collect


class Block:
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

    def collect(self, message: Collect) -> Collected:
        """Go on from where the block stands."""
        collector = self.collectors[message.env]
        collector.set_state(*message.state)
        self.rng.bit_generator.state = message.generator
        acting = Acting(
            spec=self.job.spec,
            scorer=make_model(self.job.spec, message.model, message.with_g),
            solver=self.solver,
            values=EntityCritic(message.critic),
            steps=self.own.rollout_length,
            discount=self.own.discount,
            keep_history=self.job.settings.learner == "ppo",
        )
        part = collector.collect(acting, self.rng)
        return Collected(part, collector.get_state(), dict(self.rng.bit_generator.state))


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

    def collect(self, model: Parameters, with_g: bool, critic: Parameters, rng: np.random.Generator) -> list[Rollout]:
        """A rollout of every environment; `rng` is left as if it had drawn the noise itself."""
        rollouts = []
        for k, collector in enumerate(self.collectors):
            more = model, with_g, critic, dict(rng.bit_generator.state)
            found: list[Collected] = self.pool.call([Collect(k, block[k], *more) for block in self.blocks])
            rng.bit_generator.state = found[0].generator
            for block, one in zip(self.blocks, found, strict=True):
                block[k] = one.state
            rollouts.append(Rollout.of([one.part for one in found], collector.buffers))
        return rollouts


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
