"""What no assignment is worth more than (QUAD), as far as the effort goes: tangents, shares, curvature, proof."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.assign.batch import BEST, FAST, PAPER, Settings
from muster.assign.certificate import priced, primal_value, set_prices
from muster.assign.frank_wolfe import Walk, scale_of
from muster.assign.instance import Instance
from muster.assign.local_search import Search
from muster.assign.oracle import Oracle, maximise, set_profits
from muster.assign.pair_proof import Proof, make_proof, prove
from muster.assign.pair_terms import (
    Reach,
    count_closely,
    curves_down,
    fill_reach,
    least_shift,
    list_most,
    make_reach,
    share_bonus,
    shift_prices,
)
from muster.assign.rounding import Plan
from muster.compile import kernel, maker
from muster.data import Floats, Ints

# Instances with no more assignments than this are solved with a proof at each effort; BEST tries in others with no more
# pairs than this, and looks at so many in all.
PROVABLE = (0.0, 4096.0, 100_000.0)
# The same for FAST without certificates: policies decide as they did when they were trained and recorded.
PROVABLE_UNSEEN = 32.0
PROVABLE_PAIRS, PROOF_PAIRS = 200, 2e6
# Tasks up to which c'gc is looked at for its curvature.
CURVED = 128


class Bounds(NamedTuple):
    """Scratch of everything that bounds."""

    bonus: Floats
    """[M] what pair terms can bring to an agent on each task."""
    shadow: Floats
    """[M] prices that go with it."""
    reach: Reach
    proof: Proof
    curve: Floats
    """[M, M], where there are no more tasks than CURVED."""


@maker
def make_bounds(n: int, m: int) -> Bounds:
    """Room for n agents and m tasks, and for any proof: of many, few may be alive."""
    curved = m if m <= CURVED else 0
    return Bounds(np.zeros(m), np.zeros(m), make_reach(m), make_proof(n, m), np.zeros((curved, curved)))


@kernel
def is_small(it: Instance, settings: Settings) -> bool:
    """Whether there are so few assignments that a proof takes no longer than a search."""
    n, m = it.facts[0].n, it.facts[0].m
    most = PROVABLE[settings.effort]
    if settings.effort == FAST and not settings.certify:
        most = PROVABLE_UNSEEN
    return n > 0 and n * m <= PROVABLE_PAIRS and (m + 1.0) ** n <= most


@kernel
def nodes_of_proof(it: Instance, settings: Settings) -> float:
    """How many nodes a proof may look at."""
    n, m = it.facts[0].n, it.facts[0].m
    if n == 0:
        return 0.0
    if settings.proving or is_small(it, settings):
        return np.inf
    return PROOF_PAIRS / (n * m) if settings.effort == BEST and n * m <= PROVABLE_PAIRS else 0.0


@kernel
def is_concave(it: Instance) -> bool:
    """Whether c'gc is seen at a glance to be concave: no off-diagonal sum outweighs its diagonal entry of g + g'."""
    m, both = it.facts[0].m, it.both
    for j in range(m):
        total = both[j, j]
        for k in range(m):
            if k != j:
                total += abs(both[j, k])
        if total > 0.0:
            return False
    return True


@kernel
def limit_at_tangent(bounds: Bounds, walk: Walk, it: Instance, effort: int) -> float:
    """The value of the tangent where the last walk stopped, if c'gc curves down; inf if that is not seen.

    The paper's procedure looks at a glance only.
    """
    m, limit = it.facts[0].m, 0.0
    if not is_concave(it):
        if effort == PAPER or bounds.curve.shape[0] == 0:
            return np.inf
        for j in range(m):
            if it.task_score[j, j] > 0.0 and bounds.reach.mass[j] > 0.0:
                return np.inf
        slack, _ = least_shift(bounds.reach, it)
        if not curves_down(bounds.curve, bounds.reach, it, slack):
            return np.inf
        # The little that it may curve up in spite of that.
        for j in range(m):
            limit += slack * bounds.reach.mass[j]
    return limit + walk.ended[0].value + walk.ended[0].gap


@kernel
def solve_for_bonus(oracle: Oracle, it: Instance, bonus: Floats, warm: bool, stop: Ints) -> None:
    """Put the oracle on the best vertex for scores + bonus."""
    maximise(oracle, it, set_profits(oracle, it, bonus), warm, stop)


@kernel
def bound_answer(
    bounds: Bounds,
    plan: Plan,
    trial: Plan,
    oracle: Oracle,
    walk: Walk,
    search: Search,
    it: Instance,
    settings: Settings,
    prices: Floats,
    proven: Any,
    stop: Ints,
) -> float:
    """What no assignment is worth more than; `plan` is improved where a proof finds a better one.

    Notes prices and duality gap if they are wanted.
    """
    limit, nodes, effort = np.inf, nodes_of_proof(it, settings), settings.effort
    proven.duality_gap = np.nan
    if effort != PAPER and (settings.certify or nodes > 0.0):
        fill_reach(bounds.reach, it)
        if effort == BEST:
            count_closely(bounds.reach, it, search.gain, search.zeros, search.order)
        share_bonus(bounds.bonus, bounds.reach, it)
    if settings.certify:
        # The last linear programme's profits are the gradient where the last walk stopped.
        gap = set_prices(oracle, it, walk.slope, prices) - primal_value(oracle, it, walk.slope)
        proven.duality_gap = gap
        limit = gap + limit_at_tangent(bounds, walk, it, effort)
        if effort == FAST:
            shift_prices(bounds.shadow, prices, walk.slope, bounds.bonus, bounds.reach, it)
            limit = min(limit, priced(it, bounds.bonus, bounds.shadow))
    if effort == BEST or (nodes > 0.0 and not settings.certify):
        solve_for_bonus(oracle, it, bounds.bonus, effort == BEST, stop)
        limit = min(limit, set_prices(oracle, it, bounds.bonus, bounds.shadow))
    if nodes > 0.0:
        list_most(bounds.proof.most, bounds.reach, it, search.kick_gain, search.kick_zeros, search.kick_order)
        limit = min(limit, prove(plan, trial, it, bounds.proof, bounds.shadow, nodes, scale_of(it), stop))
    return limit
