"""How one unit turns, speeds up and steps; how flyers push each other apart."""

from __future__ import annotations

from muster.compile import leaf
from muster.envs.battle import layout as lay
from muster.envs.battle.geometry import UNIT_X, UNIT_Y, direction, length, wrap
from muster.envs.battle.layout import Int16s, Int32s, Int64s
from muster.envs.battle.settings import P_CHASE, P_REPULSION

_STILL = 192  # 1/256 px a frame: a flyer at its target and slower than this stands


@leaf
def at_target(units: Int32s, i: int) -> bool:
    """Whether the unit stands on its move target."""
    return units[lay.PX, i] == units[lay.TARGET_X, i] and units[lay.PY, i] == units[lay.TARGET_Y, i]


@leaf
def halt_distance(units: Int32s, types: Int64s, i: int) -> int:
    """Way the unit still makes when it brakes now, in 1/256 px; 0 for walkers."""
    kind = units[lay.TYPE, i]
    speed = units[lay.SPEED, i]
    if types[kind, lay.T_FLYER] == 0 or speed == 0:
        return 0
    if speed == types[kind, lay.T_TOP]:
        return types[kind, lay.T_HALT]
    return speed * speed // types[kind, lay.T_ACCEL] // 2


@leaf
def set_move_target(units: Int32s, params: Int64s, i: int, x: int, y: int, unit: int) -> None:
    """Send the unit to a point, or to where `unit` (>= 0) stands; nothing happens if it is already under way there."""
    if units[lay.TARGET_X, i] == x and units[lay.TARGET_Y, i] == y and (unit < 0 or units[lay.TARGET_UNIT, i] == unit):
        if unit >= 0:
            units[lay.IMMOVABLE, i] = 0
        return
    units[lay.NEW_TARGET, i] = 1
    units[lay.TARGET_X, i] = x
    units[lay.TARGET_Y, i] = y
    units[lay.TARGET_UNIT, i] = unit
    units[lay.WAY_X, i] = x
    units[lay.WAY_Y, i] = y
    units[lay.FLAGS, i] = (units[lay.FLAGS, i] & ~lay.BRAKING) | lay.TURNING
    units[lay.IMMOVABLE, i] = 0
    units[lay.CHASE_TIMER, i] = params[P_CHASE]


@leaf
def stop_unit(units: Int32s, types: Int64s, params: Int64s, i: int) -> None:
    """Stay here; a flyer under way heads for the point at which it can halt."""
    units[lay.CHASE_TIMER, i] = params[P_CHASE]
    if units[lay.FLAGS, i] & lay.BRAKING:
        return
    x = units[lay.PX, i]
    y = units[lay.PY, i]
    if units[lay.FLAGS, i] & lay.MOVING and types[units[lay.TYPE, i], lay.T_FLYER]:
        way = halt_distance(units, types, i)
        heading = units[lay.VELOCITY_DIR, i]
        x = (units[lay.X, i] + ((UNIT_X[heading] * way) >> 8)) >> 8
        y = (units[lay.Y, i] + ((UNIT_Y[heading] * way) >> 8)) >> 8
        if x != units[lay.PX, i] or y != units[lay.PY, i]:
            units[lay.FLAGS, i] |= lay.BRAKING
    units[lay.TARGET_X, i] = x
    units[lay.TARGET_Y, i] = y
    units[lay.TARGET_UNIT, i] = -1
    units[lay.WAY_X, i] = x
    units[lay.WAY_Y, i] = y


@leaf
def turn_velocity(units: Int32s, types: Int64s, i: int, desired: int) -> int:
    """Velocity direction after one frame's turn towards `desired`; flyers swing it at half their turn rate."""
    kind = units[lay.TYPE, i]
    rate = types[kind, lay.T_TURN]
    if types[kind, lay.T_FLYER]:
        rate = rate // 2
    turn = min(max(wrap(desired - units[lay.VELOCITY_DIR, i]), -rate), rate)
    return (units[lay.VELOCITY_DIR, i] + turn) & 255


@leaf
def _towards_waypoint(units: Int32s, i: int) -> int:
    x = units[lay.PX, i]
    y = units[lay.PY, i]
    if x != units[lay.WAY_X, i] or y != units[lay.WAY_Y, i]:
        return direction(units[lay.WAY_X, i] - x, units[lay.WAY_Y, i] - y)
    if x != units[lay.FACE_X, i] or y != units[lay.FACE_Y, i]:
        return direction(units[lay.FACE_X, i] - x, units[lay.FACE_Y, i] - y)
    return units[lay.HEADING, i]


@leaf
def _flying_speed(units: Int32s, types: Int64s, i: int) -> int:
    """Speed of a flyer in this frame: accelerate unless it must brake for its waypoint."""
    kind = units[lay.TYPE, i]
    speed = units[lay.SPEED, i]
    way = length(units[lay.WAY_X, i] - units[lay.PX, i], units[lay.WAY_Y, i] - units[lay.PY, i])
    faster = units[lay.CURRENT_DIR, i] == units[lay.DESIRED_DIR, i] or way >= 32
    if not faster:
        turn = types[kind, lay.T_TURN]
        error = abs(wrap(units[lay.DESIRED_DIR, i] - units[lay.CURRENT_DIR, i]))
        turning_way = ((error * 2 + turn - 1) * speed // turn) >> 8
        faster = turning_way * 3 // 2 <= way
    if faster:
        exact_way = length(units[lay.WAY_X, i] * 256 - units[lay.X, i], units[lay.WAY_Y, i] * 256 - units[lay.Y, i])
        faster = halt_distance(units, types, i) < exact_way
    speed += types[kind, lay.T_ACCEL] if faster else -types[kind, lay.T_ACCEL]
    return min(max(speed, 0), types[kind, lay.T_TOP])


@leaf
def plan_step(units: Int32s, types: Int64s, i: int) -> None:
    """Work out this frame's step into the PLAN rows (and CURRENT and DESIRED); position and flags stay."""
    flyer = types[units[lay.TYPE, i], lay.T_FLYER] != 0
    desired = _towards_waypoint(units, i)
    units[lay.DESIRED_DIR, i] = desired
    units[lay.CURRENT_DIR, i] = turn_velocity(units, types, i, desired)
    flags = units[lay.FLAGS, i]
    arrived = at_target(units, i)
    speed = units[lay.SPEED, i]
    if flyer:
        if arrived and speed < _STILL:
            flags &= ~lay.BRAKING
            speed = 0
        else:
            speed = _flying_speed(units, types, i)
    elif arrived:
        flags &= ~lay.BRAKING
        speed = 0
    elif flags & lay.TURNING and abs(wrap(units[lay.HEADING, i] - desired)) >= 32:
        # Too far off the mark: turn on the spot first.
        flags &= ~(lay.MOVING | lay.BRAKING)
        speed = 0
    event = lay.NOTHING
    if not arrived:
        if not flags & lay.MOVING:
            if flyer or not flags & lay.ATTACKING:
                flags |= lay.MOVING
            if not flags & lay.ATTACKING:
                event = lay.STARTS
    elif flags & lay.MOVING:
        flags &= ~lay.MOVING
        if not flags & lay.ATTACKING:
            event = lay.STOPS
    units[lay.PLAN_X, i] = units[lay.X, i]
    units[lay.PLAN_Y, i] = units[lay.Y, i]
    units[lay.PLAN_SPEED, i] = speed
    if flags & lay.MOVING and speed:
        way_x = units[lay.WAY_X, i] * 256
        way_y = units[lay.WAY_Y, i] * 256
        if speed >= length(way_x - units[lay.X, i], way_y - units[lay.Y, i]):
            units[lay.PLAN_X, i] = way_x
            units[lay.PLAN_Y, i] = way_y
        else:
            heading = units[lay.CURRENT_DIR, i]
            units[lay.PLAN_X, i] += (UNIT_X[heading] * speed) >> 8
            units[lay.PLAN_Y, i] += (UNIT_Y[heading] * speed) >> 8
        if not flyer:
            # A walker's speed lasts one frame: its animation sets the next.
            speed = 0
    units[lay.CURRENT_SPEED, i] = speed
    units[lay.PLAN_FLAGS, i] = flags
    units[lay.PLAN_EVENT, i] = event


@leaf
def update_heading(units: Int32s, types: Int64s, i: int) -> None:
    """Take over the velocity direction, and turn the body unless the unit moves straight on."""
    units[lay.VELOCITY_DIR, i] = units[lay.CURRENT_DIR, i]
    if units[lay.FLAGS, i] & lay.MOVING and not units[lay.FLAGS, i] & lay.TURNING:
        return
    rate = types[units[lay.TYPE, i], lay.T_TURN]
    desired = units[lay.DESIRED_DIR, i]
    turn = min(max(wrap(desired - units[lay.HEADING, i]), -rate), rate)
    units[lay.HEADING, i] = (units[lay.HEADING, i] + turn) & 255
    if units[lay.VELOCITY_DIR, i] == desired and units[lay.HEADING, i] == desired:
        units[lay.FLAGS, i] &= ~lay.TURNING


@leaf
def start_walking(units: Int32s, types: Int64s, i: int) -> None:
    """Begin the walking animation, unless it runs already."""
    if units[lay.ANIMATION, i] != lay.WALKING:
        units[lay.ANIMATION, i] = lay.WALKING
        units[lay.WALK_STEP, i] = 0
        units[lay.SPEED, i] = types[units[lay.TYPE, i], lay.T_WALK]


@leaf
def take_step(units: Int32s, types: Int64s, i: int) -> None:
    """Carry out what `plan_step` worked out."""
    units[lay.FLAGS, i] = units[lay.PLAN_FLAGS, i]
    units[lay.SPEED, i] = units[lay.CURRENT_SPEED, i]
    units[lay.X, i] = units[lay.PLAN_X, i]
    units[lay.Y, i] = units[lay.PLAN_Y, i]
    units[lay.PX, i] = units[lay.X, i] >> 8
    units[lay.PY, i] = units[lay.Y, i] >> 8
    update_heading(units, types, i)
    if types[units[lay.TYPE, i], lay.T_FLYER]:
        return
    if units[lay.PLAN_EVENT, i] == lay.STOPS:
        if not units[lay.UNBREAKABLE, i]:
            units[lay.ANIMATION, i] = lay.STANDING
    elif units[lay.PLAN_EVENT, i] == lay.STARTS:
        start_walking(units, types, i)


@leaf
def cell_of(units: Int32s, i: int) -> int:
    """The cell of the flyers' field in which the unit is (units beyond the map's edge count at the edge)."""
    column = min(max(units[lay.PX, i] // lay.CELL_SIZE, 0), lay.CELLS - 1)
    row = min(max(units[lay.PY, i] // lay.CELL_SIZE, 0), lay.CELLS - 1)
    return row * lay.CELLS + column


@leaf
def _push(units: Int32s, i: int, crowd: int) -> None:
    """Displace the planned step along the unit's private direction, which follows its target every 8th frame."""
    if units[lay.PUSH_COUNT, i] > 0:
        units[lay.PUSH_COUNT, i] -= 1
    else:
        units[lay.PUSH_COUNT, i] = 7
        if not at_target(units, i):
            ahead = direction(units[lay.TARGET_X, i] - units[lay.PX, i], units[lay.TARGET_Y, i] - units[lay.PY, i])
            side = (units[lay.PUSH_DIR, i] - ahead) & 255
            units[lay.PUSH_DIR, i] = (ahead + side % 32 + (32 if side < 128 else -64)) & 255
    push_x = UNIT_X[units[lay.PUSH_DIR, i]] // 2
    push_y = UNIT_Y[units[lay.PUSH_DIR, i]] // 2
    if at_target(units, i):
        push_x = push_x * (crowd // 4 + 1) // 2
        push_y = push_y * (crowd // 4 + 1) // 2
    units[lay.PLAN_X, i] += push_x
    units[lay.PLAN_Y, i] += push_y


@leaf
def move_flyer(units: Int32s, types: Int64s, params: Int64s, field: Int16s, i: int) -> None:
    """One frame of a flyer: step, be pushed by others in its cell, and give up a target it is pushed from."""
    plan_step(units, types, i)
    crowd = field[units[lay.CELL, i]]
    pushed = params[P_REPULSION] != 0 and crowd > 1
    if pushed:
        _push(units, i, crowd)
    else:
        units[lay.PUSH_COUNT, i] = 0
    take_step(units, types, i)
    cell = cell_of(units, i)
    if cell != units[lay.CELL, i]:
        field[units[lay.CELL, i]] -= 1
        field[cell] += 1
        units[lay.CELL, i] = cell
        units[lay.PUSH_COUNT, i] = 0
    if pushed:
        dx = abs(units[lay.TARGET_X, i] - units[lay.PX, i])
        dy = abs(units[lay.TARGET_Y, i] - units[lay.PY, i])
        if max(dx, dy) < 24:
            units[lay.TARGET_X, i] = units[lay.PX, i]
            units[lay.TARGET_Y, i] = units[lay.PY, i]
            units[lay.WAY_X, i] = units[lay.PX, i]
            units[lay.WAY_Y, i] = units[lay.PY, i]
