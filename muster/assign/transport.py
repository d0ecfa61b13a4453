"""Exact linear programme when contributions split into agent and task parts: a transportation network simplex.

With mu_ij = a_i d_j the flow f_ij = a_i b_ij turns the relaxation into

    maximise sum c_ij f_ij   with   sum_j f_ij <= a_i,   sum_i f_ij <= u_j / d_j,   c_ij = w_ij / a_i.

A root node plays every slack, so "nobody is assigned" is a starting basis and no big-M is needed. Nodes are numbered
agents 0..n-1, tasks n..n+m-1, root n+m. A basis is a spanning tree; `flow[v]` belongs to the arc between v and its
parent, which always points from the agent side to the task side: up from an agent, down to a task.

The basis stays strongly feasible (every task's parent arc carries flow), which rules out cycling (Cunningham 1976).
"""

from __future__ import annotations

import numpy as np

from muster.assign.extremes import largest_margin, place_of
from muster.assign.outcomes import OPTIMAL, TIME_LIMIT
from muster.assign.workspace import Tree
from muster.compile import kernel, leaf
from muster.data import Floats, Ints

# A reduced profit counts as positive above this share of the largest profit.
PRICE_TOLERANCE = 1e-13
# Pivots after which the duals are computed afresh before optimality is believed.
TRUSTED_PIVOTS = 50


@leaf
def detach(tree: Tree, v: int) -> None:
    """Take v out of its parent's list of children."""
    before, after = tree.previous[v], tree.next[v]
    if before >= 0:
        tree.next[before] = after
    else:
        tree.first[tree.parent[v]] = after
    if after >= 0:
        tree.previous[after] = before


@leaf
def attach(tree: Tree, v: int, parent: int) -> None:
    """Make v the first child of `parent`."""
    head = tree.first[parent]
    tree.parent[v] = parent
    tree.next[v] = head
    tree.previous[v] = -1
    if head >= 0:
        tree.previous[head] = v
    tree.first[parent] = v


@kernel
def hang(tree: Tree, v: int, top: int, parent: int, flow: float) -> None:
    """Re-root the detached subtree of `top` at v and hang it below `parent` by an arc that carries `flow`."""
    while True:
        old_parent, old_flow = tree.parent[v], tree.flow[v]
        if v != top:
            detach(tree, v)
        attach(tree, v, parent)
        tree.flow[v] = flow
        if v == top:
            return
        parent, flow, v = v, old_flow, old_parent


@kernel
def shift(tree: Tree, top: int, n: int, delta: float) -> None:
    """Add delta to the duals of the agents below `top` (itself included) and subtract it from those of the tasks."""
    parent, first, following, dual = tree.parent, tree.first, tree.next, tree.dual
    v = top
    while True:
        if v < n:
            dual[v] += delta
        else:
            dual[v] -= delta
        if first[v] >= 0:
            v = first[v]
            continue
        while v != top and following[v] < 0:
            v = parent[v]
        if v == top:
            return
        v = following[v]


@leaf
def first_above(values: Floats, prices: Floats, least: float) -> int:
    """The first of the largest values[j] - prices[j], if that is more than `least`; else -1."""
    best = largest_margin(values, prices)
    return place_of(best, values, prices) if best > least else -1


@kernel
def start(tree: Tree, c: Floats, slack: Floats, supply: Floats, capacity: Floats, n: int, m: int) -> None:
    """A greedy, strongly feasible basis: each agent in turn takes its best task that has room, in part if need be."""
    root = n + m
    tree.first[: root + 1] = -1
    tree.parent[root] = -1
    # A saturated task hangs below the agent that filled it, and costs more than it is worth to anyone.
    closed = tree.dual[n:root]
    for j in range(m):
        attach(tree, n + j, root)
        tree.flow[n + j] = capacity[j]
        closed[j] = 0.0
    for i in range(n):
        best = first_above(c[i, :m], closed, slack[i])
        if best < 0:
            attach(tree, i, root)
            tree.flow[i] = supply[i]
        elif supply[i] < tree.flow[n + best]:
            attach(tree, i, n + best)
            tree.flow[i] = supply[i]
            tree.flow[n + best] -= supply[i]
        else:
            room = tree.flow[n + best]
            attach(tree, i, root)
            tree.flow[i] = supply[i] - room
            detach(tree, n + best)
            attach(tree, n + best, i)
            tree.flow[n + best] = room
            closed[best] = np.inf


@kernel
def price(tree: Tree, c: Floats, slack: Floats, n: int, m: int) -> None:
    """Duals of the basis, afresh from the root: y_i + pi_j = c_ij on every tree arc, 0 at the root."""
    parent, first, following, dual = tree.parent, tree.first, tree.next, tree.dual
    root = n + m
    dual[root] = 0.0
    v = first[root]
    while v >= 0:
        above = parent[v]
        if above == root:
            dual[v] = slack[v] if v < n else 0.0
        elif v < n:
            dual[v] = c[v, above - n] - dual[above]
        else:
            dual[v] = c[above, v - n] - dual[above]
        if first[v] >= 0:
            v = first[v]
            continue
        while v != root and following[v] < 0:
            v = parent[v]
        if v == root:
            return
        v = following[v]


@kernel
def pivot(tree: Tree, tail: int, head: int, gain: float, n: int, stamp: int) -> None:
    """Push flow round the cycle that the arc tail -> head closes; the arc that empties first leaves the tree."""
    parent, flow, mark = tree.parent, tree.flow, tree.mark
    v = tail
    while v >= 0:
        mark[v] = stamp
        v = parent[v]

    # Going up from the head, arcs above tasks lose flow. Ties go to the arc nearest the apex ...
    head_limit, head_exit = np.inf, -1
    v = head
    while mark[v] != stamp:
        if v >= n and flow[v] <= head_limit:
            head_limit, head_exit = flow[v], v
        v = parent[v]
    apex = v
    # ... and going down to the tail, arcs above agents do. Ties go to the arc nearest the tail.
    tail_limit, tail_exit = np.inf, -1
    v = tail
    while v != apex:
        if v < n and flow[v] < tail_limit:
            tail_limit, tail_exit = flow[v], v
        v = parent[v]

    step = min(head_limit, tail_limit)
    if step > 0.0:
        v = head
        while v != apex:
            flow[v] += step if v < n else -step
            v = parent[v]
        v = tail
        while v != apex:
            flow[v] += -step if v < n else step
            v = parent[v]

    if head_limit <= tail_limit:
        detach(tree, head_exit)
        hang(tree, head, head_exit, tail, step)
        shift(tree, head, n, -gain)
    else:
        detach(tree, tail_exit)
        hang(tree, tail, tail_exit, head, step)
        shift(tree, tail, n, gain)


@kernel
def optimise(
    tree: Tree,
    c: Floats,
    slack: Floats,
    supply: Floats,
    inverse: Floats,
    lists: Ints,
    n: int,
    m: int,
    tolerance: float,
    stop: Ints,
) -> int:
    """Pivot until no arc is worth more than `tolerance` to a whole agent; the tree is modified in place.

    `lists` [n, k] restricts agent i to the tasks lists[i]; with k = 0 every task is looked at. Rows are looked at in
    turn, the best arc of a row enters. After many pivots the duals are computed afresh before optimality is believed.
    """
    root = n + m
    dual, prices = tree.dual, tree.dual[n:root]
    short = lists.shape[1]
    tree.mark[: root + 1] = -1
    price(tree, c, slack, n, m)
    finest = np.inf
    for i in range(n):
        if supply[i] > 0.0:
            finest = min(finest, inverse[i])
    idle, row, pivots, priced, patience = 0, 0, 0, 0, pivot_limit(n, m)
    while True:
        if row == 0:
            if stop[0] != 0:
                return TIME_LIMIT
            if pivots > patience:
                # Only rounding errors can make profits out of nothing for so long: ask for more.
                tolerance *= 10.0
                patience += pivot_limit(n, m)
            for j in range(m):
                if dual[n + j] < -tolerance * finest:
                    pivot(tree, root, n + j, -dual[n + j], n, pivots)
                    pivots += 1
                    idle = 0
        if supply[row] > 0.0:
            head, best = root, slack[row]
            if short > 0:
                for k in range(short):
                    j = lists[row, k]
                    value = c[row, j] - dual[n + j]
                    if value > best:
                        head, best = n + j, value
            else:
                best = max(best, largest_margin(c[row, :m], prices))
            gain = best - dual[row]
            if gain > tolerance * inverse[row]:
                if short == 0 and best > slack[row]:
                    head = n + place_of(best, c[row, :m], prices)
                pivot(tree, row, head, gain, n, pivots)
                pivots += 1
                idle = 0
        row = row + 1 if row + 1 < n else 0
        idle += 1
        if idle > n:
            # Few pivots leave the duals exact enough to be believed.
            if pivots - priced <= TRUSTED_PIVOTS:
                return OPTIMAL
            price(tree, c, slack, n, m)
            priced, idle, row = pivots, 0, 0


@kernel
def pivot_limit(n: int, m: int) -> int:
    """Many more pivots than instances of this size are known to need."""
    return 1000 + 100 * (n + m)
