"""Where each quantity of a battle lives in the kernels' arrays.

A batch of B battles is a few integer arrays, one leading index a battle:

- `units` [B, UNIT_FIELDS, U] int32: one row a quantity, one column a unit; ours first (0..N-1), then theirs;
- `counters` [B, COUNTERS] int64: the clock and totals of the battle;
- `bullets` [B, limit, BULLET_FIELDS] int32: shots in the air or showing their hit, oldest first;
- `field` [B, CELLS * CELLS] int16: how many flyers stand in each 48 x 48 cell.

Positions are in 1/256 pixel ("exact") or whole pixels; directions in 1/256 of a turn, 0 up, clockwise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Int16s = NDArray[np.int16]

FRAMES_A_SECOND = 24
"""The game's pace, about."""

UNIT_FIELDS = 76
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
    LEFTMOST,
) = range(UNIT_FIELDS)  # fmt: skip
"""Rows of `units`. LIVE is the list of live units in update order, `N_LIVE` of them; LEFTMOST is scratch space."""

# Movement flags.
TURNING, MOVING, BRAKING, ATTACKING = 1, 2, 4, 8
# What a planned step starts or ends.
NOTHING, STARTS, STOPS = 0, 1, 2
# Ground movement states.
REST, DELAY, FOLLOW, FIX, WAIT, SLIDE, FACE = range(7)
# Orders.
IDLE_FIRST, IDLE, ATTACK, ATTACK_MOVE, STOP, NO_ORDER = range(6)
# Animations.
STANDING, WALKING, SHOOTING = range(3)
# Commands on their way to a unit.
NO_COMMAND, COMMAND_ATTACK, COMMAND_ATTACK_MOVE = range(3)
# What a policy may ask of a unit instead of a target.
UNASSIGNED, HOLD, MARCH = -1, -2, -3

(
    FRAME, ORDER_COUNTER, N_LIVE, N_BULLETS, N_OURS, N_THEIRS, MARCH_X, MARCH_Y, MARCH_FRAME,
    OUR_MARCH_X, OUR_MARCH_Y, ENDED, STEPS, DEATHS, HEALTH_OURS, HEALTH_THEIRS, HEALTH_START, LOST_SHOTS,
) = range(18)  # fmt: skip
COUNTERS = 18
"""Entries of `counters`."""

B_STATE, B_X, B_Y, B_SPEED, B_UNIT, B_TX, B_TY, B_SOURCE, B_TIMER, B_MISS = range(10)
BULLET_FIELDS = 10
# Bullet states.
INSTANT, FLYING, SHOWING = range(3)

CELL_SIZE = 48
CELLS = 96
"""Flyers are counted on a CELLS x CELLS grid of CELL_SIZE pixels."""

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
