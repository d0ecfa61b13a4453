"""Attack animations, shots and damage."""

from __future__ import annotations

from muster.compile import leaf
from muster.envs.battle import layout as lay
from muster.envs.battle.geometry import UNIT_X, UNIT_Y, direction, length
from muster.envs.battle.layout import Int16s, Int32s, Int64s
from muster.envs.battle.orders import in_range_moving, resume_pending
from muster.envs.battle.settings import (
    P_AUTO_TARGET,
    P_HOMING,
    P_LATE_DEATH,
    P_MISS,
    P_MISSILES,
    P_UNBREAKABLE,
    P_WINDUP,
)  # fmt: skip
from muster.rng import Seeds, below

_ALARM = 96  # px: allies within this square round a unit that is hit turn on the shooter too


@leaf
def remove_unit(units: Int32s, types: Int64s, counters: Int64s, field: Int16s, i: int) -> None:
    """Take a dead unit off the field; it leaves the live list at the end of the frame."""
    units[lay.ALIVE, i] = 0
    counters[lay.DEATHS] = 1
    counters[lay.N_OURS if units[lay.SIDE, i] == 0 else lay.N_THEIRS] -= 1
    if types[units[lay.TYPE, i], lay.T_FLYER]:
        field[units[lay.CELL, i]] -= 1


@leaf
def _alarm(units: Int32s, types: Int64s, params: Int64s, i: int, shooter: int) -> None:
    """Make `shooter` the unit's automatic target if it has none alive, or none in range while this one is."""
    # A unit attacking on our command never looks at its automatic target, and any new order clears it.
    if (
        units[lay.ALIVE, i] == 0
        or units[lay.AUTO, i] == shooter
        or (units[lay.ORDER, i] == lay.ATTACK and units[lay.FREE, i] == 0)
    ):
        return
    old = units[lay.AUTO, i]
    if (
        old < 0
        or units[lay.ALIVE, old] == 0
        or (in_range_moving(units, types, params, i, shooter) and not in_range_moving(units, types, params, i, old))
    ):
        units[lay.AUTO, i] = shooter


@leaf
def _hurt(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, field: Int16s, n_ours: int, i: int, shooter: int
) -> None:
    """Unit i takes a hit from `shooter` (who may be dead already)."""
    if units[lay.ALIVE, i] == 0 or units[lay.HP, i] <= 0:
        return
    if params[P_AUTO_TARGET] and units[lay.ALIVE, shooter]:
        first = 0 if i < n_ours else n_ours
        last = n_ours if i < n_ours else units.shape[1]
        x = units[lay.PX, i]
        y = units[lay.PY, i]
        for j in range(first, last):
            kind = units[lay.TYPE, j]
            if (
                units[lay.PX, j] - types[kind, lay.T_LEFT] <= x + _ALARM
                and units[lay.PX, j] + types[kind, lay.T_RIGHT] >= x - _ALARM
                and units[lay.PY, j] - types[kind, lay.T_UP] <= y + _ALARM
                and units[lay.PY, j] + types[kind, lay.T_DOWN] >= y - _ALARM
            ):
                _alarm(units, types, params, j, shooter)
    units[lay.HP, i] -= types[units[lay.TYPE, shooter], lay.TYPE_FIELDS + units[lay.TYPE, i]]
    if units[lay.HP, i] <= 0:
        units[lay.HP, i] = 0
        if params[P_LATE_DEATH] == 0:
            remove_unit(units, types, counters, field, i)


@leaf
def _shoot(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int,
    rng: Seeds, i: int,
) -> None:  # fmt: skip
    """The moment of the attack animation at which the blow falls or the shot leaves."""
    target = units[lay.ORDER_UNIT, i]
    if target < 0 or units[lay.ALIVE, target] == 0:
        return
    kind = units[lay.TYPE, i]
    shot = types[kind, lay.T_SHOT]
    if shot == lay.SHOT_MELEE:
        _hurt(units, types, params, counters, field, n_ours, target, i)
        return
    n = counters[lay.N_BULLETS]
    if n >= bullets.shape[0]:
        counters[lay.LOST_SHOTS] += 1
        return
    counters[lay.N_BULLETS] = n + 1
    flies = shot == lay.SHOT_MISSILE and params[P_MISSILES] != 0
    bullets[n, lay.B_STATE] = lay.FLYING if flies else lay.INSTANT
    ahead = types[kind, lay.T_MISSILE_AHEAD]
    bullets[n, lay.B_X] = units[lay.PX, i] * 256 + UNIT_X[units[lay.HEADING, i]] * ahead
    bullets[n, lay.B_Y] = units[lay.PY, i] * 256 + UNIT_Y[units[lay.HEADING, i]] * ahead
    bullets[n, lay.B_SPEED] = 0
    bullets[n, lay.B_UNIT] = target
    bullets[n, lay.B_TX] = units[lay.PX, target]
    bullets[n, lay.B_TY] = units[lay.PY, target]
    bullets[n, lay.B_SOURCE] = i
    bullets[n, lay.B_TIMER] = types[kind, lay.T_BULLET_FRAMES]
    bullets[n, lay.B_MISS] = 1 if params[P_MISS] and below(rng, 0, 256) == 0 else 0


@leaf
def animate(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int,
    rng: Seeds, i: int,
) -> None:  # fmt: skip
    """One frame of the unit's animation: walking sets the next speed, attacking leads to the shot."""
    kind = units[lay.TYPE, i]
    if units[lay.ANIMATION, i] == lay.WALKING:
        step = (units[lay.WALK_STEP, i] + 1) % types[kind, lay.T_WALK_LENGTH]
        units[lay.WALK_STEP, i] = step
        units[lay.SPEED, i] = types[kind, lay.T_WALK + step]
        return
    time = units[lay.ATTACK_TIME, i]
    if time < 0 or units[lay.ANIMATION, i] != lay.SHOOTING:
        return
    units[lay.ATTACK_TIME, i] = time + 1
    column = lay.T_SHOT_FIRST if units[lay.FIRST_SHOT, i] and params[P_WINDUP] else lay.T_SHOT_REPEAT
    hold = column + lay.T_HOLD_FROM_FIRST - lay.T_SHOT_FIRST
    if params[P_UNBREAKABLE] and time == types[kind, hold]:
        units[lay.UNBREAKABLE, i] = 1
    if time == types[kind, column]:
        _shoot(units, types, params, counters, bullets, field, n_ours, rng, i)
    if time == types[kind, column + lay.T_READY_FIRST - lay.T_SHOT_FIRST]:
        units[lay.FLAGS, i] &= ~lay.ATTACKING
    if time == types[kind, column + lay.T_HOLD_TO_FIRST - lay.T_SHOT_FIRST] and units[lay.UNBREAKABLE, i]:
        units[lay.UNBREAKABLE, i] = 0
        resume_pending(units, i)
    if time > types[kind, column + lay.T_READY_FIRST - lay.T_SHOT_FIRST]:
        units[lay.ATTACK_TIME, i] = -1


@leaf
def _fly(units: Int32s, types: Int64s, params: Int64s, bullets: Int32s, n: int) -> bool:
    """Move a missile to where its target was when it was fired (or is, if it homes); True when it arrives."""
    target = bullets[n, lay.B_UNIT]
    if target >= 0 and units[lay.ALIVE, target] == 0:
        bullets[n, lay.B_UNIT] = -1
    elif target >= 0 and params[P_HOMING] and bullets[n, lay.B_MISS] == 0:
        bullets[n, lay.B_TX] = units[lay.PX, target]
        bullets[n, lay.B_TY] = units[lay.PY, target]
    kind = units[lay.TYPE, bullets[n, lay.B_SOURCE]]
    speed = min(bullets[n, lay.B_SPEED] + types[kind, lay.T_MISSILE_ACCEL], types[kind, lay.T_MISSILE_TOP])
    bullets[n, lay.B_SPEED] = speed
    dx = bullets[n, lay.B_TX] * 256 - bullets[n, lay.B_X]
    dy = bullets[n, lay.B_TY] * 256 - bullets[n, lay.B_Y]
    if speed >= length(dx, dy):
        bullets[n, lay.B_X] = bullets[n, lay.B_TX] * 256
        bullets[n, lay.B_Y] = bullets[n, lay.B_TY] * 256
        return True
    course = direction(dx, dy)
    bullets[n, lay.B_X] += (UNIT_X[course] * speed) >> 8
    bullets[n, lay.B_Y] += (UNIT_Y[course] * speed) >> 8
    return False


@leaf
def move_bullets(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int
) -> None:
    """One frame of every shot: fly, hit, and free the slot when the hit has been shown."""
    kept = 0
    for n in range(counters[lay.N_BULLETS]):
        state = bullets[n, lay.B_STATE]
        if state == lay.SHOWING:
            bullets[n, lay.B_TIMER] -= 1
            if bullets[n, lay.B_TIMER] <= 0:
                continue
        elif state == lay.INSTANT or _fly(units, types, params, bullets, n):
            bullets[n, lay.B_STATE] = lay.SHOWING
            target = bullets[n, lay.B_UNIT]
            if bullets[n, lay.B_MISS] == 0 and target >= 0:
                _hurt(units, types, params, counters, field, n_ours, target, bullets[n, lay.B_SOURCE])
        if kept != n:
            for part in range(lay.BULLET_FIELDS):
                bullets[kept, part] = bullets[n, part]
        kept += 1
    counters[lay.N_BULLETS] = kept
