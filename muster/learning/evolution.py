"""Evolution strategy on the direct model's parameters: needs rewards only, no gradients and no torch.

Candidates are antithetic pairs theta ± sigma·e. All of them play the same episodes at once, in one batch; what
a candidate is worth is its rank. The update is Adam's along sum of (rank difference)·e.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats, Observation
from muster.envs.base import BatchEnv
from muster.inference.settings import InferenceSettings
from muster.inference.solver import Solver
from muster.learning.episodes import CANDIDATES, WEIGHTS, TrainingEpisodes, stream
from muster.learning.optimiser import Adam, rate_factor
from muster.learning.rollouts import check_finite
from muster.learning.settings import ESSettings
from muster.learning.tally import Ended, Figures, combine
from muster.policy.decision import decide
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import PAPER_NOISE
from muster.scoring.direct import DirectModel, Parameters, Scores, init_parameters, parameter_shapes
from muster.scoring.spec import ModelSpec

PLAN_ITERATIONS = 60
"""Of PLAN while learning: enough for the routes of a few agents, and most of the time goes there."""
ALIKE = 5
"""Updates in which all candidates do equally well, after which it is time to say so."""


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

    # Rows of its log differ by which few episodes all candidates shared more than by the policy.
    last_is_best = True

    def __init__(
        self,
        envs: Sequence[BatchEnv],
        spec: ModelSpec,
        inference: InferenceSettings,
        settings: ESSettings,
        seed: int,
        header: dict[str, Any] | None = None,
    ) -> None:
        self.spec, self.inference, self.settings = spec, inference, settings
        self.header = header or {}
        self.rng = stream(seed, CANDIDATES)
        self.shapes = parameter_shapes(spec)
        start = init_parameters(spec, stream(seed, WEIGHTS))
        self.theta = np.concatenate([start[name].ravel() for name in self.shapes]).astype(np.float64)
        self.adam = Adam(len(self.theta))
        # One core a run: several runs share a machine better than one run its threads.
        self.solver = Solver.of(inference, threads=1)
        if inference.method == "plan":
            self.solver = dataclasses.replace(self.solver, steps=PLAN_ITERATIONS)
        self.worlds = [TrainingEpisodes(env, seed, k) for k, env in enumerate(envs)]
        self.steps = 0
        self.alike = 0
        """Updates, up to the last, in which all candidates did equally well."""
        self._model: DirectModel | None = None

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
        return LearnedPolicy("es", self.spec, self.unflatten(self.theta), self.inference, PAPER_NOISE, self.header)

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers."""
        self.theta = np.concatenate([parameters[name].ravel() for name in self.shapes]).astype(np.float64)

    def scores(self, seen: Observation) -> Scores:
        """h and g of every candidate in its own share of the worlds."""
        assert self._model is not None
        return self._model(seen)

    def play(self, candidates: Floats, world: TrainingEpisodes) -> tuple[Floats, Figures]:
        """Every candidate on the same new episodes of a world: fitness [P], and figures of all episodes."""
        env, settings = world.env, self.settings
        env.start(np.arange(env.n_envs), np.tile(world.take(env.n_envs // len(candidates)), len(candidates)))
        reward = np.zeros(env.n_envs)
        running = np.ones(env.n_envs, np.bool_)
        while running.any():
            decision = decide(env.observe(), self.spec, self.scores, self.solver)
            check_finite("score", *decision.played)
            step = env.step(decision.orders(env.reads_reasons))
            check_finite("reward", step.reward)
            reward += step.reward
            self.steps += int(running.sum())
            running &= ~(step.terminated | step.truncated)
        over = Ended()
        over.add(env, np.arange(env.n_envs), reward)
        fitness = reward
        if env.metric == "win_rate":
            fitness = settings.win_weight * env.outcome() + settings.return_weight * reward
        return fitness.reshape(len(candidates), -1).mean(1), over.figures()

    def update(self, progress: float = 0.0) -> Figures:
        """One generation; in several worlds a candidate is worth the mean of its ranks."""
        settings = self.settings
        noise = self.rng.standard_normal((settings.pairs, len(self.theta)))
        candidates = self.theta + settings.sigma * np.concatenate([noise, -noise])
        # Packed once for all decisions of the generation.
        self._model = DirectModel(self.unflatten(candidates), self.spec.task_scores)
        played = [self.play(candidates, world) for world in self.worlds]
        fitness = np.array([found for found, _ in played])
        self.alike = self.alike + 1 if (np.ptp(fitness, axis=1) == 0).all() else 0
        worth = np.mean([centred_ranks(found) for found in fitness], axis=0)
        gradient = (worth[: settings.pairs] - worth[settings.pairs :]) @ noise / (2 * settings.pairs * settings.sigma)
        rate = settings.rate * rate_factor(settings.schedule, progress)
        self.theta = self.adam.step(self.theta, gradient, rate, settings.weight_decay)
        figures = combine([world.env.name for world in self.worlds], [found for _, found in played])
        best = fitness.mean(axis=0).max()
        return figures | {"fitness": float(fitness.mean()), "fitness_best": float(best)}

    def advice(self) -> str | None:
        """What to do about candidates that cannot be told apart, once that is clear; otherwise nothing."""
        if self.alike != ALIKE:
            return None
        return (
            f"all {2 * self.settings.pairs} candidates did exactly equally well in {ALIKE} updates running, so "
            "evolution has nothing to go by. If no agent ever gets a task, let the world show a prior (View.prior) or "
            "have every agent assigned (--forced True); if all decide alike, try a larger --es.sigma or a smaller prior"
        )

    def counts(self) -> Mapping[str, int]:
        """Nothing."""
        return {}

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit."""
        arrays = {"theta": self.theta.copy(), "mean": self.adam.mean.copy(), "spread": self.adam.spread.copy()}
        plain = {
            "rng": self.rng.bit_generator.state,
            "steps": self.steps,
            "begun": [world.begun for world in self.worlds],
            "updates": self.adam.updates,
            "alike": self.alike,
        }
        return arrays, plain

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.theta, self.adam.mean, self.adam.spread = (np.array(arrays[name]) for name in ("theta", "mean", "spread"))
        self.rng.bit_generator.state = plain["rng"]
        self.steps, self.adam.updates, self.alike = plain["steps"], plain["updates"], plain["alike"]
        for world, begun in zip(self.worlds, plain["begun"], strict=True):
            world.begun = begun
