"""Indices of the quantities of a battle in the engine's arrays; core/envs/battle/layout.hpp has the same names.

A batch of B battles is a few integer arrays, one leading index a battle:

- `units` [B, UNIT_FIELDS, U] int32: one row a quantity, one column a unit; ours first (0..N-1), then theirs;
- `counters` [B, COUNTERS] int64: the clock and totals of the battle;
- `bullets` [B, BULLET_LIMIT, BULLET_FIELDS] int32: shots in the air or showing their hit, oldest first;
- `cells` [B, CELLS * CELLS] int16: how many flyers are in each 48 x 48 cell.

Positions are in 1/256 pixel ("exact") or whole pixels; directions in 1/256 of a turn, 0 up, clockwise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from muster.data import Ints

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

FRAMES_A_SECOND = 24
"""Frames per second of the game, about."""
DECISION_FRAMES = 6
"""Frames between two decisions."""
LOOK_PERIOD = 9
"""Frames between two looks of a unit at its order."""
BULLET_LIMIT = 100
"""Shots that may exist at once; a shot beyond it is lost."""

UNIT_FIELDS = 75
(
    TYPE, SIDE, ALIVE, HP, KEY, LIVE,
    X, Y, PX, PY, TARGET_X, TARGET_Y, TARGET_UNIT, WAY_X, WAY_Y, FACE_X, FACE_Y,
    HEADING, VELOCITY_DIR, DESIRED_DIR, CURRENT_DIR, SPEED, CURRENT_SPEED, FLAGS,
    PLAN_X, PLAN_Y, PLAN_SPEED, PLAN_FLAGS, PLAN_EVENT,
    STATE, HAS_PATH, PATH_FRAME, NEW_TARGET, HIT_UNIT, HIT_SPEED, SLIDE_DIR, BLOCKED, IMMOVABLE, START_DELAY,
    CELL, PUSH_DIR, PUSH_COUNT,
    ORDER, ORDER_STATE, ORDER_UNIT, ORDER_X, ORDER_Y, LOOK_TIMER, MAIN_TIMER, CHASE_TIMER, COOLDOWN, AUTO, FREE,
    QUEUED, QUEUED_X, QUEUED_Y, PENDING, PENDING_UNIT, PENDING_X, PENDING_Y,
    ANIMATION, ATTACK_TIME, FIRST_SHOT, WALK_STEP, UNBREAKABLE, SEEN,
    COMMAND, COMMAND_UNIT, COMMAND_FRAME, STOPPING, WAS_STOPPING, PREVIOUS, FIRED_FRAME, OLD_X, OLD_Y,
) = range(UNIT_FIELDS)  # fmt: skip
"""Rows of `units`. LIVE is the list of live units in update order, `N_LIVE` of them."""

IDLE_FIRST, IDLE, ATTACK, ATTACK_MOVE, STOP, NO_ORDER = range(6)
"""Values of ORDER."""
UNASSIGNED, HOLD, MARCH = -1, -2, -3
"""Orders of a policy without a target."""

COUNTERS = 18
(
    FRAME, ORDER_COUNTER, N_LIVE, N_BULLETS, N_OURS, N_THEIRS, MARCH_X, MARCH_Y, MARCH_FRAME,
    OUR_MARCH_X, OUR_MARCH_Y, ENDED, STEPS, DEATHS, HEALTH_OURS, HEALTH_THEIRS, HEALTH_START, LOST_SHOTS,
) = range(COUNTERS)  # fmt: skip
"""Entries of `counters`."""

BULLET_FIELDS = 10
B_STATE, B_X, B_Y, B_SPEED, B_UNIT, B_TX, B_TY, B_SOURCE, B_TIMER, B_MISS = range(BULLET_FIELDS)
"""Columns of `bullets`."""
INSTANT, FLYING, SHOWING = range(3)
"""Values of B_STATE."""

CELL_SIZE = 48
CELLS = 96
"""Flyers are counted on a CELLS x CELLS grid of CELL_SIZE pixels."""
LOW, HIGH = 64, 4032
"""Bounds of the map in pixels, within which units are placed."""

(
    T_HP, T_LEFT, T_UP, T_RIGHT, T_DOWN, T_COOLDOWN, T_RANGE, T_ACQUIRE, T_SIGHT, T_TURN, T_ANGLE, T_FLYER,
    T_TOP, T_ACCEL, T_HALT, T_REGEN, T_SHOT, T_BULLET_FRAMES, T_MISSILE_TOP, T_MISSILE_ACCEL, T_MISSILE_AHEAD,
    T_READY_LOOK, T_AIR,
    T_SHOT_FIRST, T_HOLD_FROM_FIRST, T_HOLD_TO_FIRST, T_READY_FIRST,
    T_SHOT_REPEAT, T_HOLD_FROM_REPEAT, T_HOLD_TO_REPEAT, T_READY_REPEAT,
    T_WALK_LENGTH, T_WALK,
) = range(33)  # fmt: skip
MAX_WALK = 8
TYPE_FIELDS = T_WALK + MAX_WALK
"""Columns of `types` [K, TYPE_FIELDS + 2 K]; after them come exact and integer damage on each type."""
SHOT_INSTANT, SHOT_MISSILE, SHOT_MELEE = range(3)
"""Values of T_SHOT."""


def shown_hit_points(units: Int32s) -> Ints:
    """[U] whole hit points, as the game shows them: rounded up."""
    return (units[HP].astype(np.int64) + 255) >> 8


def targets_of(units: Int32s) -> Ints:
    """[U] the living unit that each living unit attacks, -1 for none."""
    alive = units[ALIVE] != 0
    target = units[ORDER_UNIT].astype(np.int64)
    attacks = alive & (units[ORDER] == ATTACK) & (target >= 0)
    return np.where(attacks & alive[np.maximum(target, 0)], target, -1)


def incoming_damage(types: Ints, units: Int32s, targets: Ints) -> Ints:
    """[U] integer damage of the next hits of all attackers of each unit."""
    attackers = np.flatnonzero(targets >= 0)
    attacked = targets[attackers]
    damage = np.zeros(len(targets), dtype=np.int64)
    columns = TYPE_FIELDS + len(types) + units[TYPE, attacked]
    np.add.at(damage, attacked, types[units[TYPE, attackers], columns])
    return damage
