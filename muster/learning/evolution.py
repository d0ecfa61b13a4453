"""Evolution strategy on the direct model's parameters: needs rewards only, no gradients and no torch.

Candidates are antithetic pairs theta ± sigma·e. All of them play the same episodes at once, in one batch; what
a candidate is worth is its rank. The update is Adam's along sum of (rank difference)·e.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.assign.settings import InferenceSettings
from muster.data import Floats
from muster.envs.vector import BatchEnv
from muster.learning.candidates import (
    Arena,
    Field,
    Generation,
    SpreadField,
    Trial,
    draw_noise,
    flatten,
    move,
    unflatten,
)
from muster.learning.crew import Crew
from muster.learning.episodes import CANDIDATES, WEIGHTS, TrainingEpisodes, stream
from muster.learning.learner_settings import ESSettings
from muster.learning.optimiser import Adam, rate_factor
from muster.learning.tally import Figures, combine
from muster.models.direct import Parameters, init_parameters
from muster.models.spec import ModelSpec
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import PAPER_NOISE

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
        crew: Crew | None = None,
    ) -> None:
        """With a crew, which plays, each environment has the environments of one candidate; without, those of all."""
        self.spec, self.inference, self.settings = spec, inference, settings
        self.header = header or {}
        self.rng = stream(seed, CANDIDATES)
        self.theta = flatten(init_parameters(spec, stream(seed, WEIGHTS)), spec)
        self.adam = Adam(len(self.theta))
        self.worlds = [TrainingEpisodes(env, seed, k) for k, env in enumerate(envs)]
        candidates = 2 * settings.pairs
        self.episodes = [env.n_envs // (1 if crew else candidates) for env in envs]
        """That every candidate plays in an update, of each environment."""
        self.field: Field = (
            SpreadField(crew, self.adam, self.episodes)
            if crew
            else Arena(self.worlds, spec, inference, settings, 0, candidates)
        )
        self.steps = 0
        self.alike = 0
        """Updates, up to the last, in which all candidates did equally well."""

    def policy(self) -> LearnedPolicy:
        """The policy at the centre of the candidates. Its noise, for those who want some, is the default."""
        return LearnedPolicy(
            "es", self.spec, unflatten(self.theta, self.spec), self.inference, PAPER_NOISE, self.header
        )

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers."""
        self.theta = flatten(parameters, self.spec)

    def update(self, progress: float = 0.0) -> Figures:
        """One generation; in several environments a candidate is worth the mean of its ranks."""
        settings = self.settings
        generation = self._next()
        trials = self.field.play(generation)
        self.steps += sum(trial.steps for trial in trials)
        fitness = np.array([self._fitness(world, trial) for world, trial in zip(self.worlds, trials, strict=True)])
        self.alike = self.alike + 1 if (np.ptp(fitness, axis=1) == 0).all() else 0
        worth = np.mean([centred_ranks(found) for found in fitness], axis=0)
        rate = settings.rate * rate_factor(settings.schedule, progress)
        self.theta = move(self.theta, self.adam, worth, generation.noise, settings, rate)
        self.field.moved(worth, rate, self.adam)
        figures = combine([world.env.name for world in self.worlds], [trial.averaged() for trial in trials])
        best = fitness.mean(axis=0).max()
        return figures | {"fitness": float(fitness.mean()), "fitness_best": float(best)}

    def _next(self) -> Generation:
        """New candidates, and the episodes that they share."""
        state = self.rng.bit_generator.state
        noise = draw_noise(self.rng, self.settings, len(self.theta))
        begun = [world.begun for world in self.worlds]
        for world, episodes in zip(self.worlds, self.episodes, strict=True):
            world.begun += episodes
        return Generation(self.theta, noise, dict(state), begun)

    def _fitness(self, world: TrainingEpisodes, trial: Trial) -> Floats:
        """[2·pairs] what an environment's episodes say of every candidate."""
        fitness = trial.reward
        if world.env.metric == "win_rate":
            fitness = self.settings.win_weight * trial.outcome + self.settings.return_weight * trial.reward
        return fitness.reshape(2 * self.settings.pairs, -1).mean(1)

    def advice(self) -> str | None:
        """What to do about candidates that cannot be told apart, once that is clear; otherwise nothing."""
        if self.alike != ALIKE:
            return None
        return (
            f"all {2 * self.settings.pairs} candidates did exactly equally well in {ALIKE} updates running, so "
            "evolution has nothing to go by. If no agent ever gets a task, let the env show a prior "
            "(Observation.prior) or have every agent assigned (--assign-all True); if all decide alike, try a larger "
            "--es.sigma or a smaller prior"
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
