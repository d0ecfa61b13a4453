"""Baselines: the nearest evader, greedy groups, and the linear programme on distances."""

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
    """Each pursuer follows the nearest free evader in king's moves, whatever the others do; ties at random."""

    name = "closest"

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the nearest evader of each pursuer."""
        assignment = np.empty(observation.agent_alive.shape, np.int64)
        core.pursuit.send_to_closest(_distances(observation), observation.task_alive, self.rng, assignment)
        return assignment


class ClosestPairs(Policy):
    """Groups of as many pursuers as needed: the group that can gather soonest around an evader, then the next.

    Ties go to the least total distance, then to the lower index. Pursuers without a group follow the nearest evader
    without a group, if there is one.
    """

    name = "closest-pairs"

    def __init__(self, env: PursuitEnv) -> None:
        self._needed = env.settings.needed

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the evader of each pursuer's group; -1 if all evaders have one."""
        assignment = np.empty(observation.agent_alive.shape, np.int64)
        core.pursuit.gather_greedily(_distances(observation), observation.task_alive, self._needed, assignment)
        return assignment


class LinearDistance(Policy):
    """The assignment with the least total distance and at most as many pursuers per evader as needed."""

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
