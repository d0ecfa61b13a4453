"""Evolution strategy on the direct model's parameters: needs rewards only, no gradients and no torch.

Candidates are antithetic pairs theta ± sigma·e. All of them play the same episodes at once, in one batch; what
a candidate is worth is its rank. The update is Adam's along sum of (rank difference)·e.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats, Observation
from muster.envs.base import BatchEnv
from muster.errors import MusterError
from muster.inference.settings import InferenceSettings
from muster.inference.solver import Solver
from muster.learning.episodes import TrainingEpisodes
from muster.learning.settings import ESSettings
from muster.policy.learned import LearnedPolicy, make_problem
from muster.policy.settings import NoiseSettings
from muster.scoring.direct import Parameters, Scores, direct_scores, init_parameters, parameter_shapes
from muster.scoring.spec import ModelSpec

# Adam's usual memory.
FIRST_MOMENT, SECOND_MOMENT, EPSILON = 0.9, 0.999, 1e-8


def centred_ranks(fitness: Floats) -> Floats:
    """Ranks spread evenly over [-1/2, 1/2]; ties share the mean of their ranks."""
    order = np.argsort(fitness, kind="stable")
    ranks = np.empty(len(fitness))
    ranks[order] = np.arange(len(fitness))
    _, groups = np.unique(fitness, return_inverse=True)
    means = np.bincount(groups, ranks) / np.bincount(groups)
    return means[groups] / max(1, len(fitness) - 1) - 0.5


class Evolution:
    """The learner: one update plays every candidate once on the same episodes."""

    def __init__(
        self,
        env: BatchEnv,
        spec: ModelSpec,
        inference: InferenceSettings,
        settings: ESSettings,
        seed: int,
        header: dict[str, Any] | None = None,
    ) -> None:
        self.env, self.spec, self.inference, self.settings = env, spec, inference, settings
        self.header = header or {}
        self.rng = np.random.default_rng([seed, 3])
        self.shapes = parameter_shapes(spec)
        start = init_parameters(spec, np.random.default_rng([seed, 2]))
        self.theta = np.concatenate([start[name].ravel() for name in self.shapes]).astype(np.float64)
        self.mean, self.spread = np.zeros_like(self.theta), np.zeros_like(self.theta)
        self.updates = 0
        # One core a run: several runs share a machine better than one run its threads.
        self.solver = Solver.of(inference, threads=1)
        self.episodes = TrainingEpisodes(env, seed)
        self.steps = 0

    def unflatten(self, theta: Floats) -> Parameters:
        """Parameters [P, ...] from vectors [P, D], or one model's from [D]."""
        parameters, begin = {}, 0
        for name, shape in self.shapes.items():
            end = begin + int(np.prod(shape))
            parameters[name] = theta[..., begin:end].reshape(*theta.shape[:-1], *shape).astype(np.float32)
            begin = end
        return parameters

    def policy(self) -> LearnedPolicy:
        """The policy at the centre of the candidates. Its noise, for those who want some, is the default."""
        return LearnedPolicy("es", self.spec, self.unflatten(self.theta), self.inference, NoiseSettings(), self.header)

    def scores(self, parameters: Parameters, seen: Observation) -> Scores:
        """h and g of every candidate in its own share of the worlds."""
        return direct_scores(parameters, seen, self.spec.task_scores)

    def play(self, candidates: Floats) -> tuple[Floats, Floats, Floats]:
        """Every candidate on the same new episodes: fitness [P], mean outcome, mean reward."""
        env, settings = self.env, self.settings
        count = settings.episodes
        parameters = self.unflatten(candidates)
        env.start(np.arange(env.n_envs), np.tile(self.episodes.take(count), len(candidates)))
        reward = np.zeros(env.n_envs)
        running = np.ones(env.n_envs, np.bool_)
        while running.any():
            seen = self.spec.view(env.observe())
            h, g = self.scores(parameters, seen)
            if not np.isfinite(h).all() or (g is not None and not np.isfinite(g).all()):
                raise MusterError("a score is not finite; lower the learning rate or sigma")
            step = env.step(self.solver(make_problem(seen, h, g)).assignment)
            if not np.isfinite(step.reward).all():
                raise MusterError("a reward is not finite; check the world")
            reward += step.reward
            self.steps += int(running.sum())
            running &= ~(step.terminated | step.truncated)
        outcome = env.outcome()
        fitness = reward
        if env.metric == "win_rate":
            fitness = settings.win_weight * outcome + settings.return_weight * reward
        return fitness.reshape(-1, count).mean(1), outcome, reward

    def update(self, progress: float = 0.0) -> dict[str, float]:
        """One generation."""
        settings = self.settings
        noise = self.rng.standard_normal((settings.pairs, len(self.theta)))
        candidates = self.theta + settings.sigma * np.concatenate([noise, -noise])
        fitness, outcome, reward = self.play(candidates)
        worth = centred_ranks(fitness)
        gradient = (worth[: settings.pairs] - worth[settings.pairs :]) @ noise / (2 * settings.pairs * settings.sigma)
        rate = settings.rate
        if settings.schedule == "cosine":
            rate *= 0.5 * (1.0 + np.cos(np.pi * min(progress, 1.0)))
        self.updates += 1
        self.mean = FIRST_MOMENT * self.mean + (1 - FIRST_MOMENT) * gradient
        self.spread = SECOND_MOMENT * self.spread + (1 - SECOND_MOMENT) * gradient**2
        mean = self.mean / (1 - FIRST_MOMENT**self.updates)
        spread = self.spread / (1 - SECOND_MOMENT**self.updates)
        self.theta = (1 - rate * settings.weight_decay) * self.theta + rate * mean / (np.sqrt(spread) + EPSILON)
        return {
            "episodes": float(self.env.n_envs),
            "outcome": float(outcome.mean()),
            "reward": float(reward.mean()),
            "fitness": float(fitness.mean()),
            "fitness_best": float(fitness.max()),
        }

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit."""
        arrays = {"theta": self.theta.copy(), "mean": self.mean.copy(), "spread": self.spread.copy()}
        plain = {
            "rng": self.rng.bit_generator.state,
            "steps": self.steps,
            "begun": self.episodes.begun,
            "updates": self.updates,
        }
        return arrays, plain

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.theta, self.mean, self.spread = (np.array(arrays[name]) for name in ("theta", "mean", "spread"))
        self.rng.bit_generator.state = plain["rng"]
        self.steps, self.episodes.begun, self.updates = plain["steps"], plain["begun"], plain["updates"]
