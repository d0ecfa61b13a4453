"""Rules that need no learning: the nearest vehicle, and the most profitable matching of the minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.data import Ints, Observation, Problem
from muster.envs.fleet import kernels
from muster.rng import Seeds

if TYPE_CHECKING:
    from muster.envs.fleet.env import FleetEnv


class Greedy:
    """Requests in order, each to the nearest vehicle that is free to take it, in time and at a profit."""

    name = "greedy"

    def __init__(self, env: FleetEnv) -> None:
        self._env = env

    def begin(self, slots: Ints, seeds: Seeds) -> None:
        """Nothing to remember."""

    def act(self, observation: Observation) -> Ints:
        """[B, N]"""
        del observation
        settings = self._env.settings
        return kernels.send_greedily(self._env.roads, settings.wait, settings.cost, self._env.fleet)


class Match:
    """The minute's requests and vehicles matched for the largest profit now: an LP, with no thought of later."""

    name = "match"

    def __init__(self, env: FleetEnv) -> None:
        del env

    def begin(self, slots: Ints, seeds: Seeds) -> None:
        """Nothing to remember."""

    def act(self, observation: Observation) -> Ints:
        """[B, N] the optimum of the linear programme with h = profit."""
        from muster.inference import Solver

        assert observation.prior is not None
        assert observation.allowed is not None
        problem = Problem(
            scores=np.where(observation.allowed, observation.prior, -np.inf),
            contributions=observation.contributions,
            capacities=observation.capacities,
            agent_alive=observation.agent_alive,
            task_alive=observation.task_alive,
        )
        return Solver(method="lp", certify=False)(problem).assignment
