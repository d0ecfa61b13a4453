"""The endless supply of training episodes: each slot goes on with a new one, and none is ever one of a test set."""

from __future__ import annotations

import numpy as np

from muster.data import Ints
from muster.envs.base import BatchEnv
from muster.rng import Seeds, episode_seeds

# Test sets are named by small seeds; training and validation sets lie far from them and from each other.
TRAINING, VALIDATION = 2**40, 2**41


class TrainingEpisodes:
    """Begins episodes in a world's slots, in one fixed order."""

    def __init__(self, env: BatchEnv, seed: int) -> None:
        self.env = env
        self.seed = seed
        self.begun = 0

    def take(self, count: int) -> Seeds:
        """Seeds of the next `count` episodes."""
        seeds = episode_seeds(TRAINING + self.seed, np.arange(self.begun, self.begun + count))
        self.begun += count
        return seeds

    def begin(self, slots: Ints) -> None:
        """Start the next episodes in these slots."""
        if len(slots):
            self.env.start(slots, self.take(len(slots)))
