"""Bounds from prices of agents: every task fills its own knapsack, and agents whom several want become dearer.

    L(y) = sum_i y_i + sum_j max { sum_i (h_ij - y_i) x_i : sum_i mu_ij x_i <= u_j, x in {0, 1} }

bounds every assignment for any prices y, and at the best ones far better than the linear programme does, since no task
takes a part of an agent. They are sought by subgradient steps of Polyak's length.

Because the knapsacks are independent, forcing agent i to task j changes L by what knapsack j loses by taking it and
what the others lose by doing without: a bound for each pair, for the price of two more tables (Posta, Ferland and
Michelon 2012). Pairs whose bound is no better than the best assignment known are closed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.assign.knapsack import Knapsacks, list_agents, pack_ahead, read_choice, weigh_choices
from muster.compile import kernel, maker
from muster.data import Floats, Ints

# What became of the prices: a bound, proof that nothing better is left, or an assignment that reaches the bound.
BOUND, BEATEN, REACHED = 0, 1, 2
# Steps are shortened by this factor after so many without progress, and end at this length.
SHORTER, TOO_SHORT = 0.7, 1e-4
# Share of the last direction that a step keeps.
MEMORY = 0.3


class Prices(NamedTuple):
    """Prices of agents, and what it takes to improve them."""

    price: Floats
    """[N]"""
    kept: Floats
    """[N] the best so far."""
    excess: Floats
    """[N] by how many tasks an agent is wanted, less one; 0 for those that are fixed."""
    direction: Floats


@maker
def make_prices(n: int) -> Prices:
    """Room for n agents."""
    return Prices(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n))


@kernel
def evaluate(sacks: Knapsacks, prices: Prices) -> float:
    """L at the prices, and by how much each agent is wanted too often."""
    n, m, fixed, excess = sacks.facts[0].n, sacks.facts[0].m, sacks.fixed, prices.excess
    total = 0.0
    for i in range(n):
        if fixed[i] >= 0:
            total += sacks.worth[fixed[i], i]
            excess[i] = 0.0
        else:
            total += prices.price[i]
            excess[i] = -1.0
    for j in range(m + 1):
        count = list_agents(sacks, j, prices.price)
        total += pack_ahead(sacks, j, count)
        read_choice(sacks, j, count)
        for k in range(count):
            i = sacks.listed[k]
            if sacks.taken[j, i]:
                excess[i] += 1.0
    return total


@kernel
def lower(
    sacks: Knapsacks,
    prices: Prices,
    steps: int,
    length: float,
    patience: int,
    target: float,
    reach: float,
    enough: float,
    stop: Ints,
) -> tuple[float, int]:
    """Lower the bound by up to so many steps, until it is `enough`: the bound, and what became of it.

    Steps aim at `target`, or at `reach` below the bound where that is too far off to aim at. Leaves the best prices in
    `price`, but for REACHED, where `taken` is an assignment.
    """
    n, price, kept, excess, direction = sacks.facts[0].n, prices.price, prices.kept, prices.excess, prices.direction
    best, since = np.inf, 0
    for i in range(n):
        direction[i], kept[i] = 0.0, price[i]
    for _ in range(steps):
        bound = evaluate(sacks, prices)
        if bound < best:
            if bound < best - 1e-7 * abs(bound):
                since = 0
            best = bound
            for i in range(n):
                kept[i] = price[i]
            if best <= enough:
                return best, BEATEN
        else:
            since += 1
            if since >= patience:
                length *= SHORTER
                since = 0
        balanced, norm = True, 0.0
        for i in range(n):
            balanced &= excess[i] == 0.0
            direction[i] = excess[i] + MEMORY * direction[i]
            norm += direction[i] * direction[i]
        if balanced:
            return bound, REACHED
        if norm == 0.0 or length < TOO_SHORT or stop[0] != 0:
            break
        step = length * min(bound - target, reach) / norm
        for i in range(n):
            if sacks.fixed[i] < 0:
                price[i] += step * direction[i]
    for i in range(n):
        price[i] = kept[i]
    return best, BOUND


@kernel
def pair_bound(sacks: Knapsacks, i: int, j: int, bound: float, others: float) -> float:
    """What no assignment of agent i to task j is worth more than; `others` is the sum of all its `leave`."""
    return bound + sacks.join[j, i] + others - sacks.leave[j, i]


@kernel
def sum_leave(sacks: Knapsacks, i: int) -> float:
    """What all knapsacks together lose by doing without agent i."""
    total = 0.0
    for j in range(sacks.facts[0].m + 1):
        total += sacks.leave[j, i]
    return total


@kernel
def weigh(sacks: Knapsacks, prices: Prices) -> None:
    """Make ready for `pair_bound` at the present prices."""
    weigh_choices(sacks, prices.price)
