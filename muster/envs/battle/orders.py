"""The order machine: what a unit does when its order is looked at, every 9th frame or when something wakes it."""

from __future__ import annotations

from muster.compile import kernel, leaf
from muster.envs.battle import layout as lay
from muster.envs.battle.geometry import direction, gap, length, wrap
from muster.envs.battle.layout import Int32s, Int64s
from muster.envs.battle.movement import at_target, halt_distance, set_move_target, stop_unit
from muster.envs.battle.settings import P_CANDIDATES, P_FOLLOW_UNSEEN, P_HALT_BONUS, P_JITTER
from muster.rng import Seeds, below

_ACQUIRE_PERIOD = 15
_NEAR_TURN = 32  # a target moving within this of our own direction gives no braking bonus


@leaf
def in_range_moving(units: Int32s, types: Int64s, params: Int64s, i: int, j: int) -> bool:
    """Whether j is seen and in range, or would be once i has braked."""
    if units[lay.SEEN, j] == 0:
        return False
    reach = types[units[lay.TYPE, i], lay.T_RANGE]
    way = gap(units, types, i, j)
    if way <= reach:
        return True
    if params[P_HALT_BONUS] == 0 or not units[lay.FLAGS, i] & lay.MOVING:
        return False
    if (
        units[lay.FLAGS, j] & lay.MOVING
        and abs(wrap(units[lay.VELOCITY_DIR, j] - units[lay.VELOCITY_DIR, i])) <= _NEAR_TURN
    ):
        return False
    return way <= reach + (halt_distance(units, types, i) >> 8)


@leaf
def _left_edge(units: Int32s, types: Int64s, j: int) -> int:
    return units[lay.PX, j] - types[units[lay.TYPE, j], lay.T_LEFT]


@kernel
def acquire(units: Int32s, types: Int64s, params: Int64s, n_ours: int, i: int) -> int:
    """The enemy that unit i picks by itself: the nearest of the first few, from the left, in acquisition range."""
    reach = types[units[lay.TYPE, i], lay.T_ACQUIRE]
    first = n_ours if units[lay.SIDE, i] == 0 else 0
    last = units.shape[1] if units[lay.SIDE, i] == 0 else n_ours
    px = units[lay.PX, i]
    py = units[lay.PY, i]
    limit = params[P_CANDIDATES]
    n_kept = 0
    for j in range(first, last):
        if (
            units[lay.ALIVE, j] == 0
            or abs(units[lay.PX, j] - px) > reach + 64
            or abs(units[lay.PY, j] - py) > reach + 64
            or units[lay.SEEN, j] == 0
            or gap(units, types, i, j) > reach
        ):
            continue
        left = _left_edge(units, types, j)
        place = n_kept
        while place > 0 and _left_edge(units, types, units[lay.LEFTMOST, place - 1]) > left:
            place -= 1
        if place >= limit:
            continue
        if n_kept < limit:
            n_kept += 1
        for k in range(n_kept - 1, place, -1):
            units[lay.LEFTMOST, k] = units[lay.LEFTMOST, k - 1]
        units[lay.LEFTMOST, place] = j
    best = -1
    nearest = 1 << 30
    for k in range(n_kept):
        j = units[lay.LEFTMOST, k]
        way = length(units[lay.PX, j] - px, units[lay.PY, j] - py)
        if way < nearest:
            nearest = way
            best = j
    return best


@leaf
def _activate(units: Int32s, i: int, order: int, unit: int, x: int, y: int) -> None:
    """Begin an order now: timers cleared, attack broken off."""
    units[lay.ORDER, i] = order
    units[lay.ORDER_STATE, i] = 0
    units[lay.ORDER_UNIT, i] = unit
    units[lay.ORDER_X, i] = x
    units[lay.ORDER_Y, i] = y
    units[lay.FREE, i] = 0
    units[lay.LOOK_TIMER, i] = 0
    units[lay.CHASE_TIMER, i] = 0
    units[lay.AUTO, i] = -1
    to_idle(units, i)


@leaf
def to_idle(units: Int32s, i: int) -> None:
    """Break off an attack animation; the next attack is a "first" one."""
    units[lay.UNBREAKABLE, i] = 0
    if units[lay.ANIMATION, i] == lay.SHOOTING:
        units[lay.ANIMATION, i] = lay.STANDING
        units[lay.ATTACK_TIME, i] = -1
    units[lay.FLAGS, i] &= ~lay.ATTACKING


@leaf
def _request(units: Int32s, i: int, order: int, unit: int, x: int, y: int) -> bool:
    """Begin an order now, or as soon as the unbreakable part of an attack is over; True if now."""
    if units[lay.UNBREAKABLE, i]:
        units[lay.PENDING, i] = order
        units[lay.PENDING_UNIT, i] = unit
        units[lay.PENDING_X, i] = x
        units[lay.PENDING_Y, i] = y
        return False
    units[lay.PENDING, i] = lay.NO_ORDER
    _activate(units, i, order, unit, x, y)
    return True


@leaf
def give_order(units: Int32s, i: int, order: int, unit: int, x: int, y: int) -> None:
    """An order from outside: it replaces everything the unit had in mind."""
    units[lay.QUEUED, i] = lay.NO_ORDER
    _request(units, i, order, unit, x, y)


@leaf
def resume_pending(units: Int32s, i: int) -> None:
    """The unbreakable part is over: take up the order that waited for it."""
    order = units[lay.PENDING, i]
    if order != lay.NO_ORDER:
        units[lay.PENDING, i] = lay.NO_ORDER
        # A target that died meanwhile takes the order with it.
        if order == lay.ATTACK and units[lay.ALIVE, units[lay.PENDING_UNIT, i]] == 0:
            return
        _activate(units, i, order, units[lay.PENDING_UNIT, i], units[lay.PENDING_X, i], units[lay.PENDING_Y, i])


@leaf
def _done(units: Int32s, i: int) -> None:
    """The order is carried out: back to the attack-move it interrupted, else idle."""
    if units[lay.PENDING, i] != lay.NO_ORDER:
        return
    if units[lay.QUEUED, i] == lay.ATTACK_MOVE:
        units[lay.QUEUED, i] = lay.NO_ORDER
        _request(units, i, lay.ATTACK_MOVE, -1, units[lay.QUEUED_X, i], units[lay.QUEUED_Y, i])
    else:
        _request(units, i, lay.IDLE_FIRST, -1, units[lay.PX, i], units[lay.PY, i])


@leaf
def _attack_freely(units: Int32s, i: int, j: int) -> None:
    """Attack j on the unit's own account, so that it may change its mind."""
    if _request(units, i, lay.ATTACK, j, units[lay.PX, j], units[lay.PY, j]):
        units[lay.FREE, i] = 1


@leaf
def _interrupt_march(units: Int32s, types: Int64s, params: Int64s, i: int, j: int) -> None:
    """Leave the attack-move for target j, and remember it."""
    stop_unit(units, types, params, i)
    units[lay.QUEUED, i] = lay.ATTACK_MOVE
    units[lay.QUEUED_X, i] = units[lay.ORDER_X, i]
    units[lay.QUEUED_Y, i] = units[lay.ORDER_Y, i]
    _attack_freely(units, i, j)


@leaf
def _lives(units: Int32s, j: int) -> bool:
    return j >= 0 and units[lay.ALIVE, j] != 0


@leaf
def _look_idle(units: Int32s, types: Int64s, params: Int64s, n_ours: int, rng: Seeds, i: int) -> None:
    if units[lay.ORDER, i] == lay.IDLE_FIRST:
        units[lay.MAIN_TIMER, i] = below(rng, 0, 16)
        units[lay.ORDER, i] = lay.IDLE
    elif _lives(units, units[lay.AUTO, i]):
        _attack_freely(units, i, units[lay.AUTO, i])
    elif units[lay.MAIN_TIMER, i] == 0:
        units[lay.MAIN_TIMER, i] = _ACQUIRE_PERIOD
        j = acquire(units, types, params, n_ours, i)
        if j >= 0:
            _attack_freely(units, i, j)


@leaf
def _look_attack_move(units: Int32s, types: Int64s, params: Int64s, n_ours: int, i: int) -> None:
    if units[lay.ORDER_STATE, i] == 0:
        set_move_target(units, params, i, units[lay.ORDER_X, i], units[lay.ORDER_Y, i], -1)
        units[lay.FACE_X, i] = units[lay.ORDER_X, i]
        units[lay.FACE_Y, i] = units[lay.ORDER_Y, i]
        units[lay.ORDER_STATE, i] = 1
    if _lives(units, units[lay.AUTO, i]):
        _interrupt_march(units, types, params, i, units[lay.AUTO, i])
    elif units[lay.MAIN_TIMER, i] == 0:
        units[lay.MAIN_TIMER, i] = _ACQUIRE_PERIOD
        if at_target(units, i):
            _done(units, i)
            return
        j = acquire(units, types, params, n_ours, i)
        if j >= 0:
            _interrupt_march(units, types, params, i, j)


@leaf
def _reconsider(units: Int32s, types: Int64s, params: Int64s, n_ours: int, i: int) -> None:
    """A unit that attacks on its own account changes to a target in range if its own is not."""
    target = units[lay.ORDER_UNIT, i]
    alive = _lives(units, target)
    if alive and in_range_moving(units, types, params, i, target):
        return
    auto = units[lay.AUTO, i]
    if _lives(units, auto):
        if in_range_moving(units, types, params, i, auto):
            units[lay.ORDER_UNIT, i] = auto
            return
        if not alive:
            target = auto
    else:
        units[lay.AUTO, i] = -1
    found = acquire(units, types, params, n_ours, i)
    if found >= 0:
        target = found
    units[lay.ORDER_UNIT, i] = target


@leaf
def _try_to_fire(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, rng: Seeds, i: int) -> None:
    """Start an attack if cooldown, range and heading allow; otherwise see to it that the next look comes in time."""
    if units[lay.COOLDOWN, i] > 0:
        units[lay.LOOK_TIMER, i] = min(units[lay.LOOK_TIMER, i], units[lay.COOLDOWN, i] - 1)
        return
    kind = units[lay.TYPE, i]
    if units[lay.FLAGS, i] & lay.ATTACKING or gap(units, types, i, units[lay.ORDER_UNIT, i]) > types[kind, lay.T_RANGE]:
        return
    dx = units[lay.FACE_X, i] - units[lay.PX, i]
    dy = units[lay.FACE_Y, i] - units[lay.PY, i]
    if (dx != 0 or dy != 0) and abs(wrap(direction(dx, dy) - units[lay.HEADING, i])) > types[kind, lay.T_ANGLE]:
        units[lay.LOOK_TIMER, i] = 0
        return
    units[lay.FLAGS, i] |= lay.ATTACKING
    units[lay.COOLDOWN, i] = types[kind, lay.T_COOLDOWN]
    if params[P_JITTER]:
        units[lay.COOLDOWN, i] += below(rng, 0, 4) - 1
    units[lay.FIRST_SHOT, i] = 0 if units[lay.ANIMATION, i] == lay.SHOOTING else 1
    units[lay.ANIMATION, i] = lay.SHOOTING
    units[lay.ATTACK_TIME, i] = 0
    units[lay.FIRED_FRAME, i] = counters[lay.FRAME]


@leaf
def _look_attack(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, n_ours: int, rng: Seeds, i: int
) -> None:
    if units[lay.FREE, i]:
        _reconsider(units, types, params, n_ours, i)
    target = units[lay.ORDER_UNIT, i]
    if not _lives(units, target):
        stop_unit(units, types, params, i)
        _done(units, i)
        return
    x = units[lay.PX, target]
    y = units[lay.PY, target]
    units[lay.ORDER_X, i] = x
    units[lay.ORDER_Y, i] = y
    units[lay.FACE_X, i] = x
    units[lay.FACE_Y, i] = y
    near = in_range_moving(units, types, params, i, target)
    if units[lay.ORDER_STATE, i] == 0:
        units[lay.ORDER_STATE, i] = 1
        if not near:
            set_move_target(units, params, i, x, y, target)
    elif near:
        stop_unit(units, types, params, i)
    else:
        if at_target(units, i) and units[lay.IMMOVABLE, i]:
            stop_unit(units, types, params, i)
            units[lay.FACE_X, i] = units[lay.TARGET_X, i]
            units[lay.FACE_Y, i] = units[lay.TARGET_Y, i]
            _done(units, i)
        elif units[lay.CHASE_TIMER, i] == 0:
            if units[lay.SEEN, target] or gap(units, types, i, target) <= params[P_FOLLOW_UNSEEN]:
                set_move_target(units, params, i, x, y, target)
            elif at_target(units, i):
                _done(units, i)
        return
    _try_to_fire(units, types, params, counters, rng, i)


@leaf
def look(units: Int32s, types: Int64s, params: Int64s, counters: Int64s, n_ours: int, rng: Seeds, i: int) -> None:
    """Look at the unit's order."""
    order = units[lay.ORDER, i]
    if order == lay.ATTACK:
        _look_attack(units, types, params, counters, n_ours, rng, i)
    elif order == lay.ATTACK_MOVE:
        _look_attack_move(units, types, params, n_ours, i)
    elif order == lay.STOP:
        stop_unit(units, types, params, i)
        units[lay.FACE_X, i] = units[lay.TARGET_X, i]
        units[lay.FACE_Y, i] = units[lay.TARGET_Y, i]
        to_idle(units, i)
        _done(units, i)
    else:
        _look_idle(units, types, params, n_ours, rng, i)
