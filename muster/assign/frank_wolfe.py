"""Pairwise Frank-Wolfe for max h·b + c'gc over the relaxed assignments, where c_j = sum_i b_ij, or sum_i mu_ij b_ij.

The quadratic part sees b only through the loads c, so a vertex is kept as its score h·v, its loads and its few
non-zero entries; no (nm)^2 matrix, and none of size nm but the point itself, is ever built.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.assign.instance import LOADED, Instance, weight
from muster.assign.oracle import Oracle, Point, make_point, maximise, read_vertex, set_profits
from muster.assign.outcomes import CONVERGED, ITERATION_LIMIT, OPTIMAL, STALLED, TIME_LIMIT
from muster.compile import kernel, leaf, maker
from muster.data import Floats, Ints

# Stopping rules of the original, here relative to the largest score so that scaling the scores changes nothing.
GAP_TOLERANCE = 1e-5
STEP_TOLERANCE = 1e-4
# Vertices whose values differ by less than this share of the largest score tie: the older one is moved away from.
TIE_TOLERANCE = 1e-10
# Weight that counts as none.
WEIGHT_TOLERANCE = 1e-12


ENDED = np.dtype((np.record, [("value", np.float64), ("gap", np.float64), ("steps", np.int64)]))
"""Objective and Frank-Wolfe gap of a relaxed point, and the steps it took to get there."""


class Walk(NamedTuple):
    """State of a Frank-Wolfe run."""

    point: Floats
    """[N, M] b"""
    loads: Floats
    """[M] c"""
    slope: Floats
    """[M] (g + g') c: what the quadratic part adds to each score in the gradient."""
    change: Floats
    """[M] loads of the direction."""
    weight: Floats
    """[K] of each vertex in the convex combination, 0 for an empty place."""
    age: Ints
    """[K] step at which the vertex came in."""
    score: Floats
    """[K] h·v"""
    vertex_loads: Floats
    """[K, M]"""
    first: Ints
    """[K, N + 1] sparse entries of each vertex, as in Point."""
    task: Ints
    value: Floats
    rounded: Point
    """Sparse copy of `point`."""
    ended: Any
    """[1] ENDED: where the walk stopped."""


@maker
def make_walk(n: int, m: int, steps: int) -> Walk:
    """Room for n agents, m tasks and `steps` steps."""
    # One for the start, one for a last vertex that only measures the gap.
    k = steps + 2
    size = 2 * (n + m) + 2
    return Walk(
        np.zeros((n, m)),
        np.zeros(m),
        np.zeros(m),
        np.zeros(m),
        np.zeros(k),
        np.zeros(k, np.int64),
        np.zeros(k),
        np.zeros((k, m)),
        np.zeros((k, n + 1), np.int32),
        np.zeros((k, size), np.int32),
        np.zeros((k, size)),
        make_point(n, n * m + 1),
        np.zeros(1, ENDED),
    )


@kernel
def scale_of(it: Instance) -> float:
    """Largest size of a score, or of what a pair of agents earns by a task score."""
    n, m, quadratic = it.facts[0].n, it.facts[0].m, it.facts[0].quadratic
    largest, heaviest = 0.0, 1.0
    if quadratic == LOADED:
        heaviest = 0.0
        for i in range(n):
            for j in range(m):
                heaviest = max(heaviest, it.use[i, j])
    for i in range(n):
        for j in range(m):
            if it.score[i, j] > -np.inf:
                largest = max(largest, abs(it.score[i, j]))
    if quadratic != 0:
        for j in range(m):
            for k in range(m):
                largest = max(largest, abs(it.task_score[j, k]) * heaviest * heaviest)
    return largest


@kernel
def vertex_score(it: Instance, vertex: Point, loads: Floats) -> float:
    """h·v, with the penalty of assign_all assignments for what is left out; also writes the loads of v."""
    n, m = it.facts[0].n, it.facts[0].m
    loads[:m] = 0.0
    total = 0.0
    for i in range(n):
        placed = 0.0
        for k in range(vertex.first[i], vertex.first[i + 1]):
            j = vertex.task[k]
            loads[j] += vertex.value[k] * weight(it, i, j)
            placed += vertex.value[k]
            total += vertex.value[k] * it.score[i, j]
        total += it.facts[0].idle * (1.0 - placed)
    return total


@kernel
def store(walk: Walk, it: Instance, vertex: Point, step: int) -> int:
    """Find the vertex among those in use, or put it in an empty place; returns the place. Its weight is not touched."""
    n, m = it.facts[0].n, it.facts[0].m
    score = vertex_score(it, vertex, walk.change)
    empty = -1
    for k in range(walk.weight.shape[0]):
        if walk.weight[k] == 0.0:
            if empty < 0:
                empty = k
            continue
        if walk.score[k] == score and same(walk, vertex, k, n):
            return k
    walk.age[empty] = step
    walk.score[empty] = score
    for j in range(m):
        walk.vertex_loads[empty, j] = walk.change[j]
    for i in range(n + 1):
        walk.first[empty, i] = vertex.first[i]
    for e in range(vertex.first[n]):
        walk.task[empty, e] = vertex.task[e]
        walk.value[empty, e] = vertex.value[e]
    return empty


@kernel
def same(walk: Walk, vertex: Point, k: int, n: int) -> bool:
    """Whether vertex k of the walk has the entries of `vertex`."""
    for i in range(n + 1):
        if walk.first[k, i] != vertex.first[i]:
            return False
    for e in range(vertex.first[n]):
        if walk.task[k, e] != vertex.task[e] or walk.value[k, e] != vertex.value[e]:
            return False
    return True


@kernel
def add_vertex(walk: Walk, k: int, n: int, amount: float) -> None:
    """point += amount * vertex k"""
    for i in range(n):
        for e in range(walk.first[k, i], walk.first[k, i + 1]):
            walk.point[i, walk.task[k, e]] += amount * walk.value[k, e]


@leaf
def vertex_value(walk: Walk, k: int, m: int) -> float:
    """<gradient, vertex k>"""
    total = walk.score[k]
    for j in range(m):
        total += walk.slope[j] * walk.vertex_loads[k, j]
    return total


@kernel
def set_slope(walk: Walk, it: Instance) -> None:
    """slope = (g + g') loads"""
    m = it.facts[0].m
    walk.slope[:m] = 0.0
    for k in range(m):
        amount = walk.loads[k]
        if amount != 0.0:
            for j in range(m):
                walk.slope[j] += amount * it.both[k, j]


@kernel
def curvature(walk: Walk, it: Instance) -> float:
    """change' g change"""
    m = it.facts[0].m
    total = 0.0
    for j in range(m):
        if walk.change[j] != 0.0:
            row = 0.0
            for k in range(m):
                row += it.task_score[j, k] * walk.change[k]
            total += walk.change[j] * row
    return total


@leaf
def step_size(gain: float, bend: float, longest: float) -> float:
    """Step t in [0, longest] maximising gain·t + bend·t², for gain >= 0."""
    if bend >= 0.0:
        return longest
    return min(longest, -gain / (2.0 * bend))


@kernel
def stand_on(walk: Walk, it: Instance, vertex: Point) -> None:
    """Begin the walk on this vertex."""
    n, m = it.facts[0].n, it.facts[0].m
    walk.weight[:] = 0.0
    k = store(walk, it, vertex, 0)
    walk.weight[k] = 1.0
    for j in range(m):
        walk.loads[j] = walk.vertex_loads[k, j]
        for i in range(n):
            walk.point[i, j] = 0.0
    add_vertex(walk, k, n, 1.0)
    set_slope(walk, it)


@kernel
def take_step(walk: Walk, it: Instance, towards: int, scale: float) -> float:
    """Move weight from the worst vertex in use to the vertex `towards`, as far as the line search says."""
    n, m = it.facts[0].n, it.facts[0].m
    best = vertex_value(walk, towards, m)
    away, worst = -1, np.inf
    for k in range(walk.weight.shape[0]):
        if walk.weight[k] > 0.0:
            candidate = vertex_value(walk, k, m)
            tie = abs(candidate - worst) <= TIE_TOLERANCE * scale
            if (candidate < worst and not tie) or (tie and walk.age[k] < walk.age[away]):
                away, worst = k, candidate
    for j in range(m):
        walk.change[j] = walk.vertex_loads[towards, j] - walk.vertex_loads[away, j]
    longest = walk.weight[away]
    step = step_size(best - worst, curvature(walk, it), longest)
    add_vertex(walk, towards, n, step)
    add_vertex(walk, away, n, -step)
    for j in range(m):
        walk.loads[j] += step * walk.change[j]
    walk.weight[towards] += step
    walk.weight[away] = longest - step
    if walk.weight[away] <= WEIGHT_TOLERANCE:
        walk.weight[towards] += walk.weight[away]
        walk.weight[away] = 0.0
    set_slope(walk, it)
    return step


@kernel
def objective(walk: Walk, it: Instance) -> tuple[float, float]:
    """Value of the point, and <gradient, point>."""
    linear, quadratic = 0.0, 0.0
    for k in range(walk.weight.shape[0]):
        if walk.weight[k] > 0.0:
            linear += walk.weight[k] * walk.score[k]
    for j in range(it.facts[0].m):
        quadratic += walk.slope[j] * walk.loads[j]
    return linear + 0.5 * quadratic, linear + quadratic


@kernel
def walk_up(
    walk: Walk,
    oracle: Oracle,
    it: Instance,
    bonus: Floats,
    steps: int,
    scale: float,
    trace: Floats,
    stop: Ints,
) -> int:
    """Up to `steps` pairwise steps with exact line search, from the vertex that is best for scores + bonus per task.

    Leaves objective, gap and number of steps in `walk.ended`; `trace` (may be empty) receives the objectives.
    """
    status, taken = ITERATION_LIMIT, -1
    while True:
        # Step -1 finds the start; the same oracle call then serves every step.
        profits = set_profits(oracle, it, walk.slope if taken >= 0 else bonus)
        solved = maximise(oracle, it, profits, taken >= 0, stop)
        read_vertex(oracle, it)
        if taken < 0:
            stand_on(walk, it, oracle.vertex)
            taken = 0
            continue
        value, here = objective(walk, it)
        if taken < trace.shape[0]:
            trace[taken] = value
        towards = store(walk, it, oracle.vertex, taken + 1)
        gap = vertex_value(walk, towards, it.facts[0].m) - here
        ended = walk.ended[0]
        ended.value, ended.gap, ended.steps = value, gap, taken
        if solved != OPTIMAL:
            return TIME_LIMIT
        if gap <= GAP_TOLERANCE * scale:
            return CONVERGED
        if taken == steps or status == STALLED:
            return status
        if take_step(walk, it, towards, scale) < STEP_TOLERANCE:
            status = STALLED
        taken += 1


@kernel
def write_sparse(walk: Walk, it: Instance) -> None:
    """Write the point that the walk stands on to `walk.rounded`."""
    n, m = it.facts[0].n, it.facts[0].m
    out = walk.rounded
    count = 0
    for i in range(n):
        out.first[i] = count
        for j in range(m):
            if walk.point[i, j] > WEIGHT_TOLERANCE:
                out.task[count], out.value[count] = j, walk.point[i, j]
                count += 1
    out.first[n] = count
