"""Orders that are not aimed at one unit: the opponent's attack-move, and ours when we copy it."""

from __future__ import annotations

from muster.envs.battle.layout import (
    ALIVE,
    ATTACK_MOVE,
    FRAME,
    MAIN_TIMER,
    MARCH_FRAME,
    MARCH_X,
    MARCH_Y,
    PX,
    PY,
    START_DELAY,
    Int32s,
    Int64s,
    kernel,
)  # fmt: skip
from muster.envs.battle.orders import give_order
from muster.envs.battle.settings import P_FIRST_ORDER, P_LATENCY, P_NEUTRAL_TIMER, P_REISSUE, P_START_DELAY
from muster.rng import Seeds, below


@kernel
def mean_tile(units: Int32s, row: int, first: int, last: int) -> int:
    """Integer mean, in walk tiles, of one coordinate (PX or PY) of the live units first..last-1."""
    total = 0
    n = 0
    for i in range(first, last):
        if units[ALIVE, i]:
            total += units[row, i] // 8
            n += 1
    return total // max(n, 1)


@kernel
def order_opponents(units: Int32s, params: Int64s, counters: Int64s, n_ours: int, rng: Seeds) -> None:
    """Every so often send all opponents to the middle of our army, attacking what they meet."""
    frame = counters[FRAME]
    since = frame - params[P_FIRST_ORDER]
    if since >= 0 and since % params[P_REISSUE] == 0:
        counters[MARCH_X] = 8 * mean_tile(units, PX, 0, n_ours)
        counters[MARCH_Y] = 8 * mean_tile(units, PY, 0, n_ours)
        counters[MARCH_FRAME] = frame + params[P_LATENCY]
    if frame != counters[MARCH_FRAME]:
        return
    for i in range(n_ours, units.shape[1]):
        if units[ALIVE, i]:
            units[START_DELAY, i] = params[P_START_DELAY]
            if params[P_NEUTRAL_TIMER] and frame < params[P_REISSUE]:
                units[MAIN_TIMER, i] = below(rng, 0, 16)
            give_order(units, i, ATTACK_MOVE, -1, counters[MARCH_X], counters[MARCH_Y])
