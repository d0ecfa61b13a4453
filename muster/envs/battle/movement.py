"""How one unit turns, speeds up and steps; how flyers push each other apart."""

from __future__ import annotations

from muster.envs.battle.geometry import UNIT_X, UNIT_Y, direction, length, wrap
from muster.envs.battle.layout import (
    ANIMATION,
    ATTACKING,
    BRAKING,
    CELL,
    CELL_SIZE,
    CELLS,
    CHASE_TIMER,
    CURRENT_DIR,
    CURRENT_SPEED,
    DESIRED_DIR,
    FACE_X,
    FACE_Y,
    FLAGS,
    HEADING,
    IMMOVABLE,
    MOVING,
    NEW_TARGET,
    NOTHING,
    PLAN_EVENT,
    PLAN_FLAGS,
    PLAN_SPEED,
    PLAN_X,
    PLAN_Y,
    PUSH_COUNT,
    PUSH_DIR,
    PX,
    PY,
    SPEED,
    STANDING,
    STARTS,
    STOPS,
    T_ACCEL,
    T_FLYER,
    T_HALT,
    T_TOP,
    T_TURN,
    T_WALK,
    TARGET_UNIT,
    TARGET_X,
    TARGET_Y,
    TURNING,
    TYPE,
    UNBREAKABLE,
    VELOCITY_DIR,
    WALK_STEP,
    WALKING,
    WAY_X,
    WAY_Y,
    Int16s,
    Int32s,
    Int64s,
    X,
    Y,
    kernel,
)  # fmt: skip
from muster.envs.battle.settings import P_CHASE, P_REPULSION

_STILL = 192  # 1/256 px a frame: a flyer at its target and slower than this stands


@kernel
def at_target(units: Int32s, i: int) -> bool:
    """Whether the unit stands on its move target."""
    return units[PX, i] == units[TARGET_X, i] and units[PY, i] == units[TARGET_Y, i]


@kernel
def halt_distance(units: Int32s, types: Int64s, i: int) -> int:
    """Way the unit still makes when it brakes now, in 1/256 px; 0 for walkers."""
    kind = units[TYPE, i]
    speed = units[SPEED, i]
    if types[kind, T_FLYER] == 0 or speed == 0:
        return 0
    if speed == types[kind, T_TOP]:
        return types[kind, T_HALT]
    return speed * speed // types[kind, T_ACCEL] // 2


@kernel
def set_move_target(units: Int32s, params: Int64s, i: int, x: int, y: int, unit: int) -> None:
    """Send the unit to a point, or to where `unit` (>= 0) stands; nothing happens if it is already under way there."""
    if units[TARGET_X, i] == x and units[TARGET_Y, i] == y and (unit < 0 or units[TARGET_UNIT, i] == unit):
        if unit >= 0:
            units[IMMOVABLE, i] = 0
        return
    units[NEW_TARGET, i] = 1
    units[TARGET_X, i] = x
    units[TARGET_Y, i] = y
    units[TARGET_UNIT, i] = unit
    units[WAY_X, i] = x
    units[WAY_Y, i] = y
    units[FLAGS, i] = (units[FLAGS, i] & ~BRAKING) | TURNING
    units[IMMOVABLE, i] = 0
    units[CHASE_TIMER, i] = params[P_CHASE]


@kernel
def stop_unit(units: Int32s, types: Int64s, params: Int64s, i: int) -> None:
    """Stay here; a flyer under way heads for the point at which it can halt."""
    units[CHASE_TIMER, i] = params[P_CHASE]
    if units[FLAGS, i] & BRAKING:
        return
    x = units[PX, i]
    y = units[PY, i]
    if units[FLAGS, i] & MOVING and types[units[TYPE, i], T_FLYER]:
        way = halt_distance(units, types, i)
        heading = units[VELOCITY_DIR, i]
        x = (units[X, i] + ((UNIT_X[heading] * way) >> 8)) >> 8
        y = (units[Y, i] + ((UNIT_Y[heading] * way) >> 8)) >> 8
        if x != units[PX, i] or y != units[PY, i]:
            units[FLAGS, i] |= BRAKING
    units[TARGET_X, i] = x
    units[TARGET_Y, i] = y
    units[TARGET_UNIT, i] = -1
    units[WAY_X, i] = x
    units[WAY_Y, i] = y


@kernel
def turn_velocity(units: Int32s, types: Int64s, i: int, desired: int) -> int:
    """Velocity direction after one frame's turn towards `desired`; flyers swing it at half their turn rate."""
    kind = units[TYPE, i]
    rate = types[kind, T_TURN]
    if types[kind, T_FLYER]:
        rate = rate // 2
    turn = min(max(wrap(desired - units[VELOCITY_DIR, i]), -rate), rate)
    return (units[VELOCITY_DIR, i] + turn) & 255


@kernel
def _towards_waypoint(units: Int32s, i: int) -> int:
    x = units[PX, i]
    y = units[PY, i]
    if x != units[WAY_X, i] or y != units[WAY_Y, i]:
        return direction(units[WAY_X, i] - x, units[WAY_Y, i] - y)
    if x != units[FACE_X, i] or y != units[FACE_Y, i]:
        return direction(units[FACE_X, i] - x, units[FACE_Y, i] - y)
    return units[HEADING, i]


@kernel
def _flying_speed(units: Int32s, types: Int64s, i: int) -> int:
    """Speed of a flyer in this frame: accelerate unless it must brake for its waypoint."""
    kind = units[TYPE, i]
    speed = units[SPEED, i]
    way = length(units[WAY_X, i] - units[PX, i], units[WAY_Y, i] - units[PY, i])
    faster = units[CURRENT_DIR, i] == units[DESIRED_DIR, i] or way >= 32
    if not faster:
        turn = types[kind, T_TURN]
        error = abs(wrap(units[DESIRED_DIR, i] - units[CURRENT_DIR, i]))
        turning_way = ((error * 2 + turn - 1) * speed // turn) >> 8
        faster = turning_way * 3 // 2 <= way
    if faster:
        exact_way = length(units[WAY_X, i] * 256 - units[X, i], units[WAY_Y, i] * 256 - units[Y, i])
        faster = halt_distance(units, types, i) < exact_way
    speed += types[kind, T_ACCEL] if faster else -types[kind, T_ACCEL]
    return min(max(speed, 0), types[kind, T_TOP])


@kernel
def plan_step(units: Int32s, types: Int64s, i: int) -> None:
    """Work out this frame's step into the PLAN rows (and CURRENT and DESIRED); position and flags stay."""
    flyer = types[units[TYPE, i], T_FLYER] != 0
    desired = _towards_waypoint(units, i)
    units[DESIRED_DIR, i] = desired
    units[CURRENT_DIR, i] = turn_velocity(units, types, i, desired)
    flags = units[FLAGS, i]
    arrived = at_target(units, i)
    speed = units[SPEED, i]
    if flyer:
        if arrived and speed < _STILL:
            flags &= ~BRAKING
            speed = 0
        else:
            speed = _flying_speed(units, types, i)
    elif arrived:
        flags &= ~BRAKING
        speed = 0
    elif flags & TURNING and abs(wrap(units[HEADING, i] - desired)) >= 32:
        # Too far off the mark: turn on the spot first.
        flags &= ~(MOVING | BRAKING)
        speed = 0
    event = NOTHING
    if not arrived:
        if not flags & MOVING:
            if flyer or not flags & ATTACKING:
                flags |= MOVING
            if not flags & ATTACKING:
                event = STARTS
    elif flags & MOVING:
        flags &= ~MOVING
        if not flags & ATTACKING:
            event = STOPS
    units[PLAN_X, i] = units[X, i]
    units[PLAN_Y, i] = units[Y, i]
    units[PLAN_SPEED, i] = speed
    if flags & MOVING and speed:
        way_x = units[WAY_X, i] * 256
        way_y = units[WAY_Y, i] * 256
        if speed >= length(way_x - units[X, i], way_y - units[Y, i]):
            units[PLAN_X, i] = way_x
            units[PLAN_Y, i] = way_y
        else:
            heading = units[CURRENT_DIR, i]
            units[PLAN_X, i] += (UNIT_X[heading] * speed) >> 8
            units[PLAN_Y, i] += (UNIT_Y[heading] * speed) >> 8
        if not flyer:
            # A walker's speed lasts one frame: its animation sets the next.
            speed = 0
    units[CURRENT_SPEED, i] = speed
    units[PLAN_FLAGS, i] = flags
    units[PLAN_EVENT, i] = event


@kernel
def update_heading(units: Int32s, types: Int64s, i: int) -> None:
    """Take over the velocity direction, and turn the body unless the unit moves straight on."""
    units[VELOCITY_DIR, i] = units[CURRENT_DIR, i]
    if units[FLAGS, i] & MOVING and not units[FLAGS, i] & TURNING:
        return
    rate = types[units[TYPE, i], T_TURN]
    desired = units[DESIRED_DIR, i]
    turn = min(max(wrap(desired - units[HEADING, i]), -rate), rate)
    units[HEADING, i] = (units[HEADING, i] + turn) & 255
    if units[VELOCITY_DIR, i] == desired and units[HEADING, i] == desired:
        units[FLAGS, i] &= ~TURNING


@kernel
def start_walking(units: Int32s, types: Int64s, i: int) -> None:
    """Begin the walking animation, unless it runs already."""
    if units[ANIMATION, i] != WALKING:
        units[ANIMATION, i] = WALKING
        units[WALK_STEP, i] = 0
        units[SPEED, i] = types[units[TYPE, i], T_WALK]


@kernel
def take_step(units: Int32s, types: Int64s, i: int) -> None:
    """Carry out what `plan_step` worked out."""
    units[FLAGS, i] = units[PLAN_FLAGS, i]
    units[SPEED, i] = units[CURRENT_SPEED, i]
    units[X, i] = units[PLAN_X, i]
    units[Y, i] = units[PLAN_Y, i]
    units[PX, i] = units[X, i] >> 8
    units[PY, i] = units[Y, i] >> 8
    update_heading(units, types, i)
    if types[units[TYPE, i], T_FLYER]:
        return
    if units[PLAN_EVENT, i] == STOPS:
        if not units[UNBREAKABLE, i]:
            units[ANIMATION, i] = STANDING
    elif units[PLAN_EVENT, i] == STARTS:
        start_walking(units, types, i)


@kernel
def cell_of(units: Int32s, i: int) -> int:
    """The cell of the flyers' field in which the unit is (units beyond the map's edge count at the edge)."""
    column = min(max(units[PX, i] // CELL_SIZE, 0), CELLS - 1)
    row = min(max(units[PY, i] // CELL_SIZE, 0), CELLS - 1)
    return row * CELLS + column


@kernel
def _push(units: Int32s, i: int, crowd: int) -> None:
    """Displace the planned step along the unit's private direction, which follows its target every 8th frame."""
    if units[PUSH_COUNT, i] > 0:
        units[PUSH_COUNT, i] -= 1
    else:
        units[PUSH_COUNT, i] = 7
        if not at_target(units, i):
            ahead = direction(units[TARGET_X, i] - units[PX, i], units[TARGET_Y, i] - units[PY, i])
            side = (units[PUSH_DIR, i] - ahead) & 255
            units[PUSH_DIR, i] = (ahead + side % 32 + (32 if side < 128 else -64)) & 255
    push_x = UNIT_X[units[PUSH_DIR, i]] // 2
    push_y = UNIT_Y[units[PUSH_DIR, i]] // 2
    if at_target(units, i):
        push_x = push_x * (crowd // 4 + 1) // 2
        push_y = push_y * (crowd // 4 + 1) // 2
    units[PLAN_X, i] += push_x
    units[PLAN_Y, i] += push_y


@kernel
def move_flyer(units: Int32s, types: Int64s, params: Int64s, field: Int16s, i: int) -> None:
    """One frame of a flyer: step, be pushed by others in its cell, and give up a target it is pushed from."""
    plan_step(units, types, i)
    crowd = field[units[CELL, i]]
    pushed = params[P_REPULSION] != 0 and crowd > 1
    if pushed:
        _push(units, i, crowd)
    else:
        units[PUSH_COUNT, i] = 0
    take_step(units, types, i)
    cell = cell_of(units, i)
    if cell != units[CELL, i]:
        field[units[CELL, i]] -= 1
        field[cell] += 1
        units[CELL, i] = cell
        units[PUSH_COUNT, i] = 0
    if pushed:
        dx = abs(units[TARGET_X, i] - units[PX, i])
        dy = abs(units[TARGET_Y, i] - units[PY, i])
        if max(dx, dy) < 24:
            units[TARGET_X, i] = units[PX, i]
            units[TARGET_Y, i] = units[PY, i]
            units[WAY_X, i] = units[PX, i]
            units[WAY_Y, i] = units[PY, i]
