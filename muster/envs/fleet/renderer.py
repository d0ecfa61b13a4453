"""How a fleet is shown to people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats, Ints
from muster.envs.renderer import Renderer
from muster.envs.scene import BLUE, GREEN, RED, VIOLET, Look, Scene, Stage, Zone

if TYPE_CHECKING:
    from PIL import ImageDraw

    from muster.envs.fleet.env import FleetEnv
    from muster.envs.vector import State

BOARD = 560
"""Pixels along the longer side of the map, about."""
BANNER = 44
MOVES_A_MINUTE = 3
# Drawn at twice the size and shrunk: smooth edges without a drawing library.
OVERSAMPLING = 2
MARGIN = 0.75
"""Room round the outermost zones, in hops."""

PAPER, LINES, INK, QUIET = (250, 248, 243), (214, 209, 198), (62, 60, 56), (120, 116, 108)
CALM, BUSY = (244, 241, 233), (233, 203, 160)
EMPTY, DRIVING, FULL = (23, 144, 118), (31, 119, 180), (54, 73, 147)
REQUEST, TAKEN = (214, 69, 65), (214, 130, 22)
LOOKS = (
    Look("empty vehicle", "square", GREEN, size=0.09),
    Look("vehicle with one request", "square", BLUE, size=0.09),
    Look("vehicle with two requests", "square", VIOLET, size=0.09),
    Look("request", "disc", RED, size=0.075),
)


class FleetRenderer(Renderer):
    """Vehicles and requests on the map of the zones."""

    env: FleetEnv

    def scene(self, slot: int) -> Scene:
        """The map for the viewer, whose y goes down."""
        env, state = self.env, self.env.get_state()
        minute = int(state["minute"][slot])
        south = np.array([1.0, -1.0])
        requests = np.zeros((env.n_tasks, 2, 2))
        there = np.zeros(env.n_tasks, np.bool_)
        if minute < env.max_steps:
            there = state["pickups"][slot, minute] >= 0
            for j, spots in _request_spots(env, state, slot, minute, np.flatnonzero(there)).items():
                requests[j] = spots
        held = state["held"][slot]
        earned, served, seen = (state[name][slot] for name in ("earned", "served", "seen"))
        return Scene(
            agents=_spread(positions(env, state, slot, 0.0), held) * south,
            tasks=requests[:, 0] * south,
            task_alive=there,
            agent_looks=held,
            task_looks=3,
            task_ends=requests[:, 1] * south,
            text=f"minute {minute} of {env.max_steps}, profit {earned:.1f}, {served} of {seen} served",
            stage=_stage(env),
        )

    def animate(self, before: State, slot: int) -> list[NDArray[np.uint8]]:
        """The decision on the map as it was, and the way to the map as it is."""
        env, now = self.env, self.env.get_state()
        if not before["running"][slot]:
            return [self.draw(slot)]
        old, new = positions(env, before, slot, 0.0), positions(env, now, slot, 0.0)
        shown = [self._draw({**before, "taken": now["taken"]}, slot, old)]
        for k in range(1, MOVES_A_MINUTE):
            share = k / MOVES_A_MINUTE
            shown.append(
                self._draw({**now, "minute": before["minute"]}, slot, (1 - share) * old + share * new, waiting=False)
            )
        return [*shown, self.draw(slot)]

    def draw(self, slot: int) -> NDArray[np.uint8]:
        """[height, width, 3] the map as it is."""
        env, state = self.env, self.env.get_state()
        return self._draw({**state, "taken": np.full_like(state["taken"], -1)}, slot, positions(env, state, slot, 0.0))

    def _draw(self, state: State, slot: int, vehicles: Floats, waiting: bool = True) -> NDArray[np.uint8]:
        from PIL import Image, ImageDraw, ImageFont

        env, places = self.env, self.env.city.places
        low, high = places.min(0) - MARGIN, places.max(0) + MARGIN
        hop = OVERSAMPLING * BOARD / float((high - low).max())
        banner = OVERSAMPLING * BANNER
        # At least as wide as the line of text above it.
        width = max(int((high - low)[0] * hop), OVERSAMPLING * 420)
        height = int((high - low)[1] * hop) + banner
        left = (width - (high - low)[0] * hop) / 2
        image = Image.new("RGB", (width, height), PAPER)
        pen = ImageDraw.Draw(image)

        def at(place: NDArray[Any]) -> tuple[float, float]:
            # Rows go north, pixels go down.
            return left + (float(place[0]) - low[0]) * hop, height - (float(place[1]) - low[1]) * hop

        origins = env.city.hourly.sum(1)
        font = ImageFont.load_default(max(OVERSAMPLING * 9, int(hop * 0.14)))
        for zone, place in enumerate(places):
            x, y = at(place)
            radius = hop / math.sqrt(3)
            corners = [
                (x + radius * math.sin(k * math.pi / 3), y + radius * math.cos(k * math.pi / 3)) for k in range(6)
            ]
            shade = float(origins[zone] / max(origins.max(), 1e-9))
            pen.polygon(corners, _mix(CALM, BUSY, shade), LINES, OVERSAMPLING)
            pen.text((x, y - 0.8 * radius), str(zone), QUIET, font, anchor="mt")

        minute = int(state["minute"][slot])
        requests: list[int] = []
        if waiting and minute < env.max_steps:
            requests = np.flatnonzero(state["pickups"][slot, minute] >= 0).tolist()
        spots = _request_spots(env, state, slot, minute, requests)
        vehicle_spots = _spread(vehicles, state["held"][slot])
        taken = {int(j): i for i, j in enumerate(state["taken"][slot]) if j >= 0}
        for j, (pickup, dropoff) in spots.items():
            colour = TAKEN if j in taken else REQUEST
            if j in taken:
                pen.line([at(vehicle_spots[taken[j]]), at(pickup)], TAKEN, max(OVERSAMPLING, int(0.03 * hop)))
            _arrow(pen, at(pickup), at(dropoff), colour, max(OVERSAMPLING, int(0.018 * hop)), 0.07 * hop)
        size = 0.075 * hop
        for i, place in enumerate(vehicle_spots):
            x, y = at(place)
            colour = (EMPTY, DRIVING, FULL)[int(state["held"][slot, i])]
            pen.rounded_rectangle(
                [x - 1.3 * size, y - 0.8 * size, x + 1.3 * size, y + 0.8 * size], 0.5 * size, colour, PAPER
            )
        for j, (pickup, _) in spots.items():
            x, y = at(pickup)
            colour = TAKEN if j in taken else REQUEST
            pen.ellipse([x - size * 0.8, y - size * 0.8, x + size * 0.8, y + size * 0.8], colour, PAPER)

        _write_banner(pen, banner, state, slot)
        small = image.resize((image.width // OVERSAMPLING, image.height // OVERSAMPLING), Image.Resampling.LANCZOS)
        return np.asarray(small, np.uint8)

    def describe(self, slot: int) -> str:
        """A line a zone: vehicles that stand there, vehicles on their way there, and where its requests want to go."""
        env, fleet = self.env, self.env.fleet
        minute = int(fleet.minute[slot])
        head = f"minute {minute}, profit {fleet.earned[slot]:.2f}, {fleet.served[slot]} of {fleet.seen[slot]} served"
        lines = [head, "zone  standing  coming (in minutes)  requests to"]
        for zone in range(env.city.n_zones):
            bound = fleet.zone[slot] == zone
            standing = int((bound & (fleet.held[slot] == 0)).sum())
            coming = sorted(int(free) for free in fleet.free[slot][bound & (fleet.held[slot] > 0)])
            wanted: list[int] = []
            if minute < env.max_steps:
                wanted = fleet.dropoffs[slot, minute][fleet.pickups[slot, minute] == zone].tolist()
            lines.append(
                f"{zone:>4}  {standing:>8}  {' '.join(map(str, coming)):<19}  {' '.join(map(str, wanted))}".rstrip()
            )
        return "\n".join(lines)

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Put empty vehicles into the zones nearest to these places, and requests that start there."""
        env, fleet = self.env, self.env.fleet
        zones = nearest_zones(env, np.asarray(agents))
        fleet.zone[slot] = zones
        fleet.stops[slot] = zones[:, None]
        start = nearest_zones(env, np.asarray(tasks))
        # Requests that there were keep where they lead to; new ones lead across the city.
        ends = fleet.dropoffs[slot, 0]
        ends[:] = np.where(ends >= 0, ends, (start + env.city.n_zones // 2) % env.city.n_zones)
        fleet.pickups[slot, 0] = start


def positions(env: FleetEnv, state: State, slot: int, into: float) -> Floats:
    """[N, 2] where each vehicle is, `into` minutes after `state`, on the straight lines of its legs."""
    places = np.empty((env.n_agents, 2))
    minutes, middle = env.city.minutes, env.city.places
    for i in range(env.n_agents):
        start, pickup, dropoff = (int(zone) for zone in state["stops"][slot, i, :3])
        if state["held"][slot, i] == 0:
            places[i] = middle[start]
            continue
        empty, full = int(minutes[start, pickup]), int(minutes[pickup, dropoff])
        # The queued request may have been waited for: what is left counts, not what has passed.
        left = max(float(state["first"][slot, i]) - into, 0.0)
        if left > full:
            share = min((left - full) / max(empty, 1), 1.0)
            places[i] = share * middle[start] + (1 - share) * middle[pickup]
        else:
            share = left / max(full, 1)
            places[i] = share * middle[pickup] + (1 - share) * middle[dropoff]
    return places


def nearest_zones(env: FleetEnv, places: Floats) -> Ints:
    """[K] the zones of places [K, 2] in a scene."""
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


def _write_banner(pen: ImageDraw.ImageDraw, banner: int, state: State, slot: int) -> None:
    """What has happened so far, and what the colours mean, in the first `banner` rows of pixels."""
    from PIL import ImageFont

    text = (
        f"minute {int(state['minute'][slot])}     profit {float(state['earned'][slot]):.1f}     "
        f"{int(state['served'][slot])} of {int(state['seen'][slot])} requests served"
    )
    pen.text((OVERSAMPLING * 12, banner // 3), text, INK, ImageFont.load_default(OVERSAMPLING * 15), anchor="lm")
    legend, x = ImageFont.load_default(OVERSAMPLING * 10), OVERSAMPLING * 12.0
    for colour, label in (
        (EMPTY, "empty"), (DRIVING, "one request"), (FULL, "two"), (REQUEST, "request"), (TAKEN, "taken now"),
    ):  # fmt: skip
        y = banner * 0.78
        pen.ellipse([x, y - 4 * OVERSAMPLING, x + 8 * OVERSAMPLING, y + 4 * OVERSAMPLING], colour)
        pen.text((x + 12 * OVERSAMPLING, y), label, QUIET, legend, anchor="lm")
        x += 26 * OVERSAMPLING + pen.textlength(label, legend)


def _request_spots(
    env: FleetEnv, state: State, slot: int, minute: int, requests: Any
) -> dict[int, tuple[Floats, Floats]]:
    """Pick-up and drop-off of each request, a little apart from the zone's middle and from each other."""
    spots = {}
    for j in requests:
        angle = 2.4 * int(j) + 0.6
        aside = 0.27 * np.array([math.cos(angle), math.sin(angle)])
        pickup = env.city.places[state["pickups"][slot, minute, j]] + aside
        spots[int(j)] = pickup, env.city.places[state["dropoffs"][slot, minute, j]] + 0.3 * aside
    return spots


def _spread(vehicles: Floats, held: NDArray[Any]) -> Floats:
    """Vehicles that stand in one place, side by side in a spiral."""
    found = vehicles.copy()
    standing: dict[tuple[float, float], int] = {}
    for i, place in enumerate(vehicles):
        if held[i] == 0:
            key = (round(float(place[0]), 3), round(float(place[1]), 3))
            k = standing[key] = standing.get(key, -1) + 1
            radius, angle = 0.11 * math.sqrt(k), 2.4 * k
            found[i] = place + radius * np.array([math.cos(angle), math.sin(angle)])
    return found


def _arrow(
    pen: Any,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: tuple[int, int, int],
    width: int,
    head: float,
) -> None:
    pen.line([start, end], colour, width)
    angle = math.atan2(end[1] - start[1], end[0] - start[0])
    wings = [(end[0] - head * math.cos(angle + turn), end[1] - head * math.sin(angle + turn)) for turn in (0.45, -0.45)]
    pen.polygon([end, *wings], colour)


def _mix(one: tuple[int, int, int], other: tuple[int, int, int], share: float) -> tuple[int, int, int]:
    mixed = [round(a + (b - a) * share) for a, b in zip(one, other, strict=True)]
    return mixed[0], mixed[1], mixed[2]
