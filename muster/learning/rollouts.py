"""How the actor-critic plays: some decisions in every environment of an environment, with noise on the scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.vector import BatchEnv
from muster.errors import EnvError, InputError, MusterError
from muster.learning.episodes import TrainingEpisodes
from muster.learning.parts import part, under
from muster.learning.tally import Ended, Figures
from muster.models.direct import Scores
from muster.models.heads import Limits, with_limits
from muster.policy.decision import Decision
from muster.policy.noise import ScoreNoise, standard_gumbels
from muster.policy.settings import NoiseSettings

Room = dict[str, NDArray[Any]]
Decide = Callable[..., Decision]
"""Of an observation and of what adds noise to scores; and, where limits are learned, of what puts them in place."""


NO_LIMITS: tuple[Limits, Limits] = ({}, {})


class TrainingError(MusterError):
    """Training cannot go on; the message names the quantity that went wrong."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """T decisions of B environments. What covers T·B states is overwritten by the environment's next rollout."""

    seen: BatchObservation
    """Of T·B states, as the model reads them."""
    last: BatchObservation
    """The last B of them."""
    played: Scores
    """h and g of T·B states as the inference saw them."""
    scores: Scores
    """h and g as the model gave them: the old policy."""
    history: Scores
    """Noise of earlier decisions on h and g; nothing [0, ...] unless asked for."""
    assignment: Ints
    """[T·B, N]"""
    rewards: Floats
    """[T, B]"""
    ended: Bools
    """[T, B]"""
    after: BatchObservation
    figures: Figures
    """Of the episodes that ended."""
    spread: float
    """Standard deviation of their rewards; NaN if fewer than two ended."""
    limits: tuple[Limits, Limits] = NO_LIMITS
    """z of learned limits, of T·B states: as the model gave it, and as drawn, without noise of earlier decisions."""

    def without_history(self) -> Scores:
        """h and g with nothing but each decision's own innovation."""
        h, g = self.played
        past_h, past_g = self.history
        return h - past_h, g if g is None or past_g is None else g - past_g


class Manner(NamedTuple):
    """How a rollout is played."""

    steps: int
    """Decisions in every environment."""
    discount: float
    remember: bool
    """Whether to keep the noise of earlier decisions apart from that of each."""
    decide: Decide
    view: Callable[[BatchObservation], BatchObservation]
    values: Callable[[BatchObservation], NDArray[np.floating]]
    limits: Callable[[BatchObservation], Limits] | None = None
    """z of learned capacities and contributions, which `decide` is then given with noise; None: none are learned."""


class Draws:
    """What innovations are made of, drawn for all envs of an env; those from `begin` to `end` are given."""

    def __init__(
        self, rng: np.random.Generator, gumbel: bool, total: int, begin: int = 0, end: int | None = None
    ) -> None:
        self.rng, self.gumbel, self.total, self.block = rng, gumbel, total, slice(begin, end)

    def __call__(self, shape: tuple[int, ...]) -> Floats32:
        """Of a shape [environments, ...]."""
        if self.gumbel:
            whole = (self.total, *shape[1:])
            return standard_gumbels(self.rng.standard_exponential(whole, np.float32)[self.block])
        return self.normal(shape)

    def normal(self, shape: tuple[int, ...]) -> Floats32:
        """Standard normals of such a shape."""
        return self.rng.standard_normal((self.total, *shape[1:]), np.float32)[self.block]


class Worker:
    """One environment of the run: its environments, their episodes and their noise."""

    def __init__(
        self,
        env: BatchEnv,
        seed: int,
        noise: NoiseSettings,
        task_scores: bool,
        world: int = 0,
        heads: Sequence[str] = (),
    ) -> None:
        self.env = env
        self.noise = ScoreNoise(noise, env.n_envs, env.n_agents, env.n_tasks, task_scores, heads)
        self.episodes = TrainingEpisodes(env, seed, world)
        self.episodes.begin(np.arange(env.n_envs))
        self.running_reward = np.zeros(env.n_envs)
        self.room: Room = {}

    def play(self, manner: Manner, rng: np.random.Generator) -> Rollout:
        """Some decisions in every environment; episodes that end are followed by new ones."""
        playing = Playing(self, manner, Draws(rng, self.noise.gumbel, self.env.n_envs))
        for _ in range(manner.steps):
            self.begin(playing.step())
        return playing.rollout()

    def begin(self, slots: Ints) -> None:
        """New episodes in these slots."""
        if slots.size:
            self.episodes.begin(slots)
            self.noise.reset(slots)

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit: arrays, and plain values."""
        arrays = under("env", self.env.get_state())
        for name, noise in self.noise.parts.items():
            arrays |= {f"noise_{name}/queue": noise.queue.copy(), f"noise_{name}/total": noise.total.copy()}
        arrays |= {"noise_agents": self.noise.agents.copy(), "noise_tasks": self.noise.tasks.copy()}
        arrays["running_reward"] = self.running_reward.copy()
        oldest = {name: noise.oldest for name, noise in self.noise.parts.items()}
        return arrays, {"begun": self.episodes.begun, "oldest": oldest}

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.env.set_state(part(arrays, "env"))
        for name, noise in self.noise.parts.items():
            noise.queue[...] = arrays[f"noise_{name}/queue"]
            noise.total[...] = arrays[f"noise_{name}/total"]
            noise.oldest = plain["oldest"][name]
        if "noise_agents" in arrays:  # runs of before environments had ids do not
            self.noise.agents[...], self.noise.tasks[...] = arrays["noise_agents"], arrays["noise_tasks"]
        self.running_reward[...] = arrays["running_reward"]
        self.episodes.begun = plain["begun"]


class Playing:
    """A rollout under way."""

    def __init__(self, worker: Worker, manner: Manner, draw: Draws) -> None:
        self.worker, self.manner, self.draw = worker, manner, draw
        self.rewards: Floats = np.zeros((manner.steps, worker.env.n_envs))
        self.ended: Bools = np.zeros((manner.steps, worker.env.n_envs), np.bool_)
        self.decisions: list[Decision] = []
        self.histories: list[Scores] = []
        self.over = Ended()
        """The episodes that ended."""
        self.given: list[Limits] = []
        self.drawn: list[Limits] = []

    def explore(self, scores: Scores) -> Scores:
        """The scores with noise."""
        played, history = self.worker.noise.add(scores, self.draw)
        if self.manner.remember:
            self.histories.append(history)
        check_finite("score", *played)
        return played

    def limit(self, seen: BatchObservation) -> BatchObservation:
        """What is seen with learned limits, with noise."""
        assert self.manner.limits is not None
        self.given.append(self.manner.limits(seen))
        played, drawn = self.worker.noise.add_to_limits(self.given[-1], self.draw.normal)
        check_finite("limit", *played.values())
        self.drawn.append(drawn)
        return with_limits(seen, played)

    def step(self) -> Ints:
        """One decision in every environment; returns the slots whose episodes ended, where others must begin."""
        worker, manner, t = self.worker, self.manner, len(self.decisions)
        env = worker.env
        seen = env.observe()
        worker.noise.follow(seen)
        with blamed(env, seen, t):
            learned = () if manner.limits is None else (self.limit,)
            decision = manner.decide(seen, self.explore, *learned)
        step = env.step(decision.actions(env.reads_reasons))
        check_rewards(env, step.reward, t)
        self.decisions.append(decision)
        self.rewards[t] = step.reward
        worker.running_reward += step.reward
        self.ended[t] = step.terminated | step.truncated
        slots = np.flatnonzero(self.ended[t])
        if step.truncated.any():
            # A truncated episode would have gone on: its last state's value belongs to the return.
            cut = np.flatnonzero(step.truncated)
            self.rewards[t, cut] += manner.discount * manner.values(manner.view(env.observe()))[cut]
        if slots.size:
            self.over.add(env, slots, worker.running_reward)
            worker.running_reward[slots] = 0.0
        return slots

    def rollout(self) -> Rollout:
        """All of it."""
        room, decisions, manner = self.worker.room, self.decisions, self.manner
        nothing: Scores = (np.zeros((0, 0, 0), np.float32), None)
        return Rollout(
            seen=join([decision.observation for decision in decisions], room),
            last=decisions[-1].observation,
            played=_stack("played", [decision.explored for decision in decisions], room),
            scores=_stack("scores", [decision.scores for decision in decisions], room),
            history=_stack("history", self.histories, room) if manner.remember else nothing,
            assignment=np.concatenate([decision.assignment for decision in decisions]),
            rewards=self.rewards,
            ended=self.ended,
            after=manner.view(self.worker.env.observe()),
            figures=self.over.metrics(),
            spread=spread_of(self.over.rewards()),
            limits=(_join_limits(self.given), _join_limits(self.drawn)),
        )


def spread_of(rewards: Floats) -> float:
    """Standard deviation; NaN of fewer than two."""
    return float(np.std(rewards)) if len(rewards) > 1 else float("nan")


def join(observations: list[BatchObservation], room: Room) -> BatchObservation:
    """One observation of T·B environments from T of B environments."""
    parts: dict[str, Any] = {}
    for entry in dataclasses.fields(BatchObservation):
        arrays = [getattr(seen, entry.name) for seen in observations]
        parts[entry.name] = None if arrays[0] is None else _gather(entry.name, arrays, room)
    return BatchObservation(**parts)


def take(seen: BatchObservation, states: Ints) -> BatchObservation:
    """Some of the environments of an observation."""
    parts: dict[str, Any] = {}
    for entry in dataclasses.fields(BatchObservation):
        array = getattr(seen, entry.name)
        parts[entry.name] = None if array is None else array[states]
    return BatchObservation(**parts)


def _join_limits(limits: list[Limits]) -> Limits:
    """z of T·B states from T of B."""
    return {head: np.concatenate([z[head] for z in limits]) for head in (limits[0] if limits else ())}


def _stack(name: str, scores: list[Scores], room: Room) -> Scores:
    """h and g of T·B states from T of B."""
    h, g = zip(*scores, strict=True)
    return _gather(f"{name}/h", h, room), None if g[0] is None else _gather(f"{name}/g", g, room)


def _gather(name: str, arrays: Sequence[NDArray[Any]], room: Room) -> NDArray[Any]:
    """One after the other, in memory that is used again: the system takes longer to find new than to fill it."""
    shape = (sum(map(len, arrays)), *arrays[0].shape[1:])
    if name not in room or room[name].shape != shape:
        room[name] = np.empty(shape, arrays[0].dtype)
    np.concatenate(arrays, out=room[name])
    return room[name]


def check_finite(name: str, *arrays: NDArray[Any] | None) -> None:
    """Stop where a number is none any more."""
    for array in arrays:
        if array is not None and not np.isfinite(array).all():
            raise TrainingError(
                f"a {name} is not finite; lower the learning rate or sigma, or check the env's features and rewards"
            )


def check_rewards(env: BatchEnv, rewards: Floats, step: int) -> None:
    """Stop where an environment pays what is no number."""
    if not np.isfinite(rewards).all():
        slot = int(np.flatnonzero(~np.isfinite(rewards))[0])
        raise EnvError(f"a reward is not finite: {env.name} paid {rewards[slot]} in {_place(env, slot, step)}")


@contextmanager
def blamed(env: BatchEnv, seen: BatchObservation, step: int) -> Iterator[None]:
    """Where a decision fails because of a number that the env showed, say which: env, slot, step and field.

    `step` counts from the beginning of the rollout. Looking costs nothing while all goes well.
    """
    try:
        yield
    except (InputError, TrainingError) as failure:
        for entry in dataclasses.fields(BatchObservation):
            array = getattr(seen, entry.name)
            if array is None or array.dtype.kind != "f":
                continue
            fine = np.isfinite(array)
            if entry.name == "capacities":
                fine |= array == np.inf
            if not fine.all():
                slot, *where = np.argwhere(~fine)[0].tolist()
                raise EnvError(
                    f"{entry.name} of {env.name} must be finite, got {array[(slot, *where)]} at {where} in "
                    f"{_place(env, slot, step)}"
                ) from failure
        raise


def _place(env: BatchEnv, slot: int, step: int) -> str:
    return f"slot {slot} of {env.n_envs} at step {step} of the rollout"
