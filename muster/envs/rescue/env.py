"""Search and rescue: ambulances on a grid pick up victims as fast as they can (the paper's first experiment)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.compiled import CompiledEnv
from muster.envs.renderer import Renderer
from muster.envs.rescue.mud import Ground, mud_to_cross
from muster.envs.rescue.routing import king_moves
from muster.envs.rescue.settings import RescueSettings
from muster.envs.vector import Metric, Policy
from muster.kernels import core
from muster.rng import Seeds

# Ambulances in the batch from which starting threads costs less than it saves.
PARALLEL_FROM = 50_000
UNITS_PER_CELL = 1 / 8
"""Coordinates are observed in units of 8 cells: a distance means the same on any grid."""

_PLACEMENTS = ("distinct", "distinct-within-type", "independent")
_APART = ("dx", "dy", "|dx|", "|dy|", "king moves")
FEATURE_NAMES = {"agent": ("x", "y"), "task": ("x", "y", "picked up"), "pair": _APART, "task_pair": _APART}
_MUDDY = (*_APART, "mud in sight")
PLANES = 4
"""Victim here, ambulance here, and the x and y of what is here; in mud a fifth one for cells that look muddy."""


class RescueEnv(CompiledEnv):
    """B grids; each step moves every ambulance one king's move towards its victim and costs 0.01.

    A victim is picked up by whichever ambulance reaches its cell. The episode ends when all are picked up. In mud
    (see `muster.envs.rescue.mud`) some cells hold ambulances up. An ambulance without a victim, or sent to one that
    takes no agent, stays where it is.
    """

    metric: Metric = "steps"
    agents_stay = True
    positions = (0, 1)
    distances = (_APART.index("king moves"), _APART.index("king moves"))
    distance_unit = UNITS_PER_CELL
    step_reward = -0.01

    def __init__(self, settings: RescueSettings | None = None, n_envs: int = 1) -> None:
        self.settings = settings = settings or RescueSettings()
        self.name = settings.name
        n, m = settings.agents, settings.tasks
        self.set_size(n_envs, n, m, settings.threads, n_envs * n >= PARALLEL_FROM)
        self.max_steps = settings.step_limit
        self._rng = np.zeros(n_envs, np.uint64)
        self.agent_cells: Ints = np.zeros((n_envs, n, 2), np.int64)
        """[B, N, 2] row and column of each ambulance."""
        self.task_cells: Ints = np.zeros((n_envs, m, 2), np.int64)
        """[B, M, 2] row and column of each victim."""
        self.waiting = np.zeros((n_envs, m), np.bool_)
        """[B, M] the victim has not been picked up."""
        self.steps: Ints = np.zeros(n_envs, np.int64)
        self.assigned: Ints = np.full((n_envs, n), -1, np.int64)
        """[B, N] the last assignment that was carried out; for pictures only."""
        self._running = np.zeros(n_envs, np.bool_)
        self.ground = Ground.dry(n_envs, n, *settings.shape) if settings.mud > 0 else None
        """What lies under the cells, if there is mud."""
        self.random = settings.random_moves or settings.mud > 0
        self.kernel = core.rescue.Rescue(
            self.arrays(),
            placement=_PLACEMENTS.index(settings.placement),
            height=settings.height,
            width=settings.width,
            random_moves=settings.random_moves,
            solved_assignable=settings.solved_assignable,
            max_steps=self.max_steps,
            mud=settings.mud,
        )
        self.show()

    def show(self, *, pair_features: bool = True, planes: bool = False, prior: bool = False) -> None:
        """Observe relative positions of pairs, the paper's planes, and minus the distances as prior; or not."""
        self._pairs, self._planes, self._prior = pair_features, planes, prior

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """Coordinates are counted from the middle of the grid, in units of 8 cells."""
        return FEATURE_NAMES if self.ground is None else {**FEATURE_NAMES, "pair": _MUDDY, "task_pair": _MUDDY}

    def observe(self) -> BatchObservation:
        """Features, masks and cells, in fresh arrays."""
        (height, width), (b, n, m) = self.settings.shape, (self.n_envs, self.n_agents, self.n_tasks)
        agents, tasks, waiting = self.agent_cells.copy(), self.task_cells.copy(), self.waiting.copy()
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

    def outcome(self) -> Floats:
        """[B] T, the steps taken so far: at the end, the step of the last pick-up."""
        return self.steps.astype(np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Cells of all, the victims that wait, and the random streams."""
        return {
            "rng": self._rng,
            "agent_cells": self.agent_cells,
            "task_cells": self.task_cells,
            "waiting": self.waiting,
            "steps": self.steps,
            "assigned": self.assigned,
            "running": self._running,
            **({} if self.ground is None else self.ground._asdict()),
        }

    def running(self) -> Bools:
        """[B] where victims are still waiting and there is time."""
        return self._running.copy()

    def reseed(self, seeds: Seeds) -> None:
        """Other random moves, where there are any, and other mud where no ambulance has been; it looks as before."""
        self._rng[:] = seeds
        if self.ground is not None:
            self.kernel.redraw_mud()

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber ambulances and victims; random moves are drawn in order of number, so there it cannot be done."""
        if self.settings.random_moves:
            return False
        self.agent_cells[:] = self.agent_cells[:, agents]
        self.task_cells[:] = self.task_cells[:, tasks]
        self.waiting[:] = self.waiting[:, tasks]
        self.assigned[:] = -1
        if self.ground is not None:
            self.ground.held[:] = self.ground.held[:, agents]
        return True

    def renderer(self) -> Renderer:
        """The grid."""
        from muster.envs.rescue.renderer import RescueRenderer

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


def from_options(text: str, n_envs: int) -> RescueEnv:
    """The environment that `text` names: "2x4" or "20x40,grid=32"."""
    return RescueEnv(RescueSettings.from_text(text), n_envs)
