"""Baselines that need no learning: the nearest evader, greedy groups, and the linear programme on distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.data import BatchObservation, Ints
from muster.envs import grid
from muster.envs.vector import Policy
from muster.kernels import core

if TYPE_CHECKING:
    from muster.envs.pursuit.env import PursuitEnv


class Closest(grid.Closest):
    """Each pursuer goes for the nearest free evader (king's moves), also where others do; ties at random."""

    name = "closest"

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the nearest evader of each pursuer."""
        assignment = np.empty(observation.agent_alive.shape, np.int64)
        core.pursuit.send_to_closest(_distances(observation), observation.task_alive, self.rng, assignment)
        return assignment


class ClosestPairs(Policy):
    """Groups of as many as are needed: those who can gather soonest round an evader, then the next group.

    Of groups that are as soon the one with the least total distance, then the lower number. Pursuers that are left
    over go for the nearest evader without a group, if there is one.
    """

    name = "closest-pairs"

    def __init__(self, env: PursuitEnv) -> None:
        self._needed = env.settings.needed

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the evader of each pursuer's group; -1 where every evader has its group already."""
        assignment = np.empty(observation.agent_alive.shape, np.int64)
        core.pursuit.gather_greedily(_distances(observation), observation.task_alive, self._needed, assignment)
        return assignment


class LinearDistance(Policy):
    """The assignment with at most as many pursuers an evader as it needs that has the least total distance."""

    name = "lp-distance"

    def __init__(self, env: PursuitEnv) -> None:
        del env

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] by king's moves."""
        return grid.least_distance(observation, -_distances(observation).astype(np.float64))


def _distances(observation: BatchObservation) -> Ints:
    """[B, N, M] king's moves from each pursuer to each evader."""
    assert observation.prior is not None
    return np.rint(-observation.prior / grid.UNITS_PER_CELL).astype(np.int64)
