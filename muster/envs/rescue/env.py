"""Search and rescue: ambulances on a grid pick up victims as fast as they can (the paper's first experiment)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Ints, PartialObservation
from muster.envs.kernel_env import KernelEnv
from muster.envs.rescue import kernels, mud
from muster.envs.rescue.distance import chebyshev
from muster.envs.rescue.settings import RescueSettings
from muster.envs.vector import Metric, Policy, Step
from muster.errors import InputError
from muster.parallel import share_out, thread_count
from muster.rng import Seeds

# Ambulances in the batch from which starting threads costs less than it saves.
PARALLEL_FROM = 50_000

_PLACEMENTS = {
    "distinct": kernels.DISTINCT,
    "distinct-within-type": kernels.DISTINCT_WITHIN_TYPE,
    "independent": kernels.INDEPENDENT,
}

_APART = ("dx", "dy", "|dx|", "|dy|", "king moves")
FEATURE_NAMES = {"agent": ("x", "y"), "task": ("x", "y", "picked up"), "pair": _APART, "task_pair": _APART}
_MUDDY = (*_APART, "mud in sight")


class RescueEnv(KernelEnv):
    """B grids; each step moves every ambulance one king's move towards its victim and costs 0.01.

    A victim is picked up by whichever ambulance reaches its cell. The episode ends when all are picked up. In mud
    (see `muster.envs.rescue.mud`) some cells hold ambulances up.
    """

    metric: Metric = "steps"
    positions = (kernels.X, kernels.Y)
    distances = (kernels.KING_MOVES, kernels.KING_MOVES)
    distance_unit = kernels.UNITS_PER_CELL

    def __init__(self, settings: RescueSettings | None = None, n_envs: int = 1) -> None:
        if n_envs < 1:
            raise InputError(f"a batch needs at least 1 environment, got {n_envs}")
        self.settings = settings or RescueSettings()
        self.name = self.settings.name
        self.n_envs = n_envs
        self.n_agents = self.settings.agents
        self.n_tasks = self.settings.tasks
        self.max_steps = self.settings.step_limit
        many = n_envs * self.n_agents >= PARALLEL_FROM
        if self.settings.threads == "one" or (self.settings.threads == "auto" and not many):
            self.threads = 1
        self._rng = np.zeros(n_envs, np.uint64)
        self.agent_cells: Ints = np.zeros((n_envs, self.n_agents, 2), np.int64)
        """[B, N, 2] row and column of each ambulance."""
        self.task_cells: Ints = np.zeros((n_envs, self.n_tasks, 2), np.int64)
        """[B, M, 2] row and column of each victim."""
        self.waiting = np.zeros((n_envs, self.n_tasks), np.bool_)
        """[B, M] the victim has not been picked up."""
        self.steps: Ints = np.zeros(n_envs, np.int64)
        self.assigned: Ints = np.full((n_envs, self.n_agents), -1, np.int64)
        """[B, N] the last assignment that was carried out; for pictures only."""
        self._running = np.zeros(n_envs, np.bool_)
        self.ground: mud.Ground | None = None
        """What lies under the cells, if there is mud."""
        if self.settings.mud > 0:
            self.ground = mud.make_ground(n_envs, self.n_agents, *self.settings.shape)
        self.random = self.settings.random_moves or self.settings.mud > 0
        self._pairs = self.settings.features == "pair"
        self._planes = self.settings.planes

    def show(self, *, pair_features: bool, planes: bool) -> None:
        """Include relative positions of pairs, and the paper's planes, in what is observed; or leave them out."""
        self._pairs, self._planes = pair_features, planes

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """Places are seen from the middle of the grid, in units of 8 cells."""
        return FEATURE_NAMES if self.ground is None else {**FEATURE_NAMES, "pair": _MUDDY, "task_pair": _MUDDY}

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Begin the episode of `seeds[k]` in slot `slots[k]`."""
        kernels.start_slots(
            np.asarray(slots, np.int64),
            np.asarray(seeds, np.uint64),
            _PLACEMENTS[self.settings.placement],
            self.settings.height,
            self.settings.width,
            self._rng,
            self.agent_cells,
            self.task_cells,
            self.waiting,
            self.steps,
            self._running,
            self.assigned,
        )
        if self.ground is not None:
            # A stream of its own: ambulances and victims start where they do without mud.
            grains = np.asarray(seeds, np.uint64) ^ mud.MUD_STREAM
            mud.lay_ground(np.asarray(slots, np.int64), grains, self.settings.mud, self.agent_cells, self.ground)

    def observe(self) -> BatchObservation:
        """Features, masks and cells, in fresh arrays; planes and pair features only if asked for, or on request."""
        cells = self.agent_cells.copy(), self.task_cells.copy(), self.waiting.copy()
        ground = None if self.ground is None else mud.as_it_looks(self.ground)
        return self._see(*cells, ground, self._pairs, self._planes)

    def _see(
        self,
        agent_cells: Ints,
        task_cells: Ints,
        waiting: Bools,
        ground: mud.Ground | None,
        pairs: bool,
        planes: bool,
        priors: bool = False,
    ) -> BatchObservation:
        height, width = self.settings.shape
        agent_features, task_features = kernels.see_objects(agent_cells, task_cells, waiting, height, width)
        n_envs, n_agents, n_tasks = shape = (self.n_envs, self.n_agents, self.n_tasks)
        if pairs:
            pair_features = kernels.see_pairs(agent_cells, task_cells)
            task_pair_features = kernels.see_pairs(task_cells, task_cells)
            if ground is not None:
                seen = mud.see_mud(agent_cells, task_cells, ground)
                pair_features = np.concatenate([pair_features, seen[0]], axis=-1)
                task_pair_features = np.concatenate([task_pair_features, seen[1]], axis=-1)
        else:
            pair_features = np.empty((*shape, 0), np.float32)
            task_pair_features = np.empty((n_envs, n_tasks, n_tasks, 0), np.float32)
        drawn = kernels.draw_planes(agent_cells, task_cells, waiting, height, width) if planes else None
        if drawn is not None and ground is not None:
            drawn = np.concatenate([drawn, ground.muddy[:, None].astype(np.float32)], axis=1)
        return PartialObservation(
            agent_features=agent_features,
            task_features=task_features,
            pair_features=pair_features,
            task_pair_features=task_pair_features,
            agent_alive=np.ones((n_envs, n_agents), np.bool_),
            task_alive=np.ones_like(waiting) if self.settings.solved_assignable else waiting.copy(),
            contributions=np.ones(shape),
            capacities=np.ones((n_envs, n_tasks)),
            planes=drawn,
            agent_cells=agent_cells,
            task_cells=task_cells,
            prior=prior_scores(agent_cells, task_cells) if priors else None,
            task_prior=prior_scores(task_cells, task_cells) if priors else None,
        ).offering(partial(self._see, agent_cells, task_cells, waiting, ground))

    def step(self, assignment: Ints) -> Step:
        """Move and pick up. An ambulance without a victim, or sent to one that takes no agent, stays where it is."""
        assignment = np.ascontiguousarray(assignment, np.int64)
        if assignment.shape != self.assigned.shape:
            raise InputError(f"the assignment must have shape {self.assigned.shape}, got {assignment.shape}")
        bad = kernels.first_bad_task(assignment, self.n_tasks)
        if bad >= 0:
            slot, agent = divmod(bad, self.n_agents)
            raise InputError(
                f"tasks are -1 to {self.n_tasks - 1}, got {assignment[slot, agent]} for agent {agent} of slot {slot}"
            )
        result = Step(np.empty(self.n_envs), np.empty(self.n_envs, np.bool_), np.empty(self.n_envs, np.bool_))
        settings = self.settings

        def step_part(begin: int, end: int) -> None:
            part = slice(begin, end)
            if self.ground is not None:
                mud.step_in_mud(
                    assignment[part], settings.solved_assignable, self.max_steps, self.agent_cells[part],
                    self.task_cells[part], self.waiting[part], self.steps[part], self._running[part],
                    self.assigned[part], mud.part_of(self.ground, part),
                    result.reward[part], result.terminated[part], result.truncated[part],
                )  # fmt: skip
                return
            kernels.step_all(
                assignment[part], settings.random_moves, settings.solved_assignable, self.max_steps,
                settings.height, settings.width, self._rng[part], self.agent_cells[part], self.task_cells[part],
                self.waiting[part], self.steps[part], self._running[part], self.assigned[part],
                result.reward[part], result.terminated[part], result.truncated[part],
            )  # fmt: skip

        share_out(self.n_envs, self.threads or thread_count(), step_part)
        return result

    def outcome(self) -> Floats:
        """[B] T, the steps taken so far: at the end, the step of the last pick-up."""
        return self.steps.astype(np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Where all are, who waits, and the random streams."""
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
        """Other random moves, where there are any, and other mud where nobody has been; it looks as before."""
        self._rng[:] = seeds
        if self.ground is not None:
            mud.lay_anew(np.asarray(seeds, np.uint64) ^ mud.MUD_STREAM, self.settings.mud, self.ground)

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

    def picture(self) -> Any:
        """What draws it, imported when asked for."""
        from muster.envs.rescue import picture

        return picture

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Ambulances and waiting victims in the cells of these places."""
        last = np.array(self.settings.shape) - 1
        for cells, places in ((self.agent_cells, agents), (self.task_cells, tasks)):
            cells[slot] = np.clip(np.floor(np.asarray(places)[:, ::-1]), 0, last)
        self.waiting[slot] = True

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[RescueEnv], Policy]]:
        """closest, closest-manhattan, lp-distance, routes-distance, routes-known and the exact topline."""
        from muster.envs.rescue import baselines

        return {
            "closest": baselines.Closest,
            "closest-manhattan": baselines.ClosestManhattan,
            "lp-distance": baselines.LinearDistance,
            "routes-distance": baselines.PlanDistance,
            "routes-known": baselines.PlanKnown,
            "topline": baselines.Topline,
        }


def prior_scores(sources: Ints, targets: Ints) -> Floats:
    """[B, S, T] minus the distance, in the units of the features."""
    return -kernels.UNITS_PER_CELL * chebyshev(sources, targets).astype(np.float64)


def from_options(text: str, n_envs: int) -> RescueEnv:
    """The environment that `text` names: "2x4" or "20x40,grid=32"."""
    return RescueEnv(RescueSettings.from_text(text), n_envs)
