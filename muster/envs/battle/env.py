"""Battles as an environment: agents are our units, tasks are the enemy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.battle import layout as lay
from muster.envs.battle.catalogue import scenario, unit_types
from muster.envs.battle.heuristics import RULES, Heuristic
from muster.envs.battle.observe import BASE_FEATURES, PAIR_FEATURES, PLACE_X, PLACE_Y, observe_all, resolve_all
from muster.envs.battle.planes import GRID, draw_planes
from muster.envs.battle.settings import BattleSettings
from muster.envs.battle.world import World
from muster.envs.scene import Scene
from muster.envs.vector import BatchEnv, Metric, Policy, State, Step
from muster.errors import InputError
from muster.rng import Seeds
from muster.settings import check_fields

if TYPE_CHECKING:
    from PIL.Image import Image

    from muster.envs.battle.render import Box

BOT_STEPS = 5000
"""Steps of the bot after which a battle is broken off."""
UNIT_FEATURES = ("enemy", "x", "y", "velocity x", "velocity y", "health", "cooldown", "range")
UNIT_PAIR_FEATURES = ("distance", "was my target")
PICTURE_EVERY = 3
"""Frames from one picture of a moving picture to the next."""


@dataclass(frozen=True, slots=True)
class BattleOptions:
    """What the environment shows and rewards; the engine's own settings are `BattleSettings`."""

    final_reward: bool = False
    """Add (our health - theirs) / our initial health at the end, as the authors' code does."""
    planes: bool = False
    """Draw the units' features on a 100 x 100 grid of walk tiles, for convolutional models (slow)."""
    raw_distance: bool = False
    """Show distances in walk tiles instead of in 25 of them."""
    idle: Literal["room", "reasons"] = "room"
    """What tells whether a unit without a target chose to stop: the room that the assignment leaves at any enemy, also
    at one that it does not want, as in the authors' code ("room"); or the policy itself, whose inference knows
    ("reasons"): -2 stops, -1 goes on with the last target."""

    def __post_init__(self) -> None:
        check_fields(self)


class BattleEnv(BatchEnv):
    """B battles of one scenario; a decision lasts six frames.

    Agent and task features: enemy flag, x/64 - 15, y/64 - 15 (pixels), velocity/5 (pixels a frame), health and
    cooldown fractions, range/10 (walk tiles; 0 for a unit that cannot shoot up) and, with several unit types, a
    one-hot type. Pair features: distance and "was my target at the last decision". Contributions are the integer
    damage of one hit; capacities what is needed to kill.
    """

    metric: Metric = "win_rate"
    idling = True
    positions = (PLACE_X, PLACE_Y)

    def __init__(
        self,
        scenario_name: str,
        n_envs: int,
        settings: BattleSettings | None = None,
        options: BattleOptions | None = None,
        name: str | None = None,
    ) -> None:
        if n_envs < 1:
            raise InputError(f"n_envs must be at least 1, got {n_envs}")
        self.settings = settings or BattleSettings()
        self.options = options or BattleOptions()
        self.engine = World(scenario(scenario_name), self.settings, n_envs)
        self.name = name or f"battle:{scenario_name}"
        self.n_envs = n_envs
        self.n_agents = self.engine.n_ours
        self.n_tasks = self.engine.n_units - self.engine.n_ours
        self.max_steps = BOT_STEPS * self.settings.bot_step // self.settings.decision_frames
        names = self.engine.scenario.unit_names
        self._one_hot = len(names) > 1
        self._n_features = BASE_FEATURES + (len(names) if self._one_hot else 0)
        reach = [min(unit_types()[unit].range, unit_types()[unit].air_range) for unit in names]
        self._ranges = np.array(reach, dtype=np.float64) / 80
        self.seconds_a_step = self.settings.decision_frames / lay.FRAMES_A_SECOND
        self._pairs = True
        self._planes = self.options.planes
        self._box: Box | None = None
        self._caption = ""
        self.reads_reasons = self.options.idle == "reasons"

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Begin the battle of `seeds[k]` in slot `slots[k]`."""
        self.engine.reset(np.asarray(slots), np.asarray(seeds))

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """Of units, ours and theirs alike, and of pairs of them."""
        types = [f"is {name}" for name in self.engine.scenario.unit_names] if self._one_hot else []
        return {"agent": [*UNIT_FEATURES, *types], "task": [*UNIT_FEATURES, *types], "pair": UNIT_PAIR_FEATURES}

    def show(self, *, pair_features: bool, planes: bool) -> None:
        """Include distances and last targets of pairs, and planes for a CNN; planes asked for by an option stay."""
        self._pairs, self._planes = pair_features, planes or self.options.planes

    def observe(self) -> BatchObservation:
        """What is seen now."""
        engine = self.engine
        B, N, M, F = self.n_envs, self.n_agents, self.n_tasks, self._n_features
        agents = np.empty((B, N, F), dtype=np.float32)
        tasks = np.empty((B, M, F), dtype=np.float32)
        pairs = np.empty((B, N, M, PAIR_FEATURES), dtype=np.float32)
        contributions = np.empty((B, N, M))
        capacities = np.empty((B, M))
        scale = 1.0 if self.options.raw_distance else 25.0

        def observe_part(begin: int, end: int) -> None:
            part = slice(begin, end)
            observe_all(
                engine.units[part], engine.types, self._ranges, N, self._one_hot, scale,
                agents[part], tasks[part], pairs[part], contributions[part], capacities[part],
            )  # fmt: skip

        engine.share_out(self.threads, observe_part)
        alive = (engine.units[:, lay.ALIVE] != 0) & (engine.units[:, lay.HP] > 0)
        planes = agent_cells = task_cells = None
        if self._planes:
            planes = np.zeros((B, 2 * F, GRID, GRID), dtype=np.float32)
            cells = np.zeros((B, N + M, 2), dtype=np.int64)
            draw_planes(engine.units, N, agents, tasks, planes, cells)
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
        """The orders [B, N] that an assignment leads to: enemy index, -2 (stop) or -3 (attack-move).

        See `step`; the option `idle` says who tells whether an unassigned unit chose to idle.
        """
        wanted = np.asarray(assignment)
        if wanted.shape != (self.n_envs, self.n_agents) or not np.issubdtype(wanted.dtype, np.integer):
            raise InputError(
                f"assignment must be whole numbers of shape {(self.n_envs, self.n_agents)}, "
                f"got {wanted.dtype} of shape {wanted.shape}"
            )
        if wanted.size and (wanted.min() < lay.MARCH or wanted.max() >= self.n_tasks):
            raise InputError(
                f"assignment must lie in 0..{self.n_tasks - 1}, or be -1 (unassigned), -2 (stop) or -3 (attack-move), "
                f"got {wanted.min()} to {wanted.max()}"
            )
        orders = np.full(wanted.shape, lay.HOLD, dtype=np.int64)
        engine = self.engine
        guess = not self.reads_reasons
        resolve_all(engine.units, engine.types, engine.counters, self.n_agents, guess, wanted.astype(np.int64), orders)
        return orders

    def step(self, assignment: Ints) -> Step:
        """Carry out one decision: six frames, less if the battle ends before.

        `assignment` [B, N]: an enemy's index, or -1. An agent with -1, or assigned to a dead enemy, stops if some
        task still had room for it (so the policy chose idleness; unless the option `idle` is "reasons"); otherwise it
        keeps its previous target if that lives and else attacks the closest enemy; with a single enemy left it attacks
        that. Two more values bypass these rules: -2 stops the unit and -3 makes it attack-move to the middle of the
        enemy's army.
        """
        counters = self.engine.counters
        going = counters[:, lay.ENDED] == 0
        before = counters[:, lay.HEALTH_OURS] - counters[:, lay.HEALTH_THEIRS]
        self.engine.play(self.resolve(assignment), self.threads)
        terminated = going & (counters[:, lay.ENDED] != 0)
        truncated = going & ~terminated & (counters[:, lay.STEPS] >= self.max_steps)
        counters[truncated, lay.ENDED] = 1
        after = counters[:, lay.HEALTH_OURS] - counters[:, lay.HEALTH_THEIRS]
        scale = np.maximum(counters[:, lay.HEALTH_START], 1)
        reward = np.where(going, after - before, 0) / scale
        if self.options.final_reward:
            reward = reward + np.where(terminated | truncated, after, 0) / scale
        return Step(reward, terminated, truncated)

    def outcome(self) -> Floats:
        """[B] 1 where more of our units are left than of theirs."""
        return (self.engine.counters[:, lay.N_OURS] > self.engine.counters[:, lay.N_THEIRS]).astype(np.float64)

    def get_state(self) -> State:
        """Copies of the battles' arrays."""
        state = {name: getattr(self.engine, name).copy() for name in World.STATE}
        # Beyond the live bullets their array holds what was there before, which makes no difference to the battle.
        stale = np.arange(state["bullets"].shape[1]) >= state["counters"][:, lay.N_BULLETS, None]
        state["bullets"][stale] = 0
        return state

    def set_state(self, state: State) -> None:
        """Go on from `get_state`, bit for bit."""
        if set(state) != set(World.STATE):
            names = ", ".join(World.STATE)
            raise InputError(f"a battle's state has {names}; got {', '.join(sorted(state)) or 'nothing'}")
        for name in World.STATE:
            target = getattr(self.engine, name)
            if state[name].shape != target.shape or state[name].dtype != target.dtype:
                raise InputError(
                    f"state {name!r} must be {target.dtype} of shape {target.shape}, "
                    f"got {state[name].dtype} of shape {state[name].shape}"
                )
        for name in World.STATE:
            getattr(self.engine, name)[...] = state[name]

    def scene(self, slot: int) -> Scene:
        """All units with health, heading and targets, and the shots of the last decision."""
        from muster.envs.battle.staging import scene

        return scene(self.engine, slot)

    def running(self) -> Bools:
        """[B] where the battle is not over."""
        return self.engine.counters[:, lay.ENDED] == 0

    def reseed(self, seeds: Seeds) -> None:
        """Other chances to hit, and whatever else is drawn from now on."""
        self.engine.rng[:] = seeds

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """All units, unharmed, at these places."""
        from muster.envs.battle.staging import put_units

        put_units(self.engine, slot, np.concatenate([agents, tasks]))

    def draw(self, slot: int = 0) -> Image:
        """A picture of the battle in `slot` as it is now."""
        return self._draw(self.engine, slot)

    def frame(self, states: Sequence[State], slot: int, caption: str = "") -> None:
        """Fix the part of the map that pictures show: all that is alive in any of `states`."""
        from muster.envs.battle.render import view_box

        self._caption = caption
        self._box = view_box(np.stack([state["units"][slot] for state in states])) if states else None

    def animate(self, before: State, slot: int) -> list[Image]:
        """The last decision, a picture for every third frame of the game."""
        between = World(self.engine.scenario, self.settings, 1)
        # What was ordered is what each unit remembers of it.
        orders = self.engine.units[slot : slot + 1, lay.PREVIOUS, : self.n_agents].astype(np.int64)
        pictures = []
        for frames in range(PICTURE_EVERY, self.settings.decision_frames, PICTURE_EVERY):
            for name in World.STATE:
                getattr(between, name)[0] = before[name][slot]
            between.play(orders, frames=frames)
            if between.counters[0, lay.ENDED]:
                break
            pictures.append(self._draw(between, 0))
        return [*pictures, self.draw(slot)]

    def _draw(self, engine: World, slot: int) -> Image:
        from muster.envs.battle.render import draw_battle

        return draw_battle(engine, slot, self._box, self._caption)

    def describe(self, slot: int) -> str:
        """The battle in characters: a map, then every unit's hit points."""
        from muster.envs.battle.description import describe_battle

        return describe_battle(self.engine, slot)

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[BattleEnv], Policy]]:
        """The paper's heuristics, their corrected variants and the opponent's own behaviour."""
        return {name: partial(Heuristic, name) for name in RULES}
