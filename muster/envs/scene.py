"""What there is to draw of an environment, as plain numbers: the contract between environments and viewers.

An env says where its agents and tasks are and, if it likes, what they look like; no picture is made here. x goes to
the right and y goes down, in any unit.
"""

from __future__ import annotations

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
    """What a kind of agent or task looks like."""

    name: str = ""
    """For the legend; without one it has no entry."""
    shape: Shape = "disc"
    colour: str = ""
    """"#rrggbb"; empty: a colour of its own for each, by its number."""
    size: float = 0.0
    """Radius in the environment's unit; 0: as fits."""
    remains: bool = False
    """Whether a faint mark stays where one has gone."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A part of the ground."""

    corners: ArrayLike
    """[K, 2]"""
    shade: float = 0.0
    """0 to 1: how much it stands out."""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """What stays the same in all scenes of an episode."""

    looks: Sequence[Look] = (Look("agents", "diamond"), Look("tasks", "disc", RED, remains=True))
    """Scenes name them by their index here."""
    bounds: Bounds | None = None
    """What is shown; None: wide enough for all that happens."""
    grid: float = 0.0
    """From one line of a grid to the next; 0 for none."""
    zones: Sequence[Zone] = ()
    wraps: bool = False
    """Whether one that leaves the bounds on one side comes in on the other."""
    agent_names: Sequence[str] = ()
    """For labels; numbers where there is none."""
    task_names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment of one episode: N agents, M tasks. Leave out what the environment does not have."""

    agents: ArrayLike
    """[N, 2] x and y."""
    tasks: ArrayLike
    """[M, 2]"""
    agent_alive: ArrayLike | None = None
    """[N] False for those that are not shown; None: as observed."""
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
    """[N] where it looks, in turns: 0 up, 0.25 to the right."""
    task_angles: ArrayLike | None = None
    """[M]"""
    agent_load: ArrayLike | None = None
    """[N] how much of what it can take is coming at it; above 1 is too much. Of tasks muster computes it."""
    task_targets: ArrayLike | None = None
    """[M] the agent that a task goes for, -1 for none."""
    task_ends: ArrayLike | None = None
    """[M, 2] where a task leads to, shown as an arrow."""
    shots: ArrayLike | None = None
    """[K, 3] from which unit at which (agents first, tasks from N on), and when: 0 to 1 of the step that led here."""
    text: str = ""
    """A short line about the moment."""
    stage: Stage = field(default=Stage())
    """The same in all scenes of an episode; the first one's counts."""

    def __post_init__(self) -> None:
        # Copies: an environment may go on to change its arrays in place, and scenes are kept for a whole episode.
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, (np.ndarray, list)):
                object.__setattr__(self, entry.name, np.array(value))


def scene_of(observation: BatchObservation, slot: int, positions: tuple[int, ...] = ()) -> Scene:
    """A scene of what is observed: by cells, by features that are coordinates, or else agents and tasks in two rows."""
    if observation.agent_cells is not None and observation.task_cells is not None:
        cells = observation.agent_cells[slot], observation.task_cells[slot]
        agents, tasks = (found[:, ::-1] + 0.5 for found in cells)
        return Scene(agents, tasks, stage=Stage(grid=1.0))
    if len(positions) >= 2:
        columns = list(positions[:2])
        return Scene(observation.agent_features[slot][:, columns], observation.task_features[slot][:, columns])
    n, m = observation.agent_features.shape[1], observation.task_features.shape[1]
    # Two columns, agents on the left: true of every environment, if of little beauty.
    return Scene(_column(n, 0.0, max(n, m)), _column(m, 0.6 * max(n, m, 2), max(n, m)))


def checked(scene: Scene, n_agents: int, n_tasks: int, name: str) -> Scene:
    """The scene with its positions as arrays of finite numbers; InputError for what cannot be drawn."""
    if not isinstance(scene, Scene):
        raise InputError(f"scene() of {name} must return a Scene, got {type(scene).__name__}")
    for what, value, most in (("agents", scene.agents, n_agents), ("tasks", scene.tasks, n_tasks)):
        places = as_places(f"{what} of the scene of {name}", value)
        if len(places) > most:
            raise InputError(f"the scene of {name} has {len(places)} {what}, but the environment at most {most}")
    for look in scene.stage.looks:
        if look.colour and not _is_colour(look.colour):
            raise InputError(f"a colour in the scene of {name} is written #rrggbb, got {look.colour!r}")
    return scene


def as_places(what: str, value: ArrayLike) -> Floats:
    """[K, 2] finite coordinates."""
    places = np.asarray(value, np.float64)
    if places.size == 0:
        return places.reshape(0, 2)
    if places.ndim != 2 or places.shape[1] != 2:
        raise InputError(f"{what} must be x and y of each, got the shape {list(places.shape)}")
    if not np.isfinite(places).all():
        raise InputError(f"{what} must be finite, got {places[~np.isfinite(places).all(1)][0].tolist()}")
    return places


def _column(count: int, x: float, longest: int) -> Floats:
    y = (np.arange(count) + 0.5) * longest / max(count, 1)
    return np.stack([np.full(count, x), y], axis=1)


def _is_colour(text: str) -> bool:
    return len(text) == 7 and text[0] == "#" and all(letter in "0123456789abcdefABCDEF" for letter in text[1:])
