"""Battles as pictures for convolutional models: one cell a walk tile."""

from __future__ import annotations

from muster.compile import lean_entry
from muster.data import Floats32
from muster.envs.battle import layout as lay
from muster.envs.battle.layout import Int32s, Int64s
from muster.envs.battle.status import TILE, stands

GRID = 100
"""Side of the square window, in walk tiles."""


@lean_entry
def draw_planes(units: Int32s, n_ours: int, agents: Floats32, tasks: Floats32, planes: Floats32, cells: Int64s) -> None:
    """Add each unit's features at its walk tile of a window round the middle of all units.

    The first F of the 2F planes are ours, the others the enemy's. A unit outside the window is drawn at its rim.
    """
    for b in range(units.shape[0]):
        n = 0
        x = 0
        y = 0
        for i in range(units.shape[2]):
            if stands(units[b], i):
                x += units[b, lay.PX, i] // TILE
                y += units[b, lay.PY, i] // TILE
                n += 1
        left = x // max(n, 1) - GRID // 2
        top = y // max(n, 1) - GRID // 2
        width = agents.shape[2]
        for i in range(units.shape[2]):
            column = min(max(units[b, lay.PX, i] // TILE - left, 0), GRID - 1)
            row = min(max(units[b, lay.PY, i] // TILE - top, 0), GRID - 1)
            cells[b, i, 0] = row
            cells[b, i, 1] = column
            for f in range(width):
                if i < n_ours:
                    planes[b, f, row, column] += agents[b, i, f]
                else:
                    planes[b, width + f, row, column] += tasks[b, i - n_ours, f]
