"""Scenes: positions and looks of agents and tasks as plain numbers, from which viewers draw.

x goes to the right and y down, in any unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from muster.data import BatchObservation, Floats
from muster.errors import InputError

Shape = Literal["disc", "square", "diamond", "triangle", "hexagon", "dart", "van", "person"]

Bounds = tuple[float, float, float, float]
"""Left, top, right, bottom."""
RED, BLUE, GREEN, ORANGE, VIOLET = "#d9534f", "#3f83e8", "#2f9e6e", "#dd8a1c", "#8e6ac8"
"""Colours that can be told apart on light and on dark ground."""


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a kind of agent or task."""

    name: str = ""
    """Name in the legend; empty for no entry."""
    shape: Shape = "disc"
    colour: str = ""
    """"#rrggbb"; empty: a different colour for each, by its index."""
    size: float = 0.0
    """Radius in the environment's unit; 0 for a default."""
    remains: bool = False
    """Whether a faint mark stays when it is no longer alive."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A polygon on the ground."""

    corners: ArrayLike
    """[K, 2]"""
    shade: float = 0.0
    """0 (faint) to 1 (dark)."""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """The part of a scene that is the same throughout an episode."""

    looks: Sequence[Look] = (Look("agents", "diamond"), Look("tasks", "disc", RED, remains=True))
    """Scenes refer to them by index."""
    bounds: Bounds | None = None
    """The visible part of the ground; None: wide enough for all positions."""
    grid: float = 0.0
    """Distance between grid lines; 0 for no grid."""
    zones: Sequence[Zone] = ()
    wraps: bool = False
    """Whether the ground wraps: an object that leaves on one side enters on the other."""
    agent_names: Sequence[str] = ()
    """Labels; numbers by default."""
    task_names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment of an episode with N agents and M tasks. Leave out what the environment does not have."""

    agents: ArrayLike
    """[N, 2] x and y."""
    tasks: ArrayLike
    """[M, 2]"""
    agent_alive: ArrayLike | None = None
    """[N] False for agents that are not drawn; None: as observed."""
    task_alive: ArrayLike | None = None
    """[M]"""
    agent_looks: ArrayLike = 0
    """A number or [N]: indices of the stage's `looks`."""
    task_looks: ArrayLike = 1
    """A number or [M]"""
    agent_health: ArrayLike | None = None
    """[N] 0 to 1, shown as a bar."""
    task_health: ArrayLike | None = None
    """[M]"""
    agent_angles: ArrayLike | None = None
    """[N] heading in turns: 0 up, 0.25 to the right."""
    task_angles: ArrayLike | None = None
    """[M]"""
    agent_load: ArrayLike | None = None
    """[N] incoming damage as a share of health; above 1 is more than needed. For tasks muster computes the load."""
    task_targets: ArrayLike | None = None
    """[M] the agent that a task attacks, -1 for none."""
    task_ends: ArrayLike | None = None
    """[M, 2] destination of a task, drawn as an arrow."""
    shots: ArrayLike | None = None
    """[K, 3] source and target of a shot (agents first, tasks from N on) and its time, 0 to 1 of the last step."""
    text: str = ""
    """A short line of text."""
    stage: Stage = field(default=Stage())
    """The stage; the first scene's is used for the whole episode."""

    def __post_init__(self) -> None:
        # Copies: an environment may change its arrays in place, and scenes are kept for a whole episode.
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, (np.ndarray, list)):
                object.__setattr__(self, entry.name, np.array(value))


def scene_of(observation: BatchObservation, slot: int, positions: tuple[int, ...] = ()) -> Scene:
    """A scene from an observation: by cells, by features that are coordinates, or else agents and tasks in columns."""
    if observation.agent_cells is not None and observation.task_cells is not None:
        cells = observation.agent_cells[slot], observation.task_cells[slot]
        agents, tasks = (cell[:, ::-1] + 0.5 for cell in cells)
        return Scene(agents, tasks, stage=Stage(grid=1.0))
    if len(positions) >= 2:
        columns = list(positions[:2])
        agents, tasks = observation.agent_features[slot], observation.task_features[slot]
        if max(columns) >= (width := min(agents.shape[1], tasks.shape[1])):
            raise InputError(f"positions name columns of agent and task features, 0 to {width - 1}, got {positions}")
        return Scene(agents[:, columns], tasks[:, columns])
    n, m = observation.agent_features.shape[1], observation.task_features.shape[1]
    # Without positions: two columns, agents on the left.
    return Scene(_column(n, 0.0, max(n, m)), _column(m, 0.6 * max(n, m, 2), max(n, m)))


def checked(scene: Scene, n_agents: int, n_tasks: int, name: str) -> Scene:
    """The scene; raises InputError if positions or colours cannot be drawn."""
    if not isinstance(scene, Scene):
        raise InputError(f"scene() of {name} must return a Scene, got {type(scene).__name__}")
    for kind, positions, most in (("agents", scene.agents, n_agents), ("tasks", scene.tasks, n_tasks)):
        count = len(as_places(f"{kind} of the scene of {name}", positions))
        if count > most:
            raise InputError(f"the scene of {name} has {count} {kind}, but the environment at most {most}")
    for look in scene.stage.looks:
        if look.colour and not re.fullmatch("#[0-9a-fA-F]{6}", look.colour):
            raise InputError(f"a colour in the scene of {name} is written #rrggbb, got {look.colour!r}")
    return scene


def as_places(name: str, value: ArrayLike) -> Floats:
    """[K, 2] positions as finite numbers; `name` is their name in errors."""
    places = np.asarray(value, np.float64)
    if places.size == 0:
        return places.reshape(0, 2)
    if places.ndim != 2 or places.shape[1] != 2:
        raise InputError(f"{name} must be x and y of each, got the shape {list(places.shape)}")
    if not np.isfinite(places).all():
        raise InputError(f"{name} must be finite, got {places[~np.isfinite(places).all(1)][0].tolist()}")
    return places


def _column(count: int, x: float, longest: int) -> Floats:
    y = (np.arange(count) + 0.5) * longest / max(count, 1)
    return np.stack([np.full(count, x), y], axis=1)
