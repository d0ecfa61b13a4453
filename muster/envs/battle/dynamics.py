"""Time: one frame of a battle, and the frames between two decisions for a whole batch."""

from __future__ import annotations

from muster.compile import glue, leaf, lean_entry
from muster.envs.battle import layout as lay
from muster.envs.battle.collision import move_walker
from muster.envs.battle.combat import animate, move_bullets, remove_unit
from muster.envs.battle.geometry import length
from muster.envs.battle.layout import Int16s, Int32s, Int64s
from muster.envs.battle.movement import move_flyer
from muster.envs.battle.opponents import mean_tile, order_opponents
from muster.envs.battle.orders import give_order, look
from muster.envs.battle.settings import (
    P_BOT_STEP,
    P_DECISION,
    P_FOG,
    P_LATE_DEATH,
    P_LATENCY,
    P_LOOK,
    P_REISSUE,
    P_START_DELAY,
    P_TIMER_RESET,
)  # fmt: skip
from muster.envs.battle.status import hit_points
from muster.rng import Seeds

RESET_PERIOD = 150
"""Frames after which the order timers of all units are staggered again."""


@leaf
def command(units: Int32s, params: Int64s, counters: Int64s, n_ours: int, orders: Int64s) -> None:
    """Send each of our units its order: an enemy's index, HOLD (stop) or MARCH (attack-move to the enemy's middle).

    An attack is sent only when the target has changed. A unit on HOLD is stopped at every step of the bot.
    """
    frame = counters[lay.FRAME]
    counters[lay.OUR_MARCH_X] = 8 * mean_tile(units, lay.PX, n_ours, units.shape[1])
    counters[lay.OUR_MARCH_Y] = 8 * mean_tile(units, lay.PY, n_ours, units.shape[1])
    march_again = frame // params[P_REISSUE] != (frame - params[P_DECISION]) // params[P_REISSUE]
    for i in range(n_ours):
        if units[lay.ALIVE, i] == 0:
            continue
        order = orders[i]
        units[lay.WAS_STOPPING, i] = units[lay.STOPPING, i]
        units[lay.STOPPING, i] = 1 if order == lay.HOLD else 0
        if order >= 0 and order != units[lay.PREVIOUS, i]:
            units[lay.COMMAND, i] = lay.COMMAND_ATTACK
            units[lay.COMMAND_UNIT, i] = n_ours + order
            units[lay.COMMAND_FRAME, i] = frame + params[P_LATENCY]
        elif order == lay.MARCH and (march_again or units[lay.PREVIOUS, i] != lay.MARCH):
            units[lay.COMMAND, i] = lay.COMMAND_ATTACK_MOVE
            units[lay.COMMAND_FRAME, i] = frame + params[P_LATENCY]
        units[lay.PREVIOUS, i] = order


@leaf
def _deliver(units: Int32s, params: Int64s, counters: Int64s, n_ours: int, started: int) -> None:
    """Apply our commands that are due; the decision they may come from was taken in frame `started`."""
    frame = counters[lay.FRAME]
    sent = frame - params[P_LATENCY]
    bot_steps = sent % params[P_BOT_STEP] == 0
    row = lay.STOPPING if sent >= started else lay.WAS_STOPPING
    for i in range(n_ours):
        if units[lay.ALIVE, i] == 0:
            continue
        if bot_steps and units[row, i]:
            give_order(units, i, lay.STOP, -1, units[lay.PX, i], units[lay.PY, i])
        if units[lay.COMMAND, i] == lay.NO_COMMAND or units[lay.COMMAND_FRAME, i] != frame:
            continue
        if units[lay.COMMAND, i] == lay.COMMAND_ATTACK_MOVE:
            units[lay.START_DELAY, i] = params[P_START_DELAY]
            give_order(units, i, lay.ATTACK_MOVE, -1, counters[lay.OUR_MARCH_X], counters[lay.OUR_MARCH_Y])
        elif units[lay.ALIVE, units[lay.COMMAND_UNIT, i]]:
            units[lay.START_DELAY, i] = params[P_START_DELAY]
            target = units[lay.COMMAND_UNIT, i]
            give_order(units, i, lay.ATTACK, target, units[lay.PX, target], units[lay.PY, target])
        units[lay.COMMAND, i] = lay.NO_COMMAND


@leaf
def _see(units: Int32s, types: Int64s, counters: Int64s, n_ours: int) -> None:
    """Mark the units that an enemy has come to see; what has been seen stays so."""
    # While the armies are apart, most units lie beyond anything that the other side can see: tell them by x alone.
    ours_left = theirs_left = 1 << 30
    ours_right = theirs_right = -(1 << 30)
    for k in range(counters[lay.N_LIVE]):
        i = units[lay.LIVE, k]
        x = units[lay.PX, i]
        reach = types[units[lay.TYPE, i], lay.T_SIGHT]
        if i < n_ours:
            ours_left = min(ours_left, x - reach)
            ours_right = max(ours_right, x + reach)
        else:
            theirs_left = min(theirs_left, x - reach)
            theirs_right = max(theirs_right, x + reach)
    for k in range(counters[lay.N_LIVE]):
        i = units[lay.LIVE, k]
        if units[lay.SEEN, i]:
            continue
        x = units[lay.PX, i]
        if x < (theirs_left if i < n_ours else ours_left) or x > (theirs_right if i < n_ours else ours_right):
            continue
        first = n_ours if i < n_ours else 0
        last = units.shape[1] if i < n_ours else n_ours
        for j in range(first, last):
            if units[lay.ALIVE, j]:
                dx = units[lay.PX, j] - x
                reach = types[units[lay.TYPE, j], lay.T_SIGHT]
                if abs(dx) <= reach and length(dx, units[lay.PY, j] - units[lay.PY, i]) <= reach:
                    units[lay.SEEN, i] = 1
                    break


@leaf
def _update(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int,
    rng: Seeds, i: int,
) -> None:  # fmt: skip
    """One unit's timers, order and animation."""
    kind = units[lay.TYPE, i]
    if units[lay.MAIN_TIMER, i] > 0:
        units[lay.MAIN_TIMER, i] -= 1
    if units[lay.COOLDOWN, i] > 0:
        units[lay.COOLDOWN, i] -= 1
    if units[lay.COOLDOWN, i] == 0 and types[kind, lay.T_READY_LOOK]:
        units[lay.LOOK_TIMER, i] = 0
    if types[kind, lay.T_REGEN]:
        units[lay.HP, i] = min(units[lay.HP, i] + types[kind, lay.T_REGEN], types[kind, lay.T_HP])
    if units[lay.CHASE_TIMER, i] > 0:
        units[lay.CHASE_TIMER, i] -= 1
    if units[lay.LOOK_TIMER, i] > 0:
        units[lay.LOOK_TIMER, i] -= 1
    else:
        units[lay.LOOK_TIMER, i] = params[P_LOOK] - 1
        look(units, types, params, counters, n_ours, rng, i)
    animate(units, types, params, counters, bullets, field, n_ours, rng, i)


@leaf
def _bury(units: Int32s, counters: Int64s) -> None:
    """Drop the dead from the live list."""
    kept = 0
    for k in range(counters[lay.N_LIVE]):
        i = units[lay.LIVE, k]
        if units[lay.ALIVE, i]:
            units[lay.LIVE, kept] = i
            kept += 1
    counters[lay.N_LIVE] = kept
    counters[lay.DEATHS] = 0


@glue
def advance_frame(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int,
    rng: Seeds, started: int,
) -> None:  # fmt: skip
    """One frame: commands, movement, sight, orders and animations, shots."""
    _deliver(units, params, counters, n_ours, started)
    order_opponents(units, params, counters, n_ours, rng)
    counters[lay.ORDER_COUNTER] -= 1
    if counters[lay.ORDER_COUNTER] <= 0:
        counters[lay.ORDER_COUNTER] = RESET_PERIOD
        if params[P_TIMER_RESET]:
            for k in range(counters[lay.N_LIVE]):
                units[lay.LOOK_TIMER, units[lay.LIVE, k]] = k % 8
    for k in range(counters[lay.N_LIVE]):
        i = units[lay.LIVE, k]
        units[lay.OLD_X, i] = units[lay.X, i]
        units[lay.OLD_Y, i] = units[lay.Y, i]
        if types[units[lay.TYPE, i], lay.T_FLYER]:
            move_flyer(units, types, params, field, i)
        else:
            move_walker(units, types, params, counters, rng, i)
    if params[P_FOG]:
        _see(units, types, counters, n_ours)
    for k in range(counters[lay.N_LIVE]):
        i = units[lay.LIVE, k]
        if units[lay.ALIVE, i] == 0:
            continue
        if units[lay.HP, i] <= 0 and params[P_LATE_DEATH]:
            remove_unit(units, types, counters, field, i)
            continue
        _update(units, types, params, counters, bullets, field, n_ours, rng, i)
    move_bullets(units, types, params, counters, bullets, field, n_ours)
    if counters[lay.DEATHS]:
        _bury(units, counters)
    counters[lay.FRAME] += 1


@leaf
def shown_health(units: Int32s, first: int, last: int) -> int:
    """Hit points of the live units first..last-1 as the game shows them (rounded up)."""
    total = 0
    for i in range(first, last):
        if units[lay.ALIVE, i]:
            total += hit_points(units, i)
    return total


@lean_entry
def play_decisions(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int,
    rng: Seeds, orders: Int64s, frames: int,
) -> None:  # fmt: skip
    """Carry out one decision in every battle of the batch, or its first `frames` frames, to look at what lies between.

    Nothing happens in a battle that has ended.
    """
    for b in range(units.shape[0]):
        clock = counters[b]
        if clock[lay.ENDED]:
            continue
        started = clock[lay.FRAME]
        command(units[b], params, clock, n_ours, orders[b])
        for _ in range(frames):
            advance_frame(units[b], types, params, clock, bullets[b], field[b], n_ours, rng[b : b + 1], started)
            if clock[lay.N_OURS] == 0 or clock[lay.N_THEIRS] == 0:
                clock[lay.ENDED] = 1
                break
        clock[lay.STEPS] += 1
        clock[lay.HEALTH_OURS] = shown_health(units[b], 0, n_ours)
        clock[lay.HEALTH_THEIRS] = shown_health(units[b], n_ours, units.shape[2])


@lean_entry
def play_ahead(
    units: Int32s, types: Int64s, params: Int64s, counters: Int64s, bullets: Int32s, field: Int16s, n_ours: int,
    rng: Seeds, slots: Int64s,
) -> None:  # fmt: skip
    """Play the battles in `slots` up to our first decision, in frame 0: an opponent may be ordered before us."""
    for b in slots:
        while counters[b, lay.FRAME] < 0:
            advance_frame(units[b], types, params, counters[b], bullets[b], field[b], n_ours, rng[b : b + 1], 0)
