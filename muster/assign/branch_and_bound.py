"""Proof: branch and bound over agents, with the bounds of `lagrangian` and the pairs that they close.

At every node the prices are improved a little, pairs that cannot beat the best assignment are closed, agents with one
choice left are fixed, and one of the others is branched on, its best choice first. Depth first: memory
is one row a depth, and the way down is a strong heuristic by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.assign.batch import Output, Settings
from muster.assign.bettering import read_answer, write_better
from muster.assign.certificate import PROVEN
from muster.assign.given import Given
from muster.assign.grain import grain_of, whole_limit
from muster.assign.instance import Instance, fill_instance, fits, lay_instance
from muster.assign.knapsack import Knapsacks, fill_knapsacks, lay_grid, make_knapsacks
from muster.assign.lagrangian import BEATEN, REACHED, Prices, lower, make_prices, pair_bound, sum_leave, weigh
from muster.assign.rounding import make_plan
from muster.compile import entry, kernel, maker
from muster.data import Floats, Ints

# Subgradient steps at the root and at the other nodes, the first steps' lengths, and their patience.
ROOT_STEPS, NODE_STEPS = 300, 20
ROOT_LENGTH, NODE_LENGTH = 1.0, 0.3
ROOT_PATIENCE, NODE_PATIENCE = 10, 5
# Cells of knapsacks' tables that each effort computes: the measure of work where there is no limit of time.
CELLS = (0.0, 0.0, 2e9, np.inf)
# How often a node is looked at again after agents were fixed.
LOOKS = 10
# Values nearer than this share count as equal.
VALUE_TOLERANCE = 1e-9
# Steps aim no further below the bound than this share of what the agents' choices differ by.
REACH = 0.02

HUNT = np.dtype(
    (
        np.record,
        [
            ("value", np.float64),
            ("grain", np.float64),
            ("reach", np.float64),
            ("root", np.float64),
            ("nodes", np.int64),
            ("depth", np.int64),
            ("closings", np.int64),
            ("fixings", np.int64),
            ("improved", np.int64),
        ],
    )
)
"""value: of the best assignment; grain: what values are multiples of, or 0; reach: how far below the bound to aim;
root: the bound at the root; nodes: looked at; depth: of the present one; closings, fixings: lengths of the two
trails; improved: 1 once a better assignment was found."""


class Tree(NamedTuple):
    """The way from the root to the present node, and what was decided on it."""

    agent: Ints
    """[N + 1] that is branched on at each depth."""
    choice: Ints
    """[N + 1, M + 1] its choices, the best bound first, ..."""
    bound: Floats
    """[N + 1, M + 1] ... their bounds, ..."""
    choices: Ints
    """[N + 1] ... how many, ..."""
    following: Ints
    """[N + 1] ... and the next to be tried."""
    price: Floats
    """[N + 1, N] prices at each depth."""
    closed: Ints
    """[N (M + 1)] pairs that were closed, in order, and how many when each depth began to branch."""
    closed_before: Ints
    placed: Ints
    """[N] agents that were fixed, likewise."""
    placed_before: Ints
    best: Ints
    """[N] the best assignment; M for left out."""
    hunt: Any
    """[1] HUNT"""


@maker
def make_hunt_tree(n: int, m: int) -> Tree:
    """Room for n agents and m tasks."""
    return Tree(
        np.zeros(n + 1, np.int64),
        np.zeros((n + 1, m + 1), np.int64),
        np.zeros((n + 1, m + 1)),
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros((n + 1, n)),
        np.zeros(n * (m + 1), np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(n, np.int64),
        np.zeros(1, HUNT),
    )


@kernel
def enough(hunt: Any) -> float:
    """A bound this low leaves nothing better than the best assignment."""
    if hunt.grain > 0.0:
        return hunt.value + hunt.grain * (1.0 - 1e-5)
    return hunt.value + VALUE_TOLERANCE * abs(hunt.value)


@kernel
def fix(sacks: Knapsacks, tree: Tree, i: int, j: int) -> bool:
    """Fix agent i to task j; whether it fits."""
    hunt = tree.hunt[0]
    sacks.fixed[i] = j
    sacks.size[j] -= sacks.weight[j, i]
    tree.placed[hunt.fixings] = i
    hunt.fixings += 1
    return sacks.size[j] >= 0


@kernel
def take_back(sacks: Knapsacks, tree: Tree, depth: int) -> None:
    """Undo what was decided below `depth`."""
    hunt, width = tree.hunt[0], sacks.facts[0].m + 1
    while hunt.closings > tree.closed_before[depth]:
        hunt.closings -= 1
        pair = tree.closed[hunt.closings]
        sacks.open[pair % width, pair // width] = True
    while hunt.fixings > tree.placed_before[depth]:
        hunt.fixings -= 1
        i = tree.placed[hunt.fixings]
        sacks.size[sacks.fixed[i]] += sacks.weight[sacks.fixed[i], i]
        sacks.fixed[i] = -1


@kernel
def close_pairs(sacks: Knapsacks, tree: Tree, bound: float) -> int:
    """Close pairs that cannot beat the best assignment and fix agents with one choice left.

    Returns how many were fixed, or -1 if some agent has no choice left.
    """
    n, m, hunt = sacks.facts[0].n, sacks.facts[0].m, tree.hunt[0]
    least, fixed = enough(hunt), 0
    for i in range(n):
        if sacks.fixed[i] >= 0:
            continue
        others, count, only = sum_leave(sacks, i), 0, -1
        for j in range(m + 1):
            if not sacks.open[j, i]:
                continue
            if pair_bound(sacks, i, j, bound, others) <= least:
                sacks.open[j, i] = False
                tree.closed[hunt.closings] = i * (m + 1) + j
                hunt.closings += 1
            else:
                count += 1
                only = j
        if count == 0:
            return -1
        if count == 1:
            fixed += 1
            if not fix(sacks, tree, i, only):
                return -1
    return fixed


@kernel
def accept(sacks: Knapsacks, tree: Tree, it: Instance, load: Floats) -> bool:
    """Keep the assignment that the knapsacks and the fixed agents make up if it is better; whether it is feasible."""
    n, m, hunt = it.facts[0].n, it.facts[0].m, tree.hunt[0]
    load[:m] = 0.0
    value = 0.0
    for i in range(n):
        where = sacks.fixed[i]
        if where < 0:
            for j in range(m + 1):
                if sacks.taken[j, i]:
                    where = j
        value += sacks.worth[where, i]
        if where < m:
            if not fits(load[where], it.use[i, where], it.room[where]):
                return False
            load[where] += it.use[i, where]
        sacks.listed[i] = where
    if value > hunt.value + VALUE_TOLERANCE * abs(hunt.value):
        hunt.value, hunt.improved = value, 1
        for i in range(n):
            tree.best[i] = sacks.listed[i]
    return True


@kernel
def look(sacks: Knapsacks, prices: Prices, tree: Tree, it: Instance, load: Floats, stop: Ints) -> tuple[float, bool]:
    """Bound the present node and close what can be closed: the bound, and whether there is anything to branch on."""
    n, m, hunt = it.facts[0].n, it.facts[0].m, tree.hunt[0]
    root = hunt.depth == 0
    bound = np.inf
    for turn in range(LOOKS):
        steps, length = NODE_STEPS, NODE_LENGTH
        if root and turn == 0:
            steps, length = ROOT_STEPS, ROOT_LENGTH
        patience = ROOT_PATIENCE if root else NODE_PATIENCE
        least = enough(hunt)
        bound, outcome = lower(sacks, prices, steps, length, patience, hunt.value, hunt.reach, least, stop)
        if root:
            hunt.root = min(hunt.root, bound)
        if outcome == BEATEN or bound <= least:
            return bound, False
        if outcome == REACHED and accept(sacks, tree, it, load):
            return bound, False
        if stop[0] != 0:
            break
        weigh(sacks, prices)
        fixed = close_pairs(sacks, tree, bound)
        if fixed < 0:
            return bound, False
        if fixed == 0:
            break
    for i in range(n):
        if sacks.fixed[i] < 0:
            return bound, True
    for j in range(m + 1):
        for i in range(n):
            sacks.taken[j, i] = False
    accept(sacks, tree, it, load)
    return bound, False


@kernel
def branch(sacks: Knapsacks, prices: Prices, tree: Tree, bound: float, proving: bool) -> None:
    """Choose an agent and list its choices, the best bound first.

    Where good assignments are wanted soon, the agent with the fewest choices, then the least hope. Where a proof is,
    the one whose best choice has the lowest bound: the bound of the whole falls soonest.
    """
    n, m, hunt = sacks.facts[0].n, sacks.facts[0].m, tree.hunt[0]
    depth, least = hunt.depth, enough(hunt)
    fewest, lowest, chosen = m + 2, np.inf, -1
    for i in range(n):
        if sacks.fixed[i] >= 0:
            continue
        others, count, hope, high = sum_leave(sacks, i), 0, 0.0, -np.inf
        for j in range(m + 1):
            if sacks.open[j, i]:
                own = pair_bound(sacks, i, j, bound, others)
                count += 1
                hope += own - least
                high = max(high, own)
        if proving:
            if high < lowest or (high == lowest and count < fewest):
                fewest, lowest, chosen = count, high, i
        elif count < fewest or (count == fewest and hope < lowest):
            fewest, lowest, chosen = count, hope, i
    others, count = sum_leave(sacks, chosen), 0
    for j in range(m + 1):
        if sacks.open[j, chosen]:
            own = pair_bound(sacks, chosen, j, bound, others)
            place = count
            while place > 0 and tree.bound[depth, place - 1] < own:
                tree.bound[depth, place] = tree.bound[depth, place - 1]
                tree.choice[depth, place] = tree.choice[depth, place - 1]
                place -= 1
            tree.bound[depth, place], tree.choice[depth, place] = own, j
            count += 1
    tree.agent[depth], tree.choices[depth], tree.following[depth] = chosen, count, 0
    tree.closed_before[depth], tree.placed_before[depth] = hunt.closings, hunt.fixings
    for i in range(n):
        tree.price[depth, i] = prices.price[i]


@kernel
def step_down(sacks: Knapsacks, prices: Prices, tree: Tree) -> bool:
    """Go on to the next choice that may be better, here or further up; False if there is none anywhere."""
    hunt = tree.hunt[0]
    while hunt.depth >= 0:
        depth = hunt.depth
        take_back(sacks, tree, depth)
        for i in range(sacks.facts[0].n):
            prices.price[i] = tree.price[depth, i]
        i = tree.agent[depth]
        while tree.following[depth] < tree.choices[depth]:
            turn = tree.following[depth]
            tree.following[depth] += 1
            if tree.bound[depth, turn] > enough(hunt) and fix(sacks, tree, i, tree.choice[depth, turn]):
                hunt.depth += 1
                return True
            take_back(sacks, tree, depth)
        hunt.depth -= 1
    return False


@kernel
def open_bound(tree: Tree) -> float:
    """What no assignment is worth more than when the search is cut short: the best of what was not looked at."""
    hunt = tree.hunt[0]
    limit = hunt.root if hunt.depth == 0 else hunt.value
    for depth in range(hunt.depth):
        for turn in range(max(0, tree.following[depth] - 1), tree.choices[depth]):
            limit = max(limit, tree.bound[depth, turn])
    return min(limit, hunt.root)


@kernel
def hunt_down(
    sacks: Knapsacks,
    prices: Prices,
    tree: Tree,
    it: Instance,
    load: Floats,
    proving: bool,
    cells: float,
    stop: Ints,
) -> float:
    """Search until everything is looked at, so many cells are computed, or stopped; what nothing is better than."""
    hunt = tree.hunt[0]
    hunt.depth, hunt.nodes, hunt.closings, hunt.fixings = 0, 0, 0, 0
    while True:
        hunt.nodes += 1
        bound, alive = look(sacks, prices, tree, it, load, stop)
        if hunt.depth == 0 and not alive:
            return hunt.value
        if stop[0] != 0 or sacks.facts[0].cells >= cells:
            return open_bound(tree)
        if alive:
            branch(sacks, prices, tree, bound, proving)
        else:
            hunt.depth -= 1
        if not step_down(sacks, prices, tree):
            return hunt.value


@kernel
def set_out(sacks: Knapsacks, prices: Prices, tree: Tree, it: Instance, task_prices: Floats) -> None:
    """Begin at the prices of the linear programme, which its prices of tasks imply: y_i = max_j h_ij - mu_ij pi_j."""
    n, m, hunt = it.facts[0].n, it.facts[0].m, tree.hunt[0]
    limit, spread = 0.0, 0.0
    for j in range(m):
        if task_prices[j] > 0.0:
            limit += task_prices[j] * it.room[j]
    for i in range(n):
        best, low, high = it.facts[0].idle, np.inf, -np.inf
        for j in range(m):
            if it.score[i, j] > -np.inf:
                best = max(best, it.score[i, j] - it.use[i, j] * task_prices[j])
                low, high = min(low, it.score[i, j]), max(high, it.score[i, j])
        prices.price[i] = best
        limit += best
        spread += max(high - low, 0.1 * abs(high)) if high > -np.inf else 0.0
    hunt.root, hunt.reach, hunt.grain, hunt.improved = limit, REACH * spread, grain_of(it), 0


@entry
def prove_batch(
    rows: Ints,
    begin: int,
    end: int,
    given: Given,
    settings: Settings,
    proving: bool,
    cells: float,
    out: Output,
    space: Floats,
    stop: Ints,
) -> None:
    """Improve the answers in rows[begin:end] or prove them, computing no more than so many cells for each.

    `proving` goes for the proof rather than for good assignments soon. LP has solved, proven and rounded them.
    """
    n, m = given.scores.shape[1], given.scores.shape[2]
    it = lay_instance(space, False)
    tree, prices, plan = make_hunt_tree(n, m), make_prices(n), make_plan(n, m)
    weight, size = np.zeros((m + 1, n), np.int64), np.zeros(m + 1, np.int64)
    place_of, task_prices, proof = np.zeros(m, np.int64), np.zeros(m), np.zeros(1, PROVEN)
    keys, ties, order = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
    for row in range(begin, end):
        b = rows[row]
        fill_instance(it, given, b, settings.assign_all)
        for j in range(it.facts[0].m):
            task_prices[j] = out.prices[b, it.tasks[j]]
        exact = lay_grid(weight, size, it)
        sacks = make_knapsacks(n, m, size[: it.facts[0].m + 1].max() + 1)
        sacks.weight[:], sacks.size[:] = weight, size
        fill_knapsacks(sacks, it, exact)
        set_out(sacks, prices, tree, it, task_prices)
        tree.hunt[0].value = read_answer(tree.best, it, out, b, place_of)
        limit = hunt_down(sacks, prices, tree, it, keys, proving, cells, stop)
        limit = max(tree.hunt[0].value, whole_limit(it, limit, tree.hunt[0].grain))
        write_better(tree.best, limit, it, settings, out, b, plan, task_prices, proof[0], order, keys, ties, stop)
