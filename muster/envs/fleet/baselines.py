"""Baselines: the nearest vehicle, matchings of the minute's requests, and the optimum in hindsight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.data import BatchObservation, Floats, Ints, Problem
from muster.envs.fleet.city import Zones
from muster.envs.fleet.observe import FEATURE_NAMES
from muster.envs.vector import Policy, State
from muster.errors import InputError
from muster.rng import Seeds

if TYPE_CHECKING:
    from muster.envs.fleet.env import FleetEnv


WORTH_GAINED = FEATURE_NAMES["pair"].index("worth gained")


class Greedy(Policy):
    """Requests in order, each to the nearest available vehicle that is in time and makes a profit."""

    name = "greedy"

    def __init__(self, env: FleetEnv) -> None:
        self._env = env

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] by the greedy rule above."""
        del observation
        assignment = np.empty((self._env.n_envs, self._env.n_agents), np.int64)
        self._env.kernel.send_greedily(assignment)
        return assignment


class Match(Policy):
    """The matching of vehicles and the minute's requests with the largest present profit: an LP, with no look ahead."""

    name = "match"

    def __init__(self, env: FleetEnv) -> None:
        del env

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the optimum of the linear programme with h = profit."""
        assert observation.prior is not None
        return _best(observation, observation.prior)


class Worth(Policy):
    """The matching with the largest profit plus gain in worth from the vehicle's zone to the drop-off's.

    The worth of a zone is computed from the request rates, not learned.
    """

    name = "worth"

    def __init__(self, env: FleetEnv) -> None:
        self._env = env

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the optimum of the linear programme with h = profit + worth gained."""
        assert observation.prior is not None
        if not observation.pair_features.shape[-1]:
            raise InputError("worth reads pair features, which are not observed; call env.show(pair_features=True)")
        return _best(observation, observation.prior + observation.pair_features[..., WORTH_GAINED])


def _best(observation: BatchObservation, scores: Floats) -> Ints:
    from muster.assign import Solver

    return Solver(method="lp", certify=False)(observation.problem(scores)).assignment


def list_requests(pickups: Zones, dropoffs: Zones, begin: int) -> Ints:
    """[R, 4] minute, index, pick-up and drop-off zone of every request from minute `begin` on, in order."""
    minutes, indices = np.nonzero(pickups[begin:] >= 0)
    minutes += begin
    return np.stack([minutes, indices, pickups[minutes, indices], dropoffs[minutes, indices]], axis=1).astype(np.int64)


def plan(env: FleetEnv, slot: int) -> tuple[float, Ints, Ints]:
    """The optimal flow from the present state on: its value, the requests [R, 4], and their vehicles [R], or -1."""
    from muster.assign import Solver

    fleet = env.fleet
    now, n = int(fleet.minute[slot]), env.n_agents
    requests = list_requests(fleet.pickups[slot], fleet.dropoffs[slot], now)
    if not len(requests):
        return 0.0, requests, np.zeros(0, np.int64)
    # Profit of a request as a vehicle's first (rows 0 to N - 1), or as the next after another; 0 for not serving it.
    scores = np.empty((n + len(requests), len(requests)))
    env.kernel.score_flow(slot, requests, scores)
    solution = Solver(method="lp", assign_all=True, certify=False)(Problem(scores=scores[None]))
    predecessor = np.full(len(requests), -1, np.int64)
    used = solution.assignment[0] >= 0
    predecessor[solution.assignment[0][used]] = np.flatnonzero(used)
    value = scores[predecessor, np.arange(len(requests))].sum()
    # In order of time, so that the vehicle of the preceding request is known.
    vehicle = np.full(len(requests), -1, np.int64)
    for j, row in enumerate(predecessor):
        if row != n + j:
            vehicle[j] = row if row < n else vehicle[row - n]
    return float(value), requests, vehicle


def upper_bound(env: FleetEnv, seeds: Seeds) -> Floats:
    """[E] upper bounds on the return in the episodes of `seeds`; uses slot 0 of `env`."""
    bounds = np.empty(len(seeds))
    for k, seed in enumerate(seeds):
        env.reset(np.arange(1), np.array([seed], np.uint64))
        bounds[k] = plan(env, 0)[0]
    return bounds


class Hindsight(Policy):
    """Knows all requests: follows the optimal flow, and replans if a vehicle arrives later than the flow assumes.

    Its return is at most the flow's value, which `metrics` reports as upper_bound.
    """

    name = "hindsight"

    def __init__(self, env: FleetEnv) -> None:
        self._env = env
        self._stale = np.zeros(env.n_envs, np.bool_)
        self._plans: list[Ints] = [np.zeros((0, 3), np.int64)] * env.n_envs

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Forget the plans of these slots."""
        del seeds
        self._stale[slots] = True

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the plan's requests of this minute."""
        env = self._env
        assert observation.allowed is not None
        assignment = np.full((env.n_envs, env.n_agents), -1, np.int64)
        for slot in np.flatnonzero(env.fleet.running).tolist():
            if self._stale[slot] or not self._follow(slot, observation.allowed[slot], assignment[slot]):
                self._make_plan(slot)
                self._follow(slot, observation.allowed[slot], assignment[slot])
        return assignment

    def replan(self, slots: Ints) -> None:
        """Plan the rest of the hour anew from the present state."""
        self._stale[slots] = True

    def get_memory(self) -> State:
        """The plans, concatenated, and which are out of date."""
        lengths = np.array([len(part) for part in self._plans], np.int64)
        return {"plans": np.concatenate(self._plans), "lengths": lengths, "stale": self._stale.copy()}

    def set_memory(self, memory: State) -> None:
        """Restore what `get_memory` returned."""
        ends = np.cumsum(np.asarray(memory["lengths"], np.int64))[:-1]
        self._plans = [np.array(part, np.int64) for part in np.split(np.asarray(memory["plans"]), ends)]
        self._stale[...] = memory["stale"]

    def _follow(self, slot: int, allowed: Ints, assignment: Ints) -> bool:
        """Write this minute's part of the plan into `assignment`; False if some of it is not allowed."""
        part = self._plans[slot]
        part = part[part[:, 0] == self._env.fleet.minute[slot]]
        feasible = allowed[part[:, 2], part[:, 1]]
        assignment[:] = -1
        assignment[part[feasible, 2]] = part[feasible, 1]
        return bool(feasible.all())

    def _make_plan(self, slot: int) -> None:
        env = self._env
        value, requests, vehicle = plan(env, slot)
        if env.fleet.minute[slot] == 0:
            env.bound[slot] = value
        taken = vehicle >= 0
        self._plans[slot] = np.stack([requests[taken, 0], requests[taken, 1], vehicle[taken]], axis=1)
        self._stale[slot] = False
