"""The actor-critic's environments in blocks, one for each worker: they score, solve and step; the run learns.

The blocks play in step. After each decision the run hears how many episodes ended in every block and numbers those that
begin, in the order of the slots, as one process would. Noise comes from one generator: each worker draws it for all
environments and keeps that of its own. A worker's state comes back with its part of the rollout, so that another can
take its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.data import BatchObservation, Bools, Floats, Ints
from muster.errors import InputError
from muster.learning.crew import Crew, shares
from muster.learning.player import Job
from muster.learning.rollouts import Decide, Draws, Manner, Playing, Rollout, Worker, spread_of
from muster.learning.settings import TrainSettings
from muster.learning.tally import Values, averaged
from muster.learning.worlds import prepare_env
from muster.models.direct import DirectModel, Parameters, Scores
from muster.models.spec import ModelSpec
from muster.models.values import EntityValues
from muster.policy.decision import decide

Arrays = dict[str, NDArray[Any]]
State = tuple[Arrays, dict[str, Any]]
"""Of an environment: arrays with a row for each environment, and plain values."""


class Restore(NamedTuple):
    """Message: the states of the block's environments."""

    states: Sequence[State]


class Weights(NamedTuple):
    """Message: the parameters to play with."""

    model: Parameters
    critic: Parameters
    pairs: bool
    """Whether g counts."""


class Begin(NamedTuple):
    """Message: a rollout in one of the environments, and the generator of its noise."""

    world: int
    state: dict[str, Any]


class Step(NamedTuple):
    """Message: begin episodes where some ended, from this number on; then decide once. Answer: how many ended."""

    first: int


class Finish(NamedTuple):
    """Message: begin episodes where some ended, and give back what was played."""

    first: int


class Part(NamedTuple):
    """A block's part of a rollout."""

    states: Arrays
    """What covers T·b states: of the observation, of the scores, and the assignment."""
    after: Arrays
    rewards: Floats
    """[T, b]"""
    ended: Bools
    values: Values
    """Of the episodes that ended, in that order."""
    sums: Floats
    """Their rewards."""
    world: State
    generator: dict[str, Any]


@dataclass(frozen=True)
class BlockJob(Job):
    """To play a block of each environment's environments."""

    settings: TrainSettings
    spec: ModelSpec
    inference: InferenceSettings
    sizes: Sequence[int]
    """Environments of each environment, all blocks together."""
    ranges: Sequence[tuple[int, int]]
    """Those of this block."""

    def make(self) -> BlockPlayer:
        """With environments for this block alone."""
        return BlockPlayer(self)


class BlockPlayer:
    """A worker's block of every environment."""

    def __init__(self, job: BlockJob) -> None:
        settings = job.settings
        self.job, self.recipe = job, settings.a2c.recipe
        self.solver = Solver.of(job.inference, threads=1)
        self.rng = np.random.default_rng(0)
        self.worlds = []
        for k, (name, (begin, end)) in enumerate(zip(settings.envs, job.ranges, strict=True)):
            env = prepare_env(settings, name, end - begin)
            env.threads = 1
            self.worlds.append(Worker(env, settings.seed, self.recipe.noise, job.spec.task_scores, k))
        self.model: DirectModel | None = None
        self.critic: EntityValues | None = None
        self.world = 0
        self.playing: Playing | None = None
        self.over: Ints = np.zeros(0, np.int64)
        """Slots where episodes have ended and none has begun."""

    def handle(self, message: Restore | Weights | Begin | Step | Finish) -> int | Part | None:
        """What the message asks for."""
        if isinstance(message, Restore):
            for world, state in zip(self.worlds, message.states, strict=True):
                world.set_state(*state)
        elif isinstance(message, Weights):
            self.model = DirectModel(message.model, message.pairs)
            self.critic = EntityValues(message.critic)
        elif isinstance(message, Begin):
            self._begin(message)
        elif isinstance(message, Step):
            self._renew(message.first)
            assert self.playing is not None
            self.over = self.playing.step()
            return len(self.over)
        else:
            self._renew(message.first)
            return self._part()
        return None

    def _begin(self, message: Begin) -> None:
        self.world, self.rng.bit_generator.state = message.world, message.state
        world, job, (begin, end) = self.worlds[message.world], self.job, self.job.ranges[message.world]
        model, critic = self.model, self.critic
        assert model is not None
        assert critic is not None
        chooses: Decide = lambda seen, explore: decide(seen, job.spec, model, self.solver, explore)  # noqa: E731
        manner = Manner(
            steps=self.recipe.return_steps,
            discount=job.settings.a2c.discount,
            remember=job.settings.a2c.likelihood != "played",
            decide=chooses,
            view=job.spec.view,
            values=critic,
        )
        draws = Draws(self.rng, world.noise.gumbel, job.sizes[message.world], begin, end)
        self.playing = Playing(world, manner, draws)

    def _renew(self, first: int) -> None:
        world = self.worlds[self.world]
        world.episodes.begun = first
        world.begin(self.over)
        self.over = np.zeros(0, np.int64)

    def _part(self) -> Part:
        playing = self.playing
        assert playing is not None
        found = playing.rollout()
        states = {f"seen/{name}": array for name, array in _present(found.seen).items()}
        states |= {"assignment": found.assignment}
        for name in ("played", "scores", "history"):
            h, g = getattr(found, name)
            states |= {f"{name}/h": h} if h.size else {}
            states |= {} if g is None else {f"{name}/g": g}
        over = playing.over
        state = self.worlds[self.world].get_state()
        return Part(
            states,
            _present(found.after),
            found.rewards,
            found.ended,
            over.values(),
            over.rewards(),
            state,
            dict(self.rng.bit_generator.state),
        )


class SpreadWorlds:
    """The environments of a run, in blocks that the workers of a crew play."""

    def __init__(self, crew: Crew, worlds: Sequence[Worker]) -> None:
        self.crew, self.worlds = crew, worlds
        self.ranges = [shares(world.env.n_envs, crew.size) for world in worlds]
        self.blocks: list[list[State]] = []
        """[seat][environment] as they were after the last update."""
        self.set_state()

    def set_state(self) -> None:
        """Go on from the state of the environments here."""
        self.blocks = [[] for _ in range(self.crew.size)]
        for world, ranges in zip(self.worlds, self.ranges, strict=True):
            arrays, plain = world.get_state()
            for block, (begin, end) in zip(self.blocks, ranges, strict=True):
                block.append((split(arrays, begin, end, world.env.n_envs, world.env.name), plain))

    def get_state(self) -> list[State]:
        """Of every environment, all blocks together."""
        found = []
        for k, world in enumerate(self.worlds):
            parts = [block[k] for block in self.blocks]
            plain = parts[0][1] | {"begun": world.episodes.begun}
            found.append((join([arrays for arrays, _ in parts]), plain))
        return found

    def play(self, weights: Weights, steps: int, rng: np.random.Generator) -> list[Rollout]:
        """A rollout of every environment; `rng` is left as if it had drawn the noise itself."""
        rollouts = []
        for k in range(len(self.worlds)):
            parts = self._play(k, weights, steps, dict(rng.bit_generator.state))
            rng.bit_generator.state = parts[0].generator
            for block, part in zip(self.blocks, parts, strict=True):
                block[k] = part.world
            rollouts.append(self._rollout(k, parts))
        return rollouts

    def _play(self, k: int, weights: Weights, steps: int, generator: dict[str, Any]) -> list[Part]:
        episodes, everyone = self.worlds[k].episodes, range(self.crew.size)
        told: list[list[Any]] = [[] for _ in everyone]
        counts = [0 for _ in everyone]
        opening: list[Any] = [weights, Begin(k, generator)]

        def recover(seat: int) -> list[Any]:
            return [Restore(self.blocks[seat]), weights, *told[seat]]

        def tell(kind: type[Step] | type[Finish]) -> list[Any]:
            """Each block the number of its next episode, and what to do."""
            firsts = episodes.begun + np.concatenate([[0], np.cumsum(counts)])
            episodes.begun = int(firsts[-1])
            requests = {seat: [*opening, kind(int(firsts[seat]))] for seat in everyone}
            answers = self.crew.call(requests, recover)
            opening.clear()
            for seat in everyone:
                told[seat] += requests[seat]
            return [answers[seat] for seat in everyone]

        for _ in range(steps):
            counts = tell(Step)
        return tell(Finish)

    def _rollout(self, k: int, parts: Sequence[Part]) -> Rollout:
        """What one process would have played."""
        room, steps = self.worlds[k].room, len(parts[0].rewards)
        size = self.worlds[k].env.n_envs
        rewards, ended = (np.concatenate([getattr(part, name) for part in parts], 1) for name in ("rewards", "ended"))
        blocks = {name: [part.states[name] for part in parts] for name in parts[0].states}
        states = {name: _interleave(name, arrays, steps, room) for name, arrays in blocks.items()}
        seen = _observation({name[5:]: array for name, array in states.items() if name.startswith("seen/")})
        after = _observation({name: np.concatenate([part.after[name] for part in parts]) for name in parts[0].after})
        values = {name: _by_time([part.values.get(name) for part in parts], parts, ended) for name in _names(parts)}
        sums = _by_time([part.sums for part in parts], parts, ended)

        def scores(name: str) -> Scores:
            return states.get(f"{name}/h", np.zeros((0, 0, 0), np.float32)), states.get(f"{name}/g")

        return Rollout(
            seen=seen,
            last=_observation({name: array[-size:] for name, array in _present(seen).items()}),
            played=scores("played"),
            scores=scores("scores"),
            history=scores("history"),
            assignment=states["assignment"],
            rewards=rewards,
            ended=ended,
            after=after,
            figures=averaged(values, len(sums)),
            spread=spread_of(sums),
        )


def spread_worlds(
    crew: Crew, settings: TrainSettings, spec: ModelSpec, inference: InferenceSettings, sizes: Sequence[int]
) -> None:
    """Give every worker its block of each environment's environments."""
    ranges = zip(*(shares(size, crew.size) for size in sizes), strict=True)
    crew.enlist([BlockJob(settings, spec, inference, tuple(sizes), one) for one in ranges])


def split(arrays: Arrays, begin: int, end: int, size: int, name: str) -> Arrays:
    """The rows of some environments."""
    for key, array in arrays.items():
        if array.ndim <= _axis(key) or array.shape[_axis(key)] != size:
            raise InputError(
                f"the state of {name} cannot be shared out: {key.removeprefix('env/')} must have a row for each of "
                f"{size} environments, and has shape {array.shape}; leave out --workers"
            )
    return {key: array[:, begin:end] if _axis(key) else array[begin:end] for key, array in arrays.items()}


def join(parts: Sequence[Arrays]) -> Arrays:
    """The rows of all environments; histories that are longer in one block than in another are filled up."""
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
    """Which axis of an array of an environment's state counts the environments."""
    return 1 if key.startswith("noise_") and key.endswith("/queue") else 0


def _present(seen: BatchObservation) -> Arrays:
    arrays = {entry.name: getattr(seen, entry.name) for entry in fields(BatchObservation)}
    return {name: array for name, array in arrays.items() if array is not None}


def _observation(arrays: Arrays) -> BatchObservation:
    return BatchObservation(**{entry.name: arrays.get(entry.name) for entry in fields(BatchObservation)})  # type: ignore[arg-type]


def _interleave(name: str, arrays: Sequence[NDArray[Any]], steps: int, room: Arrays) -> NDArray[Any]:
    """[T·B, ...] from blocks [T·b, ...], in memory that is used again."""
    blocks = [array.reshape(steps, len(array) // steps, *array.shape[1:]) for array in arrays]
    shape = (steps, sum(block.shape[1] for block in blocks), *blocks[0].shape[2:])
    if name not in room or room[name].shape != shape:
        room[name] = np.empty(shape, arrays[0].dtype)
    np.concatenate(blocks, axis=1, out=room[name])
    return room[name].reshape(steps * shape[1], *shape[2:])


def _names(parts: Sequence[Part]) -> list[str]:
    return list({name: None for part in parts for name in part.values})


def _by_time(values: Sequence[Floats | None], parts: Sequence[Part], ended: Bools) -> Floats:
    """Figures of the blocks' episodes in the order in which one process would have seen them end."""
    whole: Floats = np.full(ended.shape, np.nan)
    begin = 0
    for found, part in zip(values, parts, strict=True):
        end = begin + part.ended.shape[1]
        if found is not None:
            whole[:, begin:end][part.ended] = found
        begin = end
    return whole[ended]
