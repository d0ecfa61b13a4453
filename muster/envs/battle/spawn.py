"""Setting up a battle."""

from __future__ import annotations

from muster.compile import leaf, lean_entry
from muster.envs.battle import layout as lay
from muster.envs.battle.dynamics import RESET_PERIOD, shown_health
from muster.envs.battle.geometry import boxes_meet
from muster.envs.battle.layout import Int16s, Int32s, Int64s
from muster.envs.battle.movement import cell_of
from muster.envs.battle.settings import P_FIRST_ORDER, P_FOG, P_LOOK, P_OPPONENT_FIRST, P_STANDING
from muster.rng import Seeds, below, normal

LOW, HIGH = 64, 4032
"""Bounds of the map in pixels, within which units are placed."""


@leaf
def _free_at(units: Int32s, types: Int64s, i: int, x: int, y: int) -> bool:
    for j in range(i):
        if boxes_meet(types, units[lay.TYPE, i], x, y, units[lay.TYPE, j], units[lay.PX, j], units[lay.PY, j]):
            return False
    return True


@leaf
def _place(units: Int32s, types: Int64s, i: int, x: int, y: int) -> None:
    """Put unit i at (x, y), or on the nearest free place of an 8-pixel grid round it if it walks."""
    best_x = x
    best_y = y
    if types[units[lay.TYPE, i], lay.T_FLYER] == 0 and not _free_at(units, types, i, x, y):
        best = 1 << 30
        ring = 1
        # A free place in ring r may be beaten by one in the next few: their corners are further than their sides.
        while best == 1 << 30 or ring * ring <= best:
            for dx in range(-ring, ring + 1):
                for dy in range(-ring, ring + 1):
                    way = dx * dx + dy * dy
                    on_ring = max(abs(dx), abs(dy)) == ring
                    if on_ring and way < best and _free_at(units, types, i, x + 8 * dx, y + 8 * dy):
                        best = way
                        best_x = x + 8 * dx
                        best_y = y + 8 * dy
            ring += 1
    units[lay.PX, i] = best_x
    units[lay.PY, i] = best_y


@leaf
def _start_counters(units: Int32s, params: Int64s, counters: Int64s, n_ours: int, rng: Seeds) -> None:
    """Fill the counters of a battle whose units are in place."""
    n = units.shape[1]
    counters[:] = 0
    counters[lay.ORDER_COUNTER] = 1 + below(rng, 0, RESET_PERIOD)
    counters[lay.N_LIVE] = n
    counters[lay.N_OURS] = n_ours
    counters[lay.N_THEIRS] = n - n_ours
    counters[lay.MARCH_FRAME] = -(1 << 30)
    counters[lay.HEALTH_OURS] = shown_health(units, 0, n_ours)
    counters[lay.HEALTH_THEIRS] = shown_health(units, n_ours, n)
    counters[lay.HEALTH_START] = counters[lay.HEALTH_OURS]
    # An opponent that is ordered before us sets off before our first decision.
    counters[lay.FRAME] = min(params[P_FIRST_ORDER], 0)


@leaf
def start_battle(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int,
    rng: Seeds, roster: Int64s,
) -> None:  # fmt: skip
    """Fill the arrays of one battle; `roster` [U, 5] has each unit's type, centre x, y and spread x, y."""
    n = units.shape[1]
    units[:] = 0
    field[:] = 0
    for i in range(n):
        units[lay.TYPE, i] = roster[i, 0]
        units[lay.SIDE, i] = 0 if i < n_ours else 1
        x = 8 * int(roster[i, 1] + roster[i, 3] * normal(rng, 0))
        y = 8 * int(roster[i, 2] + roster[i, 4] * normal(rng, 0))
        _place(units, types, i, min(max(x, LOW), HIGH), min(max(y, LOW), HIGH))
        units[lay.HEADING, i] = below(rng, 0, 256)
        units[lay.PUSH_DIR, i] = below(rng, 0, 256)
        units[lay.MAIN_TIMER, i] = below(rng, 0, 16)
        units[lay.LOOK_TIMER, i] = below(rng, 0, params[P_LOOK])
        if params[P_STANDING]:
            # Its order was looked at in the frame in which it appeared; the timers have run since.
            units[lay.MAIN_TIMER, i] = max(units[lay.MAIN_TIMER, i] - params[P_STANDING] + 1, 0)
            units[lay.LOOK_TIMER, i] = params[P_LOOK] - params[P_STANDING]
        # The first unit's is the number from which ours count, which decides the order of the authors' hash maps.
        units[lay.KEY, i] = 16 * below(rng, 0, 1 << 26)
        units[lay.ALIVE, i] = 1
        units[lay.HP, i] = types[units[lay.TYPE, i], lay.T_HP]
        units[lay.ORDER, i] = lay.IDLE
        units[lay.VELOCITY_DIR, i] = units[lay.HEADING, i]
        for row in (lay.QUEUED, lay.PENDING):
            units[row, i] = lay.NO_ORDER
        for row in (
            lay.TARGET_UNIT,
            lay.ORDER_UNIT,
            lay.AUTO,
            lay.HIT_UNIT,
            lay.PREVIOUS,
            lay.ATTACK_TIME,
            lay.FIRED_FRAME,
        ):
            units[row, i] = -1
        for row in (lay.TARGET_X, lay.WAY_X, lay.FACE_X):
            units[row, i] = units[lay.PX, i]
        for row in (lay.TARGET_Y, lay.WAY_Y, lay.FACE_Y):
            units[row, i] = units[lay.PY, i]
        for row in (lay.X, lay.OLD_X):
            units[row, i] = 256 * units[lay.PX, i]
        for row in (lay.Y, lay.OLD_Y):
            units[row, i] = 256 * units[lay.PY, i]
        units[lay.SEEN, i] = 0 if params[P_FOG] else 1
        if types[units[lay.TYPE, i], lay.T_FLYER]:
            units[lay.CELL, i] = cell_of(units, i)
            field[units[lay.CELL, i]] += 1
        # Newest first; ours were created first, so they come last unless the setting says otherwise.
        place = n - 1 - i
        if params[P_OPPONENT_FIRST] == 0:
            place = n_ours - 1 - i if i < n_ours else n - 1 - (i - n_ours)
        units[lay.LIVE, place] = i
    _start_counters(units, params, counters, n_ours, rng)


@lean_entry
def start_battles(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int,
    rng: Seeds, roster: Int64s, slots: Int64s, seeds: Seeds,
) -> None:  # fmt: skip
    """Begin a battle in each of `slots`."""
    for k in range(len(slots)):
        b = slots[k]
        rng[b] = seeds[k]
        bullets[b] = 0
        start_battle(units[b], types, params, counters[b], bullets[b], field[b], n_ours, rng[b : b + 1], roster)
