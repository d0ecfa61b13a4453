"""The linear programme of an instance under any profits: what LP solves once and Frank-Wolfe at every step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.assign import generalised, transport
from muster.assign.extremes import larger, largest_margin
from muster.assign.generalised import CYCLE, Top, make_top
from muster.assign.instance import LOADED, TRANSPORT, Instance
from muster.assign.outcomes import OPTIMAL
from muster.assign.workspace import Tree, make_tree
from muster.compile import glue, kernel, leaf, maker
from muster.data import Floats, Ints

# Instances with more pairs than this look at short lists of tasks first ...
SHORT_LIST_PAIRS = 100_000
# ... of this length, chosen anew by reduced profit until none is missing.
SHORT_LIST_LENGTH = 24
# A part of an agent smaller than this is rounding error.
PART_TOLERANCE = 1e-12


class Point(NamedTuple):
    """A sparse relaxed assignment: agent i puts value[k] on task[k] for first[i] <= k < first[i + 1]."""

    first: Ints
    task: Ints
    value: Floats


class Oracle(NamedTuple):
    """State of the simplex between calls: the basis of the last solve is where the next one starts."""

    tree: Tree
    top: Top
    profit: Floats
    """[N, M] c_ij = w_ij / a_i, -inf where the pair takes no capacity or the task has none."""
    slack: Floats
    """[N] value of leaving the agent out, or of its best task that takes no capacity, per unit of supply."""
    free: Ints
    """[N] that task, or -1."""
    lists: Ints
    """[N, k] short lists; k = 0 for small instances."""
    kept: Floats
    """[k] reduced profits of the list being made."""
    vertex: Point
    scratch: Ints


@maker
def make_point(n: int, size: int) -> Point:
    """Room for n agents and `size` entries."""
    return Point(np.zeros(n + 1, np.int64), np.zeros(size, np.int64), np.zeros(size))


@maker
def make_oracle(profit: Floats) -> Oracle:
    """Room for n agents and m tasks, where `profit` is [n, m] and need not be cleared."""
    n, m = profit.shape
    k = SHORT_LIST_LENGTH if n * m > SHORT_LIST_PAIRS and m > 4 * SHORT_LIST_LENGTH else 0
    return Oracle(
        make_tree(n, m),
        make_top(n, m),
        profit,
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros((n, k), np.int64),
        np.zeros(k),
        make_point(n, 2 * (n + m) + 2),
        np.zeros((2 * (n + m) + 2) * 2, np.int64),
    )


@leaf
def bonus_of(it: Instance, i: int, j: int, bonus: Floats, loaded: bool) -> float:
    """What agent i has of the bonus of task j: all of it, or its contribution's worth where loads count."""
    return it.use[i, j] * bonus[j] if loaded else bonus[j]


@kernel
def set_profits(oracle: Oracle, it: Instance, bonus: Floats) -> float:
    """Profits w_ij = h_ij + bonus_j (or mu_ij bonus_j); returns the largest size of a profit."""
    loaded = it.facts[0].quadratic == LOADED
    n, m, has_free = it.facts[0].n, it.facts[0].m, it.facts[0].free
    idle = it.facts[0].idle
    # A assign_all assignment's penalty is no score, but its size limits the accuracy of the duals all the same.
    largest = -0.01 * idle
    profit, score, arc, inverses = oracle.profit, it.score, it.arc, it.inverse
    for i in range(n):
        inverse = inverses[i]
        best, best_task = idle, -1
        if has_free != 0:
            for j in range(m):
                if it.use[i, j] == 0.0 and score[i, j] + bonus_of(it, i, j, bonus, loaded) > best:
                    best, best_task = score[i, j] + bonus_of(it, i, j, bonus, loaded), j
        oracle.free[i] = best_task
        oracle.slack[i] = best * inverse
        largest = max(largest, best)
        if it.facts[0].restricted == 0:
            for j in range(m):
                value = score[i, j] + bonus_of(it, i, j, bonus, loaded)
                profit[i, j] = value * inverse
                largest = larger(value, largest)
        else:
            for j in range(m):
                value = arc[i, j] + bonus_of(it, i, j, bonus, loaded)
                profit[i, j] = value * inverse if value > -np.inf else value
                largest = larger(value, largest)
    return largest


@glue
def maximise(oracle: Oracle, it: Instance, scale: float, warm: bool, stop: Ints) -> int:
    """Solve to optimality from a greedy basis, or from the last one if `warm`; OPTIMAL or TIME_LIMIT."""
    if it.facts[0].kind == TRANSPORT:
        status = maximise_transport(oracle, it, scale, warm, stop)
    else:
        status = maximise_generalised(oracle, it, scale, warm, stop)
    return status


@glue
def maximise_transport(oracle: Oracle, it: Instance, scale: float, warm: bool, stop: Ints) -> int:
    """The same for an instance that is known to be a transport problem."""
    n, m = it.facts[0].n, it.facts[0].m
    tree, profit, slack, supply = oracle.tree, oracle.profit, oracle.slack, it.supply
    tolerance = transport.PRICE_TOLERANCE * scale
    if not warm:
        transport.start(tree, profit, slack, supply, it.capacity, n, m)
    status = OPTIMAL
    short, fresh, missing = use_lists(oracle, it), not warm, n * m > 0
    while missing:
        if short:
            transport.price(tree, profit, slack, n, m)
            missing = choose_lists(oracle, it, tolerance, fresh)
        fresh = False
        if missing:
            lists = oracle.lists if short else oracle.lists[:, :0]
            status = transport.optimise(tree, profit, slack, supply, it.inverse, lists, n, m, tolerance, stop)
            missing = short and status == OPTIMAL
    return status


@glue
def maximise_generalised(oracle: Oracle, it: Instance, scale: float, warm: bool, stop: Ints) -> int:
    """The same for an instance that is known not to be one."""
    n, m = it.facts[0].n, it.facts[0].m
    tree, top, profit, slack, scaled = oracle.tree, oracle.top, oracle.profit, oracle.slack, it.scaled
    tolerance = transport.PRICE_TOLERANCE * scale
    if not warm:
        generalised.start(tree, top, profit, slack, scaled, it.capacity, n, m)
    status = OPTIMAL
    short, fresh, missing = use_lists(oracle, it), not warm, n * m > 0
    while missing:
        if short:
            generalised.price(tree, top, profit, slack, scaled, n, m)
            missing = choose_lists(oracle, it, tolerance, fresh)
        fresh = False
        if missing:
            lists = oracle.lists if short else oracle.lists[:, :0]
            status = generalised.optimise(tree, top, profit, slack, scaled, it.usable, lists, n, m, tolerance, stop)
            missing = short and status == OPTIMAL
    return status


@kernel
def use_lists(oracle: Oracle, it: Instance) -> bool:
    """Whether the instance is large enough for short lists."""
    short = oracle.lists.shape[1]
    return short > 0 and it.facts[0].n * it.facts[0].m > SHORT_LIST_PAIRS and it.facts[0].m > 4 * short


@kernel
def choose_lists(oracle: Oracle, it: Instance, tolerance: float, fresh: bool) -> bool:
    """Whether some pair of all could enter; if so, agents with such a pair get new short lists (all if `fresh`).

    A short list holds the tasks of largest reduced profit. The duals are current.
    """
    n, m, dual = it.facts[0].n, it.facts[0].m, oracle.tree.dual
    transporting = it.facts[0].kind == TRANSPORT
    missing = False
    for v in range(n, n + m):
        missing = missing or dual[v] < -tolerance
    wants = oracle.scratch
    for i in range(n):
        best = max(oracle.slack[i], best_reduced(oracle, it, i, transporting))
        wants[i] = 1 if it.usable[i] != 0 and best - dual[i] > tolerance * it.inverse[i] else 0
        missing = missing or wants[i] != 0
    if missing:
        for i in range(n):
            if fresh or wants[i] != 0:
                make_list(oracle, it, i)
    return missing


@leaf
def best_reduced(oracle: Oracle, it: Instance, i: int, transporting: bool) -> float:
    """Largest reduced profit of agent i over all tasks."""
    n, m = it.facts[0].n, it.facts[0].m
    profits, scaled, duals = oracle.profit[i, :m], it.scaled[i, :m], oracle.tree.dual[n : n + m]
    if transporting:
        return largest_margin(profits, duals)
    best = -np.inf
    for j in range(m):
        best = larger(profits[j] - scaled[j] * duals[j], best)
    return best


@kernel
def make_list(oracle: Oracle, it: Instance, i: int) -> None:
    """Fill the short list of agent i with the tasks of largest reduced profit, in a heap with the least on top."""
    n, m, short = it.facts[0].n, it.facts[0].m, oracle.lists.shape[1]
    kept, lists, dual, profit = oracle.kept, oracle.lists, oracle.tree.dual, oracle.profit
    transporting = it.facts[0].kind == TRANSPORT
    for j in range(m):
        value = profit[i, j] - (dual[n + j] if transporting else it.scaled[i, j] * dual[n + j])
        if j < short:
            kept[j], lists[i, j] = value, j
            if j == short - 1:
                for k in range(short // 2 - 1, -1, -1):
                    sink(kept, lists, i, k)
        elif value > kept[0]:
            kept[0], lists[i, 0] = value, j
            sink(kept, lists, i, 0)


@leaf
def sink(kept: Floats, lists: Ints, i: int, k: int) -> None:
    """Let entry k of the heap of agent i sink to its place."""
    short = lists.shape[1]
    while True:
        child = 2 * k + 1
        if child >= short:
            return
        if child + 1 < short and kept[child + 1] < kept[child]:
            child += 1
        if kept[child] >= kept[k]:
            return
        kept[k], kept[child] = kept[child], kept[k]
        lists[i, k], lists[i, child] = lists[i, child], lists[i, k]
        k = child


@kernel
def read_vertex(oracle: Oracle, it: Instance) -> None:
    """Write the basic solution to `oracle.vertex`: by agent, then by task."""
    n, m = it.facts[0].n, it.facts[0].m
    point, scratch = oracle.vertex, oracle.scratch
    tree, top = oracle.tree, oracle.top
    if n == 0 or m == 0:
        point.first[: n + 1] = 0
        return
    transporting = it.facts[0].kind == TRANSPORT
    # First the arcs of the basis in node order, as (agent, node) with a slack's node standing for the agent itself ...
    count = 0
    point.first[: n + 1] = 0
    for v in range(n + m):
        other = tree.parent[v]
        if not transporting and other < 0 and top.kind[v] == CYCLE:
            other = top.other[v]
        if v < n:
            if (other >= n and other < n + m) or oracle.free[v] >= 0:
                scratch[2 * count], scratch[2 * count + 1] = v, v
            else:
                continue
            agent = v
        else:
            if other < 0 or other >= n:
                continue
            scratch[2 * count], scratch[2 * count + 1] = other, v
            agent = other
        point.first[agent + 1] += 1
        count += 1
    for i in range(n):
        point.first[i + 1] += point.first[i]
    # ... then each where its agent's entries begin, by increasing task, leaving out rounding errors.
    filled = 0
    cursor = scratch[2 * count : 2 * count + n]
    for i in range(n):
        cursor[i] = point.first[i]
    for k in range(count):
        agent, v = scratch[2 * k], scratch[2 * k + 1]
        other = tree.parent[v]
        flow = tree.flow[v]
        if not transporting and other < 0:
            flow = top.flow[v]
            other = top.other[v] if top.kind[v] == CYCLE else -1
        if v >= n:
            task = v - n
        elif other >= n and other < n + m:
            task = other - n
        else:
            task = oracle.free[v]
        value = flow * it.inverse[agent] if it.supply[agent] > 0.0 else 1.0
        place = cursor[agent]
        while place > point.first[agent] and point.task[place - 1] > task:
            point.task[place], point.value[place] = point.task[place - 1], point.value[place - 1]
            place -= 1
        point.task[place], point.value[place] = task, min(value, 1.0)
        cursor[agent] += 1
    for i in range(n):
        begin, end = filled, point.first[i + 1]
        k = point.first[i]
        point.first[i] = begin
        while k < end:
            if point.value[k] > PART_TOLERANCE:
                point.task[filled], point.value[filled] = point.task[k], point.value[k]
                filled += 1
            k += 1
    point.first[n] = filled
