"""Ground movement: a small state machine that never lets two boxes overlap."""

from __future__ import annotations

from muster.envs.battle.geometry import UNIT_X, UNIT_Y, boxes_meet, direction, wrap
from muster.envs.battle.layout import (
    ALIVE,
    ANIMATION,
    BLOCKED,
    BRAKING,
    CURRENT_DIR,
    DELAY,
    DESIRED_DIR,
    FACE,
    FACE_X,
    FACE_Y,
    FIX,
    FLAGS,
    FOLLOW,
    FRAME,
    HAS_PATH,
    HEADING,
    HIT_SPEED,
    HIT_UNIT,
    IMMOVABLE,
    LIVE,
    MOVING,
    N_LIVE,
    NEW_TARGET,
    PATH_FRAME,
    PLAN_X,
    PLAN_Y,
    PX,
    PY,
    REST,
    SLIDE,
    SLIDE_DIR,
    SPEED,
    STANDING,
    START_DELAY,
    STATE,
    T_DOWN,
    T_LEFT,
    T_RIGHT,
    T_TOP,
    T_UP,
    TARGET_UNIT,
    TARGET_X,
    TARGET_Y,
    TURNING,
    TYPE,
    UNBREAKABLE,
    VELOCITY_DIR,
    WAIT,
    WAY_X,
    WAY_Y,
    Int32s,
    Int64s,
    X,
    Y,
    kernel,
)  # fmt: skip
from muster.envs.battle.movement import at_target, plan_step, stop_unit, take_step, turn_velocity, update_heading
from muster.envs.battle.paths import blocked_at, plan_path
from muster.envs.battle.settings import P_COLLISION, P_HALF_STEPS
from muster.rng import Seeds, below

_PATIENCE = 25  # blocked frames after which a waiting walker looks for another way
_STUBBORN = 30  # blocked frames after which a walker counts as standing
_REPLAN = 7  # frames between two plans that a collision may cause
_OLD_PATH = 150


@kernel
def _hit(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int) -> int:
    """The unit that the planned step would run into, the nearest if there are several; -1 if none."""
    if params[P_COLLISION] == 0:
        return -1
    x = units[PLAN_X, i] >> 8
    y = units[PLAN_Y, i] >> 8
    if x == units[PX, i] and y == units[PY, i]:
        return -1
    kind = units[TYPE, i]
    left = x - types[kind, T_LEFT]
    right = x + types[kind, T_RIGHT]
    top = y - types[kind, T_UP]
    bottom = y + types[kind, T_DOWN]
    found = -1
    nearest = 1 << 30
    for k in range(counters[N_LIVE]):
        j = units[LIVE, k]
        if j == i:
            continue
        jx = units[PX, j]
        other = units[TYPE, j]
        if jx - types[other, T_LEFT] > right or jx + types[other, T_RIGHT] < left:
            continue
        jy = units[PY, j]
        if jy - types[other, T_UP] > bottom or jy + types[other, T_DOWN] < top:
            continue
        way = abs(jx - x) + abs(jy - y)
        if way < nearest:
            nearest = way
            found = j
    return found


@kernel
def _calm_down(units: Int32s, i: int) -> None:
    if units[BLOCKED, i] > 2:
        units[BLOCKED, i] = 2
    elif units[BLOCKED, i] > 0:
        units[BLOCKED, i] -= 1


@kernel
def _give_up(units: Int32s, types: Int64s, params: Int64s, i: int, immovable: int) -> None:
    """Stop here for good; `immovable` lets the order know."""
    units[SPEED, i] = 0
    stop_unit(units, types, params, i)
    units[IMMOVABLE, i] = immovable
    units[START_DELAY, i] = 0
    units[HAS_PATH, i] = 0
    units[STATE, i] = REST


@kernel
def _interrupted(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int, new_path: bool
) -> int:
    """Deal with arrival or a new target: 0 nothing happened, 1 go on in the new state, 2 done for this frame."""
    if at_target(units, i) or units[FLAGS, i] & BRAKING:
        units[HAS_PATH, i] = 0
        units[WAY_X, i] = units[TARGET_X, i]
        units[WAY_Y, i] = units[TARGET_Y, i]
        units[STATE, i] = REST
        return 1
    colliding = units[STATE, i] == FIX or units[STATE, i] == WAIT or units[STATE, i] == SLIDE
    if units[HAS_PATH, i] == 0:
        if not new_path:
            return 0
        plan_path(units, types, params, counters, i, -1, False)
        units[STATE, i] = FACE if colliding else FOLLOW
        return 2
    if units[NEW_TARGET, i]:
        plan_path(units, types, params, counters, i, units[HIT_UNIT, i] if colliding else -1, False)
        units[STATE, i] = FACE if colliding else FOLLOW
        return 2 if colliding else 1
    return 0


@kernel
def _side_of(units: Int32s, types: Int64s, i: int, j: int) -> int:
    """On which side of unit i unit j is: 0 above, 1 right, 2 below, 3 left."""
    a = units[TYPE, i]
    b = units[TYPE, j]
    dx = units[PX, j] - units[PX, i]
    dy = units[PY, j] - units[PY, i]
    if dx + types[b, T_RIGHT] < -types[a, T_LEFT]:
        return 3
    if dx - types[b, T_LEFT] > types[a, T_RIGHT]:
        return 1
    return 0 if dy < 0 else 2


@kernel
def _slide_direction(units: Int32s, types: Int64s, counters: Int64s, i: int, j: int) -> int:
    """The cardinal direction in which to slide along standing unit j to a free corner of it; -1 if there is none."""
    wanted = direction(units[WAY_X, i] - units[PX, i], units[WAY_Y, i] - units[PY, i])
    if abs(wrap(wanted - units[CURRENT_DIR, i])) >= 80:
        return -1
    a = units[TYPE, i]
    b = units[TYPE, j]
    left = units[PX, j] - types[b, T_LEFT] - types[a, T_RIGHT] - 1
    right = units[PX, j] + types[b, T_RIGHT] + types[a, T_LEFT] + 1
    up = units[PY, j] - types[b, T_UP] - types[a, T_DOWN] - 1
    down = units[PY, j] + types[b, T_DOWN] + types[a, T_UP] + 1
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


@kernel
def _boxes_touch(units: Int32s, types: Int64s, i: int, j: int) -> bool:
    """Whether two units stand side by side without a pixel between them."""
    return boxes_meet(types, units[TYPE, i], units[PX, i] + 1, units[PY, i] + 1,
                      units[TYPE, j], units[PX, j], units[PY, j]) or boxes_meet(
        types, units[TYPE, i], units[PX, i] - 1, units[PY, i] - 1, units[TYPE, j], units[PX, j], units[PY, j]
    ) or boxes_meet(types, units[TYPE, i], units[PX, i] + 1, units[PY, i] - 1,
                    units[TYPE, j], units[PX, j], units[PY, j]) or boxes_meet(
        types, units[TYPE, i], units[PX, i] - 1, units[PY, i] + 1, units[TYPE, j], units[PX, j], units[PY, j]
    )  # fmt: skip


# What to do about a collision.
_STAY, _STAY_IMMOVABLE, _REPATH, _REPATH_MOVERS, _TURN_AND_START, _WAIT_FREE, _SLIDE_FREE = range(7)


@kernel
def _going_away(units: Int32s, types: Int64s, i: int, c: int) -> bool:
    """Whether unit c, in the way of i, moves out of it."""
    heading = units[VELOCITY_DIR, c]
    side = _side_of(units, types, i, c)
    if side == 0:
        return heading <= 64 or heading >= 192
    if side == 1:
        return heading <= 128
    if side == 2:
        return 64 <= heading <= 192
    return heading == 0 or heading >= 128


@kernel
def _diagnose(units: Int32s, types: Int64s, counters: Int64s, i: int, c: int) -> int:
    """Choose what unit i does about having run into c; may set the slide direction."""
    target_unit = units[TARGET_UNIT, i]
    if target_unit >= 0 and _boxes_touch(units, types, i, target_unit):
        return _STAY
    a = units[TYPE, i]
    b = units[TYPE, c]
    tx = units[TARGET_X, i]
    ty = units[TARGET_Y, i]
    wx = units[WAY_X, i]
    wy = units[WAY_Y, i]
    if boxes_meet(types, b, units[PX, c], units[PY, c], a, tx, ty):
        if units[BLOCKED, c] >= _STUBBORN or boxes_meet(types, b, units[TARGET_X, c], units[TARGET_Y, c], a, tx, ty):
            return _REPATH if target_unit >= 0 else _STAY_IMMOVABLE
    elif not boxes_meet(types, b, units[PX, c], units[PY, c], a, wx, wy):
        if units[FLAGS, c] & MOVING:
            if _going_away(units, types, i, c):
                return _WAIT_FREE
            if units[BLOCKED, c] <= 2 and not at_target(units, c):
                if units[STATE, c] == FOLLOW:
                    return _WAIT_FREE
                if units[STATE, c] != WAIT:
                    return _REPATH_MOVERS
        slide = _slide_direction(units, types, counters, i, c)
        if slide < 0:
            return _TURN_AND_START
        units[SLIDE_DIR, i] = slide
        return _SLIDE_FREE
    elif units[BLOCKED, c] >= _STUBBORN or boxes_meet(types, b, units[TARGET_X, c], units[TARGET_Y, c], a, wx, wy):
        return _REPATH
    ahead = direction(units[PX, c] - units[PX, i], units[PY, c] - units[PY, i])
    # The engine leaves headings from 224 on at "up".
    course = ((units[VELOCITY_DIR, c] + 32) // 64 * 64) & 255
    return _REPATH_MOVERS if abs(wrap(course - ahead)) > 64 else _WAIT_FREE


@kernel
def _stand_if_stuck(units: Int32s, i: int) -> None:
    """A walker that has been blocked for a while stops its walking animation."""
    if units[FLAGS, i] & MOVING and units[BLOCKED, i] > 2 and not units[UNBREAKABLE, i]:
        units[FLAGS, i] &= ~MOVING
        units[ANIMATION, i] = STANDING


@kernel
def _fix(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int) -> int:
    """State FIX: one frame in which a collision is dealt with. Returns as `_interrupted`."""
    change = _interrupted(units, types, params, counters, i, False)
    if change:
        return change
    units[BLOCKED, i] = min(units[BLOCKED, i] + 1, 255)
    c = units[HIT_UNIT, i]
    if c < 0 or units[ALIVE, c] == 0:
        units[STATE, i] = FOLLOW
        return 2
    cure = _diagnose(units, types, counters, i, c)
    replans = cure in (_REPATH, _REPATH_MOVERS, _TURN_AND_START)
    if replans and counters[FRAME] - units[PATH_FRAME, i] < _REPLAN:
        _stand_if_stuck(units, i)
    elif cure in (_STAY, _STAY_IMMOVABLE):
        _give_up(units, types, params, i, 1 if cure == _STAY_IMMOVABLE else 0)
    elif cure == _REPATH:
        plan_path(units, types, params, counters, i, c, False)
        units[STATE, i] = FOLLOW
    elif cure == _REPATH_MOVERS:
        plan_path(units, types, params, counters, i, c, True)
        units[STATE, i] = FACE
    elif cure == _TURN_AND_START:
        units[SPEED, i] = 0
        plan_path(units, types, params, counters, i, c, False)
        units[STATE, i] = FACE
    elif cure == _WAIT_FREE:
        units[STATE, i] = WAIT
    else:
        units[STATE, i] = SLIDE
    return 2


@kernel
def _wait(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, rng: Seeds, i: int) -> int:
    """State WAIT: try the blocked step again; after long enough look for another way."""
    units[BLOCKED, i] = min(units[BLOCKED, i] + 1, 255)
    change = _interrupted(units, types, params, counters, i, True)
    if change:
        return change
    units[SPEED, i] = units[HIT_SPEED, i]
    plan_step(units, types, i)
    if _hit(units, types, params, counters, i) < 0:
        take_step(units, types, i)
        units[STATE, i] = FOLLOW
        return 2
    _stand_if_stuck(units, i)
    units[SPEED, i] = 0
    if units[VELOCITY_DIR, i] != direction(units[WAY_X, i] - units[PX, i], units[WAY_Y, i] - units[PY, i]):
        update_heading(units, types, i)
    if units[BLOCKED, i] >= _PATIENCE:
        plan_path(units, types, params, counters, i, -1, below(rng, 0, 2) == 0)
        units[STATE, i] = FACE
    return 2


@kernel
def _slide(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int) -> int:
    """State SLIDE: along the edge of a standing unit, pixel by pixel, until the way is free of it."""
    units[BLOCKED, i] = min(units[BLOCKED, i] + 1, 255)
    change = _interrupted(units, types, params, counters, i, True)
    if change:
        return change
    slide = units[SLIDE_DIR, i]
    units[FLAGS, i] |= TURNING
    units[DESIRED_DIR, i] = slide
    units[CURRENT_DIR, i] = turn_velocity(units, types, i, slide)
    update_heading(units, types, i)
    course = units[VELOCITY_DIR, i]
    reach = types[units[TYPE, i], T_TOP]
    obstacle = units[HIT_UNIT, i]
    speed = reach
    stuck = False
    free = False
    while speed > 0:
        pixel = min(speed, 256)
        units[PLAN_X, i] = units[X, i] + ((UNIT_X[slide] * pixel) >> 8)
        units[PLAN_Y, i] = units[Y, i] + ((UNIT_Y[slide] * pixel) >> 8)
        if _hit(units, types, params, counters, i) >= 0:
            stuck = True
            break
        units[X, i] = units[PLAN_X, i]
        units[Y, i] = units[PLAN_Y, i]
        units[PX, i] = units[X, i] >> 8
        units[PY, i] = units[Y, i] >> 8
        wanted = direction(units[WAY_X, i] - units[PX, i], units[WAY_Y, i] - units[PY, i])
        heading = turn_velocity(units, types, i, wanted)
        units[PLAN_X, i] = units[X, i] + ((UNIT_X[heading] * reach) >> 8)
        units[PLAN_Y, i] = units[Y, i] + ((UNIT_Y[heading] * reach) >> 8)
        now = _hit(units, types, params, counters, i)
        if now != obstacle:
            free = now < 0
            break
        speed -= 256
    units[VELOCITY_DIR, i] = course
    units[CURRENT_DIR, i] = course
    units[SPEED, i] = reach
    if stuck:
        units[SPEED, i] = 0
        plan_path(units, types, params, counters, i, -1, False)
        units[STATE, i] = FACE
    elif free:
        units[FLAGS, i] |= TURNING
        if counters[FRAME] - units[PATH_FRAME, i] < _OLD_PATH:
            units[STATE, i] = FOLLOW
        else:
            plan_path(units, types, params, counters, i, -1, False)
            units[STATE, i] = FACE
    return 2


@kernel
def _follow(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int) -> int:
    """State FOLLOW: walk towards the waypoint, or meet an obstacle."""
    change = _interrupted(units, types, params, counters, i, True)
    if change:
        return change
    if units[PX, i] == units[WAY_X, i] and units[PY, i] == units[WAY_Y, i]:
        plan_path(units, types, params, counters, i, -1, False)
    speed = units[SPEED, i]
    plan_step(units, types, i)
    c = _hit(units, types, params, counters, i)
    if c >= 0 and params[P_HALF_STEPS]:
        dx = units[PLAN_X, i] - units[X, i]
        dy = units[PLAN_Y, i] - units[Y, i]
        if dx >= 32 or dy >= 32:
            for part in range(1, 3):
                units[PLAN_X, i] = units[X, i] + (dx >> part)
                units[PLAN_Y, i] = units[Y, i] + (dy >> part)
                if _hit(units, types, params, counters, i) < 0:
                    c = -1
                    break
    if c >= 0:
        units[HIT_UNIT, i] = c
        units[HIT_SPEED, i] = speed
        units[STATE, i] = FIX
        return 1
    if units[PX, i] != units[PLAN_X, i] >> 8 or units[PY, i] != units[PLAN_Y, i] >> 8:
        _calm_down(units, i)
    take_step(units, types, i)
    return 2


@kernel
def _face(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int) -> int:
    """State FACE: turn towards the waypoint before walking on."""
    change = _interrupted(units, types, params, counters, i, True)
    if change:
        return change
    if units[VELOCITY_DIR, i] == direction(units[WAY_X, i] - units[PX, i], units[WAY_Y, i] - units[PY, i]):
        units[STATE, i] = FOLLOW
        return 1
    plan_step(units, types, i)
    update_heading(units, types, i)
    return 2


@kernel
def _rest(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, rng: Seeds, i: int) -> int:
    """State REST: face what is to be faced; set off when there is somewhere to go."""
    arrived = at_target(units, i)
    turning = False
    if arrived:
        units[BLOCKED, i] = 0
        turning = units[FLAGS, i] & MOVING != 0
        if not turning and (units[PX, i] != units[FACE_X, i] or units[PY, i] != units[FACE_Y, i]):
            wanted = direction(units[FACE_X, i] - units[PX, i], units[FACE_Y, i] - units[PY, i])
            turning = units[HEADING, i] != wanted or units[VELOCITY_DIR, i] != wanted
    else:
        _calm_down(units, i)
    if turning or units[FLAGS, i] & BRAKING:
        plan_step(units, types, i)
        take_step(units, types, i)
    elif arrived:
        units[SPEED, i] = 0
        units[FACE_X, i] = units[PX, i]
        units[FACE_Y, i] = units[PY, i]
        return 2
    if arrived:
        return 2
    plan_path(units, types, params, counters, i, -1, False)
    units[STATE, i] = FOLLOW
    if units[START_DELAY, i] > 0:
        units[START_DELAY, i] = below(rng, 0, 3)
        units[STATE, i] = DELAY
    return 1


@kernel
def move_walker(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, rng: Seeds, i: int) -> None:
    """One frame of a ground unit."""
    # A chain of states within one frame is short; the bound only guards against a cycle.
    for _ in range(8):
        state = units[STATE, i]
        if state == REST:
            outcome = _rest(units, types, params, counters, rng, i)
        elif state == FOLLOW:
            outcome = _follow(units, types, params, counters, i)
        elif state == FIX:
            outcome = _fix(units, types, params, counters, i)
        elif state == WAIT:
            outcome = _wait(units, types, params, counters, rng, i)
        elif state == SLIDE:
            outcome = _slide(units, types, params, counters, i)
        elif state == FACE:
            outcome = _face(units, types, params, counters, i)
        else:
            outcome = _interrupted(units, types, params, counters, i, True)
            if outcome == 0:
                if units[START_DELAY, i] == 0:
                    units[STATE, i] = FOLLOW
                    outcome = 1
                else:
                    units[START_DELAY, i] -= 1
                    outcome = 2
        if outcome == 2:
            return
