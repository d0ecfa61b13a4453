"""The order machine: what a unit does when its order is looked at, every 9th frame or when something wakes it."""

from __future__ import annotations

import numpy as np

from muster.envs.battle.geometry import direction, gap, length, wrap
from muster.envs.battle.layout import (
    ALIVE,
    ANIMATION,
    ATTACK,
    ATTACK_MOVE,
    ATTACK_TIME,
    ATTACKING,
    AUTO,
    CHASE_TIMER,
    COOLDOWN,
    FACE_X,
    FACE_Y,
    FIRED_FRAME,
    FIRST_SHOT,
    FLAGS,
    FRAME,
    FREE,
    HEADING,
    IDLE,
    IDLE_FIRST,
    IMMOVABLE,
    LOOK_TIMER,
    MAIN_TIMER,
    MOVING,
    NO_ORDER,
    ORDER,
    ORDER_STATE,
    ORDER_UNIT,
    ORDER_X,
    ORDER_Y,
    PENDING,
    PENDING_UNIT,
    PENDING_X,
    PENDING_Y,
    PX,
    PY,
    QUEUED,
    QUEUED_X,
    QUEUED_Y,
    SEEN,
    SHOOTING,
    SIDE,
    STANDING,
    STOP,
    T_ACQUIRE,
    T_ANGLE,
    T_COOLDOWN,
    T_LEFT,
    T_RANGE,
    TARGET_X,
    TARGET_Y,
    TYPE,
    UNBREAKABLE,
    VELOCITY_DIR,
    Int32s,
    Int64s,
    kernel,
)  # fmt: skip
from muster.envs.battle.movement import at_target, halt_distance, set_move_target, stop_unit
from muster.envs.battle.settings import P_CANDIDATES, P_HALT_BONUS, P_JITTER
from muster.rng import Seeds, below

_ACQUIRE_PERIOD = 15
_NEAR_TURN = 32  # a target moving within this of our own direction gives no braking bonus


@kernel
def in_range_moving(units: Int32s, types: Int64s, params: Int64s, i: int, j: int) -> bool:
    """Whether j is seen and in range, or would be once i has braked."""
    if units[SEEN, j] == 0:
        return False
    reach = types[units[TYPE, i], T_RANGE]
    way = gap(units, types, i, j)
    if way <= reach:
        return True
    if params[P_HALT_BONUS] == 0 or not units[FLAGS, i] & MOVING:
        return False
    if units[FLAGS, j] & MOVING and abs(wrap(units[VELOCITY_DIR, j] - units[VELOCITY_DIR, i])) <= _NEAR_TURN:
        return False
    return way <= reach + (halt_distance(units, types, i) >> 8)


@kernel
def acquire(units: Int32s, types: Int64s, params: Int64s, n_ours: int, i: int) -> int:
    """The enemy that unit i picks by itself: the nearest of the first few, from the left, in acquisition range."""
    reach = types[units[TYPE, i], T_ACQUIRE]
    first = n_ours if units[SIDE, i] == 0 else 0
    last = units.shape[1] if units[SIDE, i] == 0 else n_ours
    px = units[PX, i]
    py = units[PY, i]
    limit = params[P_CANDIDATES]
    kept = np.empty(64, np.int64)
    n_kept = 0
    for j in range(first, last):
        if units[ALIVE, j] == 0 or abs(units[PX, j] - px) > reach + 64 or abs(units[PY, j] - py) > reach + 64:
            continue
        if units[SEEN, j] == 0 or gap(units, types, i, j) > reach:
            continue
        left = units[PX, j] - types[units[TYPE, j], T_LEFT]
        place = n_kept
        while place > 0:
            other = kept[place - 1]
            if units[PX, other] - types[units[TYPE, other], T_LEFT] <= left:
                break
            place -= 1
        if place >= limit:
            continue
        if n_kept < limit:
            n_kept += 1
        for k in range(n_kept - 1, place, -1):
            kept[k] = kept[k - 1]
        kept[place] = j
    best = -1
    nearest = 1 << 30
    for k in range(n_kept):
        j = kept[k]
        way = length(units[PX, j] - px, units[PY, j] - py)
        if way < nearest:
            nearest = way
            best = j
    return best


@kernel
def _activate(units: Int32s, i: int, order: int, unit: int, x: int, y: int) -> None:
    """Begin an order now: timers cleared, attack broken off."""
    units[ORDER, i] = order
    units[ORDER_STATE, i] = 0
    units[ORDER_UNIT, i] = unit
    units[ORDER_X, i] = x
    units[ORDER_Y, i] = y
    units[FREE, i] = 0
    units[LOOK_TIMER, i] = 0
    units[CHASE_TIMER, i] = 0
    units[AUTO, i] = -1
    to_idle(units, i)


@kernel
def to_idle(units: Int32s, i: int) -> None:
    """Break off an attack animation; the next attack is a "first" one."""
    units[UNBREAKABLE, i] = 0
    if units[ANIMATION, i] == SHOOTING:
        units[ANIMATION, i] = STANDING
        units[ATTACK_TIME, i] = -1
    units[FLAGS, i] &= ~ATTACKING


@kernel
def _request(units: Int32s, i: int, order: int, unit: int, x: int, y: int) -> bool:
    """Begin an order now, or as soon as the unbreakable part of an attack is over; True if now."""
    if units[UNBREAKABLE, i]:
        units[PENDING, i] = order
        units[PENDING_UNIT, i] = unit
        units[PENDING_X, i] = x
        units[PENDING_Y, i] = y
        return False
    units[PENDING, i] = NO_ORDER
    _activate(units, i, order, unit, x, y)
    return True


@kernel
def give_order(units: Int32s, i: int, order: int, unit: int, x: int, y: int) -> None:
    """An order from outside: it replaces everything the unit had in mind."""
    units[QUEUED, i] = NO_ORDER
    _request(units, i, order, unit, x, y)


@kernel
def resume_pending(units: Int32s, i: int) -> None:
    """The unbreakable part is over: take up the order that waited for it."""
    order = units[PENDING, i]
    if order != NO_ORDER:
        units[PENDING, i] = NO_ORDER
        # A target that died meanwhile takes the order with it.
        if order == ATTACK and units[ALIVE, units[PENDING_UNIT, i]] == 0:
            return
        _activate(units, i, order, units[PENDING_UNIT, i], units[PENDING_X, i], units[PENDING_Y, i])


@kernel
def _done(units: Int32s, i: int) -> None:
    """The order is carried out: back to the attack-move it interrupted, else idle."""
    if units[PENDING, i] != NO_ORDER:
        return
    if units[QUEUED, i] == ATTACK_MOVE:
        units[QUEUED, i] = NO_ORDER
        _request(units, i, ATTACK_MOVE, -1, units[QUEUED_X, i], units[QUEUED_Y, i])
    else:
        _request(units, i, IDLE_FIRST, -1, units[PX, i], units[PY, i])


@kernel
def _attack_freely(units: Int32s, i: int, j: int) -> None:
    """Attack j on the unit's own account, so that it may change its mind."""
    if _request(units, i, ATTACK, j, units[PX, j], units[PY, j]):
        units[FREE, i] = 1


@kernel
def _interrupt_march(units: Int32s, types: Int64s, params: Int64s, i: int, j: int) -> None:
    """Leave the attack-move for target j, and remember it."""
    stop_unit(units, types, params, i)
    units[QUEUED, i] = ATTACK_MOVE
    units[QUEUED_X, i] = units[ORDER_X, i]
    units[QUEUED_Y, i] = units[ORDER_Y, i]
    _attack_freely(units, i, j)


@kernel
def _lives(units: Int32s, j: int) -> bool:
    return j >= 0 and units[ALIVE, j] != 0


@kernel
def _look_idle(units: Int32s, types: Int64s, params: Int64s, n_ours: int, rng: Seeds, i: int) -> None:
    if units[ORDER, i] == IDLE_FIRST:
        units[MAIN_TIMER, i] = below(rng, 0, 16)
        units[ORDER, i] = IDLE
    elif _lives(units, units[AUTO, i]):
        _attack_freely(units, i, units[AUTO, i])
    elif units[MAIN_TIMER, i] == 0:
        units[MAIN_TIMER, i] = _ACQUIRE_PERIOD
        j = acquire(units, types, params, n_ours, i)
        if j >= 0:
            _attack_freely(units, i, j)


@kernel
def _look_attack_move(units: Int32s, types: Int64s, params: Int64s, n_ours: int, i: int) -> None:
    if units[ORDER_STATE, i] == 0:
        set_move_target(units, params, i, units[ORDER_X, i], units[ORDER_Y, i], -1)
        units[FACE_X, i] = units[ORDER_X, i]
        units[FACE_Y, i] = units[ORDER_Y, i]
        units[ORDER_STATE, i] = 1
    if _lives(units, units[AUTO, i]):
        _interrupt_march(units, types, params, i, units[AUTO, i])
    elif units[MAIN_TIMER, i] == 0:
        units[MAIN_TIMER, i] = _ACQUIRE_PERIOD
        if at_target(units, i):
            _done(units, i)
            return
        j = acquire(units, types, params, n_ours, i)
        if j >= 0:
            _interrupt_march(units, types, params, i, j)


@kernel
def _reconsider(units: Int32s, types: Int64s, params: Int64s, n_ours: int, i: int) -> None:
    """A unit that attacks on its own account changes to a target in range if its own is not."""
    target = units[ORDER_UNIT, i]
    alive = _lives(units, target)
    if alive and in_range_moving(units, types, params, i, target):
        return
    auto = units[AUTO, i]
    if _lives(units, auto):
        if in_range_moving(units, types, params, i, auto):
            units[ORDER_UNIT, i] = auto
            return
        if not alive:
            target = auto
    else:
        units[AUTO, i] = -1
    found = acquire(units, types, params, n_ours, i)
    if found >= 0:
        target = found
    units[ORDER_UNIT, i] = target


@kernel
def _try_to_fire(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, rng: Seeds, i: int) -> None:
    """Start an attack if cooldown, range and heading allow; otherwise see to it that the next look comes in time."""
    if units[COOLDOWN, i] > 0:
        units[LOOK_TIMER, i] = min(units[LOOK_TIMER, i], units[COOLDOWN, i] - 1)
        return
    kind = units[TYPE, i]
    if units[FLAGS, i] & ATTACKING or gap(units, types, i, units[ORDER_UNIT, i]) > types[kind, T_RANGE]:
        return
    dx = units[FACE_X, i] - units[PX, i]
    dy = units[FACE_Y, i] - units[PY, i]
    if (dx != 0 or dy != 0) and abs(wrap(direction(dx, dy) - units[HEADING, i])) > types[kind, T_ANGLE]:
        units[LOOK_TIMER, i] = 0
        return
    units[FLAGS, i] |= ATTACKING
    units[COOLDOWN, i] = types[kind, T_COOLDOWN]
    if params[P_JITTER]:
        units[COOLDOWN, i] += below(rng, 0, 4) - 1
    units[FIRST_SHOT, i] = 0 if units[ANIMATION, i] == SHOOTING else 1
    units[ANIMATION, i] = SHOOTING
    units[ATTACK_TIME, i] = 0
    units[FIRED_FRAME, i] = counters[FRAME]


@kernel
def _look_attack(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, n_ours: int, rng: Seeds, i: int
) -> None:
    if units[FREE, i]:
        _reconsider(units, types, params, n_ours, i)
    target = units[ORDER_UNIT, i]
    if not _lives(units, target):
        stop_unit(units, types, params, i)
        _done(units, i)
        return
    x = units[PX, target]
    y = units[PY, target]
    units[ORDER_X, i] = x
    units[ORDER_Y, i] = y
    units[FACE_X, i] = x
    units[FACE_Y, i] = y
    near = in_range_moving(units, types, params, i, target)
    if units[ORDER_STATE, i] == 0:
        units[ORDER_STATE, i] = 1
        if not near:
            set_move_target(units, params, i, x, y, target)
    elif near:
        stop_unit(units, types, params, i)
    else:
        if at_target(units, i) and units[IMMOVABLE, i]:
            stop_unit(units, types, params, i)
            units[FACE_X, i] = units[TARGET_X, i]
            units[FACE_Y, i] = units[TARGET_Y, i]
            _done(units, i)
        elif units[CHASE_TIMER, i] == 0:
            set_move_target(units, params, i, x, y, target)
        return
    _try_to_fire(units, types, params, counters, rng, i)


@kernel
def look(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, n_ours: int, rng: Seeds, i: int) -> None:
    """Look at the unit's order."""
    order = units[ORDER, i]
    if order == ATTACK:
        _look_attack(units, types, params, counters, n_ours, rng, i)
    elif order == ATTACK_MOVE:
        _look_attack_move(units, types, params, n_ours, i)
    elif order == STOP:
        stop_unit(units, types, params, i)
        units[FACE_X, i] = units[TARGET_X, i]
        units[FACE_Y, i] = units[TARGET_Y, i]
        to_idle(units, i)
        _done(units, i)
    else:
        _look_idle(units, types, params, n_ours, rng, i)
