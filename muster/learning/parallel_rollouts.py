"""Rollouts by several workers, each with a block of every environment's slots; the run itself learns.

Every slot has its own episodes, and the noise comes from one generator: each worker draws it for all slots and keeps
the part of its block. So the rollout does not depend on the number of workers. A worker receives its block's state and
returns it with its part of the rollout, so that another can replace it at any time.
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
from muster.models.direct import make_model
from muster.models.spec import ModelSpec, Parameters


class Collect(NamedTuple):
    """Message: collect a rollout in one of the environments."""

    env: int
    state: State
    """State of the block's slots."""
    model: Parameters
    with_g: bool
    critic: Parameters
    generator: dict[str, Any]
    """State of the noise's random generator."""


class Collected(NamedTuple):
    """Answer: a block's part of the rollout, and the states of block and generator after it."""

    part: Part
    state: State
    generator: dict[str, Any]


@dataclass(frozen=True)
class BlockJob(Job):
    """A worker's job: a block of each environment's slots."""

    settings: TrainSettings
    spec: ModelSpec
    inference: InferenceSettings
    sizes: Sequence[int]
    """Slots of each environment, all blocks together."""
    ranges: Sequence[tuple[int, int]]
    """Range of slots of this block, in each environment."""

    def make(self) -> Callable[[Collect], Collected]:
        """The function of a block with environments of its size."""
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
        """Collect the block's part of a rollout, from the state in the message."""
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
        """[worker][environment] states after the last update."""
        self.set_state()

    def set_state(self) -> None:
        """Divide the state of the run's own collectors among the blocks."""
        self.blocks = [[] for _ in range(self.pool.size)]
        for collector, ranges in zip(self.collectors, self.ranges, strict=True):
            arrays, plain = collector.get_state()
            for block, (begin, end) in zip(self.blocks, ranges, strict=True):
                block.append((split(arrays, begin, end, collector.env.n_envs, collector.env.name), plain))

    def get_state(self) -> list[State]:
        """State of every environment, joined from all blocks."""
        states = []
        for k in range(len(self.collectors)):
            parts = [block[k] for block in self.blocks]
            states.append((join_blocks([arrays for arrays, _ in parts]), parts[0][1]))
        return states

    def collect(self, model: Parameters, with_g: bool, critic: Parameters, rng: np.random.Generator) -> list[Rollout]:
        """One rollout of every environment; `rng` advances as if the noise were drawn here."""
        rollouts = []
        for k, collector in enumerate(self.collectors):
            common = model, with_g, critic, dict(rng.bit_generator.state)
            answers: list[Collected] = self.pool.call([Collect(k, block[k], *common) for block in self.blocks])
            rng.bit_generator.state = answers[0].generator
            for block, answer in zip(self.blocks, answers, strict=True):
                block[k] = answer.state
            rollouts.append(Rollout.of([answer.part for answer in answers], collector.buffers))
        return rollouts


def assign_blocks(
    pool: WorkerPool, settings: TrainSettings, spec: ModelSpec, inference: InferenceSettings, sizes: Sequence[int]
) -> None:
    """Give every worker its block of each environment's slots."""
    ranges = zip(*(shares(size, pool.size) for size in sizes), strict=True)
    pool.assign([BlockJob(settings, spec, inference, tuple(sizes), one) for one in ranges])


def split(arrays: Arrays, begin: int, end: int, size: int, name: str) -> Arrays:
    """Arrays of a collector's state for slots `begin` to `end` of `size`."""
    for key, array in arrays.items():
        if array.ndim <= _axis(key) or array.shape[_axis(key)] != size:
            raise InputError(
                f"the state of {name} cannot be divided: {key.removeprefix('env/')} must have a row for each of "
                f"{size} slots, and has shape {array.shape}; leave out --workers"
            )
    return {key: array[:, begin:end] if _axis(key) else array[begin:end] for key, array in arrays.items()}


def join_blocks(parts: Sequence[Arrays]) -> Arrays:
    """Arrays of all slots from those of the blocks; shorter histories are padded to the longest."""
    joined = {}
    for key in parts[0]:
        arrays, axis = [part[key] for part in parts], _axis(key)
        longest = [max(array.shape[d] for array in arrays) for d in range(arrays[0].ndim)]
        filled = []
        for array in arrays:
            missing = [(0, 0 if d == axis else longest[d] - array.shape[d]) for d in range(array.ndim)]
            # As in the environments: -1, no task, where no step was taken.
            filled.append(np.pad(array, missing, constant_values=-1 if key == "env/history" else 0))
        joined[key] = np.concatenate(filled, axis)
    return joined


def _axis(key: str) -> int:
    """Axis of the slots in an array of a collector's state."""
    return 1 if key.startswith("noise_") and key.endswith("/queue") else 0
