"""The randomness of a run: its endless supply of training episodes, none ever one of a test set, and its streams."""

from __future__ import annotations

import numpy as np

from muster.data import Ints
from muster.envs.vector import BatchEnv
from muster.rng import Seeds, episode_seeds

# Test sets are named by small seeds; training and validation sets lie far from them and from each other.
TRAINING, VALIDATION = 2**40, 2**41
# Environments of one run take their episodes this far apart.
WORLD = 2**40
# What a run's seed is used for.
EXPLORATION, WEIGHTS, CANDIDATES, CRITIC = 1, 2, 3, 4


def stream(seed: int, use: int) -> np.random.Generator:
    """The run's generator for one use of its seed."""
    return np.random.default_rng([seed, use])


class TrainingEpisodes:
    """Begins episodes in an env's slots, in one fixed order; `env` counts the envs of the run."""

    def __init__(self, env: BatchEnv, seed: int, world: int = 0) -> None:
        self.env = env
        self.seed = seed
        self.first = world * WORLD
        self.begun = 0

    def take(self, count: int) -> Seeds:
        """Seeds of the next `count` episodes."""
        seeds = episode_seeds(TRAINING + self.seed, self.first + np.arange(self.begun, self.begun + count))
        self.begun += count
        return seeds

    def begin(self, slots: Ints) -> None:
        """Start the next episodes in these slots."""
        if len(slots):
            self.env.reset(slots, self.take(len(slots)))
