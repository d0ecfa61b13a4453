"""Ground movement: a small state machine that never lets two boxes overlap."""

from __future__ import annotations

from muster.compile import glue, kernel, leaf
from muster.envs.battle import layout as lay
from muster.envs.battle.geometry import UNIT_X, UNIT_Y, direction
from muster.envs.battle.layout import Int32s, Int64s
from muster.envs.battle.movement import at_target, plan_step, stop_unit, take_step, turn_velocity, update_heading
from muster.envs.battle.obstruction import (
    REPATH,
    REPATH_MOVERS,
    STAY,
    STAY_IMMOVABLE,
    TURN_AND_START,
    WAIT_FREE,
    diagnose,
)
from muster.envs.battle.paths import plan_path
from muster.envs.battle.settings import P_COLLISION, P_HALF_STEPS
from muster.rng import Seeds, below

_PATIENCE = 25  # blocked frames after which a waiting walker looks for another way
_REPLAN = 7  # frames between two plans that a collision may cause
_OLD_PATH = 150


@leaf
def _hit(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int) -> int:
    """The unit that the planned step would run into, the nearest if there are several; -1 if none."""
    if params[P_COLLISION] == 0:
        return -1
    x = units[lay.PLAN_X, i] >> 8
    y = units[lay.PLAN_Y, i] >> 8
    if x == units[lay.PX, i] and y == units[lay.PY, i]:
        return -1
    kind = units[lay.TYPE, i]
    left = x - types[kind, lay.T_LEFT]
    right = x + types[kind, lay.T_RIGHT]
    top = y - types[kind, lay.T_UP]
    bottom = y + types[kind, lay.T_DOWN]
    found = -1
    nearest = 1 << 30
    for k in range(counters[lay.N_LIVE]):
        j = units[lay.LIVE, k]
        if j == i:
            continue
        jx = units[lay.PX, j]
        other = units[lay.TYPE, j]
        if jx - types[other, lay.T_LEFT] > right or jx + types[other, lay.T_RIGHT] < left:
            continue
        jy = units[lay.PY, j]
        if jy - types[other, lay.T_UP] > bottom or jy + types[other, lay.T_DOWN] < top:
            continue
        way = abs(jx - x) + abs(jy - y)
        if way < nearest:
            nearest = way
            found = j
    return found


@leaf
def _calm_down(units: Int32s, i: int) -> None:
    if units[lay.BLOCKED, i] > 2:
        units[lay.BLOCKED, i] = 2
    elif units[lay.BLOCKED, i] > 0:
        units[lay.BLOCKED, i] -= 1


@leaf
def _give_up(units: Int32s, types: Int64s, params: Int64s, i: int, immovable: int) -> None:
    """Stop here for good; `immovable` lets the order know."""
    units[lay.SPEED, i] = 0
    stop_unit(units, types, params, i)
    units[lay.IMMOVABLE, i] = immovable
    units[lay.START_DELAY, i] = 0
    units[lay.HAS_PATH, i] = 0
    units[lay.STATE, i] = lay.REST


@leaf
def _interrupted(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int, new_path: bool) -> int:
    """Deal with arrival or a new target: 0 nothing happened, 1 go on in the new state, 2 done for this frame."""
    if at_target(units, i) or units[lay.FLAGS, i] & lay.BRAKING:
        units[lay.HAS_PATH, i] = 0
        units[lay.WAY_X, i] = units[lay.TARGET_X, i]
        units[lay.WAY_Y, i] = units[lay.TARGET_Y, i]
        units[lay.STATE, i] = lay.REST
        return 1
    colliding = units[lay.STATE, i] == lay.FIX or units[lay.STATE, i] == lay.WAIT or units[lay.STATE, i] == lay.SLIDE
    if units[lay.HAS_PATH, i] == 0:
        if not new_path:
            return 0
        plan_path(units, types, params, counters, i, -1, False)
        units[lay.STATE, i] = lay.FACE if colliding else lay.FOLLOW
        return 2
    if units[lay.NEW_TARGET, i]:
        plan_path(units, types, params, counters, i, units[lay.HIT_UNIT, i] if colliding else -1, False)
        units[lay.STATE, i] = lay.FACE if colliding else lay.FOLLOW
        return 2 if colliding else 1
    return 0


@leaf
def _stand_if_stuck(units: Int32s, i: int) -> None:
    """A walker that has been blocked for a while stops its walking animation."""
    if units[lay.FLAGS, i] & lay.MOVING and units[lay.BLOCKED, i] > 2 and not units[lay.UNBREAKABLE, i]:
        units[lay.FLAGS, i] &= ~lay.MOVING
        units[lay.ANIMATION, i] = lay.STANDING


@leaf
def _fix(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int) -> int:
    """State FIX: one frame in which a collision is dealt with. Returns as `_interrupted`."""
    change = _interrupted(units, types, params, counters, i, False)
    if change:
        return change
    units[lay.BLOCKED, i] = min(units[lay.BLOCKED, i] + 1, 255)
    c = units[lay.HIT_UNIT, i]
    if c < 0 or units[lay.ALIVE, c] == 0:
        units[lay.STATE, i] = lay.FOLLOW
        return 2
    cure = diagnose(units, types, counters, i, c)
    replans = cure in (REPATH, REPATH_MOVERS, TURN_AND_START)
    if replans and counters[lay.FRAME] - units[lay.PATH_FRAME, i] < _REPLAN:
        _stand_if_stuck(units, i)
    elif cure in (STAY, STAY_IMMOVABLE):
        _give_up(units, types, params, i, 1 if cure == STAY_IMMOVABLE else 0)
    elif cure == REPATH:
        plan_path(units, types, params, counters, i, c, False)
        units[lay.STATE, i] = lay.FOLLOW
    elif cure == REPATH_MOVERS:
        plan_path(units, types, params, counters, i, c, True)
        units[lay.STATE, i] = lay.FACE
    elif cure == TURN_AND_START:
        units[lay.SPEED, i] = 0
        plan_path(units, types, params, counters, i, c, False)
        units[lay.STATE, i] = lay.FACE
    elif cure == WAIT_FREE:
        units[lay.STATE, i] = lay.WAIT
    else:
        units[lay.STATE, i] = lay.SLIDE
    return 2


@leaf
def _wait(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, rng: Seeds, i: int) -> int:
    """State WAIT: try the blocked step again; after long enough look for another way."""
    units[lay.BLOCKED, i] = min(units[lay.BLOCKED, i] + 1, 255)
    change = _interrupted(units, types, params, counters, i, True)
    if change:
        return change
    units[lay.SPEED, i] = units[lay.HIT_SPEED, i]
    plan_step(units, types, i)
    if _hit(units, types, params, counters, i) < 0:
        take_step(units, types, i)
        units[lay.STATE, i] = lay.FOLLOW
        return 2
    _stand_if_stuck(units, i)
    units[lay.SPEED, i] = 0
    if units[lay.VELOCITY_DIR, i] != direction(
        units[lay.WAY_X, i] - units[lay.PX, i], units[lay.WAY_Y, i] - units[lay.PY, i]
    ):
        update_heading(units, types, i)
    if units[lay.BLOCKED, i] >= _PATIENCE:
        plan_path(units, types, params, counters, i, -1, below(rng, 0, 2) == 0)
        units[lay.STATE, i] = lay.FACE
    return 2


@kernel
def _slide(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int) -> int:
    """State SLIDE: along the edge of a standing unit, pixel by pixel, until the way is free of it."""
    units[lay.BLOCKED, i] = min(units[lay.BLOCKED, i] + 1, 255)
    change = _interrupted(units, types, params, counters, i, True)
    if change:
        return change
    slide = units[lay.SLIDE_DIR, i]
    units[lay.FLAGS, i] |= lay.TURNING
    units[lay.DESIRED_DIR, i] = slide
    units[lay.CURRENT_DIR, i] = turn_velocity(units, types, i, slide)
    update_heading(units, types, i)
    course = units[lay.VELOCITY_DIR, i]
    reach = types[units[lay.TYPE, i], lay.T_TOP]
    obstacle = units[lay.HIT_UNIT, i]
    speed = reach
    stuck = False
    free = False
    while speed > 0:
        pixel = min(speed, 256)
        units[lay.PLAN_X, i] = units[lay.X, i] + ((UNIT_X[slide] * pixel) >> 8)
        units[lay.PLAN_Y, i] = units[lay.Y, i] + ((UNIT_Y[slide] * pixel) >> 8)
        if _hit(units, types, params, counters, i) >= 0:
            stuck = True
            break
        units[lay.X, i] = units[lay.PLAN_X, i]
        units[lay.Y, i] = units[lay.PLAN_Y, i]
        units[lay.PX, i] = units[lay.X, i] >> 8
        units[lay.PY, i] = units[lay.Y, i] >> 8
        wanted = direction(units[lay.WAY_X, i] - units[lay.PX, i], units[lay.WAY_Y, i] - units[lay.PY, i])
        heading = turn_velocity(units, types, i, wanted)
        units[lay.PLAN_X, i] = units[lay.X, i] + ((UNIT_X[heading] * reach) >> 8)
        units[lay.PLAN_Y, i] = units[lay.Y, i] + ((UNIT_Y[heading] * reach) >> 8)
        now = _hit(units, types, params, counters, i)
        if now != obstacle:
            free = now < 0
            break
        speed -= 256
    units[lay.VELOCITY_DIR, i] = course
    units[lay.CURRENT_DIR, i] = course
    units[lay.SPEED, i] = reach
    if stuck:
        units[lay.SPEED, i] = 0
        plan_path(units, types, params, counters, i, -1, False)
        units[lay.STATE, i] = lay.FACE
    elif free:
        units[lay.FLAGS, i] |= lay.TURNING
        if counters[lay.FRAME] - units[lay.PATH_FRAME, i] < _OLD_PATH:
            units[lay.STATE, i] = lay.FOLLOW
        else:
            plan_path(units, types, params, counters, i, -1, False)
            units[lay.STATE, i] = lay.FACE
    return 2


@leaf
def _follow(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int) -> int:
    """State FOLLOW: walk towards the waypoint, or meet an obstacle."""
    change = _interrupted(units, types, params, counters, i, True)
    if change:
        return change
    if units[lay.PX, i] == units[lay.WAY_X, i] and units[lay.PY, i] == units[lay.WAY_Y, i]:
        plan_path(units, types, params, counters, i, -1, False)
    speed = units[lay.SPEED, i]
    plan_step(units, types, i)
    c = _hit(units, types, params, counters, i)
    if c >= 0 and params[P_HALF_STEPS]:
        dx = units[lay.PLAN_X, i] - units[lay.X, i]
        dy = units[lay.PLAN_Y, i] - units[lay.Y, i]
        if dx >= 32 or dy >= 32:
            for part in range(1, 3):
                units[lay.PLAN_X, i] = units[lay.X, i] + (dx >> part)
                units[lay.PLAN_Y, i] = units[lay.Y, i] + (dy >> part)
                if _hit(units, types, params, counters, i) < 0:
                    c = -1
                    break
    if c >= 0:
        units[lay.HIT_UNIT, i] = c
        units[lay.HIT_SPEED, i] = speed
        units[lay.STATE, i] = lay.FIX
        return 1
    if units[lay.PX, i] != units[lay.PLAN_X, i] >> 8 or units[lay.PY, i] != units[lay.PLAN_Y, i] >> 8:
        _calm_down(units, i)
    take_step(units, types, i)
    return 2


@leaf
def _face(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, i: int) -> int:
    """State FACE: turn towards the waypoint before walking on."""
    change = _interrupted(units, types, params, counters, i, True)
    if change:
        return change
    if units[lay.VELOCITY_DIR, i] == direction(
        units[lay.WAY_X, i] - units[lay.PX, i], units[lay.WAY_Y, i] - units[lay.PY, i]
    ):
        units[lay.STATE, i] = lay.FOLLOW
        return 1
    plan_step(units, types, i)
    update_heading(units, types, i)
    return 2


@leaf
def _rest(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, rng: Seeds, i: int) -> int:
    """State REST: face what is to be faced; set off when there is somewhere to go."""
    arrived = at_target(units, i)
    turning = False
    if arrived:
        units[lay.BLOCKED, i] = 0
        turning = units[lay.FLAGS, i] & lay.MOVING != 0
        if not turning and (units[lay.PX, i] != units[lay.FACE_X, i] or units[lay.PY, i] != units[lay.FACE_Y, i]):
            wanted = direction(units[lay.FACE_X, i] - units[lay.PX, i], units[lay.FACE_Y, i] - units[lay.PY, i])
            turning = units[lay.HEADING, i] != wanted or units[lay.VELOCITY_DIR, i] != wanted
    else:
        _calm_down(units, i)
    if turning or units[lay.FLAGS, i] & lay.BRAKING:
        plan_step(units, types, i)
        take_step(units, types, i)
    elif arrived:
        units[lay.SPEED, i] = 0
        units[lay.FACE_X, i] = units[lay.PX, i]
        units[lay.FACE_Y, i] = units[lay.PY, i]
        return 2
    if arrived:
        return 2
    plan_path(units, types, params, counters, i, -1, False)
    units[lay.STATE, i] = lay.FOLLOW
    if units[lay.START_DELAY, i] > 0:
        units[lay.START_DELAY, i] = below(rng, 0, 3)
        units[lay.STATE, i] = lay.DELAY
    return 1


@glue
def move_walker(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, rng: Seeds, i: int) -> None:
    """One frame of a ground unit."""
    # A chain of states within one frame is short; the bound only guards against a cycle.
    for _ in range(8):
        state = units[lay.STATE, i]
        if state == lay.REST:
            outcome = _rest(units, types, params, counters, rng, i)
        elif state == lay.FOLLOW:
            outcome = _follow(units, types, params, counters, i)
        elif state == lay.FIX:
            outcome = _fix(units, types, params, counters, i)
        elif state == lay.WAIT:
            outcome = _wait(units, types, params, counters, rng, i)
        elif state == lay.SLIDE:
            outcome = _slide(units, types, params, counters, i)
        elif state == lay.FACE:
            outcome = _face(units, types, params, counters, i)
        else:
            outcome = _interrupted(units, types, params, counters, i, True)
            if outcome == 0:
                if units[lay.START_DELAY, i] == 0:
                    units[lay.STATE, i] = lay.FOLLOW
                    outcome = 1
                else:
                    units[lay.START_DELAY, i] -= 1
                    outcome = 2
        if outcome == 2:
            return
