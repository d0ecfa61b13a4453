"""Battles as an environment: agents are our units, tasks are the enemy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.battle import layout as lay
from muster.envs.battle.catalogue import scenario, type_table, unit_types
from muster.envs.battle.heuristics import HEURISTICS, HeuristicPolicy
from muster.envs.battle.settings import SHOWN, BattleSettings
from muster.envs.compiled import CompiledEnv
from muster.envs.renderer import Renderer
from muster.envs.vector import Metric, Policy, State, Step
from muster.errors import InputError
from muster.kernels import core
from muster.rng import Seeds
from muster.settings import options_of, read_options

BOT_STEPS = 5000
"""Step limit of a battle, in steps of the bot."""
UNIT_FEATURES = ("enemy", "x", "y", "velocity x", "velocity y", "health", "cooldown", "range")
PAIR_FEATURES = ("distance", "was my target")
GRID = 100
"""Side of the square of planes, in walk tiles."""
DISTANCE_SCALE = 25.0
"""Walk tiles of an observed distance of 1."""
UNITS_A_THREAD = 500
"""Least number of units per thread for which another thread pays."""


class BattleEnv(CompiledEnv):
    """B battles of one scenario; a decision lasts six frames.

    Agent and task features: enemy flag, x/64 - 15, y/64 - 15 (pixels), velocity/5 (pixels a frame), health and
    cooldown fractions, range/10 (walk tiles; 0 for a unit that cannot shoot up) and, with several unit types, a
    one-hot type. Pair features: distance and "was my target at the last decision". Contributions are the integer
    damage of one hit; capacities what is needed to kill.
    """

    metric: Metric = "win_rate"
    idling = True
    positions = (UNIT_FEATURES.index("x"), UNIT_FEATURES.index("y"))

    def __init__(
        self, scenario_name: str, n_envs: int, settings: BattleSettings | None = None, name: str | None = None
    ) -> None:
        self.settings = settings or BattleSettings()
        self.scenario = scenario(scenario_name)
        self.name = name or f"battle:{scenario_name}"
        n, m = self.scenario.n_ours, self.scenario.n_theirs
        self.n_units = n + m
        self.set_size(n_envs, n, m, n_envs * self.n_units // UNITS_A_THREAD)
        self.max_steps = BOT_STEPS * self.settings.bot_step // lay.DECISION_FRAMES
        self.reads_reasons = self.settings.idle == "reasons"
        kinds = [unit_types()[unit] for unit in self.scenario.unit_names]
        self.types = type_table(kinds)
        self._one_hot = len(kinds) > 1
        self._n_features = len(UNIT_FEATURES) + (len(kinds) if self._one_hot else 0)
        self._ranges = np.array([min(kind["range"], kind["air_range"]) for kind in kinds]) / 80
        self._pairs = True
        self._planes = self.settings.planes
        self.units = np.zeros((n_envs, lay.UNIT_FIELDS, self.n_units), dtype=np.int32)
        self.counters = np.zeros((n_envs, lay.COUNTERS), dtype=np.int64)
        self.bullets = np.zeros((n_envs, lay.BULLET_LIMIT, lay.BULLET_FIELDS), dtype=np.int32)
        self.cells = np.zeros((n_envs, lay.CELLS * lay.CELLS), dtype=np.int16)
        self.rng = np.zeros(n_envs, dtype=np.uint64)
        # No episode is running until the first reset.
        self.counters[:, lay.ENDED] = 1
        engine = {name: getattr(self.settings, name) for name in options_of(BattleSettings) if name not in SHOWN}
        self.kernel = core.battle.Battles(
            **self.arrays(), types=self.types, roster=self.scenario.roster(), n_ours=n, **engine
        )

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """Names of the features of units, ours and theirs alike, and of pairs."""
        types = [f"is {name}" for name in self.scenario.unit_names] if self._one_hot else []
        return {"agent": [*UNIT_FEATURES, *types], "task": [*UNIT_FEATURES, *types], "pair": PAIR_FEATURES}

    def show(self, *, pair_features: bool = True, planes: bool = False, prior: bool = True) -> None:
        """Choose whether observations have pair features, and planes for a CNN; the option `planes` keeps planes on."""
        del prior
        self._pairs, self._planes = pair_features, planes or self.settings.planes

    def observe(self) -> BatchObservation:
        """Features, contributions, capacities and masks of all units, in new arrays."""
        B, N, M, F = self.n_envs, self.n_agents, self.n_tasks, self._n_features
        agents = np.empty((B, N, F), dtype=np.float32)
        tasks = np.empty((B, M, F), dtype=np.float32)
        pairs = np.empty((B, N, M, len(PAIR_FEATURES)), dtype=np.float32)
        contributions = np.empty((B, N, M))
        capacities = np.empty((B, M))
        scale = 1.0 if self.settings.raw_distance else DISTANCE_SCALE
        self.share_out(
            lambda begin, end: self.kernel.observe(
                self._ranges, self._one_hot, scale, agents, tasks, pairs, contributions, capacities, begin, end
            )
        )
        alive = self.units[:, lay.ALIVE] != 0
        planes = agent_cells = task_cells = None
        if self._planes:
            planes = np.zeros((B, 2 * F, GRID, GRID), dtype=np.float32)
            cells = np.zeros((B, N + M, 2), dtype=np.int64)
            self.kernel.draw_planes(agents, tasks, planes, cells)
            agent_cells, task_cells = cells[:, :N], cells[:, N:]
        return BatchObservation(
            agent_features=agents,
            task_features=tasks,
            pair_features=pairs if self._pairs else pairs[..., :0],
            task_pair_features=np.zeros((B, M, M, 0), dtype=np.float32),
            agent_alive=alive[:, :N].copy(),
            task_alive=alive[:, N:].copy(),
            contributions=contributions,
            capacities=capacities,
            planes=planes,
            agent_cells=agent_cells,
            task_cells=task_cells,
        )

    def resolve(self, assignment: Ints) -> Ints:
        """[B, N] the orders of an assignment: enemy index, -2 (stop) or -3 (attack-move).

        See `step`; the option `idle` says how an unassigned unit that chose to idle is recognised.
        """
        tasks = np.asarray(assignment)
        if tasks.shape != (self.n_envs, self.n_agents) or tasks.dtype.kind not in "iu":
            raise InputError(
                f"assignment must be whole numbers of shape {(self.n_envs, self.n_agents)}, "
                f"got {tasks.dtype} of shape {tasks.shape}"
            )
        orders = np.empty(tasks.shape, dtype=np.int64)
        if not self.kernel.resolve(not self.reads_reasons, tasks.astype(np.int64, copy=False), orders):
            raise InputError(
                f"assignment must lie in 0..{self.n_tasks - 1}, or be -1 (unassigned), -2 (stop) or -3 (attack-move), "
                f"got {tasks.min()} to {tasks.max()}"
            )
        return orders

    def step(self, assignment: Ints) -> Step:
        """Carry out one decision: six frames, less if the battle ends before.

        `assignment` [B, N]: an enemy's index, or -1. An agent with -1, or assigned to a dead enemy, stops if some task
        still has capacity for it, since then the policy chose to idle (unless the option `idle` is "reasons").
        Otherwise it keeps its previous target if that is alive, and else attacks the closest enemy; with a single enemy
        left it attacks that. -2 stops a unit and -3 makes it attack-move to the middle of the enemy's army,
        whatever the rules above.
        """
        orders = self.resolve(assignment)
        result = Step(np.empty(self.n_envs), np.empty(self.n_envs, np.bool_), np.empty(self.n_envs, np.bool_))
        final_reward = self.settings.final_reward
        self.share_out(lambda begin, end: self.kernel.step(orders, self.max_steps, final_reward, *result, begin, end))
        return result

    def outcome(self) -> Floats:
        """[B] 1 if more of our units are left than of theirs, else 0."""
        return (self.counters[:, lay.N_OURS] > self.counters[:, lay.N_THEIRS]).astype(np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the battles (see `muster.envs.battle.layout`)."""
        return {name: getattr(self, name) for name in ("units", "counters", "bullets", "cells", "rng")}

    def get_state(self) -> State:
        """Copies of the battles' arrays."""
        state = super().get_state()
        # Entries beyond the live bullets are stale and have no effect; zeros make equal states equal.
        stale = np.arange(lay.BULLET_LIMIT) >= self.counters[:, lay.N_BULLETS, None]
        state["bullets"][stale] = 0
        return state

    def running(self) -> Bools:
        """[B] whether the battle has not ended."""
        return self.counters[:, lay.ENDED] == 0

    def reseed(self, seeds: Seeds) -> None:
        """Seed the battles' random streams anew."""
        self.rng[:] = seeds

    def renderer(self) -> Renderer:
        """A renderer of the map."""
        from muster.envs.battle.renderer import BattleRenderer

        return BattleRenderer(self)

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[BattleEnv], Policy]]:
        """The paper's heuristics, their corrected variants and the opponent's own behaviour."""
        return {name: partial(HeuristicPolicy, name) for name in HEURISTICS}


def from_options(text: str, n_envs: int) -> BattleEnv:
    """The environment of "w15v17" or "w15v17,latency=3,planes=true"."""
    name, *options = [part.strip() for part in text.split(",")]
    settings = BattleSettings(**read_options(BattleSettings, options, "battle option"))
    return BattleEnv(name, n_envs, settings, name=f"battle:{text}")
