"""Exact linear programme for contributions of any kind: a generalised network simplex.

    maximise sum w_ij b_ij   with   sum_j b_ij + r_i = 1,   sum_i mu_ij b_ij + t_j = u_j,   b, r, t >= 0.

A pair's column has two entries, 1 in its agent's row and mu_ij in its task's. So a basis falls into components that
are trees with one arc too many: either the slack of the top node, or a pair that closes a cycle between the top and
some other node. Nodes are numbered agents 0..n-1, tasks n..n+m-1. `tree.flow[v]` is the variable on the arc between v
and its parent; `top.kind`, `top.other` and `top.flow` describe a component's extra arc, stored at its top node.

No big matrix is ever built: a pivot walks a few paths. Ties in the ratio test go to the largest pivot element; after a
long run of steps without progress Bland's rule takes over until there is progress, so the method cannot cycle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.assign.outcomes import OPTIMAL, TIME_LIMIT
from muster.assign.transport import TRUSTED_PIVOTS, attach, detach, pivot_limit
from muster.assign.workspace import Tree
from muster.compile import kernel, leaf, maker
from muster.data import Floats, Ints

SLACK, CYCLE = 0, 1

# Pivot elements below this share of the largest one on the path are not trusted.
PIVOT_TOLERANCE = 1e-11
# Steps shorter than this are no progress.
STEP_TOLERANCE = 1e-12
# Pivots without progress, per node, before Bland's rule takes over.
PATIENCE = 2


class Top(NamedTuple):
    """The extra arc of each component, kept at its top node; and the change of every basic variable in a pivot."""

    kind: Ints
    """SLACK or CYCLE."""
    other: Ints
    """The far end of the pair that closes the cycle."""
    flow: Floats
    """Value of the extra arc's variable."""
    change: Floats
    """Rate of change of each parent arc's variable, 0 outside a pivot."""
    top_change: Floats
    touched: Ints
    """Nodes with a non-zero change."""


@maker
def make_top(n: int, m: int) -> Top:
    """Room for n agents and m tasks."""
    size = n + m + 1
    return Top(
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros(4 * size, np.int64),
    )


@leaf
def weight(mu: Floats, v: int, other: int, n: int) -> float:
    """Entry of the pair {v, other} in the row of v."""
    return 1.0 if v < n else mu[other, v - n]


@leaf
def profit(w: Floats, v: int, other: int, n: int) -> float:
    """Profit of the pair {v, other}."""
    return w[v, other - n] if v < n else w[other, v - n]


@kernel
def reroot(tree: Tree, v: int) -> None:
    """Make v the top of its tree, reversing the arcs on the way up."""
    parent, flow = -1, 0.0
    while v >= 0:
        old_parent, old_flow = tree.parent[v], tree.flow[v]
        if old_parent >= 0:
            detach(tree, v)
        if parent >= 0:
            attach(tree, v, parent)
        else:
            tree.parent[v] = -1
        tree.flow[v] = flow
        parent, flow, v = v, old_flow, old_parent


@leaf
def top_of(tree: Tree, v: int) -> int:
    """The top node of the component of v."""
    while tree.parent[v] >= 0:
        v = tree.parent[v]
    return v


@kernel
def start(tree: Tree, top: Top, w: Floats, slack: Floats, mu: Floats, u: Floats, n: int, m: int) -> None:
    """A greedy basis: each agent in turn takes its best task that has room, in part if need be."""
    for j in range(m):
        v = n + j
        tree.parent[v] = -1
        tree.first[v] = -1
        top.kind[v] = SLACK
        top.flow[v] = u[j]
    for i in range(n):
        tree.first[i] = -1
        tree.parent[i] = -1
        top.kind[i] = SLACK
        best, best_value = -1, slack[i]
        for j in range(m):
            if w[i, j] > best_value and tree.parent[n + j] < 0:
                best, best_value = j, w[i, j]
        if best < 0:
            top.flow[i] = 1.0
        elif mu[i, best] < top.flow[n + best]:
            attach(tree, i, n + best)
            tree.flow[i] = 1.0
            top.flow[n + best] -= mu[i, best]
        else:
            share = top.flow[n + best] / mu[i, best]
            top.flow[i] = 1.0 - share
            attach(tree, n + best, i)
            tree.flow[n + best] = share


@kernel
def price_component(tree: Tree, top: Top, w: Floats, slack: Floats, mu: Floats, v: int, n: int) -> None:
    """Duals of everything below v, from its parent or from its component's extra arc."""
    parent = tree.parent[v]
    if parent >= 0:
        tree.dual[v] = (profit(w, v, parent, n) - weight(mu, parent, v, n) * tree.dual[parent]) / weight(
            mu, v, parent, n
        )
    elif top.kind[v] == SLACK:
        tree.dual[v] = slack[v] if v < n else 0.0
    else:
        # The far end's dual is constant + slope * dual[v]: collect both on the way up from it, then close the cycle.
        far = top.other[v]
        constant, slope, k = 0.0, 1.0, far
        while k != v:
            above = tree.parent[k]
            own = weight(mu, k, above, n)
            constant += slope * profit(w, k, above, n) / own
            slope *= -weight(mu, above, k, n) / own
            k = above
        own, across = weight(mu, v, far, n), weight(mu, far, v, n)
        tree.dual[v] = (profit(w, v, far, n) - across * constant) / (own + across * slope)
    k = v
    while True:
        if tree.first[k] >= 0:
            k = tree.first[k]
        else:
            while k != v and tree.next[k] < 0:
                k = tree.parent[k]
            if k == v:
                return
            k = tree.next[k]
        above = tree.parent[k]
        if k < n:
            tree.dual[k] = w[k, above - n] - mu[k, above - n] * tree.dual[above]
        else:
            tree.dual[k] = (w[above, k - n] - tree.dual[above]) / mu[above, k - n]


@kernel
def price(tree: Tree, top: Top, w: Floats, slack: Floats, mu: Floats, n: int, m: int) -> None:
    """Duals of the whole basis, afresh."""
    for v in range(n + m):
        if tree.parent[v] < 0:
            price_component(tree, top, w, slack, mu, v, n)


@kernel
def push(tree: Tree, top: Top, mu: Floats, v: int, amount: float, n: int, count: int) -> int:
    """Add to `change` what absorbs `amount` in the row of v, along its path to the top and through the extra arc."""
    top_node = v
    while True:
        above = tree.parent[top_node]
        if above < 0:
            break
        rate = amount / weight(mu, top_node, above, n)
        top.touched[count] = top_node
        count += 1
        top.change[top_node] += rate
        amount = -rate * weight(mu, above, top_node, n)
        top_node = above
    if top.kind[top_node] == SLACK:
        top.top_change[top_node] += amount
        return count
    far = top.other[top_node]
    slope, k = 1.0, far
    while k != top_node:
        above = tree.parent[k]
        slope *= -weight(mu, above, k, n) / weight(mu, k, above, n)
        k = above
    across = weight(mu, far, top_node, n)
    rate = amount / (weight(mu, top_node, far, n) + across * slope)
    top.top_change[top_node] += rate
    amount = -rate * across
    k = far
    while k != top_node:
        above = tree.parent[k]
        step = amount / weight(mu, k, above, n)
        if top.change[k] == 0.0:
            top.touched[count] = k
            count += 1
        top.change[k] += step
        amount = -step * weight(mu, above, k, n)
        k = above
    return count


@leaf
def pair_index(v: int, other: int, n: int, m: int) -> int:
    """Number of the pair {v, other} among all columns, for Bland's rule."""
    return v * m + other - n if v < n else other * m + v - n


@leaf
def choose_exit(
    tree: Tree, top: Top, tops: tuple[int, int], count: int, n: int, m: int, bland: bool
) -> tuple[float, int, bool]:
    """How far the entering column can go, the node whose arc that empties, and whether it is the arc of a top.

    Of several the one of the largest rate, or of the lowest number if `bland`.
    """
    largest = 0.0
    for k in range(count):
        largest = max(largest, abs(top.change[top.touched[k]]))
    for t in tops:
        if t >= 0:
            largest = max(largest, abs(top.top_change[t]))
    trusted = PIVOT_TOLERANCE * largest

    step, exit_node, exit_top, exit_size, exit_index = np.inf, -1, False, 0.0, 0
    for k in range(count + 2):
        if k < count:
            node, is_top = top.touched[k], False
            rate, room = top.change[node], tree.flow[node]
        else:
            node, is_top = tops[k - count], True
            if node < 0 or (k == count + 1 and node == tops[0]):
                continue
            rate, room = top.top_change[node], top.flow[node]
        if rate <= trusted:
            continue
        ratio = max(room, 0.0) / rate
        if is_top:
            index = n * m + node if top.kind[node] == SLACK else pair_index(node, top.other[node], n, m)
        else:
            index = pair_index(node, tree.parent[node], n, m)
        tie = abs(ratio - step) <= STEP_TOLERANCE
        better = (index < exit_index if bland else rate > exit_size) if tie else ratio < step
        if better:
            step, exit_node, exit_top, exit_size, exit_index = min(ratio, step), node, is_top, rate, index
    return step, exit_node, exit_top


@leaf
def fasten(tree: Tree, top: Top, v: int, other: int, loose: int, step: float) -> int:
    """Put the pair {v, other}, or the slack of v, into the basis with flow `step`; `loose` tops the part without one.

    Returns where prices are to be set from.
    """
    if other < 0:
        reroot(tree, v)
        top.kind[v] = SLACK
        top.flow[v] = step
        loose = v
    else:
        v_loose, other_loose = top_of(tree, v) == loose, top_of(tree, other) == loose
        if v_loose and other_loose:
            reroot(tree, v)
            top.kind[v] = CYCLE
            top.other[v] = other
            top.flow[v] = step
            loose = v
        else:
            below, above = (v, other) if v_loose else (other, v)
            reroot(tree, below)
            attach(tree, below, above)
            tree.flow[below] = step
            loose = below
    return loose


@kernel
def pivot(
    tree: Tree, top: Top, w: Floats, slack: Floats, mu: Floats, v: int, other: int, n: int, m: int, bland: bool
) -> float:
    """Bring in the pair {v, other}, or the slack of v when other < 0; returns the length of the step."""
    count = 0
    if other < 0:
        count = push(tree, top, mu, v, 1.0, n, count)
    else:
        count = push(tree, top, mu, v, weight(mu, v, other, n), n, count)
        count = push(tree, top, mu, other, weight(mu, other, v, n), n, count)
    tops = (top_of(tree, v), top_of(tree, other) if other >= 0 else -1)

    step, exit_node, exit_top = choose_exit(tree, top, tops, count, n, m, bland)
    for k in range(count):
        node = top.touched[k]
        if top.change[node] != 0.0:
            tree.flow[node] = max(0.0, tree.flow[node] - step * top.change[node])
            top.change[node] = 0.0
    for t in tops:
        if t >= 0 and top.top_change[t] != 0.0:
            top.flow[t] = max(0.0, top.flow[t] - step * top.top_change[t])
            top.top_change[t] = 0.0

    # What is left of the exit's component without its exit: `loose` tops a tree that has lost its extra arc.
    if exit_top:
        loose = exit_node
    else:
        summit = top_of(tree, exit_node)
        detach(tree, exit_node)
        tree.parent[exit_node] = -1
        loose = exit_node
        if top.kind[summit] == CYCLE and top_of(tree, top.other[summit]) == exit_node:
            # The cycle ran through the exit: its closing pair now ties the two parts together.
            far = top.other[summit]
            reroot(tree, far)
            attach(tree, far, summit)
            tree.flow[far] = top.flow[summit]
            loose = summit

    loose = fasten(tree, top, v, other, loose, step)
    price_component(tree, top, w, slack, mu, loose, n)
    return step


@kernel
def optimise(
    tree: Tree, top: Top, w: Floats, slack: Floats, mu: Floats, usable: Ints, lists: Ints, n: int, m: int,
    tolerance: float, stop: Ints,
) -> int:  # fmt: skip
    """Pivot until no column has a reduced profit above `tolerance`; see `transport.optimise`.

    Agents with usable[i] == 0 have no pair that takes capacity and are left alone.
    """
    short = lists.shape[1]
    price(tree, top, w, slack, mu, n, m)
    dual = tree.dual
    idle, row, stuck, pivots, priced, patience = 0, 0, 0, 0, 0, pivot_limit(n, m)
    while True:
        bland = stuck > PATIENCE * (n + m)
        if row == 0:
            if stop[0] != 0:
                return TIME_LIMIT
            if pivots > patience:
                tolerance *= 10.0
                patience += pivot_limit(n, m)
            for j in range(m):
                if dual[n + j] < -tolerance:
                    step = pivot(tree, top, w, slack, mu, n + j, -1, n, m, bland)
                    stuck = 0 if step > STEP_TOLERANCE else stuck + 1
                    pivots += 1
                    idle = 0
        if usable[row] != 0:
            best, head = slack[row], -1
            limit = dual[row] + tolerance
            if short > 0:
                for k in range(short):
                    j = lists[row, k]
                    value = w[row, j] - mu[row, j] * dual[n + j]
                    if value > best:
                        best, head = value, n + j
            else:
                for j in range(m):
                    value = w[row, j] - mu[row, j] * dual[n + j]
                    if value > best:
                        best, head = value, n + j
                        if bland and value > limit:
                            break
            if best > limit:
                step = pivot(tree, top, w, slack, mu, row, head, n, m, bland)
                stuck = 0 if step > STEP_TOLERANCE else stuck + 1
                pivots += 1
                idle = 0
                if bland:
                    # Bland's rule looks from the first column again.
                    row = n - 1
        row = row + 1 if row + 1 < n else 0
        idle += 1
        if idle > n:
            if pivots - priced <= TRUSTED_PIVOTS:
                return OPTIMAL
            price(tree, top, w, slack, mu, n, m)
            priced, idle, row = pivots, 0, 0
