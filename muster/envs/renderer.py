"""Renderers: scenes for the viewer, pictures and text of an episode."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats, Ints
from muster.envs.scene import Bounds, Look, Scene, Stage, as_places, scene_of
from muster.errors import MusterError

if TYPE_CHECKING:
    from muster.envs.vector import BatchEnv

SIDE = 512
"""Pixels of the longer side, about."""
BANNER = 44
NARROWEST = 420
"""Least width in pixels, for the line of text."""
SMALLEST = 5
"""Least radius of an object in pixels, so that large environments stay readable."""
MANY = 12
"""Number of agents beyond which lines to their tasks are thin."""
MOVES_A_STEP = 3
"""Frames of one step, from the scene before it to the one after."""
# Pictures are drawn at twice the size and shrunk, for smooth edges.
FINER = 2
PAPER, LINES, INK, QUIET, GONE = "#faf8f3", "#e2ddd2", "#3e3c38", "#78746c", "#c4c0b8"
SHOT, HEALTHY, HURT = "#e8a200", "#2f9e6e", "#d9534f"
CALM, BUSY = (244, 241, 233), (226, 207, 178)
# Colours of objects whose look has none, by index; they repeat after eight.
COLOURS = ("#1f77b4", "#179076", "#9467bd", "#d68216", "#364993", "#8c564b", "#6c8e23", "#be468c")
OUTLINES = {
    "square": ((-1.3, -0.8), (1.3, -0.8), (1.3, 0.8), (-1.3, 0.8)),
    "diamond": ((0, -1), (1, 0), (0, 1), (-1, 0)),
    "triangle": ((0, -1), (0.9, 0.7), (-0.9, 0.7)),
    "hexagon": tuple((math.sin(k * math.pi / 3), math.cos(k * math.pi / 3)) for k in range(6)),
    "dart": ((0, -1), (0.8, 0.9), (0, 0.45), (-0.8, 0.9)),
}
Point = tuple[float, float]


class Renderer:
    """Base of renderers: scenes from observations alone, no pictures and no text."""

    seconds_per_step: float = 0.4
    """Seconds for one step in a GIF or the viewer."""

    def __init__(self, env: BatchEnv) -> None:
        self.env: Any = env

    def scene(self, slot: int) -> Scene:
        """The scene of the episode in `slot`."""
        return scene_of(self.env.observe(), slot, self.env.positions)

    def draw(self, slot: int) -> Any:
        """A picture [height, width, 3] of uint8 of the episode in `slot`, or an object that numpy converts to one."""
        raise MusterError(f"{self.env.name} has no picture")

    def describe(self, slot: int) -> str:
        """The episode in `slot` as text, for terminals."""
        raise MusterError(f"{self.env.name} has no text for terminals")

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Place agents [N, 2] and tasks [M, 2] of an episode that was just reset, in the coordinates of its scenes."""
        del slot, agents, tasks
        raise MusterError(f"{self.env.name} cannot be arranged by hand")

    def can(self, method: str) -> bool:
        """Whether it defines a method: "draw", "describe" or "arrange"."""
        return getattr(type(self), method) is not getattr(Renderer, method)


class SceneRenderer(Renderer):
    """Base of renderers that draw their scenes."""

    def targets(self, slot: int) -> Ints:
        """[N] the task of each agent at the last step, -1 for none."""
        raise NotImplementedError

    def draw(self, slot: int) -> NDArray[np.uint8]:
        """[height, width, 3] picture of the scene, with a line from each agent to its task."""
        return draw_scene(self.scene(slot), self.targets(slot))


def scenes_between(old: Scene, new: Scene) -> list[Scene]:
    """Frames from one scene to the next: agents, and tasks that stay the same, move in equal parts of the way."""
    size = None
    if old.stage.wraps and old.stage.bounds:
        left, top, right, bottom = old.stage.bounds
        size = np.array([right - left, bottom - top])
    ways = _way(old.agents, new.agents, size), _way(old.tasks, new.tasks, size)
    shots = np.zeros((0, 3)) if new.shots is None else np.asarray(new.shots)
    frames = []
    for k in range(MOVES_A_STEP):
        share = k / MOVES_A_STEP
        agents, tasks = np.asarray(old.agents) + share * ways[0], np.asarray(old.tasks)
        if old.task_ends is None:
            tasks = tasks + share * ways[1]
        fired = shots[(shots[:, 2] * MOVES_A_STEP).astype(np.int64).clip(max=MOVES_A_STEP - 1) == k]
        frames.append(replace(old, agents=agents, tasks=tasks, shots=fired))
    return frames


def draw_scene(scene: Scene, targets: Ints | None = None) -> NDArray[np.uint8]:
    """[height, width, 3] picture of a scene, with lines from agents to those of their `targets` [N] that are alive."""
    from PIL import Image, ImageFont

    agents, tasks = as_places("agents", scene.agents), as_places("tasks", scene.tasks)
    agent_alive, task_alive = _alive(scene.agent_alive, len(agents)), _alive(scene.task_alive, len(tasks))
    canvas = _Canvas(scene.stage, np.concatenate([agents[agent_alive], tasks[task_alive]]))
    pen, stage = canvas.pen, scene.stage
    for zone in stage.zones:
        corners = [canvas.at(corner) for corner in np.asarray(zone.corners)]
        pen.polygon(corners, _mix(zone.shade), LINES, FINER)
        top = min(corners, key=lambda corner: corner[1])
        pen.text((top[0], top[1] + 4 * FINER), zone.label, QUIET, ImageFont.load_default(9 * FINER), anchor="mt")
    canvas.draw_grid(stage.grid)
    agent_looks, task_looks = _looks(scene.agent_looks, len(agents), stage), _looks(scene.task_looks, len(tasks), stage)
    for j in np.flatnonzero(~task_alive).tolist():
        if task_looks[j].remains:
            canvas.shape(replace(task_looks[j], shape="disc", size=0.4 * task_looks[j].size), tasks[j], GONE)
    if scene.task_ends is not None:
        for j in np.flatnonzero(task_alive).tolist():
            canvas.arrow(tasks[j], np.asarray(scene.task_ends)[j], _colour(task_looks[j], j))
    for i, j in enumerate([] if targets is None else targets.tolist()):
        if 0 <= j < len(tasks) and agent_alive[i] and task_alive[j]:
            end = agents[i] + canvas.way(agents[i], tasks[j])
            canvas.line(agents[i], end, _colour(agent_looks[i], i), 1 if len(agents) > MANY else 2)
    both = np.concatenate([agents, tasks])
    for source, target, _ in [] if scene.shots is None else np.asarray(scene.shots):
        canvas.line(both[int(source)], both[int(target)], SHOT, 3)
    for places, alive, looks, angles, health in (
        (tasks, task_alive, task_looks, scene.task_angles, scene.task_health),
        (agents, agent_alive, agent_looks, scene.agent_angles, scene.agent_health),
    ):
        for k in np.flatnonzero(alive).tolist():
            turn = 0.0 if angles is None else float(np.asarray(angles)[k])
            canvas.shape(looks[k], places[k], _colour(looks[k], k), turn)
            if health is not None and np.asarray(health)[k] < 1:
                canvas.bar(places[k], looks[k], float(np.asarray(health)[k]))
    canvas.write(scene.text, stage.looks)
    image = canvas.image
    return np.asarray(image.resize((image.width // FINER, image.height // FINER), Image.Resampling.LANCZOS), np.uint8)


class _Canvas:
    """An image, and the coordinates of a scene on it."""

    def __init__(self, stage: Stage, places: Floats) -> None:
        from PIL import Image, ImageDraw

        left, top, right, bottom = stage.bounds or _square(places)
        self.unit = FINER * SIDE / max(right - left, bottom - top)
        self.size: Floats = np.array([right - left, bottom - top])
        width = max(round(self.size[0] * self.unit), FINER * NARROWEST)
        self.start = (width - self.size[0] * self.unit) / 2 - left * self.unit, FINER * BANNER - top * self.unit
        self.wraps, self.corner = stage.wraps, (left, top)
        self.image = Image.new("RGB", (width, FINER * BANNER + round(self.size[1] * self.unit)), PAPER)
        self.pen = ImageDraw.Draw(self.image)

    def at(self, place: Any) -> Point:
        """Pixel coordinates of a position."""
        return self.start[0] + float(place[0]) * self.unit, self.start[1] + float(place[1]) * self.unit

    def way(self, here: Any, there: Any) -> Floats:
        """Vector from one position to another, by the shorter way round if the ground wraps."""
        return _way(here, there, self.size if self.wraps else None)

    def everywhere(self, place: Any) -> Iterator[Any]:
        """A position and, if the ground wraps, its copies beyond each edge."""
        for x in (-1, 0, 1) if self.wraps else (0,):
            for y in (-1, 0, 1) if self.wraps else (0,):
                yield place + self.size * (x, y)

    def draw_grid(self, grid: float) -> None:
        """Draw the lines of a grid, unless they would be too close."""
        if not grid or grid * self.unit < 6 * FINER:
            return
        (left, top), (width, height) = self.corner, self.size
        for k in range(round(width / grid) + 1):
            self.pen.line([self.at((left + k * grid, top)), self.at((left + k * grid, top + height))], LINES, FINER)
        for k in range(round(height / grid) + 1):
            self.pen.line([self.at((left, top + k * grid)), self.at((left + width, top + k * grid))], LINES, FINER)

    def line(self, start: Any, end: Any, colour: str, width: int) -> None:
        """Draw a line."""
        for here in self.everywhere(start):
            self.pen.line([self.at(here), self.at(here + (np.asarray(end) - start))], colour, width * FINER)

    def arrow(self, start: Any, end: Any, colour: str) -> None:
        """Draw a thin line with a head."""
        self.line(start, end, colour, 1)
        (x, y), (a, b) = self.at(end), self.at(start)
        angle, head = math.atan2(y - b, x - a), 5 * FINER
        wings = [(x - head * math.cos(angle + turn), y - head * math.sin(angle + turn)) for turn in (0.45, -0.45)]
        self.pen.polygon([(x, y), *wings], colour)

    def radius(self, look: Look) -> float:
        """Radius of an object in pixels."""
        return max((look.size or 0.38) * self.unit, SMALLEST * FINER)

    def bar(self, place: Any, look: Look, share: float) -> None:
        """Draw a health bar above an object."""
        (x, y), r, height = self.at(place), self.radius(look), 2 * FINER
        self.pen.rectangle([x - r, y - 1.6 * r - height, x + r, y - 1.6 * r], LINES)
        self.pen.rectangle(
            [x - r, y - 1.6 * r - height, x + (2 * share - 1) * r, y - 1.6 * r], HEALTHY if share > 0.5 else HURT
        )

    def shape(self, look: Look, place: Any, colour: str, turn: float = 0.0) -> None:
        """Draw an agent or task, rotated by `turn` full turns clockwise."""
        r = self.radius(look)
        sin, cos = math.sin(2 * math.pi * turn), math.cos(2 * math.pi * turn)
        for x, y in map(self.at, self.everywhere(place)):
            if look.shape in OUTLINES:
                corners = [(x + (a * cos - b * sin) * r, y + (a * sin + b * cos) * r) for a, b in OUTLINES[look.shape]]
                self.pen.polygon(corners, colour, PAPER)
            elif look.shape == "van":
                self.pen.rounded_rectangle(
                    [x - r, y - 0.75 * r, x + r, y + 0.55 * r], 0.3 * r, PAPER, colour, round(r / 5)
                )
                for wheel in (-0.5 * r, 0.5 * r):
                    self._disc(x + wheel, y + 0.65 * r, 0.27 * r, colour)
            elif look.shape == "person":
                self._disc(x, y - 0.5 * r, 0.42 * r, colour)
                self.pen.pieslice([x - 0.75 * r, y - 0.05 * r, x + 0.75 * r, y + 1.6 * r], 180, 360, fill=colour)
            else:
                self._disc(x, y, r, colour)

    def _disc(self, x: float, y: float, radius: float, colour: str) -> None:
        self.pen.ellipse([x - radius, y - radius, x + radius, y + radius], colour)

    def write(self, text: str, looks: Any) -> None:
        """Write a line of text and the legend into the banner."""
        from PIL import ImageFont

        font, small = ImageFont.load_default(15 * FINER), ImageFont.load_default(10 * FINER)
        self.pen.rectangle([0, 0, self.image.width, FINER * BANNER - 1], PAPER)
        self.pen.text((12 * FINER, BANNER * FINER * 0.33), text, INK, font, anchor="lm")
        x, y = 12.0 * FINER, BANNER * FINER * 0.78
        for look in looks:
            if look.name:
                self._disc(x + 4 * FINER, y, 4 * FINER, look.colour or QUIET)
                self.pen.text((x + 12 * FINER, y), look.name, QUIET, small, anchor="lm")
                x += 26 * FINER + self.pen.textlength(look.name, small)


def _square(places: Floats) -> Bounds:
    """Bounds of a square with all positions [K, 2] and a margin."""
    low, high = (places.min(0), places.max(0)) if len(places) else (np.zeros(2), np.ones(2))
    middle, half = (low + high) / 2, 0.56 * max(float((high - low).max()), 1.0)
    return float(middle[0] - half), float(middle[1] - half), float(middle[0] + half), float(middle[1] + half)


def _way(here: Any, there: Any, size: Floats | None) -> Floats:
    straight: Floats = np.asarray(there, np.float64) - here
    return straight if size is None else straight - size * np.round(straight / size)


def _alive(given: Any, count: int) -> NDArray[np.bool_]:
    return np.ones(count, np.bool_) if given is None else np.asarray(given, np.bool_)


def _looks(given: Any, count: int, stage: Stage) -> list[Look]:
    return [stage.looks[int(k)] for k in np.broadcast_to(np.asarray(given), count)]


def _colour(look: Look, number: int) -> str:
    return look.colour or COLOURS[number % len(COLOURS)]


def _mix(shade: float) -> tuple[int, ...]:
    return tuple(round(a + (b - a) * shade) for a, b in zip(CALM, BUSY, strict=True))
