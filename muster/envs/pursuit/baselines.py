"""Baselines that need no learning: the nearest evader, greedy groups, and the linear programme on distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.data import BatchObservation, Ints, Problem
from muster.envs.pursuit.settings import UNITS_PER_CELL
from muster.envs.vector import Policy, State
from muster.kernels import core
from muster.rng import TIE_STREAM, Seeds

if TYPE_CHECKING:
    from muster.envs.pursuit.env import PursuitEnv


class Closest(Policy):
    """Each pursuer goes for the nearest free evader (king's moves), also where others do; ties at random."""

    name = "closest"

    def __init__(self, env: PursuitEnv) -> None:
        self._rng = np.zeros(env.n_envs, np.uint64)

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Ties in an episode follow from its seed."""
        self._rng[slots] = seeds ^ TIE_STREAM

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the nearest evader of each pursuer."""
        assignment = np.empty(observation.agent_alive.shape, np.int64)
        core.pursuit.send_to_closest(_distances(observation), observation.task_alive, self._rng, assignment)
        return assignment

    def get_memory(self) -> State:
        """The streams that ties are broken by."""
        return {"rng": self._rng.copy()}

    def set_memory(self, memory: State) -> None:
        """Go on from what `get_memory` returned."""
        self._rng[...] = memory["rng"]


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
        """[B, N] the optimum of the linear programme with h = -distance, every pursuer sent while there is capacity."""
        from muster.assign import solve

        problem = Problem(
            scores=-_distances(observation).astype(np.float64),
            contributions=observation.contributions,
            capacities=observation.capacities,
            agent_alive=observation.agent_alive,
            task_alive=observation.task_alive,
        )
        return solve(problem, method="lp", assign_all=True).assignment


def _distances(observation: BatchObservation) -> Ints:
    """[B, N, M] king's moves from each pursuer to each evader."""
    assert observation.prior is not None
    return np.rint(-observation.prior / UNITS_PER_CELL).astype(np.int64)
