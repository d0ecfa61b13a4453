"""How the actor-critic plays: some decisions in every environment of a world, with noise on the scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Bools, Floats, Floats32, Ints, Observation
from muster.envs.base import BatchEnv
from muster.errors import MusterError
from muster.learning.episodes import TrainingEpisodes
from muster.learning.tally import Ended, Figures
from muster.policy.decision import Decision
from muster.policy.noise import ScoreNoise, standard_gumbels
from muster.policy.settings import NoiseSettings
from muster.scoring.direct import Scores

Room = dict[str, NDArray[Any]]
Decide = Callable[[Observation, Callable[[Scores], Scores]], Decision]


class TrainingError(MusterError):
    """Training cannot go on; the message names the quantity that went wrong."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """T decisions of B environments. What covers T·B states is overwritten by the world's next rollout."""

    seen: Observation
    """Of T·B states, as the model reads them."""
    last: Observation
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
    after: Observation
    figures: Figures
    """Of the episodes that ended."""
    spread: float
    """Standard deviation of their rewards; NaN if fewer than two ended."""

    def without_history(self) -> Scores:
        """h and g with nothing but each decision's own innovation."""
        h, g = self.played
        past_h, past_g = self.history
        return h - past_h, g if g is None or past_g is None else g - past_g


class Worker:
    """One world of the run: its environments, their episodes and their noise."""

    def __init__(self, env: BatchEnv, seed: int, noise: NoiseSettings, task_scores: bool, world: int = 0) -> None:
        self.env = env
        self.noise = ScoreNoise(noise, env.n_envs, env.n_agents, env.n_tasks, task_scores)
        self.episodes = TrainingEpisodes(env, seed, world)
        self.episodes.begin(np.arange(env.n_envs))
        self.running_reward = np.zeros(env.n_envs)
        self._room: Room = {}

    def play(
        self,
        steps: int,
        discount: float,
        rng: np.random.Generator,
        decide: Decide,
        view: Callable[[Observation], Observation],
        values: Callable[[Observation], NDArray[np.floating]],
        remember: bool = False,
    ) -> Rollout:
        """`steps` decisions in every environment; episodes that end are followed by new ones.

        `remember`: keep the noise of earlier decisions apart from that of each.
        """
        env = self.env
        rewards = np.zeros((steps, env.n_envs))
        ended = np.zeros((steps, env.n_envs), np.bool_)
        decisions: list[Decision] = []
        histories: list[Scores] = []
        rewarded: list[Floats] = []
        over = Ended()

        def draw(shape: tuple[int, ...]) -> Floats32:
            if self.noise.gumbel:
                return standard_gumbels(rng.standard_exponential(shape, np.float32))
            return rng.standard_normal(shape, np.float32)

        def explore(scores: Scores) -> Scores:
            if remember:
                histories.append(self.noise.history())
            played = self.noise.add(scores, draw)
            check_finite("score", *played)
            return played

        for t in range(steps):
            seen = env.observe()
            self.noise.follow(seen)
            decision = decide(seen, explore)
            step = env.step(decision.orders(env.reads_reasons))
            check_finite("reward", step.reward)
            decisions.append(decision)
            rewards[t] = step.reward
            self.running_reward += step.reward
            ended[t] = step.terminated | step.truncated
            slots = np.flatnonzero(ended[t])
            if step.truncated.any():
                # A truncated episode would have gone on: its last state's value belongs to the return.
                cut = np.flatnonzero(step.truncated)
                rewards[t, cut] += discount * values(view(env.observe()))[cut]
            if slots.size:
                over.add(env, slots, self.running_reward)
                rewarded.append(self.running_reward[slots])
                self.running_reward[slots] = 0.0
                self.episodes.begin(slots)
                self.noise.reset(slots)
        return Rollout(
            seen=join([decision.seen for decision in decisions], self._room),
            last=decisions[-1].seen,
            played=_stack("played", [decision.played for decision in decisions], self._room),
            scores=_stack("scores", [decision.scores for decision in decisions], self._room),
            history=_stack("history", histories, self._room) if remember else (np.zeros((0, 0, 0), np.float32), None),
            assignment=np.concatenate([decision.assignment for decision in decisions]),
            rewards=rewards,
            ended=ended,
            after=view(env.observe()),
            figures=over.figures(),
            spread=float(np.std(np.concatenate(rewarded))) if over.episodes > 1 else float("nan"),
        )

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit: arrays, and plain values."""
        arrays: dict[str, NDArray[Any]] = {f"env/{k}": v for k, v in self.env.get_state().items()}
        for name, noise in self.noise.parts.items():
            arrays |= {f"noise_{name}/queue": noise.queue.copy(), f"noise_{name}/total": noise.total.copy()}
        arrays |= {"noise_agents": self.noise.agents.copy(), "noise_tasks": self.noise.tasks.copy()}
        arrays["running_reward"] = self.running_reward.copy()
        oldest = {name: noise.oldest for name, noise in self.noise.parts.items()}
        return arrays, {"begun": self.episodes.begun, "oldest": oldest}

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.env.set_state({k.removeprefix("env/"): v for k, v in arrays.items() if k.startswith("env/")})
        for name, noise in self.noise.parts.items():
            noise.queue[...] = arrays[f"noise_{name}/queue"]
            noise.total[...] = arrays[f"noise_{name}/total"]
            noise.oldest = plain["oldest"][name]
        if "noise_agents" in arrays:  # runs of before worlds had ids do not
            self.noise.agents[...], self.noise.tasks[...] = arrays["noise_agents"], arrays["noise_tasks"]
        self.running_reward[...] = arrays["running_reward"]
        self.episodes.begun = plain["begun"]


def join(observations: list[Observation], room: Room) -> Observation:
    """One observation of T·B worlds from T of B worlds."""
    parts: dict[str, Any] = {}
    for entry in dataclasses.fields(Observation):
        arrays = [getattr(seen, entry.name) for seen in observations]
        parts[entry.name] = None if arrays[0] is None else _gather(entry.name, arrays, room)
    return Observation(**parts)


def take(seen: Observation, states: Ints) -> Observation:
    """Some of the worlds of an observation."""
    parts: dict[str, Any] = {}
    for entry in dataclasses.fields(Observation):
        array = getattr(seen, entry.name)
        parts[entry.name] = None if array is None else array[states]
    return Observation(**parts)


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
                f"a {name} is not finite; lower the learning rate or sigma, or check the world's features and rewards"
            )
