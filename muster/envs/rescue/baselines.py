"""Baselines: the nearest victim, the linear programme on distances, planned routes and the exact optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs import grid
from muster.envs.rescue.mud import HELD_UP, mud_to_cross
from muster.envs.rescue.routing import check_size, fastest_routes, king_moves
from muster.envs.vector import Policy, State
from muster.errors import InputError
from muster.kernels import core

if TYPE_CHECKING:
    from muster.envs.rescue.env import RescueEnv


class Closest(grid.Closest):
    """Each ambulance goes to the nearest waiting victim in king's moves; ties at random."""

    name = "closest"
    _manhattan = False

    def __init__(self, env: RescueEnv) -> None:
        super().__init__(env)
        show_cells_only(env)

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the nearest victim of each ambulance."""
        agents, tasks = _cells(observation)
        assignment = np.empty(agents.shape[:2], np.int64)
        core.rescue.send_to_closest(agents, tasks, observation.task_alive, self._manhattan, self.rng, assignment)
        return assignment


class ClosestManhattan(Closest):
    """Each ambulance goes to the waiting victim nearest in rows plus columns; ties at random."""

    name = "closest-manhattan"
    _manhattan = True


class LinearDistance(Policy):
    """The assignment of ambulances to victims, at most one each, that has the least total distance."""

    name = "lp-distance"

    def __init__(self, env: RescueEnv) -> None:
        show_cells_only(env)

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] by king's moves."""
        return grid.least_distance(observation, king_moves(*_cells(observation), -1.0))


class RoutesDistance(Policy):
    """Routes through all waiting victims with a short longest route; each decision starts from the last routes."""

    name = "routes-distance"

    def __init__(self, env: RescueEnv) -> None:
        from muster.assign.routes import RouteMemory
        from muster.assign.solver import Solver

        show_cells_only(env)
        self._env = env
        self._solver = RouteMemory(Solver("routes", certify=False))

    def reset(self, slots: Ints, seeds: NDArray[np.uint64]) -> None:
        """New victims: forget the routes of these slots."""
        del seeds
        self._solver.forget(np.asarray(slots))

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the first victim on each ambulance's route."""
        first, follow = self._costs(observation)
        return self._solver.run(observation.problem(-first, -follow))[0].assignment

    def expected_return(self, observation: BatchObservation) -> Floats:
        """[B] minus the cost of the longest route."""
        routes = self._solver.routes
        return self._env.step_reward * longest_routes(routes, observation.task_alive, *self._costs(observation))

    def get_memory(self) -> State:
        """The routes that the next decision starts from."""
        return {"routes": self._solver.routes.copy()}

    def set_memory(self, memory: State) -> None:
        """Restore what `get_memory` returned."""
        self._solver.routes = np.array(memory["routes"], np.int64)

    def _costs(self, observation: BatchObservation) -> tuple[Floats, Floats]:
        """Steps from ambulances to victims [B, N, M] and from victim to victim [B, M, M]."""
        agents, tasks = _cells(observation)
        return king_moves(agents, tasks), king_moves(tasks, tasks)


class RoutesKnown(RoutesDistance):
    """The same routes by a planner that knows where the mud is: a bound on what learning about it can gain."""

    name = "routes-known"

    def _costs(self, observation: BatchObservation) -> tuple[Floats, Floats]:
        first, follow = super()._costs(observation)
        ground = self._env.ground
        if ground is None:
            return first, follow
        agents, tasks = _cells(observation)
        mud, mud_between = mud_to_cross(agents, tasks, ground.held, ground.muddy)
        return first + HELD_UP * mud, follow + HELD_UP * mud_between


class Topline(Policy):
    """The exact optimum: min-max routes, planned once per episode and then followed.

    Raises InputError beyond 16 victims, and in mud.
    """

    name = "topline"
    remembered = ("routes", "unplanned")

    def __init__(self, env: RescueEnv) -> None:
        if env.ground is not None:
            raise InputError(f"the topline counts king's moves, and {env.name} has mud; compare with routes-known")
        check_size(env.n_tasks)
        show_cells_only(env)
        self._env = env
        self.routes: Ints = np.full((env.n_envs, env.n_agents, env.n_tasks), -1, np.int64)
        self.unplanned = np.zeros(env.n_envs, np.bool_)

    def reset(self, slots: Ints, seeds: NDArray[np.uint64]) -> None:
        """New victims: forget the routes of these slots."""
        del seeds
        self.unplanned[slots] = True

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the next victim on each ambulance's route."""
        agents, tasks = _cells(observation)
        for slot in np.flatnonzero(self.unplanned):
            waiting = np.flatnonzero(self._env.unsolved[slot])
            ambulances, victims = agents[slot][None], tasks[slot][waiting][None]
            _, stops = fastest_routes(king_moves(ambulances, victims)[0], king_moves(victims, victims)[0])
            self.routes[slot] = -1
            self.routes[slot, :, : len(waiting)] = np.where(stops >= 0, waiting[stops], -1)
            self.unplanned[slot] = False
        assignment = np.empty(self.routes.shape[:2], np.int64)
        core.rescue.follow_routes(self.routes, self._env.unsolved, assignment)
        return assignment

    def replan(self, slots: Ints) -> None:
        """Plan new routes from the present cells of the ambulances."""
        self.unplanned[slots] = True

    def expected_return(self, observation: BatchObservation) -> Floats:
        """[B] minus the cost of the longest route: an upper bound on every policy's return."""
        agents, tasks = _cells(observation)
        distances = king_moves(agents, tasks), king_moves(tasks, tasks)
        return self._env.step_reward * longest_routes(self.routes, self._env.unsolved, *distances)


def longest_routes(routes: Ints, waiting: Bools, first: Floats, follow: Floats) -> Floats:
    """[B] length of the longest of the routes [B, N, M], which skip stops that are not `waiting` [B, M].

    Legs are `first` [B, N, M] from an ambulance to a victim, then `follow` [B, M, M]; -1 ends a route.
    """
    rows, agents = np.indices(routes.shape[:2])
    lengths, last = np.zeros(routes.shape[:2]), np.full(routes.shape[:2], -1)
    for stop in np.moveaxis(routes, 2, 0):
        calls = (stop >= 0) & waiting[rows, stop]
        leg = np.where(last < 0, first[rows, agents, stop], follow[rows, last, stop])
        lengths += np.where(calls, leg, 0.0)
        last = np.where(calls, stop, last)
    longest: Floats = lengths.max(axis=1, initial=0.0)
    return longest


def show_cells_only(env: RescueEnv) -> None:
    """Leave pair features out of observations: these baselines do not read them, and they cost more than a decision."""
    env.show(pair_features=False)


def _cells(observation: BatchObservation) -> tuple[Ints, Ints]:
    assert observation.agent_cells is not None
    assert observation.task_cells is not None
    return observation.agent_cells, observation.task_cells
