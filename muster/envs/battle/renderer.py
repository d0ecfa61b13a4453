"""The renderer of battles: scenes for the viewer and pictures, text for terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.data import Floats, Ints
from muster.envs.battle import layout as lay
from muster.envs.battle.layout import incoming_damage, shown_hit_points, targets_of
from muster.envs.renderer import SceneRenderer
from muster.envs.scene import BLUE, RED, Look, Scene, Shape, Stage

if TYPE_CHECKING:
    from muster.envs.battle.env import BattleEnv

SHAPES: dict[str, Shape] = {"wraith": "dart", "zergling": "triangle", "hydralisk": "hexagon"}
"""{unit type: shape}; the others are discs."""
COLUMNS, ROWS = 72, 24
"""Largest map in characters; a character is twice as high as wide."""
LEAST_PIXELS = 8
"""Least width of a character in pixels of the game: one walk tile."""


class BattleRenderer(SceneRenderer):
    """Draws units on the map."""

    env: BattleEnv
    seconds_per_step = lay.DECISION_FRAMES / lay.FRAMES_A_SECOND

    def scene(self, slot: int) -> Scene:
        """All units with health, heading and targets, and the shots of the last decision."""
        env, n = self.env, self.env.n_agents
        units, counters = env.units[slot], env.counters[slot]
        alive = units[lay.ALIVE] != 0
        places = np.stack([units[lay.PX], units[lay.PY]], axis=1)
        health = np.clip(units[lay.HP] / env.types[units[lay.TYPE], lay.T_HP], 0, 1)
        angles = units[lay.HEADING] / 256
        targets = targets_of(units)
        # The looks are our unit types, then theirs.
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
        """[K, 3] source, target and time (0 to 1) of the shots of the last decision."""
        env, n = self.env, self.env.n_agents
        units, counters = env.units[slot], env.counters[slot]
        now = int(counters[lay.FRAME])
        aimed = targets.copy()
        # A unit that killed its target has none any more; ours keep the target of their last assignment.
        sent = units[lay.PREVIOUS, :n].astype(np.int64)
        aimed[:n] = np.where((aimed[:n] < 0) & (sent >= 0), sent + n, aimed[:n])
        # Bullets in the air, or showing their hit, have the true target: orders may have changed since.
        for bullet in env.bullets[slot, : counters[lay.N_BULLETS]]:
            if bullet[lay.B_UNIT] >= 0:
                aimed[bullet[lay.B_SOURCE]] = bullet[lay.B_UNIT]
        fired = units[lay.FIRED_FRAME].astype(np.int64)
        began = now - lay.DECISION_FRAMES
        who = np.flatnonzero((fired >= max(began, 0)) & (fired <= now) & (aimed >= 0) & (now > 0))
        when = np.clip((fired[who] - began) / lay.DECISION_FRAMES, 0, 1)
        return np.stack([who, aimed[who], when], axis=1).astype(np.float64)

    def targets(self, slot: int) -> Ints:
        """[N] the enemy that each of our units attacks."""
        n, targets = self.env.n_agents, targets_of(self.env.units[slot])
        return np.where(targets[:n] >= n, targets[:n] - n, -1)

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Move the units of a battle that was just reset, with all quantities that depend on their positions."""
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

    def describe(self, slot: int) -> str:
        """Numbers of units left, the time, and a map of all living units.

        Our units are capital letters and theirs small ones, the first of their type's name. A digit (or +) means
        several of ours in one character, ! several of theirs and * both sides.
        """
        units, head = self.env.units[slot], self.scene(slot).text
        live = np.flatnonzero(units[lay.ALIVE])
        if not live.size:
            return head
        x, y = units[lay.PX, live].astype(np.int64), units[lay.PY, live].astype(np.int64)
        width = max(LEAST_PIXELS, -(-int(np.ptp(x) + 1) // COLUMNS), -(-int(np.ptp(y) + 1) // (2 * ROWS)))
        columns, rows = (x - x.min()) // width, (y - y.min()) // (2 * width)
        board = np.full((int(rows.max()) + 1, int(columns.max()) + 1), ".", "<U1")
        for row, column in sorted(set(zip(rows.tolist(), columns.tolist(), strict=True))):
            board[row, column] = self._letter(slot, live[(rows == row) & (columns == column)])
        return "\n".join([head, *("".join(line) for line in board)])

    def _letter(self, slot: int, here: Ints) -> str:
        n_ours = int((here < self.env.n_agents).sum())
        if 0 < n_ours < len(here):
            return "*"
        if len(here) > 1:
            return "!" if not n_ours else str(n_ours) if n_ours < 10 else "+"
        letter = self.env.scenario.unit_names[self.env.units[slot, lay.TYPE, here[0]]][0]
        return letter.upper() if n_ours else letter
