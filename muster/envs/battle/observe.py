"""What a policy sees of a battle, and what becomes of its assignment."""

from __future__ import annotations

import numpy as np

from muster.compile import entry, leaf, lean_entry, maker
from muster.data import Floats, Floats32
from muster.envs.battle import layout as lay
from muster.envs.battle.layout import Int32s, Int64s
from muster.envs.battle.status import TILE, closest_enemy, contribution, hit_points, stands, tile_distance

BASE_FEATURES = 8
ENEMY, PLACE_X, PLACE_Y, VELOCITY_X, VELOCITY_Y, HEALTH, COOLDOWN, RANGE = range(BASE_FEATURES)
"""Features of a unit; its one-hot type may follow."""
PAIR_FEATURES = 2
DISTANCE, LAST_TARGET = range(PAIR_FEATURES)
"""Features of a unit and an enemy."""
CONTRIBUTION = "integer damage of one hit"


@leaf
def describe_unit(
    units: Int32s, types: Int64s, ranges: Floats, i: int, enemy: float, one_hot: bool, row: Floats32
) -> None:
    """Features of one unit: enemy flag, place, velocity, health, cooldown, range and perhaps its type, one-hot."""
    kind = units[lay.TYPE, i]
    row[:] = 0.0
    if not stands(units, i):
        return
    row[ENEMY] = enemy
    row[PLACE_X] = units[lay.PX, i] / 64 - 15
    row[PLACE_Y] = units[lay.PY, i] / 64 - 15
    row[VELOCITY_X] = (units[lay.X, i] - units[lay.OLD_X, i]) / 256 / 5
    row[VELOCITY_Y] = (units[lay.Y, i] - units[lay.OLD_Y, i]) / 256 / 5
    row[HEALTH] = hit_points(units, i) * 256 / types[kind, lay.T_HP]
    row[COOLDOWN] = units[lay.COOLDOWN, i] / types[kind, lay.T_COOLDOWN]
    row[RANGE] = ranges[kind]
    if one_hot:
        row[BASE_FEATURES + kind] = 1.0


@leaf
def capacity(units: Int32s, types: Int64s, n_ours: int, j: int) -> int:
    """How much damage enemy j is worth.

    If the last decision's attackers suffice to kill it, their damage, summed only until it does; otherwise the least
    number of hits of our weakest attacker that does, times that attacker's damage.
    """
    health = hit_points(units, n_ours + j)
    committed = 0
    least = 0
    for i in range(n_ours):
        if not stands(units, i):
            continue
        damage = contribution(units, types, i, n_ours + j)
        if least == 0 or damage < least:
            least = damage
        if units[lay.PREVIOUS, i] == j and committed < health:
            committed += damage
    if committed >= health:
        return committed
    return (health + least - 1) // max(least, 1) * least


@lean_entry
def observe_all(
    units: Int32s, types: Int64s, ranges: Floats, n_ours: int, one_hot: bool, distance_scale: float,
    agents: Floats32, tasks: Floats32, pairs: Floats32, contributions: Floats, capacities: Floats,
) -> None:  # fmt: skip
    """Fill the blocks of an observation of every battle."""
    for b in range(units.shape[0]):
        now = units[b]
        n_theirs = now.shape[1] - n_ours
        for i in range(n_ours):
            describe_unit(now, types, ranges, i, 0.0, one_hot, agents[b, i])
        for j in range(n_theirs):
            describe_unit(now, types, ranges, n_ours + j, 1.0, one_hot, tasks[b, j])
            capacities[b, j] = capacity(now, types, n_ours, j) if stands(now, n_ours + j) else 0
        for i in range(n_ours):
            x = now[lay.PX, i] // TILE
            y = now[lay.PY, i] // TILE
            for j in range(n_theirs):
                k = n_ours + j
                pairs[b, i, j, DISTANCE] = tile_distance(now, k, x, y) / TILE / distance_scale
                pairs[b, i, j, LAST_TARGET] = 1.0 if now[lay.PREVIOUS, i] == j else 0.0
                contributions[b, i, j] = contribution(now, types, i, k)


@maker
def resolve(units: Int32s, types: Int64s, n_ours: int, guess: bool, assignment: Int64s, orders: Int64s) -> None:
    """Turn one battle's assignment into orders.

    A task index is that enemy; HOLD and MARCH pass through. An agent that is unassigned, or whose enemy is dead, stops
    if it could still have fitted somewhere (`guess`: so the policy chose it); otherwise it keeps its previous target,
    or takes the closest enemy. With a single enemy left it attacks that one.
    """
    n_theirs = units.shape[1] - n_ours
    open_agents = 0
    for i in range(n_ours):
        orders[i] = lay.HOLD
        task = assignment[i]
        if not stands(units, i) or task == lay.HOLD or task == lay.MARCH:
            orders[i] = task if task == lay.MARCH else lay.HOLD
        elif task >= 0 and stands(units, n_ours + task):
            orders[i] = task
        else:
            orders[i] = -1
            open_agents += 1
    if open_agents == 0:
        return
    room = np.zeros(n_theirs, np.int64)
    left = 0
    last = -1
    for j in range(n_theirs):
        if stands(units, n_ours + j):
            room[j] = capacity(units, types, n_ours, j)
            left += 1
            last = j
    for i in range(n_ours):
        if orders[i] >= 0:
            room[orders[i]] -= contribution(units, types, i, n_ours + orders[i])
    for i in range(n_ours):
        if orders[i] != -1:
            continue
        if left == 1:
            orders[i] = last
            continue
        fits = False
        for j in range(n_theirs if guess else 0):
            if room[j] > 0 and room[j] >= contribution(units, types, i, n_ours + j):
                fits = True
                break
        previous = units[lay.PREVIOUS, i]
        if fits:
            orders[i] = lay.HOLD
        elif previous >= 0 and stands(units, n_ours + previous):
            orders[i] = previous
        else:
            orders[i] = closest_enemy(units, n_ours, i)


@entry
def resolve_all(
    units: Int32s, types: Int64s, counters: Int64s, n_ours: int, guess: bool, assignment: Int64s, orders: Int64s
) -> None:
    """Orders of every battle that goes on."""
    for b in range(units.shape[0]):
        if counters[b, lay.ENDED] == 0:
            resolve(units[b], types, n_ours, guess, assignment[b], orders[b])
