"""Orders that are not aimed at one unit: the opponent's attack-move, and ours when we copy it."""

from __future__ import annotations

from muster.compile import leaf
from muster.envs.battle import layout as lay
from muster.envs.battle.layout import Int32s, Int64s
from muster.envs.battle.orders import give_order
from muster.envs.battle.settings import P_FIRST_ORDER, P_LATENCY, P_NEUTRAL_TIMER, P_REISSUE, P_START_DELAY
from muster.rng import Seeds, below


@leaf
def mean_tile(units: Int32s, row: int, first: int, last: int) -> int:
    """Integer mean, in walk tiles, of one coordinate (PX or PY) of the live units first..last-1."""
    total = 0
    n = 0
    for i in range(first, last):
        if units[lay.ALIVE, i]:
            total += units[row, i] // 8
            n += 1
    return total // max(n, 1)


@leaf
def order_opponents(units: Int32s, params: Int64s, counters: Int64s, n_ours: int, rng: Seeds) -> None:
    """Every so often send all opponents to the middle of our army, attacking what they meet."""
    frame = counters[lay.FRAME]
    since = frame - params[P_FIRST_ORDER]
    if since >= 0 and since % params[P_REISSUE] == 0:
        counters[lay.MARCH_X] = 8 * mean_tile(units, lay.PX, 0, n_ours)
        counters[lay.MARCH_Y] = 8 * mean_tile(units, lay.PY, 0, n_ours)
        counters[lay.MARCH_FRAME] = frame + params[P_LATENCY]
    if frame != counters[lay.MARCH_FRAME]:
        return
    for i in range(n_ours, units.shape[1]):
        if units[lay.ALIVE, i]:
            units[lay.START_DELAY, i] = params[P_START_DELAY]
            if params[P_NEUTRAL_TIMER] and frame < params[P_REISSUE]:
                units[lay.MAIN_TIMER, i] = below(rng, 0, 16)
            give_order(units, i, lay.ATTACK_MOVE, -1, counters[lay.MARCH_X], counters[lay.MARCH_Y])
