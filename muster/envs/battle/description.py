"""A battle as text, for terminals: a map of the units and the hit points that each has left."""

from __future__ import annotations

import numpy as np

from muster.data import Bools, Ints
from muster.envs.battle import layout as lay
from muster.envs.battle.layout import Int32s
from muster.envs.battle.status import shown_hit_points
from muster.envs.battle.world import World

COLUMNS, ROWS = 72, 24
"""The map is no larger than this; a character is twice as high as wide."""
LEAST_PIXELS = 8
"""Pixels of the game that a column stands for, at least: one walk tile."""


def describe_battle(env: World, slot: int) -> str:
    """The time and who is left; a map of all live units; the hit points of each unit, in the order of its number.

    Ours are capital letters, theirs small ones, the first of their type's name. A digit (or +) stands for several of
    ours in one place, ! for several of theirs and * for both sides.
    """
    units, counters = env.units[slot], env.counters[slot]
    lives = (units[lay.ALIVE] != 0) & (units[lay.HP] > 0)
    ours = np.arange(env.n_units) < env.n_ours
    head = f"frame {counters[lay.FRAME]}, {int((lives & ours).sum())} of ours v {int((lives & ~ours).sum())} of theirs"
    lines = [head, *_map(env, units, lives)]
    for side, whose in (("ours", ours), ("theirs", ~ours)):
        lines.append(f"{side}: {_health(env, units, np.flatnonzero(whose), lives)}")
    return "\n".join(lines)


def _map(env: World, units: Int32s, lives: Bools) -> list[str]:
    live = np.flatnonzero(lives)
    if not live.size:
        return []
    x, y = units[lay.PX, live].astype(np.int64), units[lay.PY, live].astype(np.int64)
    width = max(LEAST_PIXELS, -(-int(np.ptp(x) + 1) // COLUMNS), -(-int(np.ptp(y) + 1) // (2 * ROWS)))
    columns, rows = (x - x.min()) // width, (y - y.min()) // (2 * width)
    board = np.full((int(rows.max()) + 1, int(columns.max()) + 1), ".", "<U1")
    for row, column in sorted(set(zip(rows.tolist(), columns.tolist(), strict=True))):
        here = live[(rows == row) & (columns == column)]
        board[row, column] = _letter(env, units, here)
    return ["".join(line) for line in board]


def _letter(env: World, units: Int32s, here: Ints) -> str:
    n_ours = int((here < env.n_ours).sum())
    if 0 < n_ours < len(here):
        return "*"
    if len(here) > 1:
        return "!" if not n_ours else str(n_ours) if n_ours < 10 else "+"
    letter = env.scenario.unit_names[units[lay.TYPE, here[0]]][0]
    return letter.upper() if n_ours else letter


def _health(env: World, units: Int32s, indices: Ints, lives: Bools) -> str:
    """Hit points as the game shows them, "-" for the dead, led by the type where it changes."""
    parts: list[str] = []
    before = -1
    for i in indices:
        kind = int(units[lay.TYPE, i])
        if kind != before:
            parts.append(env.scenario.unit_names[kind])
            before = kind
        parts.append(str(shown_hit_points(int(units[lay.HP, i]))) if lives[i] else "-")
    return " ".join(parts)
