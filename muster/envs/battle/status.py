"""What an onlooker reads off the units: who stands, the hit points and damages that the game shows, who is nearest."""

from __future__ import annotations

from muster.compile import leaf
from muster.envs.battle import layout as lay
from muster.envs.battle.geometry import length
from muster.envs.battle.layout import Int32s, Int64s

TILE = 8
"""Pixels along a walk tile."""


def shown_hit_points(exact: int) -> int:
    """Whole hit points of so many 1/256: what the game shows, rounded up."""
    return (exact + 255) >> 8


def shown_damage(types: Int64s, shooter: int, target: int) -> int:
    """Integer part of the damage that one hit of a unit of type `shooter` does to one of type `target`."""
    return types[shooter, lay.TYPE_FIELDS + types.shape[0] + target]


# The same for kernels: a leaf has no wrapper that Python could call.
_hit_points = leaf(shown_hit_points)
_damage = leaf(shown_damage)


@leaf
def stands(units: Int32s, i: int) -> bool:
    """Whether the unit is alive to an onlooker: one without hit points is not, even while it still takes room."""
    return units[lay.ALIVE, i] != 0 and units[lay.HP, i] > 0


@leaf
def hit_points(units: Int32s, i: int) -> int:
    """Hit points of unit i as the game shows them."""
    return _hit_points(units[lay.HP, i])


@leaf
def contribution(units: Int32s, types: Int64s, i: int, j: int) -> int:
    """Integer part of the damage that one hit of i does to j (both indices into all units)."""
    return _damage(types, units[lay.TYPE, i], units[lay.TYPE, j])


@leaf
def tile_distance(units: Int32s, i: int, x: int, y: int) -> int:
    """Length in pixels from the walk tile of unit i to the walk tile (x, y)."""
    return length(TILE * (units[lay.PX, i] // TILE - x), TILE * (units[lay.PY, i] // TILE - y))


@leaf
def closest_enemy(units: Int32s, n_ours: int, i: int) -> int:
    """Index (0..M-1) of the enemy nearest to our unit i, counted in walk tiles; -1 if none lives."""
    best = -1
    nearest = 1 << 30
    x = units[lay.PX, i] // TILE
    y = units[lay.PY, i] // TILE
    for j in range(n_ours, units.shape[1]):
        if stands(units, j):
            way = tile_distance(units, j, x, y)
            if way < nearest:
                nearest = way
                best = j - n_ours
    return best
