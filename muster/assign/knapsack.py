"""One knapsack for each task: which agents it would take at which profit, and what it loses by a assign_all choice.

Contributions become whole numbers of a grid. Where they are whole in some unit the grid is exact. Where they are not,
or there would be too many cells, they are rounded down: sum floor(mu) <= floor(sum mu), so what the knapsacks then
prove is a little weaker but as true. Tables have a row for each agent that is listed and a column for each amount.

Being left out is a choice like the others: task m, whose pairs weigh nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.assign.grain import common_divisor, scale_to_whole
from muster.assign.instance import CAPACITY_TOLERANCE, Instance
from muster.compile import kernel, leaf, maker
from muster.data import Bools, Floats, Ints

# Columns of a grid at most, cells of a table at most, and columns where contributions are not whole.
LARGEST_GRID, LARGEST_TABLE, ROUNDED_GRID = 20_000, 4_000_000, 1_000

PACKING = np.dtype((np.record, [("n", np.int64), ("m", np.int64), ("exact", np.int64), ("cells", np.float64)]))
"""n agents, m tasks and being left out; exact: 1 if the grid is; cells: computed so far, the measure of work."""


class Knapsacks(NamedTuple):
    """All knapsacks of an instance. Agents that are fixed have their task and take their part of the room."""

    facts: Any
    """[1] PACKING"""
    worth: Floats
    """[M + 1, N] h, or the value of being left out."""
    weight: Ints
    """[M + 1, N]"""
    size: Ints
    """[M + 1] room that is left."""
    open: Bools
    """[M + 1, N] pairs that are still possible."""
    fixed: Ints
    """[N] the task of an agent that is fixed, or -1."""
    profit: Floats
    """[N] of the knapsack at hand."""
    listed: Ints
    """[N] agents that it would gain by."""
    taken: Bools
    """[M + 1, N] the best choice of every knapsack."""
    ahead: Floats
    """[N + 1, cells] value of the best choice among the first so many listed agents, by amount."""
    behind: Floats
    """[N + 1, cells] the same among the others."""
    join: Floats
    """[M + 1, N] what a knapsack's value changes by when it must take the agent, ..."""
    leave: Floats
    """[M + 1, N] ... and when it must not."""


@maker
def make_knapsacks(n: int, m: int, cells: int) -> Knapsacks:
    """Room for n agents, m tasks and so many cells."""
    return Knapsacks(
        np.zeros(1, PACKING),
        np.zeros((m + 1, n)),
        np.zeros((m + 1, n), np.int64),
        np.zeros(m + 1, np.int64),
        np.zeros((m + 1, n), np.bool_),
        np.zeros(n, np.int64),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros((m + 1, n), np.bool_),
        np.empty((n + 1, cells)),
        np.empty((n + 1, cells)),
        np.zeros((m + 1, n)),
        np.zeros((m + 1, n)),
    )


@kernel
def lay_grid(weight: Ints, size: Ints, it: Instance) -> bool:
    """Contributions and room of every task in cells; whether that is exact."""
    n, m = it.facts[0].n, it.facts[0].m
    scale = scale_to_whole(it.use, n, m)
    largest = max(ROUNDED_GRID, min(LARGEST_GRID, LARGEST_TABLE // (n + 1)))
    exact = True
    for j in range(m):
        total, divisor = 0, 0
        room = it.room[j] * (1.0 + CAPACITY_TOLERANCE)
        unit = 1.0 / scale if scale > 0.0 else room / ROUNDED_GRID
        if room == np.inf or room == 0.0:
            unit = np.inf
        for i in range(n):
            # What does not fit even alone needs no more than one cell too many.
            cells = min(it.use[i, j], 2.0 * room) / unit
            weight[j, i] = int(np.rint(cells) if scale > 0.0 else np.floor(cells))
            total += weight[j, i]
            divisor = common_divisor(weight[j, i], divisor)
        divisor = max(divisor, 1)
        size[j] = int(min(float(total), room / unit * (1.0 + 1e-12))) if unit < np.inf else 0
        if size[j] > largest * divisor:
            divisor *= 1 + size[j] // (largest * divisor)
            exact = False
        exact &= scale > 0.0 or unit == np.inf
        size[j] //= divisor
        for i in range(n):
            weight[j, i] //= divisor
    return exact


@kernel
def fill_knapsacks(sacks: Knapsacks, it: Instance, exact: bool) -> None:
    """Scores and what is possible, for an instance whose grid is laid."""
    n, m = it.facts[0].n, it.facts[0].m
    facts = sacks.facts[0]
    facts.n, facts.m, facts.exact, facts.cells = n, m, 1 if exact else 0, 0.0
    sacks.size[m] = 0
    for i in range(n):
        sacks.fixed[i] = -1
        for j in range(m):
            fitting = it.use[i, j] == 0.0 or it.use[i, j] <= it.room[j] * (1.0 + CAPACITY_TOLERANCE)
            sacks.open[j, i] = it.score[i, j] > -np.inf and fitting and sacks.weight[j, i] <= sacks.size[j]
            sacks.worth[j, i] = it.score[i, j] if sacks.open[j, i] else 0.0
        sacks.open[m, i], sacks.worth[m, i], sacks.weight[m, i] = True, it.facts[0].idle, 0


@kernel
def list_agents(sacks: Knapsacks, j: int, price: Floats) -> int:
    """List the agents that task j would gain by at these prices of agents; how many there are."""
    count, size = 0, sacks.size[j]
    for i in range(sacks.facts[0].n):
        sacks.profit[i] = sacks.worth[j, i] - price[i]
        if sacks.profit[i] > 0.0 and sacks.open[j, i] and sacks.fixed[i] < 0 and sacks.weight[j, i] <= size:
            sacks.listed[count] = i
            count += 1
    sacks.facts[0].cells += count * (size + 1.0)
    return count


@leaf
def add_row(target: Floats, source: Floats, size: int, weight: int, profit: float) -> None:
    """One more agent: target[c] = max(source[c], source[c - weight] + profit)"""
    for c in range(weight):
        target[c] = source[c]
    for c in range(weight, size + 1):
        target[c] = max(source[c], source[c - weight] + profit)


@kernel
def pack_ahead(sacks: Knapsacks, j: int, count: int) -> float:
    """Fill the table `ahead` for the listed agents; the knapsack's value."""
    size = sacks.size[j]
    sacks.ahead[0, : size + 1] = 0.0
    for k in range(count):
        i = sacks.listed[k]
        add_row(sacks.ahead[k + 1], sacks.ahead[k], size, sacks.weight[j, i], sacks.profit[i])
    return sacks.ahead[count, size]


@kernel
def read_choice(sacks: Knapsacks, j: int, count: int) -> None:
    """Mark in `taken` who is chosen, from the table `ahead`."""
    for i in range(sacks.facts[0].n):
        sacks.taken[j, i] = False
    c = sacks.size[j]
    for k in range(count - 1, -1, -1):
        if sacks.ahead[k + 1, c] != sacks.ahead[k, c]:
            i = sacks.listed[k]
            sacks.taken[j, i] = True
            c -= sacks.weight[j, i]


@leaf
def best_split(ahead: Floats, behind: Floats, size: int) -> float:
    """The largest ahead[c] + behind[size - c]"""
    best = 0.0
    for c in range(size + 1):
        best = max(best, ahead[c] + behind[size - c])
    return best


@kernel
def weigh_choices(sacks: Knapsacks, price: Floats) -> None:
    """Fill `join` and `leave` for all pairs that are open, at these prices of agents."""
    n, m = sacks.facts[0].n, sacks.facts[0].m
    ahead, behind, weight = sacks.ahead, sacks.behind, sacks.weight
    for j in range(m + 1):
        size = sacks.size[j]
        count = list_agents(sacks, j, price)
        value = pack_ahead(sacks, j, count)
        read_choice(sacks, j, count)
        behind[count, : size + 1] = 0.0
        for k in range(count - 1, -1, -1):
            i = sacks.listed[k]
            add_row(behind[k], behind[k + 1], size, weight[j, i], sacks.profit[i])
        for i in range(n):
            sacks.leave[j, i], sacks.join[j, i] = 0.0, -np.inf
            if sacks.fixed[i] < 0 and sacks.open[j, i] and weight[j, i] <= size and sacks.profit[i] <= 0.0:
                sacks.join[j, i] = sacks.profit[i] + ahead[count, size - weight[j, i]] - value
        for k in range(count):
            i = sacks.listed[k]
            if sacks.taken[j, i]:
                sacks.join[j, i] = 0.0
                sacks.leave[j, i] = min(0.0, best_split(ahead[k], behind[k + 1], size) - value)
            else:
                best = best_split(ahead[k], behind[k + 1], size - weight[j, i])
                sacks.join[j, i] = min(0.0, best + sacks.profit[i] - value)
        sacks.facts[0].cells += 2.0 * count * (size + 1.0)
