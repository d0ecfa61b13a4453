"""A learned policy: scoring model, exploration noise (if wanted) and coordination inference in one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Bools, Floats32, Ints, Observation, Problem
from muster.errors import MissingExtraError
from muster.inference.settings import InferenceSettings
from muster.inference.solver import Solver
from muster.policy.limits import within_limits
from muster.policy.noise import CorrelatedNoise, draw_normals
from muster.policy.settings import NoiseSettings
from muster.rng import Seeds
from muster.scoring.direct import Parameters, direct_scores
from muster.scoring.spec import ModelSpec

if TYPE_CHECKING:
    from muster.scoring.networks import ScoringModel


def make_problem(observation: Observation, h: NDArray[Any], g: NDArray[Any] | None) -> Problem:
    """The assignment problem that scores pose in what is observed."""
    return Problem(
        scores=within_limits(observation, h),
        task_scores=None if g is None else np.asarray(g, np.float64),
        contributions=observation.contributions,
        capacities=observation.capacities,
        agent_alive=observation.agent_alive,
        task_alive=observation.task_alive,
    )


class LearnedPolicy:
    """observation -> scores -> assignment. The direct model needs no torch."""

    def __init__(
        self,
        name: str,
        spec: ModelSpec,
        parameters: Parameters,
        inference: InferenceSettings,
        noise: NoiseSettings,
        header: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.spec = spec
        self.parameters = parameters
        self.inference = inference
        self.noise = noise
        self.header = header or {}
        self.noisy = False
        self._solver = Solver.of(inference)
        self._model: ScoringModel | None = None
        self._states: Seeds = np.zeros(0, np.uint64)
        self._queues: tuple[CorrelatedNoise, CorrelatedNoise] | None = None

    def with_noise(self) -> LearnedPolicy:
        """The same policy with the exploration noise of its training left on."""
        copy = LearnedPolicy(self.name, self.spec, self.parameters, self.inference, self.noise, self.header)
        copy.noisy = True
        return copy

    def with_inference(self, **changes: Any) -> LearnedPolicy:
        """The same scores under other inference settings, such as effort="best"."""
        inference = dataclasses.replace(self.inference, **changes)
        return LearnedPolicy(self.name, self.spec, self.parameters, inference, self.noise, self.header)

    def without_task_scores(self) -> LearnedPolicy:
        """A QUAD policy's h alone, played by LP: what its g is worth."""
        spec = dataclasses.replace(self.spec, task_scores=False)
        parameters = {name: array for name, array in self.parameters.items() if not name.startswith("g.")}
        inference = dataclasses.replace(self.inference, method="lp")
        return LearnedPolicy(self.name, spec, parameters, inference, self.noise, self.header)

    def begin(self, slots: Ints, seeds: Seeds) -> None:
        """New episodes start in these slots: their noise follows from their seeds."""
        if not self.noisy:
            return
        needed = int(np.max(slots, initial=-1)) + 1
        if needed > len(self._states):
            self._states = np.concatenate([self._states, np.zeros(needed - len(self._states), np.uint64)])
            self._queues = None
        # Another stream than the world's own, which starts from the same seed.
        self._states[slots] = np.asarray(seeds, np.uint64) ^ np.uint64(0xA5A5A5A55A5A5A5A)
        if self._queues is not None:
            for queue in self._queues:
                queue.reset(slots)

    def scores(self, observation: Observation) -> tuple[Floats32, Floats32 | None]:
        """h [B, N, M] and g [B, M, M], without noise."""
        observation = self.spec.view(observation)
        if self.spec.kind == "dm":
            return direct_scores(self.parameters, observation, self.spec.task_scores)
        try:
            import torch
        except ImportError:
            raise MissingExtraError(f"a {self.spec.kind} policy", "train") from None
        if self._model is None:
            from muster.scoring.networks import network_from

            self._model = network_from(self.spec, self.parameters)
        with torch.no_grad():
            h, g = self._model(observation)
        return h.numpy(), None if g is None else g.numpy()

    def act(self, observation: Observation) -> Ints:
        """Assignment [B, N], -1 for none."""
        self.spec.check(observation, "what is observed")
        h, g = self.scores(observation)
        if self.noisy:
            h, g = self._explore(h, g)
        return self._solver(make_problem(observation, h, g)).assignment

    def _explore(self, h: Floats32, g: Floats32 | None) -> tuple[Floats32, Floats32 | None]:
        batch, n, m = h.shape
        if len(self._states) < batch:
            self._states = np.concatenate([self._states, np.zeros(batch - len(self._states), np.uint64)])
            self._queues = None
        if self._queues is None or self._queues[0].total.shape != h.shape:
            p, sigma = self.noise.correlated_steps, self.noise.sigma
            self._queues = (CorrelatedNoise(batch, (n, m), sigma, p), CorrelatedNoise(batch, (m, m), sigma, p))
        tasks = 0 if g is None else m * m
        draws = draw_normals(self._states[:batch], n * m + tasks)
        h = h + self._queues[0].add(draws[:, : n * m].reshape(h.shape))
        if g is not None:
            g = g + self._queues[1].add(draws[:, n * m :].reshape(g.shape))
        return h, g


def alive_pairs(observation: Observation) -> tuple[Bools, Bools]:
    """Which entries of h [B, N, M] and of g [B, M, M] are between living objects."""
    agents, tasks = observation.agent_alive, observation.task_alive
    return agents[:, :, None] & tasks[:, None, :], tasks[:, :, None] & tasks[:, None, :]
