"""A tighter bound for QUAD at the higher efforts: a concave instance that is worth no less; compiled when needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from muster.assign.batch import WORKSPACES, Output, Settings
from muster.assign.bounding import Bounds, make_bounds
from muster.assign.certificate import PROVEN, primal_value, set_prices, settle_bound
from muster.assign.frank_wolfe import Walk, make_walk, scale_of, walk_up
from muster.assign.given import Given
from muster.assign.instance import Instance, fill_instance, lay_instance
from muster.assign.local_search import total_value
from muster.assign.oracle import Oracle, make_oracle, read_vertex
from muster.assign.outcomes import OPTIMAL
from muster.assign.pair_terms import bend_down, count_closely, fill_reach, find_shift
from muster.assign.rounding import Plan, make_plan
from muster.assign.staying import load_plan
from muster.compile import entry, kernel
from muster.data import Floats, Ints


@kernel
def limit_by_curvature(bounds: Bounds, oracle: Oracle, walk: Walk, it: Instance, steps: int, stop: Ints) -> float:
    """What a concave instance that is worth no less proves; it takes the place of `it`."""
    bend_down(bounds.reach, it, find_shift(bounds.curve, bounds.reach, it))
    bounds.bonus[:] = 0.0
    walk_up(walk, oracle, it, bounds.bonus, steps, scale_of(it), bounds.bonus[:0], stop)
    read_vertex(oracle, it)
    dual = set_prices(oracle, it, walk.slope, bounds.shadow)
    return walk.ended[0].value + walk.ended[0].gap + dual - primal_value(oracle, it, walk.slope)


@kernel
def tighten(out: Output, b: int, plan: Plan, it: Instance, limit: float, proven: Any) -> None:
    """Let the bound of row b be no higher than what follows from `limit`, and the answer OPTIMAL if it reaches that."""
    proven.bound = np.nan
    if settle_bound(proven, plan, it, total_value(plan, it), limit):
        out.status[b], out.bound[b] = OPTIMAL, out.objective[b]
    elif proven.bound < out.bound[b] or np.isnan(out.bound[b]):
        out.bound[b] = proven.bound


@entry
def bend_batch(
    rows: Ints, begin: int, end: int, given: Given, settings: Settings, out: Output, space: Floats, stop: Ints
) -> None:
    """Tighten the bounds of the answers in rows[begin:end], which QUAD has not proven; no more tasks than CURVED."""
    n, m = given.scores.shape[1], given.scores.shape[2]
    it, plan, bounds = lay_instance(space, True), make_plan(n, m), make_bounds(n, m)
    oracle, walk = make_oracle(space[WORKSPACES - 1]), make_walk(n, m, settings.steps)
    place, order, keys, ties = np.zeros(m, np.int64), np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    proven = np.zeros(1, PROVEN)
    for row in range(begin, end):
        b = rows[row]
        fill_instance(it, given, b, settings.assign_all)
        fill_reach(bounds.reach, it)
        count_closely(bounds.reach, it, keys, ties, order)
        limit = limit_by_curvature(bounds, oracle, walk, it, settings.steps, stop)
        fill_instance(it, given, b, settings.assign_all)
        for j in range(it.facts[0].m):
            place[it.tasks[j]] = j
        load_plan(plan, it, out.assignment[b], place)
        tighten(out, b, plan, it, limit, proven[0])
