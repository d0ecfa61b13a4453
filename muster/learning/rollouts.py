"""Rollouts with exploration: a number of decisions in every slot of an environment, with noise on the scores.

One process runs all slots of an environment, or several run a block of slots each (parallel_rollouts.py). A rollout is
joined from the parts of its blocks, and is the same however the slots were divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.vector import BatchEnv
from muster.learning.learner import Arrays, SlotEpisodes, State, component, prefixed
from muster.learning.metrics import Metrics, episode_metrics, mean_metrics
from muster.learning.optimiser import TrainingError
from muster.models.limits import Limits, with_limits
from muster.models.spec import ModelSpec, Scores
from muster.policy.decision import Inference, Scorer, decide
from muster.policy.noise import ScoreNoise, standard_gumbels
from muster.policy.settings import NoiseSettings
from muster.rollout import Transition, rollout

NO_SCORES = np.zeros((0, 0, 0), np.float32)


class Part(NamedTuple):
    """A block's part of a rollout: b slots, T decisions."""

    states: Arrays
    """[T, b, …] by name: observation/…, scores/h, assignment, rewards, …; metrics/… are NaN where no episode ended."""
    after: Arrays
    """[b, …] arrays of the observation after the last decision."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """T decisions in B slots. Arrays of T·B states are overwritten by the environment's next rollout."""

    observation: BatchObservation
    """T·B observations, as the model reads them."""
    last: BatchObservation
    """The last B of these observations."""
    scores: Scores
    """h and g of T·B states, of the policy that acted (the old policy of PPO)."""
    explored: Scores
    """The same with noise, as the solver received them; empty where `history` is kept."""
    history: Scores
    """Noise of earlier decisions in these scores; empty unless it is kept."""
    assignment: Ints
    """[T·B, N]"""
    rewards: Floats
    """[T, B]; those of truncated steps include discount times the value of the episode's last state."""
    ended: Bools
    """[T, B] terminated or truncated."""
    after: BatchObservation
    """B observations after the last decision."""
    metrics: Metrics
    """Means over the episodes that ended."""
    reward_std: float
    """Standard deviation of their rewards; NaN if fewer than two ended."""
    limits: tuple[Limits, Limits]
    """z of learned limits in T·B states: the model's, and the same with this decision's noise alone."""

    @classmethod
    def of(cls, parts: Sequence[Part], buffers: Arrays) -> Rollout:
        """Join the parts of all blocks; `buffers` is memory that the next rollout reuses."""
        names = dict.fromkeys(name for part in parts for name in part.states)
        states = {name: _side_by_side(name, parts, buffers) for name in names}
        ended = states["ended"]
        flat = {name: array.reshape(ended.size, *array.shape[2:]) for name, array in states.items()}
        after = {name: np.concatenate([part.after[name] for part in parts]) for name in parts[0].after}
        # Episodes by time, then by slot: the order does not depend on the blocks.
        metrics = {name: values[ended] for name, values in component(states, "metrics").items()}
        returns = metrics.get("reward", np.zeros(0))

        def scores(name: str) -> Scores:
            return flat.get(f"{name}/h", NO_SCORES), flat.get(f"{name}/g")

        return cls(
            observation=_observation(component(flat, "observation")),
            last=_observation({name: array[-1] for name, array in component(states, "observation").items()}),
            scores=scores("scores"),
            explored=scores("explored"),
            history=scores("history"),
            assignment=flat["assignment"],
            rewards=states["rewards"],
            ended=ended,
            after=_observation(after),
            metrics=mean_metrics(metrics, len(returns)),
            reward_std=float(np.std(returns)) if len(returns) > 1 else float("nan"),
            limits=(component(flat, "given"), component(flat, "drawn")),
        )


class Acting(NamedTuple):
    """The policy that acts in a rollout, and what of it is recorded."""

    spec: ModelSpec
    scorer: Scorer
    solver: Inference
    values: Callable[[BatchObservation], NDArray[np.floating]]
    """[B] state values, to bootstrap where an episode is truncated."""
    steps: int
    """Decisions in every slot."""
    discount: float
    keep_history: bool = False
    """Record the noise of earlier decisions instead of the noisy scores."""
    limits: Callable[[BatchObservation], Limits] | None = None
    """z of learned capacities and contributions, if there are any."""


class Collector:
    """Collects rollouts in a block of one environment's slots: their episodes and exploration noise."""

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
        self.reset(np.arange(env.n_envs))

    def collect(self, acting: Acting, rng: np.random.Generator) -> Part:
        """Take `acting.steps` decisions in every slot; slots whose episodes end are reset."""
        recording = Recording(self, acting, rng)
        active = np.ones(self.env.n_envs, np.bool_)
        for transition in islice(rollout(self.env, recording.act, active), acting.steps):
            recording.add(transition)
            self.reset(transition.ended)
            active[:] = True
        return recording.part()

    def reset(self, slots: Ints) -> None:
        """Begin new episodes in these slots."""
        if slots.size:
            self.env.reset(slots, self.episodes.take(slots))
            self.noise.reset(slots)

    def get_state(self) -> State:
        """Checkpoint of environment, noise and episodes."""
        arrays = prefixed("env", self.env.get_state())
        for name, noise in self.noise.parts.items():
            arrays |= {f"noise_{name}/queue": noise.queue.copy(), f"noise_{name}/total": noise.total.copy()}
        arrays |= {"noise_agents": self.noise.agents.copy(), "noise_tasks": self.noise.tasks.copy()}
        arrays |= {"running_reward": self.running_reward.copy(), "begun": self.episodes.begun.copy()}
        return arrays, {"oldest": {name: noise.oldest for name, noise in self.noise.parts.items()}}

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Restore the state that `get_state` returned."""
        self.env.set_state(component(arrays, "env"))
        for name, noise in self.noise.parts.items():
            noise.queue[...] = arrays[f"noise_{name}/queue"]
            noise.total[...] = arrays[f"noise_{name}/total"]
            noise.oldest = plain["oldest"][name]
        self.noise.agents[...], self.noise.tasks[...] = arrays["noise_agents"], arrays["noise_tasks"]
        self.running_reward[...], self.episodes.begun[...] = arrays["running_reward"], arrays["begun"]


class Recording:
    """Records the part of a rollout while it is collected."""

    def __init__(self, collector: Collector, acting: Acting, rng: np.random.Generator) -> None:
        self.collector, self.env, self.acting, self.rng = collector, collector.env, acting, rng
        shape = (acting.steps, collector.env.n_envs)
        self.results: Arrays = {"rewards": np.zeros(shape), "ended": np.zeros(shape, np.bool_)}
        """By name, arrays [T, b] of what followed the decisions."""
        self.steps: dict[str, list[NDArray[Any]]] = {}
        """By name, an array [b, …] for each decision so far."""
        self.step = 0

    def act(self, observation: BatchObservation) -> Ints:
        """Decide in every slot, and record the decision."""
        acting = self.acting
        self.collector.noise.track(observation)
        limit = None if acting.limits is None else self._limit
        decision = decide(observation, acting.spec, acting.scorer, acting.solver, self._explore, limit)
        self._keep(**{f"observation/{name}": array for name, array in _present(decision.observation).items()})
        self._keep_scores("scores", decision.scores)
        if not acting.keep_history:
            self._keep_scores("explored", decision.explored)
        self._keep(assignment=decision.assignment)
        return decision.actions(self.env.reads_reasons)

    def _keep(self, **arrays: NDArray[Any]) -> None:
        for name, array in arrays.items():
            self.steps.setdefault(name, []).append(array)

    def _keep_scores(self, name: str, scores: Scores) -> None:
        h, g = scores
        self._keep(**{f"{name}/h": h} if g is None else {f"{name}/h": h, f"{name}/g": g})

    def _explore(self, scores: Scores) -> Scores:
        noise = self.collector.noise
        explored, history = noise.add(scores, self._gumbels if noise.gumbel else self._normals)
        if self.acting.keep_history:
            self._keep_scores("history", history)
        check_finite("score", *explored)
        return explored

    def _limit(self, observation: BatchObservation) -> BatchObservation:
        """The observation with learned limits and their exploration noise."""
        assert self.acting.limits is not None
        z = self.acting.limits(observation)
        explored, drawn = self.collector.noise.add_to_limits(z, self._normals)
        check_finite("limit", *explored.values())
        self._keep(**prefixed("given", z), **prefixed("drawn", drawn))
        return with_limits(observation, explored)

    def _normals(self, shape: tuple[int, ...]) -> Floats32:
        """[b, …] standard normals: the block's part of those drawn for all slots of the environment."""
        episodes = self.collector.episodes
        return self.rng.standard_normal((episodes.total, *shape[1:]), np.float32)[episodes.block]

    def _gumbels(self, shape: tuple[int, ...]) -> Floats32:
        """[b, …] Gumbel variables of mean 0 and standard deviation 1, likewise."""
        episodes = self.collector.episodes
        draws = self.rng.standard_exponential((episodes.total, *shape[1:]), np.float32)
        return standard_gumbels(draws[episodes.block])

    def add(self, transition: Transition) -> None:
        """Record rewards, ends and metrics after a decision."""
        collector, acting, result, slots = self.collector, self.acting, transition.result, transition.ended
        rewards = self.results["rewards"][self.step]
        rewards[:] = result.reward
        collector.running_reward += result.reward
        if result.truncated.any():
            # Bootstrap: a truncated episode would have gone on from its last state.
            cut = np.flatnonzero(result.truncated)
            rewards[cut] += acting.discount * acting.values(acting.spec.read(self.env.observe()))[cut]
        if slots.size:
            self.results["ended"][self.step, slots] = True
            for name, values in episode_metrics(self.env, collector.running_reward).items():
                missing = np.full(self.results["ended"].shape, np.nan)
                self.results.setdefault(f"metrics/{name}", missing)[self.step, slots] = values[slots]
            collector.running_reward[slots] = 0.0
        self.step += 1

    def part(self) -> Part:
        """The recorded part."""
        buffers = self.collector.buffers
        states = {name: _in_buffer(name, buffers, np.stack, arrays, 0) for name, arrays in self.steps.items()}
        return Part(states | self.results, _present(self.acting.spec.read(self.env.observe())))


def _side_by_side(name: str, parts: Sequence[Part], buffers: Arrays) -> NDArray[Any]:
    """[T, B, …] from the blocks' [T, b, …]; NaN for metrics that a block does not have."""
    if len(parts) == 1:
        return parts[0].states[name]
    arrays = [part.states.get(name, np.full(part.states["ended"].shape, np.nan)) for part in parts]
    return _in_buffer(name, buffers, np.concatenate, arrays, 1)


def _in_buffer(
    name: str, buffers: Arrays, join: Callable[..., Any], arrays: Sequence[NDArray[Any]], axis: int
) -> NDArray[Any]:
    """The arrays joined in the buffer of that name: allocating memory takes longer than filling it."""
    try:
        buffers[name] = join(arrays, axis, out=buffers.get(name))
    except ValueError:  # of another shape
        buffers[name] = join(arrays, axis)
    return buffers[name]


def _present(observation: BatchObservation) -> Arrays:
    """Arrays of an observation by field, without those that are None."""
    arrays = {entry.name: getattr(observation, entry.name) for entry in fields(BatchObservation)}
    return {name: array for name, array in arrays.items() if array is not None}


def _observation(arrays: Arrays) -> BatchObservation:
    """The inverse of `_present`."""
    return BatchObservation(**{entry.name: arrays.get(entry.name) for entry in fields(BatchObservation)})  # type: ignore[arg-type]


def check_finite(name: str, *arrays: NDArray[Any] | None) -> None:
    """Raise TrainingError if a value is not finite."""
    for array in arrays:
        if array is not None and not np.isfinite(array).all():
            raise TrainingError(
                f"a {name} is not finite; lower the learning rate or sigma, or check the environment's features and "
                "rewards"
            )
