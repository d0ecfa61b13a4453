"""Search and rescue: ambulances on a grid pick up victims as fast as they can (the paper's first experiment)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats32, Ints
from muster.envs.grid import UNITS_PER_CELL, GridEnv, GridRenderer
from muster.envs.rescue.mud import Ground, mud_to_cross
from muster.envs.rescue.routing import king_moves
from muster.envs.rescue.settings import RescueSettings
from muster.envs.scene import RED, Look
from muster.envs.vector import Policy
from muster.kernels import core
from muster.rng import Seeds

AGENTS_A_THREAD = 25_000
"""Least number of ambulances per thread for which another thread pays."""
_PLACEMENTS = ("distinct", "distinct-within-type", "independent")
_APART = ("dx", "dy", "|dx|", "|dy|", "king moves")
FEATURE_NAMES = {"agent": ("x", "y"), "task": ("x", "y", "picked up"), "pair": _APART, "task_pair": _APART}
_MUDDY = (*_APART, "mud in sight")
PLANES = 4
"""Planes: victims, ambulances, and the x and y of occupied cells; in mud a fifth one of cells that look muddy."""


class RescueEnv(GridEnv):
    """B grids; each step moves every ambulance one king's move towards its victim and costs 0.01.

    A victim is picked up by any ambulance that reaches its cell; the episode terminates when all are picked up. In mud
    (see `muster.envs.rescue.mud`) some cells hold ambulances up. An ambulance without a victim, or with one that is
    not alive, stays in its cell.
    """

    settings: RescueSettings
    positions = (0, 1)
    distances = (_APART.index("king moves"), _APART.index("king moves"))
    step_reward = -0.01

    def __init__(self, settings: RescueSettings | None = None, n_envs: int = 1) -> None:
        settings = settings or RescueSettings()
        super().__init__(settings, n_envs, n_envs * settings.agents // AGENTS_A_THREAD)
        self._rng = np.zeros(n_envs, np.uint64)
        self.ground = Ground.dry(n_envs, settings.agents, *settings.shape) if settings.mud > 0 else None
        """The ground, if there is mud."""
        self.random = settings.random_moves or settings.mud > 0
        self.kernel = core.rescue.Rescue(
            self.arrays(),
            placement=_PLACEMENTS.index(settings.placement),
            height=settings.shape[0],
            width=settings.shape[1],
            random_moves=settings.random_moves,
            solved_assignable=settings.solved_assignable,
            max_steps=self.max_steps,
            mud=settings.mud,
        )
        self.show()

    def show(self, *, pair_features: bool = True, planes: bool = False, prior: bool = False) -> None:
        """Choose whether observations have relative positions of pairs, the paper's planes, and -distance as prior."""
        self._pairs, self._planes, self._prior = pair_features, planes, prior

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """Names of the features; coordinates are relative to the middle of the grid, in units of 8 cells."""
        return FEATURE_NAMES if self.ground is None else {**FEATURE_NAMES, "pair": _MUDDY, "task_pair": _MUDDY}

    def observe(self) -> BatchObservation:
        """Features, masks and cells, in new arrays."""
        (height, width), (b, n, m) = self.settings.shape, (self.n_envs, self.n_agents, self.n_tasks)
        agents, tasks, waiting = self.agent_cells.copy(), self.task_cells.copy(), self.unsolved.copy()
        agent_features, task_features = np.empty((b, n, 2), np.float32), np.empty((b, m, 3), np.float32)
        core.rescue.observe_objects(agents, tasks, waiting, height, width, agent_features, task_features)
        looks_muddy = None if self.ground is None else self.ground.looks_muddy()
        pairs, task_pairs = self._pairs_of(agents, tasks, looks_muddy)
        return BatchObservation(
            agent_features=agent_features,
            task_features=task_features,
            pair_features=pairs,
            task_pair_features=task_pairs,
            agent_alive=np.ones((b, n), np.bool_),
            task_alive=np.ones_like(waiting) if self.settings.solved_assignable else waiting,
            contributions=np.ones((b, n, m)),
            capacities=np.ones((b, m)),
            planes=self._draw_planes(agents, tasks, waiting, looks_muddy) if self._planes else None,
            agent_cells=agents,
            task_cells=tasks,
            prior=king_moves(agents, tasks, -UNITS_PER_CELL) if self._prior else None,
            task_prior=king_moves(tasks, tasks, -UNITS_PER_CELL) if self._prior else None,
        )

    def _pairs_of(self, agents: Ints, tasks: Ints, looks_muddy: Bools | None) -> tuple[Floats32, Floats32]:
        """[B, N, M, F] and [B, M, M, F] relative positions, and the cells on the way that look muddy."""
        names = self.feature_names() if self._pairs else {}
        pairs = np.empty((self.n_envs, self.n_agents, self.n_tasks, len(names.get("pair", ()))), np.float32)
        task_pairs = np.empty((self.n_envs, self.n_tasks, *pairs.shape[2:]), np.float32)
        if self._pairs:
            core.rescue.observe_pairs(agents, tasks, pairs)
            core.rescue.observe_pairs(tasks, tasks, task_pairs)
            if looks_muddy is not None and self.ground is not None:
                pairs[..., -1], task_pairs[..., -1] = mud_to_cross(agents, tasks, self.ground.held, looks_muddy)
        return pairs, task_pairs

    def _draw_planes(self, agents: Ints, tasks: Ints, waiting: Bools, looks_muddy: Bools | None) -> Floats32:
        planes = np.empty((self.n_envs, PLANES + (looks_muddy is not None), *self.settings.shape), np.float32)
        core.rescue.draw_planes(agents, tasks, waiting, planes)
        if looks_muddy is not None:
            planes[:, PLANES] = looks_muddy
        return planes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Cells, waiting victims, step counts, targets, random streams and the ground."""
        return {
            "rng": self._rng,
            "agent_cells": self.agent_cells,
            "task_cells": self.task_cells,
            "waiting": self.unsolved,
            "steps": self.steps,
            "assigned": self.targets,
            "running": self._running,
            **({} if self.ground is None else self.ground._asdict()),
        }

    def reseed(self, seeds: Seeds) -> None:
        """Draw random moves, and mud in unvisited cells, anew; cells keep their looks."""
        self._rng[:] = seeds
        if self.ground is not None:
            self.kernel.redraw_mud()

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber ambulances and victims; False with random moves, which are drawn in order of number."""
        if self.settings.random_moves:
            return False
        self.agent_cells[:] = self.agent_cells[:, agents]
        self.task_cells[:] = self.task_cells[:, tasks]
        self.unsolved[:] = self.unsolved[:, tasks]
        self.targets[:] = -1
        if self.ground is not None:
            self.ground.held[:] = self.ground.held[:, agents]
        return True

    def renderer(self) -> RescueRenderer:
        """A renderer of the grid."""
        return RescueRenderer(self)

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[RescueEnv], Policy]]:
        """closest, closest-manhattan, lp-distance, routes-distance, routes-known and the exact topline."""
        from muster.envs.rescue import baselines

        return {
            "closest": baselines.Closest,
            "closest-manhattan": baselines.ClosestManhattan,
            "lp-distance": baselines.LinearDistance,
            "routes-distance": baselines.RoutesDistance,
            "routes-known": baselines.RoutesKnown,
            "topline": baselines.Topline,
        }


class RescueRenderer(GridRenderer):
    """Draws ambulances, victims and mud on the grid."""

    looks = (Look("ambulances", "van", size=0.38), Look("victims", "person", RED, size=0.32, remains=True))
    marks, left = ("A", "x", "-"), "waiting"

    def muddy_cells(self, slot: int) -> Ints:
        """[K, 2] the muddy cells, whatever they look like to policies."""
        ground = self.env.ground
        return super().muddy_cells(slot) if ground is None else np.argwhere(ground.muddy[slot])


def from_options(text: str, n_envs: int) -> RescueEnv:
    """The environment of "2x4" or "20x40,grid=32"."""
    return RescueEnv(RescueSettings.from_text(text), n_envs)
