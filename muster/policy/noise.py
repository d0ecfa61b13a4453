"""Exploration noise that is correlated over time: each score has the sum of its last innovations.

    explored(t) = score(t) + e(t) + e(t-1) + ... + e(t-p),   e ~ N(0, sigma / p) or Gumbel, as wide

so consecutive decisions have nearly the same noise, and an agent stays on its task long enough to learn from it. Noise
belongs to slots of agents and tasks. It starts at 0 in each episode, and where ids say that a slot has another agent or
task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats32, Ints
from muster.errors import InputError
from muster.kernels import core
from muster.models.limits import Limits
from muster.models.spec import Scores
from muster.policy.settings import NoiseSettings
from muster.rng import Seeds

GUMBEL_STD = math.pi / math.sqrt(6.0)
"""Standard deviation of a Gumbel variable of scale 1."""
LIMIT_SIGMA = 3.0
"""sigma of the noise on z of learned capacities and contributions, the softplus of which counts in agents."""
SMALLEST = 1e-30


class CorrelatedNoise:
    """Noise for a batch of score arrays of one shape."""

    def __init__(self, batch: int, shape: Sequence[int], sigma: float, correlated_steps: int) -> None:
        if sigma < 0 or correlated_steps < 1:
            raise InputError(f"noise needs sigma >= 0 and at least 1 correlated step, got {sigma}, {correlated_steps}")
        self.scale = np.float32(sigma / correlated_steps)
        self.queue: Floats32 = np.zeros((correlated_steps, batch, *shape), np.float32)
        """[p, B, ...] the last p innovations; `oldest` is the next to be forgotten."""
        self.total: Floats32 = np.zeros((batch, *shape), np.float32)
        """[B, ...] their sum, without the next to be forgotten."""
        self.oldest = 0

    def reset(self, slots: Ints) -> None:
        """New episodes begin in these slots."""
        self.queue[:, slots] = 0.0
        self.total[slots] = 0.0

    def forget(self, entries: Bools) -> None:
        """Set the noise to 0 where the mask [B, ...] is True: the slot has another agent or task now."""
        self.queue[:, entries] = 0.0
        self.total[entries] = 0.0

    def add(self, draws: Floats32) -> Floats32:
        """Noise for this decision, with a new innovation from draws [B, ...] of standard deviation 1."""
        innovation = draws * self.scale
        noise = self.total + innovation
        forgotten = self.queue[self.oldest]
        np.subtract(noise, forgotten, out=self.total)
        self.queue[self.oldest] = innovation
        self.oldest = (self.oldest + 1) % len(self.queue)
        if self.oldest == 0:
            # Sum anew once a round, so that rounding errors do not accumulate.
            np.sum(self.queue, axis=0, out=self.total)
        return noise


class ScoreNoise:
    """Noise for h [B, N, M], g [B, M, M] if there is one, and z of learned limits by network."""

    def __init__(
        self,
        settings: NoiseSettings,
        batch: int,
        n_agents: int,
        n_tasks: int,
        task_scores: bool,
        heads: Sequence[str] = (),
    ) -> None:
        sigma, steps = settings.sigma, settings.correlated_steps
        self.gumbel = settings.distribution == "gumbel"
        noisy = task_scores and settings.task_scores
        self.h = CorrelatedNoise(batch, (n_agents, n_tasks), sigma, steps)
        self.g = CorrelatedNoise(batch, (n_tasks, n_tasks), sigma, steps) if noisy else None
        self.limits: dict[str, CorrelatedNoise] = {}
        for head in heads:
            rows = 1 if head == "capacity" else n_agents
            self.limits[head] = CorrelatedNoise(batch, (rows, n_tasks), LIMIT_SIGMA, steps)
        self.agents: Ints = np.full((batch, n_agents), -1, np.int64)
        """[B, N] ids of the agents whose noise it is, in environments that reuse slots; likewise `tasks` [B, M]."""
        self.tasks: Ints = np.full((batch, n_tasks), -1, np.int64)

    @property
    def parts(self) -> dict[str, CorrelatedNoise]:
        """Noises by name: h, g, and learned limits."""
        of_scores = (("h", self.h), ("g", self.g))
        return {name: part for name, part in of_scores if part is not None} | self.limits

    def reset(self, slots: Ints) -> None:
        """New episodes begin in these slots."""
        for part in self.parts.values():
            part.reset(slots)

    def track(self, observation: BatchObservation) -> None:
        """Set the noise of agents and tasks to 0 that are new in their slots, by the observation's ids."""
        is_new = []
        for known, now in ((self.agents, observation.agent_ids), (self.tasks, observation.task_ids)):
            is_new.append(np.zeros(known.shape, np.bool_) if now is None else known != now)
            if now is not None:
                known[...] = now
        agents, tasks = is_new
        if agents.any() or tasks.any():
            self.h.forget(agents[:, :, None] | tasks[:, None, :])
            if self.g is not None:
                self.g.forget(tasks[:, :, None] | tasks[:, None, :])
            for head, part in self.limits.items():
                part.forget(tasks[:, None, :] if head == "capacity" else agents[:, :, None] | tasks[:, None, :])

    def add(self, scores: Scores, draw: Callable[[tuple[int, ...]], Floats32]) -> tuple[Scores, Scores]:
        """The scores with noise, and the part of the noise that comes from earlier decisions (history).

        `draw` returns an array of a shape [B, ...]: standard normals, or with `gumbel` Gumbel variables of mean 0 and
        standard deviation 1 (`standard_gumbels`).
        """
        h, g = scores
        history: Scores = self.h.total.copy(), None if self.g is None else self.g.total.copy()
        h = h + self.h.add(draw(h.shape))
        return (h, g if g is None or self.g is None else g + self.g.add(draw(g.shape))), history

    def add_to_limits(self, z: Limits, draw: Callable[[tuple[int, ...]], Floats32]) -> tuple[Limits, Limits]:
        """z of the limits with noise, from standard normal draws; and with this decision's innovation alone."""
        noisy, drawn = {}, {}
        for head, part in self.limits.items():
            history = part.total.copy()
            noisy[head] = z[head] + part.add(draw(z[head].shape))
            drawn[head] = noisy[head] - history
        return noisy, drawn


def standard_gumbels(exponentials: NDArray[np.floating]) -> Floats32:
    """Gumbel variables of mean 0 and standard deviation 1, from standard exponential ones."""
    gumbels = -np.log(np.maximum(exponentials, SMALLEST))
    return ((gumbels - np.euler_gamma) / GUMBEL_STD).astype(np.float32)


def draw_normals(states: Seeds, size: int) -> Floats32:
    """[B, size] standard normals, each row from its own slot's generator, so that none depends on the batch."""
    draws = np.empty((len(states), size), np.float32)
    core.learning.draw_normals(states, draws)
    return draws


def draw_exponentials(states: Seeds, size: int) -> Floats32:
    """[B, size] standard exponentials, likewise."""
    draws = np.empty((len(states), size), np.float32)
    core.learning.draw_exponentials(states, draws)
    return draws
