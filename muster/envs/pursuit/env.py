"""Pursuit: evaders on a grid flee, and are caught only where pursuers gather."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.compiled import CompiledEnv
from muster.envs.pursuit.settings import UNITS_PER_CELL, PursuitSettings
from muster.envs.renderer import Renderer
from muster.envs.vector import Metric, Policy
from muster.kernels import core
from muster.rng import Seeds, episode_seeds

# Pairs of a pursuer and an evader in the batch from which starting threads costs less than it saves.
PARALLEL_FROM = 20_000
AGENT_FEATURES = ("distance of the nearest free evader", "distance of the nearest other pursuer")
TASK_FEATURES = (
    "caught",
    "distance of the nearest pursuer",
    "distance of the last pursuer needed",
    "pursuers beside it / needed",
    "pursuers after it / needed",
    "cells to the nearer side wall, at most 8",
    "cells to the nearer upper or lower wall, at most 8",
)
PAIR_FEATURES = (
    "dx",
    "dy",
    "|dx|",
    "|dy|",
    "distance",
    "was my evader",
    "change of the distance by the evader's last move, in cells",
    "distance of the nearest other pursuer from the evader",
    "cosine of the angle between me and that pursuer, seen from the evader",
)
TASK_PAIR_FEATURES = ("dx", "dy", "|dx|", "|dy|", "distance")
FEATURE_NAMES = {
    "agent": AGENT_FEATURES,
    "task": TASK_FEATURES,
    "pair": PAIR_FEATURES,
    "task_pair": TASK_PAIR_FEATURES,
}
COORDINATES = {"agent": ("x", "y"), "task": ("x", "y", "caught")}


class PursuitState(NamedTuple):
    """The state of B episodes; cells are row and column."""

    pursuers: Ints
    """[B, N, 2]"""
    evaders: Ints
    """[B, M, 2]; of one that is caught, where it was."""
    free: Bools
    """[B, M] not caught."""
    moves: Ints
    """[B, M, 2] each evader's last move."""
    targets: Ints
    """[B, N] the evader that each pursuer went for last; -1 for none."""
    rng: Seeds
    """[B, M] a random stream for each evader."""
    steps: Ints
    """[B]"""
    running: Bools
    """[B]"""


class PursuitEnv(CompiledEnv):
    """B grids; pursuers step towards their evaders, those that enough stand beside are caught, the others flee.

    Every catch earns 1/M and every step costs 0.01. The episode ends with the last catch. A pursuer without a free
    evader stays, or helps where all evaders have enough. What is observed are distances and relative positions, so
    that any grid looks alike.
    """

    metric: Metric = "steps"
    agents_stay = True
    distances = (PAIR_FEATURES.index("distance"), TASK_PAIR_FEATURES.index("distance"))
    distance_unit = UNITS_PER_CELL

    def __init__(self, settings: PursuitSettings | None = None, n_envs: int = 1) -> None:
        self.settings = settings = settings or PursuitSettings()
        self.name = settings.name
        n, m = settings.agents, settings.tasks
        self.set_size(n_envs, n, m, settings.threads, n_envs * n * m >= PARALLEL_FROM)
        self.max_steps = settings.max_steps
        self.state = PursuitState(
            pursuers=np.zeros((n_envs, n, 2), np.int64),
            evaders=np.zeros((n_envs, m, 2), np.int64),
            free=np.zeros((n_envs, m), np.bool_),
            moves=np.zeros((n_envs, m, 2), np.int64),
            targets=np.full((n_envs, n), -1, np.int64),
            rng=np.zeros((n_envs, m), np.uint64),
            steps=np.zeros(n_envs, np.int64),
            running=np.zeros(n_envs, np.bool_),
        )
        self.kernel = core.pursuit.Pursuit(
            self.arrays(),
            height=settings.height,
            width=settings.width,
            walls=settings.walls,
            needed=settings.needed,
            sight=settings.sight,
            speed=settings.speed,
            max_steps=settings.max_steps,
        )
        self._pairs = True

    def show(self, *, pair_features: bool = True, planes: bool = False, prior: bool = False) -> None:
        """Observe relations (distances, relative positions), or plain coordinates; distances are always the prior."""
        super().show(pair_features=pair_features, planes=planes, prior=prior)
        self._pairs = pair_features

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """Of relations, or of plain coordinates, as `show` was told."""
        return FEATURE_NAMES if self._pairs else COORDINATES

    def observe(self) -> BatchObservation:
        """Features, masks, cells, minus the distance as prior, and the evader that each pursuer went for."""
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
            task_alive=self.state.free.copy(),
            contributions=np.ones((b, n, m)),
            capacities=np.full((b, m), float(self.settings.needed)),
            agent_cells=self.state.pursuers.copy(),
            task_cells=self.state.evaders.copy(),
            prior=prior,
            previous=self.state.targets.copy(),
        )

    def outcome(self) -> Floats:
        """[B] T, the steps taken so far: at the end, the step of the last catch."""
        return self.state.steps.astype(np.float64)

    def metrics(self) -> dict[str, Floats]:
        """How many evaders were caught."""
        return {"caught": (~self.state.free).sum(axis=1).astype(np.float64)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Pursuers, evaders and what they remember."""
        return self.state._asdict()

    def running(self) -> Bools:
        """[B] where evaders are still free and there is time."""
        return self.state.running.copy()

    def reseed(self, seeds: Seeds) -> None:
        """Another random stream for every evader."""
        for evader in range(self.n_tasks):
            self.state.rng[:, evader] = episode_seeds(evader, seeds.astype(np.int64))

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber pursuers and evaders; an evader keeps its own random stream."""
        state = self.state
        arrays: list[tuple[NDArray[Any], Ints]] = [(state.pursuers, agents), (state.targets, agents)]
        arrays += [(array, tasks) for array in (state.evaders, state.free, state.moves, state.rng)]
        for array, order in arrays:
            array[:] = array[:, order]
        # Index -1, the last one, is where "no target" finds itself again.
        state.targets[:] = np.append(np.argsort(tasks), -1)[state.targets]
        return True

    def renderer(self) -> Renderer:
        """The grid."""
        from muster.envs.pursuit.renderer import PursuitRenderer

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


def from_options(text: str, n_envs: int) -> PursuitEnv:
    """The environment that `text` names: "4x2" or "40x20,needed=3"."""
    return PursuitEnv(PursuitSettings.from_text(text), n_envs)
