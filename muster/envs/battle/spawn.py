"""Setting up a battle."""

from __future__ import annotations

from numba import njit, prange

from muster.envs.battle.dynamics import RESET_PERIOD, shown_health
from muster.envs.battle.geometry import boxes_meet
from muster.envs.battle.layout import (
    ALIVE,
    ATTACK_TIME,
    AUTO,
    CELL,
    FACE_X,
    FACE_Y,
    FIRED_FRAME,
    HEADING,
    HEALTH_OURS,
    HEALTH_START,
    HEALTH_THEIRS,
    HIT_UNIT,
    HP,
    IDLE,
    KEY,
    LIVE,
    LOOK_TIMER,
    MAIN_TIMER,
    MARCH_FRAME,
    N_LIVE,
    N_OURS,
    N_THEIRS,
    NO_ORDER,
    OLD_X,
    OLD_Y,
    ORDER,
    ORDER_COUNTER,
    ORDER_UNIT,
    PENDING,
    PREVIOUS,
    PUSH_DIR,
    PX,
    PY,
    QUEUED,
    SEEN,
    SIDE,
    T_FLYER,
    T_HP,
    TARGET_UNIT,
    TARGET_X,
    TARGET_Y,
    TYPE,
    VELOCITY_DIR,
    WAY_X,
    WAY_Y,
    Int16s,
    Int32s,
    Int64s,
    X,
    Y,
    kernel,
)  # fmt: skip
from muster.envs.battle.movement import cell_of
from muster.envs.battle.settings import P_FOG, P_LOOK, P_OPPONENT_FIRST
from muster.rng import Seeds, below, normal

LOW, HIGH = 64, 4032
"""Bounds of the map in pixels, within which units are placed."""


@kernel
def _free_at(units: Int32s, types: Int64s, i: int, x: int, y: int) -> bool:
    for j in range(i):
        if boxes_meet(types, units[TYPE, i], x, y, units[TYPE, j], units[PX, j], units[PY, j]):
            return False
    return True


@kernel
def _place(units: Int32s, types: Int64s, i: int, x: int, y: int) -> None:
    """Put unit i at (x, y), or on the nearest free place of an 8-pixel grid round it if it walks."""
    best_x = x
    best_y = y
    if types[units[TYPE, i], T_FLYER] == 0 and not _free_at(units, types, i, x, y):
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
    units[PX, i] = best_x
    units[PY, i] = best_y


@kernel
def start_battle(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, field: Int16s, n_ours: int, rng: Seeds,
    roster: Int64s,
) -> None:  # fmt: skip
    """Fill the arrays of one battle; `roster` [U, 5] has each unit's type, centre x, y and spread x, y."""
    n = units.shape[1]
    units[:] = 0
    counters[:] = 0
    field[:] = 0
    for i in range(n):
        units[TYPE, i] = roster[i, 0]
        units[SIDE, i] = 0 if i < n_ours else 1
        x = 8 * int(roster[i, 1] + roster[i, 3] * normal(rng, 0))
        y = 8 * int(roster[i, 2] + roster[i, 4] * normal(rng, 0))
        _place(units, types, i, min(max(x, LOW), HIGH), min(max(y, LOW), HIGH))
        units[HEADING, i] = below(rng, 0, 256)
        units[PUSH_DIR, i] = below(rng, 0, 256)
        units[MAIN_TIMER, i] = below(rng, 0, 16)
        units[LOOK_TIMER, i] = below(rng, 0, params[P_LOOK])
        # Stands for the address of the unit in memory, which decides the order of the authors' hash maps.
        units[KEY, i] = 16 * below(rng, 0, 1 << 26)
        units[ALIVE, i] = 1
        units[HP, i] = types[units[TYPE, i], T_HP]
        units[ORDER, i] = IDLE
        units[VELOCITY_DIR, i] = units[HEADING, i]
        for row in (QUEUED, PENDING):
            units[row, i] = NO_ORDER
        for row in (TARGET_UNIT, ORDER_UNIT, AUTO, HIT_UNIT, PREVIOUS, ATTACK_TIME, FIRED_FRAME):
            units[row, i] = -1
        for row in (TARGET_X, WAY_X, FACE_X):
            units[row, i] = units[PX, i]
        for row in (TARGET_Y, WAY_Y, FACE_Y):
            units[row, i] = units[PY, i]
        for row in (X, OLD_X):
            units[row, i] = 256 * units[PX, i]
        for row in (Y, OLD_Y):
            units[row, i] = 256 * units[PY, i]
        units[SEEN, i] = 0 if params[P_FOG] else 1
        if types[units[TYPE, i], T_FLYER]:
            units[CELL, i] = cell_of(units, i)
            field[units[CELL, i]] += 1
        # Newest first; ours were created first, so they come last unless the setting says otherwise.
        place = n - 1 - i
        if params[P_OPPONENT_FIRST] == 0:
            place = n_ours - 1 - i if i < n_ours else n - 1 - (i - n_ours)
        units[LIVE, place] = i
    counters[ORDER_COUNTER] = 1 + below(rng, 0, RESET_PERIOD)
    counters[N_LIVE] = n
    counters[N_OURS] = n_ours
    counters[N_THEIRS] = n - n_ours
    counters[MARCH_FRAME] = -1
    counters[HEALTH_OURS] = shown_health(units, 0, n_ours)
    counters[HEALTH_THEIRS] = shown_health(units, n_ours, n)
    counters[HEALTH_START] = counters[HEALTH_OURS]


@njit(cache=True, parallel=True, error_model="numpy")
def start_battles(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, field: Int16s, n_ours: int, rng: Seeds,
    roster: Int64s, slots: Int64s, seeds: Seeds,
) -> None:  # fmt: skip
    """Begin a battle in each of `slots`."""
    for k in prange(len(slots)):
        b = slots[k]
        rng[b] = seeds[k]
        start_battle(units[b], types, params, counters[b], field[b], n_ours, rng[b : b + 1], roster)
