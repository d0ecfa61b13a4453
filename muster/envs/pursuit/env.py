"""Pursuit: evaders on a grid flee, and are caught only where pursuers gather."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.kernel_env import KernelEnv
from muster.envs.pursuit import kernels, observe
from muster.envs.pursuit.settings import PursuitSettings
from muster.envs.vector import Metric, Policy, Step
from muster.errors import InputError
from muster.parallel import share_out, thread_count
from muster.rng import Seeds, episode_seeds

# Pairs of a pursuer and an evader in the batch from which starting threads costs less than it saves.
PARALLEL_FROM = 20_000


class PursuitEnv(KernelEnv):
    """B grids; pursuers step towards their evaders, whom enough stand beside is caught, the others flee.

    Every catch earns 1/M and every step costs 0.01. The episode ends with the last catch.
    """

    metric: Metric = "steps"
    distances = (observe.PAIR_FEATURES.index("distance"), observe.TASK_PAIR_FEATURES.index("distance"))
    distance_unit = observe.UNITS_PER_CELL

    def __init__(self, settings: PursuitSettings | None = None, n_envs: int = 1) -> None:
        if n_envs < 1:
            raise InputError(f"a batch needs at least 1 environment, got {n_envs}")
        self.settings = settings = settings or PursuitSettings()
        self.name = settings.name
        self.n_envs = n_envs
        self.n_agents, self.n_tasks = n, m = settings.agents, settings.tasks
        self.max_steps = settings.max_steps
        if settings.threads == "one" or (settings.threads == "auto" and n_envs * n * m < PARALLEL_FROM):
            self.threads = 1
        self.rules = kernels.Rules(
            settings.height,
            settings.width,
            settings.walls,
            settings.needed,
            settings.sight,
            settings.speed,
            settings.max_steps,
        )
        self.state = kernels.World(
            pursuers=np.zeros((n_envs, n, 2), np.int64),
            evaders=np.zeros((n_envs, m, 2), np.int64),
            free=np.zeros((n_envs, m), np.bool_),
            moves=np.zeros((n_envs, m, 2), np.int64),
            targets=np.full((n_envs, n), -1, np.int64),
            luck=np.zeros((n_envs, m), np.uint64),
            steps=np.zeros(n_envs, np.int64),
            running=np.zeros(n_envs, np.bool_),
        )
        self._pairs = settings.features == "pair"

    def show(self, *, pair_features: bool, planes: bool) -> None:
        """Let what is observed be relations (distances, relative positions), or plain coordinates."""
        super().show(pair_features=pair_features, planes=planes)
        self._pairs = pair_features

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """Of relations, or of plain coordinates, as `show` was told."""
        if not self._pairs:
            return {"agent": ("x", "y"), "task": ("x", "y", "caught")}
        return {
            "agent": observe.AGENT_FEATURES,
            "task": observe.TASK_FEATURES,
            "pair": observe.PAIR_FEATURES,
            "task_pair": observe.TASK_PAIR_FEATURES,
        }

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Begin the episode of `seeds[k]` in slot `slots[k]`."""
        kernels.start_slots(np.asarray(slots, np.int64), np.asarray(seeds, np.uint64), self.rules, self.state)

    def observe(self) -> BatchObservation:
        """Features, masks, cells, minus the distance as prior, and whom everyone went for."""
        batch, n, m = self.n_envs, self.n_agents, self.n_tasks
        prior = np.empty((batch, n, m))
        observe.measure(self.state, self.rules, prior)
        widths = observe.WIDTHS if self._pairs else observe.RAW_WIDTHS
        agents = np.empty((batch, n, widths[0]), np.float32)
        tasks = np.empty((batch, m, widths[1]), np.float32)
        pairs = np.empty((batch, n, m, widths[2]), np.float32)
        task_pairs = np.empty((batch, m, m, widths[3]), np.float32)
        if self._pairs:
            observe.see_relations(self.state, self.rules, agents, tasks, pairs, task_pairs)
        else:
            observe.see_coordinates(self.state, self.rules, agents, tasks)
        return BatchObservation(
            agent_features=agents,
            task_features=tasks,
            pair_features=pairs,
            task_pair_features=task_pairs,
            agent_alive=np.ones((batch, n), np.bool_),
            task_alive=self.state.free.copy(),
            contributions=np.ones((batch, n, m)),
            capacities=np.full((batch, m), float(self.settings.needed)),
            agent_cells=self.state.pursuers.copy(),
            task_cells=self.state.evaders.copy(),
            prior=prior,
            previous=self.state.targets.copy(),
        )

    def step(self, assignment: Ints) -> Step:
        """Move, catch, flee. A pursuer without a free evader stays, or helps where all evaders have enough."""
        assignment = np.ascontiguousarray(assignment, np.int64)
        if assignment.shape != self.state.targets.shape:
            raise InputError(f"the assignment must have shape {self.state.targets.shape}, got {assignment.shape}")
        bad = kernels.first_bad_task(assignment, self.n_tasks)
        if bad >= 0:
            slot, agent = divmod(bad, self.n_agents)
            raise InputError(
                f"tasks are -1 to {self.n_tasks - 1}, got {assignment[slot, agent]} for agent {agent} of slot {slot}"
            )
        result = Step(np.empty(self.n_envs), np.empty(self.n_envs, np.bool_), np.empty(self.n_envs, np.bool_))

        def step_part(begin: int, end: int) -> None:
            part = slice(begin, end)
            kernels.step_all(
                assignment[part], self.rules, self.state.part(part),
                result.reward[part], result.terminated[part], result.truncated[part],
            )  # fmt: skip

        share_out(self.n_envs, self.threads or thread_count(), step_part)
        return result

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
        """Other luck for every evader."""
        for evader in range(self.n_tasks):
            self.state.luck[:, evader] = episode_seeds(evader, seeds.astype(np.int64))

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber pursuers and evaders; an evader keeps its own random stream."""
        state = self.state
        arrays: list[tuple[NDArray[Any], Ints]] = [(state.pursuers, agents), (state.targets, agents)]
        arrays += [(array, tasks) for array in (state.evaders, state.free, state.moves, state.luck)]
        for array, order in arrays:
            array[:] = array[:, order]
        # Place -1, the last one, is where "no target" finds itself again.
        state.targets[:] = np.append(np.argsort(tasks), -1)[state.targets]
        return True

    def picture(self) -> Any:
        """What draws it, imported when asked for."""
        from muster.envs.pursuit import picture

        return picture

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Pursuers and free evaders in the cells of these places."""
        last = np.array(self.settings.shape) - 1
        for cells, places in ((self.state.pursuers, agents), (self.state.evaders, tasks)):
            cells[slot] = np.clip(np.floor(np.asarray(places)[:, ::-1]), 0, last)
        self.state.free[slot] = True

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
