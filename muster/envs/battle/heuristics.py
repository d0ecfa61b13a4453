"""The paper's heuristics, as its authors ran them, and each without the bug that shapes their table.

Distances are the engine's length between walk tiles of 8 pixels, so ties are common; the first in order wins. Hit
points are whole numbers as the game shows them. Our units are gone through in the order of C++ hash maps keyed by
unit numbers, which are consecutive; those with a target, in the order of the map in which the last decision stored it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from muster.compile import entry, kernel, leaf, maker
from muster.data import BatchObservation, Ints
from muster.envs.battle import layout as lay
from muster.envs.battle.layout import Int32s, Int64s
from muster.envs.battle.status import closest_enemy, contribution, hit_points, stands, tile_distance
from muster.envs.vector import Policy, State
from muster.rng import HEURISTIC_STREAM, Seeds, below

if TYPE_CHECKING:
    from muster.envs.battle.env import BattleEnv

Bytes = NDArray[np.uint8]

CLOSEST, WEAKEST, NO_OVERKILL, NO_OVERKILL_NO_CHANGE, NO_OVERKILL_SMART, RANDOM, FOLLOW_SUIT = range(7)

# Buckets of the common C++ standard library's hash map as it grows; a map holds at most as many keys as buckets.
_BUCKETS = np.array([1, 13, 29, 59, 127, 257, 541, 1109, 2357], dtype=np.int64)


@maker
def hash_order(keys: Int64s, n: int, order: Int64s, stage: int = 0) -> int:
    """Put `order[:n]` (indices into `keys`, as inserted) into the iteration order of a C++ hash map, in place.

    The map is one linked list; each bucket's nodes are neighbours. A key goes to the front of its bucket's run, or
    to the very front if the bucket is empty; growing re-inserts all in list order. A map that was emptied keeps its
    buckets: `stage` is how often it had grown before, and what is returned how often it has now.
    """
    listed = np.empty(n, np.int64)
    fresh = np.empty(n, np.int64)
    bucket_of = np.empty(len(keys), np.int64)
    used = np.zeros(_BUCKETS[stage], np.uint8)
    for size in range(n):
        if size + 1 > _BUCKETS[stage]:
            stage += 1
            used = np.zeros(_BUCKETS[stage], np.uint8)
            for m in range(size):
                bucket_of[listed[m]] = keys[listed[m]] % _BUCKETS[stage]
                _insert(bucket_of, used, fresh, m, listed[m])
            listed[:size] = fresh[:size]
        bucket_of[order[size]] = keys[order[size]] % _BUCKETS[stage]
        _insert(bucket_of, used, listed, size, order[size])
    order[:n] = listed
    return stage


@leaf
def _insert(bucket_of: Int64s, used: Bytes, listed: Int64s, size: int, item: int) -> None:
    """Put `item` where a map of `size` keys puts it; `used` tells the buckets that hold any."""
    bucket = bucket_of[item]
    place = 0
    if used[bucket]:
        while bucket_of[listed[place]] != bucket:
            place += 1
    used[bucket] = 1
    for k in range(size, place, -1):
        listed[k] = listed[k - 1]
    listed[place] = item


@leaf
def _weakest(units: Int32s, types: Int64s, n_ours: int, taboo: Int64s, order: Int64s, n: int, layer: int) -> int:
    """The live enemy of least hit points that is not taboo; ties go to the one nearest to the middle of `order[:n]`.

    `layer` limits the search to flyers (1) or ground units (0); -1 searches all.
    """
    total_x = 0
    total_y = 0
    for k in range(n):
        total_x += units[lay.PX, order[k]] // 8
        total_y += units[lay.PY, order[k]] // 8
    x = total_x // max(n, 1)
    y = total_y // max(n, 1)
    best = -1
    least = 1 << 30
    nearest = 1 << 30
    for j in range(n_ours, units.shape[1]):
        if taboo[j - n_ours] or not stands(units, j):
            continue
        if layer >= 0 and types[units[lay.TYPE, j], lay.T_FLYER] != layer:
            continue
        health = hit_points(units, j)
        if health > least:
            continue
        way = tile_distance(units, j, x, y)
        if health < least or way < nearest:
            least = health
            nearest = way
            best = j - n_ours
    return best


@kernel
def _keep_targets(
    units: Int32s, types: Int64s, n_ours: int, spare: bool, memory: Int64s, damage: Int64s, taboo: Int64s,
    served: Int64s, orders: Int64s,
) -> int:  # fmt: skip
    """Whose target of the last decision lives keeps it (`spare`: unless it is dealt with); how many do.

    Units are taken in the order of `memory`, and written to `served`; enemies that are dealt with become taboo.
    """
    n_served = 0
    for k in range(memory[n_ours]):
        i = memory[k]
        j = units[lay.PREVIOUS, i]
        if j < 0 or not stands(units, i) or not stands(units, n_ours + j):
            continue
        health = hit_points(units, n_ours + j)
        if spare and damage[j] >= health:
            continue
        orders[i] = j
        served[n_served] = i
        n_served += 1
        damage[j] += contribution(units, types, i, n_ours + j)
        if damage[j] >= health:
            taboo[j] = 1
    return n_served


@maker
def _line_up(units: Int32s, n_ours: int, keys: Int64s, waiting: Int64s) -> int:
    """Write our units that stand to `waiting` in the order in which the authors' maps have them; returns how many."""
    n = 0
    for i in range(n_ours):
        if stands(units, i):
            waiting[n] = i
            n += 1
    # One map by address (units lie one behind the other in memory), then one by number.
    hash_order(keys, n, waiting)
    hash_order(keys, n, waiting)
    return n


@kernel
def _without_orders(orders: Int64s, waiting: Int64s, n: int) -> int:
    """Keep those of the first n in `waiting` that have no order, in their order; returns how many."""
    left = 0
    for k in range(n):
        if orders[waiting[k]] < 0:
            waiting[left] = waiting[k]
            left += 1
    return left


@maker
def _share_out(
    units: Int32s, types: Int64s, n_ours: int, rule: int, fixed: bool, memory: Int64s, orders: Int64s
) -> None:
    """Wcnok and its kin: fill the weakest enemies one after the other, up to their hit points.

    `memory` [N + 2] has the units that got a target at the last decision, in the order of the map that stored them,
    then their number and how often that map has grown; it is modified in place.
    """
    n_theirs = units.shape[1] - n_ours
    damage = np.zeros(n_theirs, np.int64)
    taboo = np.zeros(n_theirs, np.int64)
    keys = units[lay.KEY, 0] + np.arange(n_ours)
    waiting = np.empty(n_ours, np.int64)
    n = _line_up(units, n_ours, keys, waiting)
    n_enemies = 0
    for j in range(n_theirs):
        n_enemies += stands(units, n_ours + j)
    served = np.empty(n_ours, np.int64)
    n_served = 0
    n_taboo = 0
    if rule != NO_OVERKILL:
        if memory[n_ours] == 0:
            # A heuristic that takes over in mid-battle has no map yet.
            memory[:n] = waiting[:n]
            memory[n_ours] = n
        n_served = _keep_targets(units, types, n_ours, rule == NO_OVERKILL_SMART, memory, damage, taboo, served, orders)
        n_taboo = taboo.sum()
        n = _without_orders(orders, waiting, n)
    limited = True
    layer = -1
    while n > 0:
        if n_taboo >= n_enemies:
            taboo[:] = 0
            n_taboo = 0
            limited = False
            layer = -1
        j = _weakest(units, types, n_ours, taboo, waiting, n, layer)
        if j < 0:
            # The bug: a search among the wrong layer finds nothing, and whoever is left stays without a target.
            break
        taboo[j] = 1
        n_taboo += 1
        health = hit_points(units, n_ours + j)
        left = 0
        for k in range(n):
            i = waiting[k]
            if limited and damage[j] >= health:
                waiting[left] = i
                left += 1
            else:
                orders[i] = j
                served[n_served] = i
                n_served += 1
                damage[j] += contribution(units, types, i, n_ours + j)
        n = left
        hash_order(keys, n, waiting)
        if n > 0 and not fixed:
            layer = types[units[lay.TYPE, waiting[0]], lay.T_AIR]
    memory[n_ours + 1] = hash_order(keys, n_served, served, memory[n_ours + 1])
    memory[:n_served] = served[:n_served]
    memory[n_ours] = n_served


@maker
def decide(
    units: Int32s, types: Int64s, n_ours: int, rule: int, fixed: bool, rng: Seeds, memory: Int64s, orders: Int64s
) -> None:
    """Orders of one heuristic in one battle: an enemy's index for each of our live units, HOLD without a target."""
    orders[:] = lay.HOLD
    if rule == FOLLOW_SUIT:
        orders[:] = lay.MARCH
    elif rule == CLOSEST:
        for i in range(n_ours):
            if stands(units, i):
                orders[i] = closest_enemy(units, n_ours, i)
    elif rule == WEAKEST:
        ours = np.empty(n_ours, np.int64)
        n = 0
        for i in range(n_ours):
            if stands(units, i):
                ours[n] = i
                n += 1
        orders[:] = _weakest(units, types, n_ours, np.zeros(units.shape[1] - n_ours, np.int64), ours, n, -1)
    elif rule == RANDOM:
        alive = np.flatnonzero(units[lay.HP, n_ours:] > 0)
        for i in range(n_ours):
            if stands(units, i):
                j = units[lay.PREVIOUS, i]
                kept = j >= 0 and stands(units, n_ours + j)
                orders[i] = j if kept else alive[below(rng, 0, len(alive))]
    else:
        _share_out(units, types, n_ours, rule, fixed, memory, orders)


@entry
def decide_all(
    units: Int32s, types: Int64s, counters: Int64s, n_ours: int, rule: int, fixed: bool, rng: Seeds, memory: Int64s,
    orders: Int64s,
) -> None:  # fmt: skip
    """Orders of one heuristic in every battle that goes on."""
    for b in range(units.shape[0]):
        if counters[b, lay.ENDED] == 0:
            decide(units[b], types, n_ours, rule, fixed, rng[b : b + 1], memory[b], orders[b])


@dataclass(frozen=True, slots=True)
class Baseline:
    """One heuristic."""

    code: int
    fixed: bool
    summary: str


RULES = {
    "c": Baseline(CLOSEST, False, "each unit attacks the closest enemy"),
    "wc": Baseline(WEAKEST, False, "all attack the weakest enemy, the closest of equals"),
    "wcnok": Baseline(NO_OVERKILL, False, "weakest first, no more attackers than needed to kill"),
    "wcnoknc": Baseline(NO_OVERKILL_NO_CHANGE, False, "as wcnok, but a target is kept until it dies"),
    "wcnoks": Baseline(NO_OVERKILL_SMART, False, "as wcnoknc, but a target is kept only while that does not over-kill"),
    "rand-nc": Baseline(RANDOM, False, "a random target, kept until it dies"),
    "wcnok-fixed": Baseline(NO_OVERKILL, True, "wcnok without the authors' search bug"),
    "wcnoknc-fixed": Baseline(NO_OVERKILL_NO_CHANGE, True, "wcnoknc without the authors' search bug"),
    "wcnoks-fixed": Baseline(NO_OVERKILL_SMART, True, "wcnoks without the authors' search bug"),
    "attack-move": Baseline(FOLLOW_SUIT, False, "the opponent's own behaviour: attack-move to the enemy's middle"),
}
"""The built-in policies by name."""


class Heuristic(Policy):
    """A rule as a policy for one environment object; it looks inside it rather than at the observation."""

    def __init__(self, name: str, env: BattleEnv) -> None:
        self.name = name
        self._rule = RULES[name]
        self.about = self._rule.summary
        self._env = env
        self._rng = np.zeros(env.n_envs, dtype=np.uint64)
        self._memory = np.zeros((env.n_envs, env.n_agents + 2), dtype=np.int64)

    def reset(self, slots: Ints, seeds: NDArray[np.uint64]) -> None:
        """Only `rand-nc` draws random numbers: from a stream of its own that follows the seeds."""
        self._memory[slots] = 0
        self._rng[slots] = np.asarray(seeds, dtype=np.uint64) ^ HEURISTIC_STREAM

    def act(self, observation: BatchObservation | None = None) -> Ints:
        """Orders [B, N]; -2 tells a unit to stop, -3 to attack-move (see `BattleEnv.step`)."""
        env = self._env
        orders = np.full((env.n_envs, env.n_agents), lay.HOLD, dtype=np.int64)
        engine = env.engine

        def decide_part(begin: int, end: int) -> None:
            part = slice(begin, end)
            decide_all(
                engine.units[part], engine.types, engine.counters[part], env.n_agents, self._rule.code,
                self._rule.fixed, self._rng[part], self._memory[part], orders[part],
            )  # fmt: skip

        engine.share_out(env.threads, decide_part)
        return orders

    def get_memory(self) -> State:
        """Whom the units were sent to, and the streams of random numbers."""
        return {"rng": self._rng.copy(), "memory": self._memory.copy()}

    def set_memory(self, memory: State) -> None:
        """Go on from what `get_memory` returned."""
        self._rng[...], self._memory[...] = memory["rng"], memory["memory"]
