"""Few allowed pairs among many agents and tasks, each agent taking the same room: exact, by shortest augmenting paths.

    maximise sum h_ij b_ij   with   sum_j b_ij <= 1,   sum_i b_ij <= slots_j,   b in {0, 1}, allowed pairs only.

Agents enter one after the other. Each looks for the cheapest way in at the present prices: to a task with a free slot,
or by sending somebody elsewhere, who may send somebody elsewhere, or home. That is Dijkstra's algorithm over tasks, as
in Jonker and Volgenant's method for dense problems; prices then rise by what the way had to spare. Every agent is
always where its score less the price is best, and a task with free slots costs nothing: so the end is an optimum, and
the prices prove it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.compile import entry, kernel, leaf, maker
from muster.data import Floats, Ints

FREE, NOWHERE = -1, -1


class Pairs(NamedTuple):
    """The allowed pairs of agent i are first[i] .. first[i + 1] - 1."""

    first: Ints
    """[N + 1]"""
    task: Ints
    """[P]"""
    score: Floats
    """[P]"""
    use: Floats
    """[P] contributions"""
    room: Floats
    """[M] capacities; in slots where every agent takes one."""
    idle: float
    """What leaving an agent out is worth."""


class Market(NamedTuple):
    """Who is where at which prices, and what the search for a way in works with."""

    at: Ints
    """[N] the pair that each agent has taken, FREE for none."""
    head: Ints
    """[M] the first agent on a task; `after` and `before` [N] link the others."""
    after: Ints
    before: Ints
    crowd: Ints
    """[M] agents on a task."""
    price: Floats
    """[M] of a slot"""
    length: Floats
    """[M] of the shortest way to a task found so far, infinite between searches."""
    through: Ints
    """[M] the agent that would come to a task on that way, and by which pair."""
    pair: Ints
    heap: Ints
    place: Ints
    """[M] where a task is in the heap, -1 if it is not; -2 once it has been looked at."""
    seen: Ints
    """[M] the tasks that this search has come to."""


@maker
def make_market(n: int, m: int) -> Market:
    """An empty one."""
    return Market(
        np.full(n, FREE, np.int64),
        np.full(m, NOWHERE, np.int64),
        np.full(n, NOWHERE, np.int64),
        np.full(n, NOWHERE, np.int64),
        np.zeros(m, np.int64),
        np.zeros(m),
        np.full(m, np.inf),
        np.zeros(m, np.int64),
        np.zeros(m, np.int64),
        np.zeros(m, np.int64),
        np.full(m, -1, np.int64),
        np.zeros(m, np.int64),
    )


@leaf
def enter(market: Market, pairs: Pairs, i: int, pair: int) -> None:
    """Agent i, who is nowhere, takes a pair."""
    j = pairs.task[pair]
    market.at[i] = pair
    market.before[i] = NOWHERE
    market.after[i] = market.head[j]
    if market.head[j] != NOWHERE:
        market.before[market.head[j]] = i
    market.head[j] = i
    market.crowd[j] += 1


@leaf
def leave(market: Market, pairs: Pairs, i: int) -> None:
    """Agent i gives up its task."""
    j = pairs.task[market.at[i]]
    before, after = market.before[i], market.after[i]
    if before != NOWHERE:
        market.after[before] = after
    else:
        market.head[j] = after
    if after != NOWHERE:
        market.before[after] = before
    market.crowd[j] -= 1
    market.at[i] = FREE


@leaf
def rise(market: Market, k: int) -> None:
    """Move the task at place k of the heap up to where its length belongs."""
    heap, place, length = market.heap, market.place, market.length
    task = heap[k]
    while k > 0:
        above = (k - 1) // 2
        if length[heap[above]] <= length[task]:
            break
        heap[k] = heap[above]
        place[heap[k]] = k
        k = above
    heap[k] = task
    place[task] = k


@leaf
def take_nearest(market: Market, size: int) -> int:
    """Remove the nearest of the `size` tasks in the heap, and mark it as looked at."""
    heap, place, length = market.heap, market.place, market.length
    nearest, task = heap[0], heap[size - 1]
    size -= 1
    k = 0
    while 2 * k + 1 < size:
        below = 2 * k + 1
        if below + 1 < size and length[heap[below + 1]] < length[heap[below]]:
            below += 1
        if length[task] <= length[heap[below]]:
            break
        heap[k] = heap[below]
        place[heap[k]] = k
        k = below
    if size > 0:
        heap[k] = task
        place[task] = k
    place[nearest] = -2
    return nearest


@kernel
def look_around(
    market: Market, pairs: Pairs, i: int, start: float, limit: float, size: int, found: int
) -> tuple[int, int]:
    """Note the tasks that agent i could come to, `start` being the way so far plus what it has; new size and count."""
    for pair in range(pairs.first[i], pairs.first[i + 1]):
        j = pairs.task[pair]
        length = start - pairs.score[pair] + market.price[j]
        if length < limit and length < market.length[j] and market.place[j] != -2:
            if market.length[j] == np.inf:
                market.seen[found] = j
                found += 1
            market.length[j], market.through[j], market.pair[j] = length, i, pair
            if market.place[j] < 0:
                market.heap[size] = j
                market.place[j] = size
                size += 1
            rise(market, market.place[j])
    return size, found


@kernel
def find_way(market: Market, pairs: Pairs, start: int) -> None:
    """Bring in one agent by the shortest way, and raise prices so that everybody is still best off where they are."""
    end, last, home = -pairs.idle, NOWHERE, start
    size, found = look_around(market, pairs, start, 0.0, end, 0, 0)
    while size > 0:
        j = take_nearest(market, size)
        size -= 1
        length = market.length[j]
        if length >= end:
            break
        if market.crowd[j] < pairs.room[j]:
            end, last, home = length, j, NOWHERE
            break
        k = market.head[j]
        while k != NOWHERE:
            has = length + pairs.score[market.at[k]] - market.price[j]
            if has - pairs.idle < end:
                end, last, home = has - pairs.idle, j, k
            size, found = look_around(market, pairs, k, has, end, size, found)
            k = market.after[k]
    for k in range(found):
        j = market.seen[k]
        if market.place[j] == -2 and market.length[j] < end:
            market.price[j] += end - market.length[j]
    if home != NOWHERE and home != start:
        leave(market, pairs, home)
    # Back along the way: each agent takes the task that it was found to come to.
    j = last
    while j != NOWHERE:
        i, pair = market.through[j], market.pair[j]
        j = NOWHERE
        if i != start:
            j = pairs.task[market.at[i]]
            leave(market, pairs, i)
        enter(market, pairs, i, pair)
    for k in range(found):
        j = market.seen[k]
        market.length[j], market.place[j] = np.inf, -1


@entry
def solve_market(pairs: Pairs, at: Ints, price: Floats, stop: Ints) -> bool:
    """The best assignment, as a pair for each agent (FREE for none), and the prices that prove it; False if stopped."""
    n, m = pairs.first.shape[0] - 1, pairs.room.shape[0]
    market = make_market(n, m)
    done = 0
    for i in range(n):
        if stop[0] != 0:
            break
        find_way(market, pairs, i)
        done += 1
    at[:] = market.at
    price[:] = market.price
    return done == n
