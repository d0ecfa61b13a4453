"""Environments on a grid of cells: the common part of search and rescue and of pursuit."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.compiled import CompiledEnv, env_name
from muster.envs.renderer import SceneRenderer
from muster.envs.scene import Look, Scene, Stage, Zone
from muster.envs.vector import Metric, Policy
from muster.errors import InputError
from muster.rng import TIE_STREAM, Seeds
from muster.settings import read_options

UNITS_PER_CELL = 1 / 8
"""Coordinates and distances are observed in units of 8 cells: a distance means the same on any grid."""
MOST_CELLS = 2**31
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
"""Corners of the cell at the origin."""


class GridSettings:
    """Settings of agents x tasks on a grid; the base of dataclasses with these fields."""

    family: ClassVar[str]
    expected: ClassVar[str]
    """The form of the environment string, for errors."""
    agents: int
    tasks: int
    grid: int | tuple[int, int] | None
    max_steps: int | None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        grid = self.default_side if self.grid is None else self.grid
        return grid if isinstance(grid, tuple) else (grid, grid)

    @property
    def default_side(self) -> int:
        """Side of the grid by default."""
        raise NotImplementedError

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.shape[0] * self.shape[1]

    @property
    def step_limit(self) -> int:
        """Steps after which an episode is truncated."""
        assert self.max_steps is not None
        return self.max_steps

    @property
    def name(self) -> str:
        """The environment string that makes this environment."""
        return env_name(f"{self.family}:{self.agents}x{self.tasks}", self, ("agents", "tasks"))

    def check_grid(self, starts: int, remedy: str) -> None:
        """Raise InputError for an empty or too large grid, or one with fewer than `starts` cells."""
        height, width = self.shape
        if min(self.shape) < 1:
            raise InputError(f"the grid must have at least 1 row and 1 column, got {height}x{width}")
        if self.cells > MOST_CELLS:
            raise InputError(f"the grid may have at most 2^31 cells, got {height}x{width}")
        if starts > self.cells:
            raise InputError(
                f"{starts} distinct start cells do not fit on the {self.cells} cells of a {height}x{width} grid; "
                f"{remedy}"
            )

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read "2x4" or "20x40,grid=32": agents x tasks, then any settings."""
        size, *options = [part.strip() for part in text.split(",")]
        match = re.fullmatch(r"(\d+)x(\d+)", size)
        if match is None:
            raise InputError(f"{cls.family} takes {cls.expected}; got {text!r}")
        values = read_options(cls, options, f"{cls.family} setting", skip=("agents", "tasks"))
        settings: Any = cls
        return settings(agents=int(match[1]), tasks=int(match[2]), **values)


class GridEnv(CompiledEnv):
    """B grids; an episode terminates when the last task is done."""

    metric: Metric = "steps"
    agents_stay = True
    distance_unit = UNITS_PER_CELL

    def __init__(self, settings: Any, n_envs: int, worthwhile: int) -> None:
        self.settings = settings
        self.name, self.max_steps = settings.name, settings.step_limit
        n, m = settings.agents, settings.tasks
        self.set_size(n_envs, n, m, worthwhile, settings.threads)
        self.agent_cells: Ints = np.zeros((n_envs, n, 2), np.int64)
        """[B, N, 2] row and column of each agent."""
        self.task_cells: Ints = np.zeros((n_envs, m, 2), np.int64)
        """[B, M, 2] row and column of each task; the last one of a task that is done."""
        self.unsolved = np.zeros((n_envs, m), np.bool_)
        """[B, M] whether the task is still to be done."""
        self.targets: Ints = np.full((n_envs, n), -1, np.int64)
        """[B, N] the task of each agent at the last step; -1 for none."""
        self.steps: Ints = np.zeros(n_envs, np.int64)
        self._running = np.zeros(n_envs, np.bool_)

    def outcome(self) -> Floats:
        """[B] T, the steps taken so far; at the end, the step of the last task."""
        return self.steps.astype(np.float64)

    def running(self) -> Bools:
        """[B] whether tasks and steps are left."""
        return self._running.copy()


class GridRenderer(SceneRenderer):
    """Draws agents and tasks in their cells."""

    env: Any
    looks: tuple[Look, Look]
    marks: tuple[str, str, str]
    """Letters of an agent, a task, and a task that is done."""
    left: str
    """Adjective of tasks that are still to be done, such as "waiting"."""

    def muddy_cells(self, slot: int) -> Ints:
        """[K, 2] cells to draw as mud."""
        del slot
        return np.zeros((0, 2), np.int64)

    def scene(self, slot: int) -> Scene:
        """The grid with agents, tasks and mud."""
        env, (height, width) = self.env, self.env.settings.shape
        unsolved = env.unsolved[slot]
        mud = tuple(Zone(cell[::-1] + SQUARE, 1.0) for cell in self.muddy_cells(slot))
        wraps = not getattr(env.settings, "walls", True)
        return Scene(
            agents=env.agent_cells[slot][:, ::-1] + 0.5,
            tasks=env.task_cells[slot][:, ::-1] + 0.5,
            task_alive=unsolved,
            text=f"step {env.steps[slot]}, {unsolved.sum()} of {env.n_tasks} {self.left}",
            stage=Stage(self.looks, bounds=(0.0, 0.0, float(width), float(height)), grid=1.0, zones=mud, wraps=wraps),
        )

    def targets(self, slot: int) -> Ints:
        """[N] the task of each agent at the last step."""
        return self.env.targets[slot]

    def describe(self, slot: int) -> str:
        """One line per row: letters of agents (2 to 9 or + for several) and tasks, ~ for mud, . for an empty cell."""
        env, (agent, task, done) = self.env, self.marks
        board = np.full(env.settings.shape, ".", "<U1")
        board[tuple(self.muddy_cells(slot).T)] = "~"
        for mark, unsolved in ((done, False), (task, True)):
            board[tuple(env.task_cells[slot][env.unsolved[slot] == unsolved].T)] = mark
        cells, counts = np.unique(env.agent_cells[slot], axis=0, return_counts=True)
        for (row, column), count in zip(cells, counts, strict=True):
            board[row, column] = agent if count == 1 else str(count) if count < 10 else "+"
        head = f"step {env.steps[slot]}, {env.unsolved[slot].sum()} {self.left}"
        return "\n".join([head, *(" ".join(row) for row in board)])

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Move agents and tasks to the cells of these positions; no task is done."""
        env = self.env
        last = np.array(env.settings.shape) - 1
        for cells, places in ((env.agent_cells, agents), (env.task_cells, tasks)):
            cells[slot] = np.clip(np.floor(np.asarray(places)[:, ::-1]), 0, last)
        env.unsolved[slot] = True


class Closest(Policy):
    """Base of baselines that send each agent to the nearest task, ties broken at random."""

    remembered = ("rng",)

    def __init__(self, env: GridEnv) -> None:
        self.rng = np.zeros(env.n_envs, np.uint64)

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Seed the random streams for ties."""
        self.rng[slots] = seeds ^ TIE_STREAM


def least_distance(observation: BatchObservation, scores: Floats) -> Ints:
    """[B, N] the optimum of the linear programme with scores -distance; every agent that fits is assigned."""
    from muster.assign import solve

    return solve(observation.problem(scores), method="lp", assign_all=True).assignment
