"""Rules that need no learning: the nearest evader, groups formed greedily, and the linear programme on distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.compile import entry
from muster.data import BatchObservation, Bools, Ints, Problem
from muster.envs.pursuit.observe import UNITS_PER_CELL
from muster.envs.vector import Policy, State
from muster.rng import TIE_STREAM, Seeds, below

if TYPE_CHECKING:
    from muster.envs.pursuit.env import PursuitEnv


class Closest(Policy):
    """Each pursuer goes for the nearest free evader (king's moves), whoever else does; ties at random."""

    name = "closest"

    def __init__(self, env: PursuitEnv) -> None:
        self._rng = np.zeros(env.n_envs, np.uint64)

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Ties in an episode follow from its seed."""
        self._rng[slots] = seeds ^ TIE_STREAM

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the nearest evader of each pursuer."""
        return send_to_closest(_distances(observation), observation.task_alive, self._rng)

    def get_memory(self) -> State:
        """The streams that ties are broken by."""
        return {"rng": self._rng.copy()}

    def set_memory(self, memory: State) -> None:
        """Go on from what `get_memory` returned."""
        self._rng[...] = memory["rng"]


class ClosestPairs(Policy):
    """Groups of as many as are needed: whoever can gather soonest round an evader does, then the next group.

    Of groups that are as soon the one with the least total distance, then the lower number. Who is left over goes for
    the nearest evader without a group, if there is one.
    """

    name = "closest-pairs"

    def __init__(self, env: PursuitEnv) -> None:
        self._needed = env.settings.needed

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Nothing to remember."""

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the evader of each pursuer's group; -1 where every evader has its group already."""
        return gather_greedily(_distances(observation), observation.task_alive, self._needed)


class LinearDistance(Policy):
    """The assignment with at most as many pursuers an evader as it needs that has the least total distance."""

    name = "lp-distance"

    def __init__(self, env: PursuitEnv) -> None:
        del env

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Nothing to remember."""

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the optimum of the linear programme with h = -distance, every pursuer sent while there is room."""
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


@entry
def send_to_closest(ways: Ints, free: Bools, rng: Seeds) -> Ints:
    """[B, N] the nearest free evader of each pursuer; ties at random, from the slot's own generator."""
    batch, n, m = ways.shape
    assignment = np.full((batch, n), -1, np.int64)
    for b in range(batch):
        for i in range(n):
            nearest, ties = np.iinfo(np.int64).max, 0
            for j in range(m):
                if not free[b, j]:
                    continue
                if ways[b, i, j] < nearest:
                    nearest, ties = ways[b, i, j], 0
                if ways[b, i, j] == nearest:
                    ties += 1
                    if ties == 1 or below(rng, b, ties) == 0:
                        assignment[b, i] = j
    return assignment


@entry
def gather_greedily(ways: Ints, free: Bools, needed: int) -> Ints:
    """[B, N] groups of `needed`, the one that can gather soonest first."""
    batch, n, m = ways.shape
    assignment = np.full((batch, n), -1, np.int64)
    far = np.iinfo(np.int64).max
    for b in range(batch):
        open_tasks = free[b].copy()
        idle = n
        while idle >= needed and open_tasks.any():
            best, soonest, total = -1, far, far
            for j in range(m):
                if not open_tasks[j]:
                    continue
                ordered = np.sort(ways[b, assignment[b] < 0, j])[:needed]
                if ordered[-1] < soonest or (ordered[-1] == soonest and ordered.sum() < total):
                    best, soonest, total = j, ordered[-1], ordered.sum()
            for _ in range(needed):
                nearest = -1
                for i in range(n):
                    if assignment[b, i] < 0 and (nearest < 0 or ways[b, i, best] < ways[b, nearest, best]):
                        nearest = i
                assignment[b, nearest] = best
            open_tasks[best] = False
            idle -= needed
        for i in range(n):
            if assignment[b, i] < 0:
                for j in range(m):
                    last = assignment[b, i]
                    if open_tasks[j] and (last < 0 or ways[b, i, j] < ways[b, i, last]):
                        assignment[b, i] = j
    return assignment
