"""A battle to look at: scenes for the viewer, text for terminals, and pictures (`muster.envs.battle.pictures`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from muster.data import Bools, Floats, Ints
from muster.envs.battle import layout as lay
from muster.envs.battle.layout import Int32s, incoming_damage, shown_hit_points, targets_of
from muster.envs.renderer import Renderer
from muster.envs.scene import BLUE, RED, Look, Scene, Shape, Stage
from muster.envs.vector import State

if TYPE_CHECKING:
    from PIL.Image import Image

    from muster.envs.battle.env import BattleEnv
    from muster.envs.battle.pictures import Box

SHAPES: dict[str, Shape] = {"wraith": "dart", "zergling": "triangle", "hydralisk": "hexagon"}
"""The others are discs."""
PICTURE_EVERY = 3
"""Frames from one picture of a moving picture to the next."""
COLUMNS, ROWS = 72, 24
"""The map in characters is no larger than this; a character is twice as high as wide."""
LEAST_PIXELS = 8
"""Pixels of the game that one of its columns stands for, at least: one walk tile."""


class BattleRenderer(Renderer):
    """Units on the map."""

    env: BattleEnv
    seconds_per_step = lay.DECISION_FRAMES / lay.FRAMES_A_SECOND

    def __init__(self, env: BattleEnv) -> None:
        super().__init__(env)
        self._boxes: Floats | None = None
        self._caption = ""

    def scene(self, slot: int) -> Scene:
        """All units with health, heading and targets, and the shots of the last decision."""
        env, n = self.env, self.env.n_agents
        units, counters = env.units[slot], env.counters[slot]
        alive = units[lay.ALIVE] != 0
        places = np.stack([units[lay.PX], units[lay.PY]], axis=1)
        health = np.clip(units[lay.HP] / env.types[units[lay.TYPE], lay.T_HP], 0, 1)
        angles = units[lay.HEADING] / 256
        targets = targets_of(units)
        # Ours come first among the looks, a type each, then theirs.
        looks = units[lay.TYPE] + len(env.scenario.unit_names) * (np.arange(env.n_units) >= n)
        seconds = counters[lay.FRAME] / lay.FRAMES_A_SECOND
        return Scene(
            agents=places[:n],
            tasks=places[n:],
            agent_alive=alive[:n],
            task_alive=alive[n:],
            agent_looks=looks[:n],
            task_looks=looks[n:],
            agent_health=health[:n],
            task_health=health[n:],
            agent_angles=angles[:n],
            task_angles=angles[n:],
            agent_load=(incoming_damage(env.types, units, targets) / np.maximum(shown_hit_points(units), 1))[:n],
            task_targets=np.where(targets[n:] < n, targets[n:], -1),
            shots=self._shots(slot, targets),
            text=f"{counters[lay.N_OURS]} v {counters[lay.N_THEIRS]}, {seconds:.1f} s",
            stage=self._stage(),
        )

    def _stage(self) -> Stage:
        looks = []
        for side, colour in (("ours", BLUE), ("theirs", RED)):
            for name, kind in zip(self.env.scenario.unit_names, self.env.types, strict=True):
                size = 0.7 * float(kind[[lay.T_LEFT, lay.T_RIGHT, lay.T_UP, lay.T_DOWN]].sum()) / 4
                looks.append(Look(f"{name}s, {side}", SHAPES.get(name, "disc"), colour, size, remains=True))
        return Stage(looks, grid=128.0)

    def _shots(self, slot: int, targets: Ints) -> Floats:
        """[K, 3] the shots of the last decision: from whom, at whom, and when in it."""
        env, n = self.env, self.env.n_agents
        units, counters = env.units[slot], env.counters[slot]
        now = int(counters[lay.FRAME])
        aimed = targets.copy()
        # A unit that killed its target has none any more, but ours remember what they were sent to.
        sent = units[lay.PREVIOUS, :n].astype(np.int64)
        aimed[:n] = np.where((aimed[:n] < 0) & (sent >= 0), sent + n, aimed[:n])
        # A shot in the air, or showing its hit, knows better than orders that may have changed since.
        for bullet in env.bullets[slot, : counters[lay.N_BULLETS]]:
            if bullet[lay.B_UNIT] >= 0:
                aimed[bullet[lay.B_SOURCE]] = bullet[lay.B_UNIT]
        fired = units[lay.FIRED_FRAME].astype(np.int64)
        began = now - lay.DECISION_FRAMES
        who = np.flatnonzero((fired >= max(began, 0)) & (fired <= now) & (aimed >= 0) & (now > 0))
        when = np.clip((fired[who] - began) / lay.DECISION_FRAMES, 0, 1)
        return np.stack([who, aimed[who], when], axis=1).astype(np.float64)

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Move the units of a battle that has just begun to these places: every quantity that depends on them."""
        env, units = self.env, self.env.units[slot]
        flies = env.types[units[lay.TYPE], lay.T_FLYER] != 0
        at = np.clip(np.round(np.concatenate([agents, tasks])), lay.LOW, lay.HIGH).astype(np.int32)
        for axis, whole, exact in (
            (0, (lay.PX, lay.TARGET_X, lay.WAY_X, lay.FACE_X), (lay.X, lay.OLD_X)),
            (1, (lay.PY, lay.TARGET_Y, lay.WAY_Y, lay.FACE_Y), (lay.Y, lay.OLD_Y)),
        ):
            units[list(whole)] = at[:, axis]
            units[list(exact)] = 256 * at[:, axis]
        cells = np.minimum(at // lay.CELL_SIZE, lay.CELLS - 1) @ np.array([1, lay.CELLS])
        units[lay.CELL] = np.where(flies, cells, units[lay.CELL])
        env.cells[slot] = np.bincount(cells[flies], minlength=lay.CELLS * lay.CELLS)

    def draw(self, slot: int = 0) -> Image:
        """A picture of the battle in `slot` as it is now."""
        return self._draw(self.env, slot)

    def frame(self, states: Sequence[State], slot: int, caption: str = "") -> None:
        """Let the camera follow a battle whose states, decision by decision, are these."""
        from muster.envs.battle.pictures import follow

        self._caption = caption
        self._boxes = follow(np.stack([state["units"][slot] for state in states])) if states else None

    def animate(self, before: State, slot: int) -> list[Image]:
        """The last decision, a picture for every third frame of the game."""
        env = self.env
        between = type(env)(env.scenario.name, 1, env.settings)
        # What was ordered is what each unit remembers of it.
        orders = env.units[slot : slot + 1, lay.PREVIOUS, : env.n_agents].astype(np.int64)
        pictures = []
        for frames in range(PICTURE_EVERY, lay.DECISION_FRAMES, PICTURE_EVERY):
            between.set_state({name: array[slot : slot + 1] for name, array in before.items()})
            between.run_frames(orders, frames)
            if not between.running()[0]:
                break
            pictures.append(self._draw(between, 0))
        return [*pictures, self.draw(slot)]

    def _draw(self, env: BattleEnv, slot: int) -> Image:
        from muster.envs.battle.pictures import draw_battle

        box = None if self._boxes is None else self._box_at(env.counters[slot, lay.FRAME] / lay.DECISION_FRAMES)
        return draw_battle(env, slot, box, self._caption)

    def _box_at(self, decisions: float) -> Box:
        """What the camera shows so many decisions after the start."""
        assert self._boxes is not None
        times = np.arange(len(self._boxes))
        left, top, right, bottom = (float(np.interp(decisions, times, side)) for side in self._boxes.T)
        return left, top, right, bottom

    def describe(self, slot: int) -> str:
        """The time and how many are left; a map of all live units; the hit points of each unit, in order of its number.

        Ours are capital letters, theirs small ones, the first of their type's name. A digit (or +) stands for several
        of ours in one place, ! for several of theirs and * for both sides.
        """
        env, units = self.env, self.env.units[slot]
        alive = units[lay.ALIVE] != 0
        ours = np.arange(env.n_units) < env.n_agents
        frame = env.counters[slot, lay.FRAME]
        head = f"frame {frame}, {(alive & ours).sum()} of ours v {(alive & ~ours).sum()} of theirs"
        sides = [f"{side}: {self._health(units, whose)}" for side, whose in (("ours", ours), ("theirs", ~ours))]
        return "\n".join([head, *self._map(units), *sides])

    def _map(self, units: Int32s) -> list[str]:
        live = np.flatnonzero(units[lay.ALIVE])
        if not live.size:
            return []
        x, y = units[lay.PX, live].astype(np.int64), units[lay.PY, live].astype(np.int64)
        width = max(LEAST_PIXELS, -(-int(np.ptp(x) + 1) // COLUMNS), -(-int(np.ptp(y) + 1) // (2 * ROWS)))
        columns, rows = (x - x.min()) // width, (y - y.min()) // (2 * width)
        characters = np.full((int(rows.max()) + 1, int(columns.max()) + 1), ".", "<U1")
        for row, column in sorted(set(zip(rows.tolist(), columns.tolist(), strict=True))):
            characters[row, column] = self._letter(units, live[(rows == row) & (columns == column)])
        return ["".join(line) for line in characters]

    def _letter(self, units: Int32s, here: Ints) -> str:
        n_ours = int((here < self.env.n_agents).sum())
        if 0 < n_ours < len(here):
            return "*"
        if len(here) > 1:
            return "!" if not n_ours else str(n_ours) if n_ours < 10 else "+"
        letter = self.env.scenario.unit_names[units[lay.TYPE, here[0]]][0]
        return letter.upper() if n_ours else letter

    def _health(self, units: Int32s, whose: Bools) -> str:
        """Hit points as the game shows them, "-" for the dead, led by the type where it changes."""
        parts: list[str] = []
        shown = shown_hit_points(units)
        before = -1
        for i in np.flatnonzero(whose):
            kind = int(units[lay.TYPE, i])
            if kind != before:
                parts.append(self.env.scenario.unit_names[kind])
                before = kind
            parts.append(str(shown[i]) if units[lay.ALIVE, i] else "-")
        return " ".join(parts)
