"""What a walker makes of the unit it has run into."""

from __future__ import annotations

from muster.compile import kernel, leaf
from muster.envs.battle import layout as lay
from muster.envs.battle.geometry import boxes_meet, direction, gap, wrap
from muster.envs.battle.layout import Int32s, Int64s
from muster.envs.battle.movement import at_target
from muster.envs.battle.paths import blocked_at

_STUBBORN = 30  # blocked frames after which a walker counts as standing


@leaf
def _side_of(units: Int32s, types: Int64s, i: int, j: int) -> int:
    """On which side of unit i unit j is: 0 above, 1 right, 2 below, 3 left."""
    a = units[lay.TYPE, i]
    b = units[lay.TYPE, j]
    dx = units[lay.PX, j] - units[lay.PX, i]
    dy = units[lay.PY, j] - units[lay.PY, i]
    if dx + types[b, lay.T_RIGHT] < -types[a, lay.T_LEFT]:
        return 3
    if dx - types[b, lay.T_LEFT] > types[a, lay.T_RIGHT]:
        return 1
    return 0 if dy < 0 else 2


@leaf
def _slide_direction(units: Int32s, types: Int64s, counters: Int64s, i: int, j: int) -> int:
    """The cardinal direction in which to slide along standing unit j to a free corner of it; -1 if there is none."""
    wanted = direction(units[lay.WAY_X, i] - units[lay.PX, i], units[lay.WAY_Y, i] - units[lay.PY, i])
    if abs(wrap(wanted - units[lay.CURRENT_DIR, i])) >= 80:
        return -1
    a = units[lay.TYPE, i]
    b = units[lay.TYPE, j]
    left = units[lay.PX, j] - types[b, lay.T_LEFT] - types[a, lay.T_RIGHT] - 1
    right = units[lay.PX, j] + types[b, lay.T_RIGHT] + types[a, lay.T_LEFT] + 1
    up = units[lay.PY, j] - types[b, lay.T_UP] - types[a, lay.T_DOWN] - 1
    down = units[lay.PY, j] + types[b, lay.T_DOWN] + types[a, lay.T_UP] + 1
    side = _side_of(units, types, i, j)
    quadrant = wanted // 64
    x = left if side == 1 else right
    y = up if side == 2 else down
    slide = -1
    if side == 0:
        slide = 192 if quadrant == 3 else 64 if quadrant == 0 else -1
    elif side == 1:
        slide = 0 if quadrant == 0 else 128 if quadrant == 1 else -1
    elif side == 2:
        slide = 64 if quadrant == 1 else 192 if quadrant == 2 else -1
    else:
        slide = 128 if quadrant == 2 else 0 if quadrant == 3 else -1
    if slide < 0:
        return -1
    for _ in range(2):
        if slide == 0:
            y = up
        elif slide == 128:
            y = down
        elif slide == 64:
            x = right
        else:
            x = left
        if not blocked_at(units, types, counters, i, x, y, False):
            return slide
        slide = (slide + 128) & 255
    return -1


# What to do about a collision.
STAY, STAY_IMMOVABLE, REPATH, REPATH_MOVERS, TURN_AND_START, WAIT_FREE, SLIDE_FREE = range(7)


@leaf
def _going_away(units: Int32s, types: Int64s, i: int, c: int) -> bool:
    """Whether unit c, in the way of i, moves out of it."""
    heading = units[lay.VELOCITY_DIR, c]
    side = _side_of(units, types, i, c)
    if side == 0:
        return heading <= 64 or heading >= 192
    if side == 1:
        return heading <= 128
    if side == 2:
        return 64 <= heading <= 192
    return heading == 0 or heading >= 128


@kernel
def diagnose(units: Int32s, types: Int64s, counters: Int64s, i: int, c: int) -> int:
    """Choose what unit i does about having run into c; may set the slide direction."""
    target_unit = units[lay.TARGET_UNIT, i]
    if target_unit >= 0 and gap(units, types, i, target_unit) == 0:
        return STAY
    a = units[lay.TYPE, i]
    b = units[lay.TYPE, c]
    tx = units[lay.TARGET_X, i]
    ty = units[lay.TARGET_Y, i]
    wx = units[lay.WAY_X, i]
    wy = units[lay.WAY_Y, i]
    if boxes_meet(types, b, units[lay.PX, c], units[lay.PY, c], a, tx, ty):
        if units[lay.BLOCKED, c] >= _STUBBORN or boxes_meet(
            types, b, units[lay.TARGET_X, c], units[lay.TARGET_Y, c], a, tx, ty
        ):
            return REPATH if target_unit >= 0 else STAY_IMMOVABLE
    elif not boxes_meet(types, b, units[lay.PX, c], units[lay.PY, c], a, wx, wy):
        if units[lay.FLAGS, c] & lay.MOVING:
            if _going_away(units, types, i, c):
                return WAIT_FREE
            if units[lay.BLOCKED, c] <= 2 and not at_target(units, c):
                if units[lay.STATE, c] == lay.FOLLOW:
                    return WAIT_FREE
                if units[lay.STATE, c] != lay.WAIT:
                    return REPATH_MOVERS
        slide = _slide_direction(units, types, counters, i, c)
        if slide < 0:
            return TURN_AND_START
        units[lay.SLIDE_DIR, i] = slide
        return SLIDE_FREE
    elif units[lay.BLOCKED, c] >= _STUBBORN or boxes_meet(
        types, b, units[lay.TARGET_X, c], units[lay.TARGET_Y, c], a, wx, wy
    ):
        return REPATH
    ahead = direction(units[lay.PX, c] - units[lay.PX, i], units[lay.PY, c] - units[lay.PY, i])
    # The engine leaves headings from 224 on at "up".
    course = ((units[lay.VELOCITY_DIR, c] + 32) // 64 * 64) & 255
    return REPATH_MOVERS if abs(wrap(course - ahead)) > 64 else WAIT_FREE
