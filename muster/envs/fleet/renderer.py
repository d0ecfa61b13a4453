"""The renderer of fleets: a map of the zones, text for terminals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats, Ints
from muster.envs.renderer import SceneRenderer
from muster.envs.scene import BLUE, GREEN, RED, VIOLET, Look, Scene, Stage, Zone

if TYPE_CHECKING:
    from muster.envs.fleet.env import FleetEnv
    from muster.envs.vector import State

MARGIN = 0.75
"""Margin around the outermost zones, in distances of neighbours."""

LOOKS = (
    Look("empty vehicle", "square", GREEN, size=0.09),
    Look("vehicle with one request", "square", BLUE, size=0.09),
    Look("vehicle with two requests", "square", VIOLET, size=0.09),
    Look("request", "disc", RED, size=0.075),
)


class FleetRenderer(SceneRenderer):
    """Draws vehicles and requests on the map of the zones."""

    env: FleetEnv

    def scene(self, slot: int) -> Scene:
        """The map with vehicles and the minute's requests; y goes down."""
        env, state = self.env, self.env.get_state()
        minute = int(state["minute"][slot])
        south = np.array([1.0, -1.0])
        starts, ends = np.zeros((env.n_tasks, 2)), np.zeros((env.n_tasks, 2))
        present = np.zeros(env.n_tasks, np.bool_)
        if minute < env.max_steps:
            pickups, dropoffs = state["pickups"][slot, minute], state["dropoffs"][slot, minute]
            present = pickups >= 0
            # Requests are drawn a little apart from the zone's centre and from each other.
            angles = 2.4 * np.flatnonzero(present) + 0.6
            aside = 0.27 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
            starts[present] = env.city.places[pickups[present]] + aside
            ends[present] = env.city.places[dropoffs[present]] + 0.3 * aside
        held = state["held"][slot]
        earned, served, seen = (state[name][slot] for name in ("earned", "served", "seen"))
        return Scene(
            agents=_spread(positions(env, state, slot), held) * south,
            tasks=starts * south,
            task_alive=present,
            agent_looks=held,
            task_looks=3,
            task_ends=ends * south,
            text=f"minute {minute} of {env.max_steps}, profit {earned:.1f}, {served} of {seen} served",
            stage=_stage(env),
        )

    def targets(self, slot: int) -> Ints:
        """[N] -1: no vehicle has a request of the present minute yet."""
        del slot
        return np.full(self.env.n_agents, -1, np.int64)

    def describe(self, slot: int) -> str:
        """One line per zone: standing vehicles, minutes until others arrive, and destinations of its requests."""
        env, fleet = self.env, self.env.fleet
        minute = int(fleet.minute[slot])
        head = f"minute {minute}, profit {fleet.earned[slot]:.2f}, {fleet.served[slot]} of {fleet.seen[slot]} served"
        lines = [head, "zone  standing  coming (in minutes)  requests to"]
        for zone in range(env.city.n_zones):
            bound = fleet.zone[slot] == zone
            standing = int((bound & (fleet.held[slot] == 0)).sum())
            coming = sorted(int(free) for free in fleet.free[slot][bound & (fleet.held[slot] > 0)])
            destinations: list[int] = []
            if minute < env.max_steps:
                destinations = fleet.dropoffs[slot, minute][fleet.pickups[slot, minute] == zone].tolist()
            arrivals, ends = (" ".join(map(str, numbers)) for numbers in (coming, destinations))
            lines.append(f"{zone:>4}  {standing:>8}  {arrivals:<19}  {ends}".rstrip())
        return "\n".join(lines)

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Move empty vehicles, and the pick-ups of requests, to the zones nearest to these positions."""
        env, fleet = self.env, self.env.fleet
        zones = nearest_zones(env, np.asarray(agents))
        fleet.zone[slot] = zones
        fleet.stops[slot] = zones[:, None]
        start = nearest_zones(env, np.asarray(tasks))
        # Existing requests keep their drop-offs; new ones go across the city.
        ends = fleet.dropoffs[slot, 0]
        ends[:] = np.where(ends >= 0, ends, (start + env.city.n_zones // 2) % env.city.n_zones)
        fleet.pickups[slot, 0] = start


def positions(env: FleetEnv, state: State, slot: int) -> Floats:
    """[N, 2] position of each vehicle, on the straight lines of its legs."""
    places = np.empty((env.n_agents, 2))
    minutes, middle = env.city.minutes, env.city.places
    for i in range(env.n_agents):
        start, pickup, dropoff = (int(zone) for zone in state["stops"][slot, i, :3])
        if state["held"][slot, i] == 0:
            places[i] = middle[start]
            continue
        empty, full = int(minutes[start, pickup]), int(minutes[pickup, dropoff])
        # By the time left, not the time passed, since a vehicle may have waited for its queued request.
        left = max(float(state["first"][slot, i]), 0.0)
        if left > full:
            share = min((left - full) / max(empty, 1), 1.0)
            places[i] = share * middle[start] + (1 - share) * middle[pickup]
        else:
            share = left / max(full, 1)
            places[i] = share * middle[pickup] + (1 - share) * middle[dropoff]
    return places


def nearest_zones(env: FleetEnv, places: Floats) -> Ints:
    """[K] the zones nearest to positions [K, 2] of a scene."""
    middles = env.city.places * np.array([1.0, -1.0])
    return np.linalg.norm(places[:, None] - middles, axis=-1).argmin(1)


def _stage(env: FleetEnv) -> Stage:
    places = env.city.places * np.array([1.0, -1.0])
    origins = env.city.hourly.sum(1)
    turn = np.arange(6) * math.pi / 3
    corners = np.stack([np.sin(turn), np.cos(turn)], axis=1) / math.sqrt(3)
    zones = tuple(
        Zone(place + corners, float(origins[zone] / max(origins.max(), 1e-9)), str(zone))
        for zone, place in enumerate(places)
    )
    low, high = places.min(0) - MARGIN, places.max(0) + MARGIN
    return Stage(LOOKS, (float(low[0]), float(low[1]), float(high[0]), float(high[1])), zones=zones)


def _spread(vehicles: Floats, held: NDArray[Any]) -> Floats:
    """[N, 2] positions of vehicles; those that stand in one place are spread in a spiral."""
    positions = vehicles.copy()
    standing: dict[tuple[float, float], int] = {}
    for i, place in enumerate(vehicles):
        if held[i] == 0:
            key = (round(float(place[0]), 3), round(float(place[1]), 3))
            k = standing[key] = standing.get(key, -1) + 1
            radius, angle = 0.11 * math.sqrt(k), 2.4 * k
            positions[i] = place + radius * np.array([math.cos(angle), math.sin(angle)])
    return positions
