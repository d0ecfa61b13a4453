"""Pursuit: evaders on a grid flee, and are caught by several pursuers together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Floats, Ints
from muster.envs.grid import GridEnv, GridRenderer
from muster.envs.pursuit.settings import PursuitSettings
from muster.envs.scene import BLUE, ORANGE, Look
from muster.envs.vector import Policy
from muster.kernels import core
from muster.rng import Seeds, episode_seeds

PAIRS_A_THREAD = 10_000
"""Least number of agent-task pairs per thread for which another thread pays."""
APART = ("dx", "dy", "|dx|", "|dy|", "distance")
FEATURE_NAMES = {
    "agent": ("distance of the nearest free evader", "distance of the nearest other pursuer"),
    "task": (
        "caught",
        "distance of the nearest pursuer",
        "distance of the last pursuer needed",
        "pursuers beside it / needed",
        "pursuers after it / needed",
        "cells to the nearer side wall, at most 8",
        "cells to the nearer upper or lower wall, at most 8",
    ),
    "pair": (
        *APART,
        "was my evader",
        "change of the distance by the evader's last move, in cells",
        "distance of the nearest other pursuer from the evader",
        "cosine of the angle between me and that pursuer, seen from the evader",
    ),
    "task_pair": APART,
}
COORDINATES = {"agent": ("x", "y"), "task": ("x", "y", "caught")}


class PursuitEnv(GridEnv):
    """B grids; pursuers step towards their evaders, which are caught if enough pursuers stand beside them, else flee.

    Every catch earns 1/M and every step costs 0.01; the episode terminates with the last catch. A pursuer without a
    task stays in its cell, or helps if all evaders have enough pursuers. Observations are distances and relative
    positions, which mean the same on any grid.
    """

    settings: PursuitSettings
    distances = (APART.index("distance"), APART.index("distance"))

    def __init__(self, settings: PursuitSettings | None = None, n_envs: int = 1) -> None:
        settings = settings or PursuitSettings()
        pairs = n_envs * settings.agents * settings.tasks
        super().__init__(settings, n_envs, pairs // PAIRS_A_THREAD)
        self._moves: Ints = np.zeros((n_envs, settings.tasks, 2), np.int64)
        """[B, M, 2] last move of each evader."""
        self._rng = np.zeros((n_envs, settings.tasks), np.uint64)
        """[B, M] a random stream for each evader."""
        self.kernel = core.pursuit.Pursuit(
            self.arrays(),
            height=settings.shape[0],
            width=settings.shape[1],
            walls=settings.walls,
            needed=settings.needed,
            sight=settings.sight,
            speed=settings.speed,
            max_steps=settings.max_steps,
        )
        self._pairs = True

    def show(self, *, pair_features: bool = True, planes: bool = False, prior: bool = False) -> None:
        """Choose between relations (distances, relative positions) and coordinates; the prior is always -distance."""
        super().show(pair_features=pair_features, planes=planes, prior=prior)
        self._pairs = pair_features

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """Names of relations, or of plain coordinates, as set by `show`."""
        return FEATURE_NAMES if self._pairs else COORDINATES

    def observe(self) -> BatchObservation:
        """Features, masks, cells, -distance as prior, and each pursuer's evader of the last step."""
        b, n, m = self.n_envs, self.n_agents, self.n_tasks
        prior = np.empty((b, n, m))
        self.kernel.measure_distances(prior)
        width = {kind: len(names) for kind, names in self.feature_names().items()}
        agents = np.empty((b, n, width["agent"]), np.float32)
        tasks = np.empty((b, m, width["task"]), np.float32)
        pairs = np.empty((b, n, m, width.get("pair", 0)), np.float32)
        task_pairs = np.empty((b, m, m, width.get("task_pair", 0)), np.float32)
        if self._pairs:
            self.kernel.observe_relations(agents, tasks, pairs, task_pairs)
        else:
            self.kernel.observe_coordinates(agents, tasks)
        return BatchObservation(
            agent_features=agents,
            task_features=tasks,
            pair_features=pairs,
            task_pair_features=task_pairs,
            agent_alive=np.ones((b, n), np.bool_),
            task_alive=self.unsolved.copy(),
            contributions=np.ones((b, n, m)),
            capacities=np.full((b, m), float(self.settings.needed)),
            agent_cells=self.agent_cells.copy(),
            task_cells=self.task_cells.copy(),
            prior=prior,
            previous=self.targets.copy(),
        )

    def metrics(self) -> dict[str, Floats]:
        """Number of evaders caught."""
        return {"caught": (~self.unsolved).sum(axis=1).astype(np.float64)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Cells, last moves, targets, step counts and random streams."""
        return {
            "pursuers": self.agent_cells,
            "evaders": self.task_cells,
            "free": self.unsolved,
            "moves": self._moves,
            "targets": self.targets,
            "rng": self._rng,
            "steps": self.steps,
            "running": self._running,
        }

    def reseed(self, seeds: Seeds) -> None:
        """Seed every evader's random stream anew."""
        for evader in range(self.n_tasks):
            self._rng[:, evader] = episode_seeds(evader, seeds.astype(np.int64))

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber pursuers and evaders; an evader keeps its own random stream."""
        for of_pursuers in (self.agent_cells, self.targets):
            of_pursuers[:] = of_pursuers[:, agents]
        for of_evaders in (self.task_cells, self.unsolved, self._moves, self._rng):
            of_evaders[:] = of_evaders[:, tasks]
        # The last entry is what index -1, no target, becomes.
        self.targets[:] = np.append(np.argsort(tasks), -1)[self.targets]
        return True

    def renderer(self) -> PursuitRenderer:
        """A renderer of the grid."""
        return PursuitRenderer(self)

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[PursuitEnv], Policy]]:
        """closest, closest-pairs and lp-distance."""
        from muster.envs.pursuit import baselines

        return {
            "closest": baselines.Closest,
            "closest-pairs": baselines.ClosestPairs,
            "lp-distance": baselines.LinearDistance,
        }


class PursuitRenderer(GridRenderer):
    """Draws pursuers and evaders on the grid."""

    looks = (Look("pursuers", "diamond", BLUE, size=0.38), Look("evaders", "disc", ORANGE, size=0.34, remains=True))
    marks, left = ("P", "e", "x"), "free"


def from_options(text: str, n_envs: int) -> PursuitEnv:
    """The environment of "4x2" or "40x20,needed=3"."""
    return PursuitEnv(PursuitSettings.from_text(text), n_envs)
