"""Where a walker goes next: straight on, or round the corner of a unit that stands in the way."""

from __future__ import annotations

from muster.compile import kernel, leaf
from muster.envs.battle import layout as lay
from muster.envs.battle.geometry import boxes_meet, length
from muster.envs.battle.layout import Int32s, Int64s
from muster.envs.battle.movement import at_target
from muster.envs.battle.settings import P_GIVE_UP

_DETOURS = 4  # corners considered in a row before going straight after all
_NO_CORNER = 1 << 30  # more than any way is long


@leaf
def _in_the_way(units: Int32s, i: int, j: int, considered: int, movers: bool) -> bool:
    """Whether the plan treats unit j as an obstacle: those that stand, the one just hit, or all with `movers`."""
    return j != i and j != units[lay.TARGET_UNIT, i] and (movers or j == considered or at_target(units, j))


@leaf
def _crosses(x0: int, y0: int, x1: int, y1: int, left: int, top: int, right: int, bottom: int) -> float:
    """How far along the segment (0 to 1) it enters the open rectangle; 2 if it never does."""
    enter = 0.0
    leave = 1.0
    for axis in range(2):
        start = x0 if axis == 0 else y0
        way = x1 - x0 if axis == 0 else y1 - y0
        low = left if axis == 0 else top
        high = right if axis == 0 else bottom
        if way == 0:
            if start <= low or start >= high:
                return 2.0
        else:
            a = (low - start) / way
            b = (high - start) / way
            if a > b:
                a, b = b, a
            enter = max(enter, a)
            leave = min(leave, b)
    return enter if enter < leave else 2.0


@leaf
def _first_obstacle(
    units: Int32s, types: Int64s, counters: Int64s, i: int, x: int, y: int, considered: int, movers: bool
) -> int:
    """The first obstacle on the straight way to (x, y) that does not cover that point itself; -1 if there is none."""
    kind = units[lay.TYPE, i]
    best = 2.0
    found = -1
    x0 = units[lay.PX, i]
    y0 = units[lay.PY, i]
    low_x = min(x0, x) - 40
    high_x = max(x0, x) + 40
    low_y = min(y0, y) - 40
    high_y = max(y0, y) + 40
    for k in range(counters[lay.N_LIVE]):
        j = units[lay.LIVE, k]
        jx = units[lay.PX, j]
        jy = units[lay.PY, j]
        if jx < low_x or jx > high_x or jy < low_y or jy > high_y or not _in_the_way(units, i, j, considered, movers):
            continue
        other = units[lay.TYPE, j]
        left = jx - types[other, lay.T_LEFT] - types[kind, lay.T_RIGHT] - 1
        right = jx + types[other, lay.T_RIGHT] + types[kind, lay.T_LEFT] + 1
        top = jy - types[other, lay.T_UP] - types[kind, lay.T_DOWN] - 1
        bottom = jy + types[other, lay.T_DOWN] + types[kind, lay.T_UP] + 1
        if left < x < right and top < y < bottom:
            continue
        along = _crosses(x0, y0, x, y, left, top, right, bottom)
        if along < best:
            best = along
            found = j
    return found


@leaf
def blocked_at(units: Int32s, types: Int64s, counters: Int64s, i: int, x: int, y: int, standing_only: bool) -> bool:
    """Whether unit i could not stand at (x, y) for another unit."""
    kind = units[lay.TYPE, i]
    for k in range(counters[lay.N_LIVE]):
        j = units[lay.LIVE, k]
        if (
            j != i
            and boxes_meet(types, kind, x, y, units[lay.TYPE, j], units[lay.PX, j], units[lay.PY, j])
            and (not standing_only or at_target(units, j))
        ):
            return True
    return False


@leaf
def _best_corner(units: Int32s, types: Int64s, counters: Int64s, i: int, j: int, movers: bool) -> tuple[int, int, int]:
    """The free corner of unit j that unit i gets to its target by on the shortest way: its cost, x and y.

    Without one the cost is _NO_CORNER and the place the target.
    """
    kind = units[lay.TYPE, i]
    x0 = units[lay.PX, i]
    y0 = units[lay.PY, i]
    goal_x = units[lay.TARGET_X, i]
    goal_y = units[lay.TARGET_Y, i]
    other = units[lay.TYPE, j]
    left = units[lay.PX, j] - types[other, lay.T_LEFT] - types[kind, lay.T_RIGHT] - 1
    right = units[lay.PX, j] + types[other, lay.T_RIGHT] + types[kind, lay.T_LEFT] + 1
    top = units[lay.PY, j] - types[other, lay.T_UP] - types[kind, lay.T_DOWN] - 1
    bottom = units[lay.PY, j] + types[other, lay.T_DOWN] + types[kind, lay.T_UP] + 1
    best = _NO_CORNER
    best_x = goal_x
    best_y = goal_y
    for corner in range(4):
        x = left if corner % 2 == 0 else right
        y = top if corner < 2 else bottom
        if (x == x0 and y == y0) or _crosses(x0, y0, x, y, left, top, right, bottom) < 1.5:
            continue
        cost = length(x - x0, y - y0) + length(goal_x - x, goal_y - y)
        if cost < best and not blocked_at(units, types, counters, i, x, y, not movers):
            best = cost
            best_x = x
            best_y = y
    return best, best_x, best_y


@kernel
def plan_path(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int, considered: int, movers: bool
) -> None:
    """Set the next waypoint towards the move target, and face it.

    The straight line, or else the cheapest free corner of the first obstacle on it (and of what stands before that
    corner, a few times over). With no free corner the walker goes straight on, or gives up where the setting says so.
    """
    x0 = units[lay.PX, i]
    y0 = units[lay.PY, i]
    way_x = units[lay.TARGET_X, i]
    way_y = units[lay.TARGET_Y, i]
    for _ in range(_DETOURS):
        j = _first_obstacle(units, types, counters, i, way_x, way_y, considered, movers)
        if j < 0:
            break
        best, best_x, best_y = _best_corner(units, types, counters, i, j, movers)
        if best == _NO_CORNER:
            if params[P_GIVE_UP]:
                units[lay.TARGET_X, i] = x0
                units[lay.TARGET_Y, i] = y0
                units[lay.IMMOVABLE, i] = 1
                best_x = x0
                best_y = y0
            way_x = best_x
            way_y = best_y
            break
        if best_x == way_x and best_y == way_y:
            break
        way_x = best_x
        way_y = best_y
    units[lay.HAS_PATH, i] = 1
    units[lay.PATH_FRAME, i] = counters[lay.FRAME]
    units[lay.NEW_TARGET, i] = 0
    units[lay.HIT_UNIT, i] = -1
    units[lay.FACE_X, i] = way_x
    units[lay.FACE_Y, i] = way_y
    if units[lay.WAY_X, i] != way_x or units[lay.WAY_Y, i] != way_y:
        units[lay.WAY_X, i] = way_x
        units[lay.WAY_Y, i] = way_y
        units[lay.FLAGS, i] |= lay.TURNING
