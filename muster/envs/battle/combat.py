"""Attack animations, shots and damage."""

from __future__ import annotations

from muster.envs.battle.geometry import UNIT_X, UNIT_Y, direction, length
from muster.envs.battle.layout import (
    ALIVE,
    ANIMATION,
    ATTACK,
    ATTACK_TIME,
    ATTACKING,
    AUTO,
    B_MISS,
    B_SOURCE,
    B_SPEED,
    B_STATE,
    B_TIMER,
    B_TX,
    B_TY,
    B_UNIT,
    B_X,
    B_Y,
    CELL,
    DEATHS,
    FIRST_SHOT,
    FLAGS,
    FLYING,
    FREE,
    HP,
    INSTANT,
    LOST_SHOTS,
    N_BULLETS,
    N_OURS,
    N_THEIRS,
    ORDER,
    ORDER_UNIT,
    PX,
    PY,
    SHOOTING,
    SHOT_MELEE,
    SHOT_MISSILE,
    SHOWING,
    SIDE,
    SPEED,
    T_BULLET_FRAMES,
    T_DOWN,
    T_FLYER,
    T_HOLD_FROM_FIRST,
    T_HOLD_TO_FIRST,
    T_LEFT,
    T_MISSILE_ACCEL,
    T_MISSILE_TOP,
    T_READY_FIRST,
    T_RIGHT,
    T_SHOT,
    T_SHOT_FIRST,
    T_SHOT_REPEAT,
    T_UP,
    T_WALK,
    T_WALK_LENGTH,
    TYPE,
    TYPE_FIELDS,
    UNBREAKABLE,
    WALK_STEP,
    WALKING,
    Int16s,
    Int32s,
    Int64s,
    X,
    Y,
    kernel,
)  # fmt: skip
from muster.envs.battle.orders import in_range_moving, resume_pending
from muster.envs.battle.settings import (
    P_AUTO_TARGET,
    P_LATE_DEATH,
    P_MISS,
    P_MISSILES,
    P_UNBREAKABLE,
    P_WINDUP,
)  # fmt: skip
from muster.rng import Seeds, below

_ALARM = 96  # px: allies within this square round a unit that is hit turn on the shooter too


@kernel
def remove_unit(units: Int32s, types: Int64s, counters: Int64s, field: Int16s, i: int) -> None:
    """Take a dead unit off the field; it leaves the live list at the end of the frame."""
    units[ALIVE, i] = 0
    counters[DEATHS] = 1
    counters[N_OURS if units[SIDE, i] == 0 else N_THEIRS] -= 1
    if types[units[TYPE, i], T_FLYER]:
        field[units[CELL, i]] -= 1


@kernel
def _alarm(units: Int32s, types: Int64s, params: Int64s, i: int, shooter: int) -> None:
    """Make `shooter` the unit's automatic target if it has none alive, or none in range while this one is."""
    # A unit attacking on our command never looks at its automatic target, and any new order clears it.
    if units[ALIVE, i] == 0 or units[AUTO, i] == shooter or (units[ORDER, i] == ATTACK and units[FREE, i] == 0):
        return
    old = units[AUTO, i]
    if (
        old < 0
        or units[ALIVE, old] == 0
        or (in_range_moving(units, types, params, i, shooter) and not in_range_moving(units, types, params, i, old))
    ):
        units[AUTO, i] = shooter


@kernel
def _hurt(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, field: Int16s, n_ours: int, i: int, shooter: int
) -> None:
    """Unit i takes a hit from `shooter` (who may be dead already)."""
    if units[ALIVE, i] == 0 or units[HP, i] <= 0:
        return
    if params[P_AUTO_TARGET] and units[ALIVE, shooter]:
        first = 0 if i < n_ours else n_ours
        last = n_ours if i < n_ours else units.shape[1]
        x = units[PX, i]
        y = units[PY, i]
        for j in range(first, last):
            kind = units[TYPE, j]
            if (
                units[PX, j] - types[kind, T_LEFT] <= x + _ALARM
                and units[PX, j] + types[kind, T_RIGHT] >= x - _ALARM
                and units[PY, j] - types[kind, T_UP] <= y + _ALARM
                and units[PY, j] + types[kind, T_DOWN] >= y - _ALARM
            ):
                _alarm(units, types, params, j, shooter)
    units[HP, i] -= types[units[TYPE, shooter], TYPE_FIELDS + units[TYPE, i]]
    if units[HP, i] <= 0:
        units[HP, i] = 0
        if params[P_LATE_DEATH] == 0:
            remove_unit(units, types, counters, field, i)


@kernel
def _shoot(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int,
    rng: Seeds, i: int,
) -> None:  # fmt: skip
    """The moment of the attack animation at which the blow falls or the shot leaves."""
    target = units[ORDER_UNIT, i]
    if target < 0 or units[ALIVE, target] == 0:
        return
    kind = units[TYPE, i]
    shot = types[kind, T_SHOT]
    if shot == SHOT_MELEE:
        _hurt(units, types, params, counters, field, n_ours, target, i)
        return
    n = counters[N_BULLETS]
    if n >= bullets.shape[0]:
        counters[LOST_SHOTS] += 1
        return
    counters[N_BULLETS] = n + 1
    flies = shot == SHOT_MISSILE and params[P_MISSILES] != 0
    bullets[n, B_STATE] = FLYING if flies else INSTANT
    bullets[n, B_X] = units[X, i]
    bullets[n, B_Y] = units[Y, i]
    bullets[n, B_SPEED] = 0
    bullets[n, B_UNIT] = target
    bullets[n, B_TX] = units[PX, target]
    bullets[n, B_TY] = units[PY, target]
    bullets[n, B_SOURCE] = i
    bullets[n, B_TIMER] = types[kind, T_BULLET_FRAMES]
    bullets[n, B_MISS] = 1 if params[P_MISS] and below(rng, 0, 256) == 0 else 0


@kernel
def animate(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int,
    rng: Seeds, i: int,
) -> None:  # fmt: skip
    """One frame of the unit's animation: walking sets the next speed, attacking leads to the shot."""
    kind = units[TYPE, i]
    if units[ANIMATION, i] == WALKING:
        step = (units[WALK_STEP, i] + 1) % types[kind, T_WALK_LENGTH]
        units[WALK_STEP, i] = step
        units[SPEED, i] = types[kind, T_WALK + step]
        return
    time = units[ATTACK_TIME, i]
    if time < 0 or units[ANIMATION, i] != SHOOTING:
        return
    units[ATTACK_TIME, i] = time + 1
    column = T_SHOT_FIRST if units[FIRST_SHOT, i] and params[P_WINDUP] else T_SHOT_REPEAT
    hold = column + T_HOLD_FROM_FIRST - T_SHOT_FIRST
    if params[P_UNBREAKABLE] and time == types[kind, hold]:
        units[UNBREAKABLE, i] = 1
    if time == types[kind, column]:
        _shoot(units, types, params, counters, bullets, field, n_ours, rng, i)
    if time == types[kind, column + T_READY_FIRST - T_SHOT_FIRST]:
        units[FLAGS, i] &= ~ATTACKING
    if time == types[kind, column + T_HOLD_TO_FIRST - T_SHOT_FIRST] and units[UNBREAKABLE, i]:
        units[UNBREAKABLE, i] = 0
        resume_pending(units, i)
    if time > types[kind, column + T_READY_FIRST - T_SHOT_FIRST]:
        units[ATTACK_TIME, i] = -1


@kernel
def _fly(units: Int32s, types: Int64s, bullets: Int32s, n: int) -> bool:
    """Move a missile towards its target, or to where that was last; True when it arrives."""
    target = bullets[n, B_UNIT]
    if target >= 0 and units[ALIVE, target] == 0:
        bullets[n, B_UNIT] = -1
    elif target >= 0 and bullets[n, B_MISS] == 0:
        bullets[n, B_TX] = units[PX, target]
        bullets[n, B_TY] = units[PY, target]
    kind = units[TYPE, bullets[n, B_SOURCE]]
    speed = min(bullets[n, B_SPEED] + types[kind, T_MISSILE_ACCEL], types[kind, T_MISSILE_TOP])
    bullets[n, B_SPEED] = speed
    dx = bullets[n, B_TX] * 256 - bullets[n, B_X]
    dy = bullets[n, B_TY] * 256 - bullets[n, B_Y]
    if speed >= length(dx, dy):
        bullets[n, B_X] = bullets[n, B_TX] * 256
        bullets[n, B_Y] = bullets[n, B_TY] * 256
        return True
    course = direction(dx, dy)
    bullets[n, B_X] += (UNIT_X[course] * speed) >> 8
    bullets[n, B_Y] += (UNIT_Y[course] * speed) >> 8
    return False


@kernel
def move_bullets(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int
) -> None:
    """One frame of every shot: fly, hit, and free the slot when the hit has been shown."""
    kept = 0
    for n in range(counters[N_BULLETS]):
        state = bullets[n, B_STATE]
        if state == SHOWING:
            bullets[n, B_TIMER] -= 1
            if bullets[n, B_TIMER] <= 0:
                continue
        elif state == INSTANT or _fly(units, types, bullets, n):
            bullets[n, B_STATE] = SHOWING
            target = bullets[n, B_UNIT]
            if bullets[n, B_MISS] == 0 and target >= 0:
                _hurt(units, types, params, counters, field, n_ours, target, bullets[n, B_SOURCE])
        if kept != n:
            bullets[kept, :] = bullets[n, :]
        kept += 1
    counters[N_BULLETS] = kept
