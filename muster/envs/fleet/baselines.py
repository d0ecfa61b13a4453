"""Baselines that need no learning: the nearest vehicle, and matchings of the minute, with a view to later or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.data import BatchObservation, Floats, Ints
from muster.envs.fleet.observe import PAIR_FEATURES
from muster.envs.vector import Policy
from muster.errors import InputError

if TYPE_CHECKING:
    from muster.envs.fleet.env import FleetEnv

WORTH_GAINED = PAIR_FEATURES.index("worth gained")


class Greedy(Policy):
    """Requests in order, each to the nearest vehicle that is free to take it, in time and at a profit."""

    name = "greedy"

    def __init__(self, env: FleetEnv) -> None:
        self._env = env

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N]"""
        del observation
        assignment = np.empty((self._env.n_envs, self._env.n_agents), np.int64)
        self._env.kernel.send_greedily(assignment)
        return assignment


class Match(Policy):
    """The minute's requests and vehicles matched for the largest profit now: an LP, with no thought of later."""

    name = "match"

    def __init__(self, env: FleetEnv) -> None:
        del env

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the optimum of the linear programme with h = profit."""
        assert observation.prior is not None
        return _best(observation, observation.prior)


class Worth(Policy):
    """The same with thought of later: profit, and how much more the drop-off is worth than where the vehicle is.

    What a zone is worth follows from the rates, not from learning.
    """

    name = "worth"

    def __init__(self, env: FleetEnv) -> None:
        self._env = env

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the optimum of the linear programme with h = profit + worth gained."""
        assert observation.prior is not None
        if not observation.pair_features.shape[-1]:
            raise InputError(
                "worth reads the features of pairs, which are not observed; call env.show(pair_features=True)"
            )
        return _best(observation, observation.prior + observation.pair_features[..., WORTH_GAINED])


def _best(observation: BatchObservation, scores: Floats) -> Ints:
    from muster.assign import Solver

    return Solver(method="lp", certify=False)(observation.problem(scores)).assignment
