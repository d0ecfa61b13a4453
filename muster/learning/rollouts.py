"""Rollouts with exploration: some decisions in every slot of an environment, with noise on the scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.vector import BatchEnv
from muster.learning.learner import Arrays, SlotEpisodes, State, component, prefixed
from muster.learning.metrics import EndedEpisodes, Metrics
from muster.learning.optimiser import TrainingError
from muster.models.direct import Scores
from muster.models.limits import Limits, with_limits
from muster.policy.decision import Decision
from muster.policy.noise import ScoreNoise, standard_gumbels
from muster.policy.settings import NoiseSettings
from muster.rollout import rollout

NO_SCORES: Scores = (np.zeros((0, 0, 0), np.float32), None)


@dataclass(frozen=True, slots=True)
class Rollout:
    """T decisions of B slots. Arrays over T·B states are overwritten by the environment's next rollout."""

    observation: BatchObservation
    """Of T·B states, as the model reads them."""
    last: BatchObservation
    """The last B of them."""
    scores: Scores
    """h and g of T·B states as the model gave them: the old policy."""
    explored: Scores
    """The same with noise, as the inference was given them; nothing [0, ...] where the history is kept."""
    history: Scores
    """Noise of earlier decisions on h and g; nothing [0, ...] unless it is kept."""
    assignment: Ints
    """[T·B, N]"""
    rewards: Floats
    """[T, B] with the value of the last state where an episode was truncated."""
    ended: Bools
    """[T, B]"""
    after: BatchObservation
    """Of the B states after the last decision."""
    metrics: Metrics
    """Of the episodes that ended."""
    reward_std: float
    """Standard deviation of their rewards; NaN if fewer than two ended."""
    limits: tuple[Limits, Limits] = ({}, {})
    """z of learned limits, of T·B states: as the model gave it, and with this decision's noise alone."""


class Acting(NamedTuple):
    """Who acts in a rollout, and how it is recorded."""

    steps: int
    """Decisions in every slot."""
    discount: float
    decide: Callable[..., Decision]
    """Of an observation, of what adds noise to scores and, if limits are learned, of what puts them in place."""
    read: Callable[[BatchObservation], BatchObservation]
    """The observation as the model reads it."""
    values: Callable[[BatchObservation], NDArray[np.floating]]
    """[B] what is still to be earned where an episode is truncated."""
    keep_history: bool = False
    """Keep the noise of earlier decisions apart from that of each, instead of the scores with all of it."""
    limits: Callable[[BatchObservation], Limits] | None = None
    """z of learned capacities and contributions; None: none are learned."""


class Draws:
    """Noise drawn for all slots of an environment; those from `begin` to `end` are given."""

    def __init__(
        self, rng: np.random.Generator, gumbel: bool, total: int, begin: int = 0, end: int | None = None
    ) -> None:
        self.rng, self.gumbel, self.total, self.block = rng, gumbel, total, slice(begin, end)

    def __call__(self, shape: tuple[int, ...]) -> Floats32:
        """Of a shape [slots, ...]."""
        if self.gumbel:
            whole = (self.total, *shape[1:])
            return standard_gumbels(self.rng.standard_exponential(whole, np.float32)[self.block])
        return self.normal(shape)

    def normal(self, shape: tuple[int, ...]) -> Floats32:
        """Standard normals of such a shape."""
        return self.rng.standard_normal((self.total, *shape[1:]), np.float32)[self.block]


class Collector:
    """One environment of the run: its episodes and their exploration noise."""

    def __init__(
        self,
        env: BatchEnv,
        episodes: SlotEpisodes,
        noise: NoiseSettings,
        task_scores: bool,
        heads: Sequence[str] = (),
    ) -> None:
        self.env, self.episodes = env, episodes
        self.noise = ScoreNoise(noise, env.n_envs, env.n_agents, env.n_tasks, task_scores, heads)
        self.running_reward = np.zeros(env.n_envs)
        self.buffers: Arrays = {}
        self.begin(np.arange(env.n_envs))

    def collect(self, acting: Acting, rng: np.random.Generator) -> Rollout:
        """Some decisions in every slot; episodes that end are followed by new ones."""
        return self.record(acting, Draws(rng, self.noise.gumbel, self.env.n_envs)).rollout()

    def record(self, acting: Acting, draws: Draws) -> Recording:
        """The same, with noise as it is drawn, and with what else was recorded."""
        recording = Recording(self, acting, draws)
        for _ in range(acting.steps):
            self.begin(recording.step())
        return recording

    def begin(self, slots: Ints) -> None:
        """New episodes in these slots."""
        if slots.size:
            self.env.reset(slots, self.episodes.take(slots))
            self.noise.reset(slots)

    def get_state(self) -> State:
        """Everything needed to go on bit for bit."""
        arrays = prefixed("env", self.env.get_state())
        for name, noise in self.noise.parts.items():
            arrays |= {f"noise_{name}/queue": noise.queue.copy(), f"noise_{name}/total": noise.total.copy()}
        arrays |= {"noise_agents": self.noise.agents.copy(), "noise_tasks": self.noise.tasks.copy()}
        arrays |= {"running_reward": self.running_reward.copy(), "begun": self.episodes.begun.copy()}
        return arrays, {"oldest": {name: noise.oldest for name, noise in self.noise.parts.items()}}

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.env.set_state(component(arrays, "env"))
        for name, noise in self.noise.parts.items():
            noise.queue[...] = arrays[f"noise_{name}/queue"]
            noise.total[...] = arrays[f"noise_{name}/total"]
            noise.oldest = plain["oldest"][name]
        self.noise.agents[...], self.noise.tasks[...] = arrays["noise_agents"], arrays["noise_tasks"]
        self.running_reward[...], self.episodes.begun[...] = arrays["running_reward"], arrays["begun"]


class Recording:
    """A rollout under way."""

    def __init__(self, collector: Collector, acting: Acting, draw: Draws) -> None:
        env = collector.env
        self.collector, self.acting, self.draw = collector, acting, draw
        self.rewards: Floats = np.zeros((acting.steps, env.n_envs))
        self.ended: Bools = np.zeros((acting.steps, env.n_envs), np.bool_)
        self.decisions: list[Decision] = []
        self.histories: list[Scores] = []
        self.episodes = EndedEpisodes()
        """Those that ended."""
        self.given: list[Limits] = []
        self.drawn: list[Limits] = []
        self.active: Bools = np.ones(env.n_envs, np.bool_)
        self.transitions = rollout(env, self.act, self.active)

    def act(self, observation: BatchObservation) -> Ints:
        """One decision in every slot, which is kept."""
        self.collector.noise.follow(observation)
        limit = () if self.acting.limits is None else (self._limit,)
        self.decisions.append(self.acting.decide(observation, self._explore, *limit))
        return self.decisions[-1].actions(self.collector.env.reads_reasons)

    def _explore(self, scores: Scores) -> Scores:
        explored, history = self.collector.noise.add(scores, self.draw)
        if self.acting.keep_history:
            self.histories.append(history)
        check_finite("score", *explored)
        return explored

    def _limit(self, observation: BatchObservation) -> BatchObservation:
        """The observation with learned limits, with noise."""
        assert self.acting.limits is not None
        self.given.append(self.acting.limits(observation))
        explored, drawn = self.collector.noise.add_to_limits(self.given[-1], self.draw.normal)
        check_finite("limit", *explored.values())
        self.drawn.append(drawn)
        return with_limits(observation, explored)

    def step(self) -> Ints:
        """One decision in every slot; returns those whose episodes ended, where others must begin before the next."""
        collector, acting, t = self.collector, self.acting, len(self.decisions)
        self.active[:] = True
        result = next(self.transitions).result
        self.rewards[t] = result.reward
        collector.running_reward += result.reward
        self.ended[t] = result.terminated | result.truncated
        slots = np.flatnonzero(self.ended[t])
        if result.truncated.any():
            # A truncated episode would have gone on: its last state's value belongs to the return.
            cut = np.flatnonzero(result.truncated)
            self.rewards[t, cut] += acting.discount * acting.values(acting.read(collector.env.observe()))[cut]
        if slots.size:
            self.episodes.add(collector.env, slots, collector.running_reward)
            collector.running_reward[slots] = 0.0
        return slots

    def rollout(self) -> Rollout:
        """All of it."""
        buffers, decisions, keep = self.collector.buffers, self.decisions, self.acting.keep_history
        return Rollout(
            observation=join([decision.observation for decision in decisions], buffers),
            last=decisions[-1].observation,
            scores=_stack("scores", [decision.scores for decision in decisions], buffers),
            explored=NO_SCORES if keep else _stack("explored", [one.explored for one in decisions], buffers),
            history=_stack("history", self.histories, buffers) if keep else NO_SCORES,
            assignment=np.concatenate([decision.assignment for decision in decisions]),
            rewards=self.rewards,
            ended=self.ended,
            after=self.acting.read(self.collector.env.observe()),
            metrics=self.episodes.mean(),
            reward_std=standard_deviation(self.episodes.rewards()),
            limits=(_join_limits(self.given), _join_limits(self.drawn)),
        )


def standard_deviation(rewards: Floats) -> float:
    """NaN of fewer than two."""
    return float(np.std(rewards)) if len(rewards) > 1 else float("nan")


def join(observations: list[BatchObservation], buffers: Arrays) -> BatchObservation:
    """One observation of T·B states from T of B."""
    parts: dict[str, Any] = {}
    for entry in dataclasses.fields(BatchObservation):
        arrays = [getattr(observation, entry.name) for observation in observations]
        parts[entry.name] = None if arrays[0] is None else _gather(entry.name, arrays, buffers)
    return BatchObservation(**parts)


def _join_limits(limits: list[Limits]) -> Limits:
    """z of T·B states from T of B."""
    return {head: np.concatenate([z[head] for z in limits]) for head in (limits[0] if limits else ())}


def _stack(name: str, scores: list[Scores], buffers: Arrays) -> Scores:
    """h and g of T·B states from T of B."""
    h, g = zip(*scores, strict=True)
    return _gather(f"{name}/h", h, buffers), None if g[0] is None else _gather(f"{name}/g", g, buffers)


def _gather(name: str, arrays: Sequence[NDArray[Any]], buffers: Arrays) -> NDArray[Any]:
    """One after the other, in memory that is used again: finding new memory takes longer than filling it."""
    shape = (sum(map(len, arrays)), *arrays[0].shape[1:])
    if name not in buffers or buffers[name].shape != shape:
        buffers[name] = np.empty(shape, arrays[0].dtype)
    np.concatenate(arrays, out=buffers[name])
    return buffers[name]


def check_finite(name: str, *arrays: NDArray[Any] | None) -> None:
    """Raise TrainingError if a value is not finite."""
    for array in arrays:
        if array is not None and not np.isfinite(array).all():
            raise TrainingError(
                f"a {name} is not finite; lower the learning rate or sigma, or check the environment's features and "
                "rewards"
            )
