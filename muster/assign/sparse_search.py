"""Few allowed pairs with contributions of any kind: prices that bound, an assignment rounded by them, local search.

The relaxation is not solved to the end: prices pi >= 0 of any kind prove that no assignment is worth more than
sum_j u_j pi_j + sum_i max(idle, max_j h_ij - mu_ij pi_j), and subgradient steps make that small. Agents then take their
best tasks at those prices, those who would lose most first, and moves and ejections improve on it.
"""

from __future__ import annotations

import numpy as np

from muster.assign.instance import CAPACITY_TOLERANCE, fits
from muster.assign.sparse_market import FREE, NOWHERE, Market, Pairs, enter, leave, make_market
from muster.compile import entry, kernel, leaf
from muster.data import Floats, Ints

STEPS = 200
# Steps without a better bound before they are made shorter, and by how much.
PATIENCE, SHORTER = 8, 0.6
SWEEPS = 50
# Gains below this share of the largest score are none.
LEAST = 1e-10


@kernel
def bound_of(pairs: Pairs, price: Floats, load: Floats) -> float:
    """What the prices prove; `load` is what the tasks get if every agent takes its best."""
    load[:] = 0.0
    total = 0.0
    for j in range(pairs.room.shape[0]):
        if price[j] > 0.0:
            total += pairs.room[j] * price[j]
    for i in range(pairs.first.shape[0] - 1):
        best, where = pairs.idle, FREE
        for pair in range(pairs.first[i], pairs.first[i + 1]):
            net = pairs.score[pair] - pairs.use[pair] * price[pairs.task[pair]]
            if net > best:
                best, where = net, pair
        total += best
        if where != FREE:
            load[pairs.task[where]] += pairs.use[where]
    return total


@leaf
def copy(target: Floats, source: Floats) -> None:
    """target[:] = source, which a kernel must not write so."""
    for j in range(target.shape[0]):
        target[j] = source[j]


@kernel
def lower_prices(pairs: Pairs, best: Floats, price: Floats, load: Floats, reached: float, stop: Ints) -> float:
    """Prices with a small bound, left in `best` [M]: subgradient steps towards the value `reached`; the bound."""
    m = pairs.room.shape[0]
    least, stuck, share = np.inf, 0, 1.0
    for _ in range(STEPS):
        value = bound_of(pairs, price, load)
        if value < least:
            if value < least - 1e-6 * abs(least):
                stuck = 0
            least = value
            copy(best, price)
        stuck += 1
        if stuck > PATIENCE:
            stuck, share = 0, share * SHORTER
            copy(price, best)
            value = bound_of(pairs, price, load)
        size = 0.0
        for j in range(m):
            # A task that is not full at price 0 has nothing to say.
            over = load[j] - pairs.room[j] if price[j] > 0.0 or load[j] > pairs.room[j] else 0.0
            load[j] = over
            size += over * over
        if size == 0.0 or stop[0] != 0:
            break
        step = share * max(value - reached, 1e-9 * abs(value)) / size
        for j in range(m):
            price[j] = max(0.0, price[j] + step * load[j])
    return least


@leaf
def has(market: Market, pairs: Pairs, i: int) -> float:
    """What agent i is worth where it is."""
    return pairs.score[market.at[i]] if market.at[i] != FREE else pairs.idle


@leaf
def put(market: Market, pairs: Pairs, load: Floats, i: int, pair: int) -> None:
    """Move agent i to a pair, or to none."""
    old = market.at[i]
    if old != FREE:
        j = pairs.task[old]
        leave(market, pairs, i)
        load[j] -= pairs.use[old]
        if market.crowd[j] == 0:
            load[j] = 0.0
    if pair != FREE:
        enter(market, pairs, i, pair)
        load[pairs.task[pair]] += pairs.use[pair]


@kernel
def best_place(
    market: Market, pairs: Pairs, load: Floats, price: Floats, i: int, but: int, freed: int, room: float
) -> tuple[float, int]:
    """The best pair of agent i that has room, at these prices, but for task `but`; `room` more is free at `freed`."""
    best, where = pairs.idle, FREE
    for pair in range(pairs.first[i], pairs.first[i + 1]):
        j = pairs.task[pair]
        net = pairs.score[pair] - pairs.use[pair] * price[j]
        if net > best and j != but:
            there = load[j] - (room if j == freed else 0.0)
            if fits(there, pairs.use[pair], pairs.room[j]):
                best, where = net, pair
    return best, where


@kernel
def eject(market: Market, pairs: Pairs, load: Floats, nothing: Floats, i: int, least: float) -> bool:
    """Let agent i take the place of another, who goes elsewhere, if that is worth more; whether it did."""
    own, mine = has(market, pairs, i), market.at[i]
    old = pairs.task[mine] if mine != FREE else NOWHERE
    freed = pairs.use[mine] if mine != FREE else 0.0
    best, into, out, target = least, FREE, NOWHERE, FREE
    for pair in range(pairs.first[i], pairs.first[i + 1]):
        j = pairs.task[pair]
        gain = pairs.score[pair] - own
        if j == old or gain <= best:
            # Whoever leaves loses something, but for ties.
            continue
        k = market.head[j]
        while k != NOWHERE:
            theirs = market.at[k]
            if load[j] - pairs.use[theirs] + pairs.use[pair] <= pairs.room[j] * (1.0 + CAPACITY_TOLERANCE):
                other, where = best_place(market, pairs, load, nothing, k, j, old, freed)
                if gain + other - pairs.score[theirs] > best:
                    best, into, out, target = gain + other - pairs.score[theirs], pair, k, where
            k = market.after[k]
    if into == FREE:
        return False
    put(market, pairs, load, out, FREE)
    put(market, pairs, load, i, into)
    put(market, pairs, load, out, target)
    return True


@kernel
def improve(market: Market, pairs: Pairs, load: Floats, nothing: Floats, scale: float, stop: Ints) -> None:
    """Moves, then ejections, until neither helps."""
    least = LEAST * scale
    for _ in range(SWEEPS):
        moved = False
        for i in range(pairs.first.shape[0] - 1):
            if stop[0] != 0:
                return
            worth, where = best_place(market, pairs, load, nothing, i, NOWHERE, NOWHERE, 0.0)
            if worth > has(market, pairs, i) + least:
                put(market, pairs, load, i, where)
                moved = True
            elif eject(market, pairs, load, nothing, i, least):
                moved = True
        if not moved:
            return


@kernel
def regrets(pairs: Pairs, price: Floats, regret: Floats) -> None:
    """What each agent would lose at these prices if it did not get its best task."""
    for i in range(pairs.first.shape[0] - 1):
        first, second = pairs.idle, pairs.idle
        for pair in range(pairs.first[i], pairs.first[i + 1]):
            net = pairs.score[pair] - pairs.use[pair] * price[pairs.task[pair]]
            if net > first:
                first, second = net, first
            elif net > second:
                second = net
        regret[i] = second - first


@kernel
def total(market: Market, pairs: Pairs) -> float:
    """The value with what those left out are worth."""
    value = 0.0
    for i in range(pairs.first.shape[0] - 1):
        value += has(market, pairs, i)
    return value


@entry
def search_pairs(pairs: Pairs, before: Ints, at: Ints, price: Floats, stop: Ints) -> float:
    """A good assignment, as a pair for each agent, and prices; returns what they prove.

    `before` [N] is a pair for each agent to begin from as well (FREE for none); it must be within the capacities.
    """
    n, m = pairs.first.shape[0] - 1, pairs.room.shape[0]
    market, other = make_market(n, m), make_market(n, m)
    load, elsewhere, nothing, regret = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(n)
    scale = 0.0
    for pair in range(pairs.score.shape[0]):
        scale = max(scale, abs(pairs.score[pair]))
    for i in range(n):
        put(other, pairs, elsewhere, i, before[i])
    improve(other, pairs, elsewhere, nothing, scale, stop)
    steps = np.zeros(m)
    bound = lower_prices(pairs, price, steps, np.zeros(m), total(other, pairs), stop)
    regrets(pairs, price, regret)
    for i in np.argsort(regret):
        put(market, pairs, load, i, best_place(market, pairs, load, price, i, NOWHERE, NOWHERE, 0.0)[1])
    improve(market, pairs, load, nothing, scale, stop)
    if total(other, pairs) >= total(market, pairs):
        at[:] = other.at
    else:
        at[:] = market.at
    return bound
