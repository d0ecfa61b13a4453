"""The choices' likelihood against plain sums over the options, and its slopes against finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from muster.data import Problem
from muster.inference import Solver
from muster.learning.choices import Decisions, choice_likelihood, choice_slopes

NO_TASK_SCORES = np.zeros((0, 0, 0), np.float32)


def situation(seed, n=3, m=4, states=5, idling=True, quad=True):
    """Assignments that the solver made of random scores, with capacities that bind and some dead objects."""
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(states, n, m)).astype(np.float32)
    g = rng.normal(scale=0.4, size=(states, m, m)).astype(np.float32) if quad else NO_TASK_SCORES
    contributions = rng.uniform(0.5, 1.0, (states, n, m))
    capacities = rng.uniform(0.8, 2.0, (states, m))
    agents, tasks = rng.random((states, n)) > 0.1, rng.random((states, m)) > 0.1
    history = rng.normal(scale=0.2, size=h.shape).astype(np.float32)
    problem = Problem(
        (h + history).astype(np.float64),
        g.astype(np.float64) if quad else None,
        contributions,
        capacities,
        agents,
        tasks,
    )
    solver = Solver("quad" if quad else "lp", forced=not idling)
    assignment = solver(problem).assignment
    may = np.broadcast_to(tasks[:, None, :], h.shape).copy()
    return Decisions(assignment, history, contributions, capacities, agents, may, idling), h, g


def by_hand(d, h, g, s, i, tau):
    """Log-probability of agent i's choice in state s, straight from the definition; None where it had no choice."""
    m, own = h.shape[2], d.assignment[s, i]
    others = [d.assignment[s, k] for k in range(h.shape[1]) if k != i and d.agent_alive[s, k]]
    load = np.zeros(m)
    for k in range(h.shape[1]):
        if k != i and d.agent_alive[s, k] and d.assignment[s, k] >= 0:
            load[d.assignment[s, k]] += d.contributions[s, k, d.assignment[s, k]]
    utility = {}
    for j in range(m):
        if d.open[s, i, j] and load[j] + d.contributions[s, i, j] <= d.capacities[s, j] + 1e-9:
            utility[j] = float(h[s, i, j]) + float(d.history[s, i, j])
            if g.size:
                utility[j] += g[s, j, j] + sum(g[s, j, k] + g[s, k, j] for k in others if k >= 0)
    if d.idling:
        utility[-1] = 0.0
    if len(utility) < 2 or own not in utility:
        return None
    values = np.array(list(utility.values())) / tau
    return utility[own] / tau - values.max() - np.log(np.exp(values - values.max()).sum())


@pytest.mark.parametrize(("quad", "idling"), list(itertools.product((False, True), (False, True))))
def test_likelihood_is_the_softmax_over_what_had_room(quad, idling):
    for seed in range(10):
        d, h, g = situation(seed, idling=idling, quad=quad)
        found = np.full(h.shape[:2], np.nan)
        choice_likelihood(d, h, g, 0.3, found)
        for s, i in np.ndindex(found.shape):
            wanted = by_hand(d, h, g, s, i, 0.3) if d.agent_alive[s, i] else None
            assert found[s, i] == pytest.approx(0.0 if wanted is None else wanted, abs=1e-5)


@pytest.mark.parametrize("quad", [False, True])
def test_slopes_are_those_of_the_likelihood_and_the_entropy(quad):
    d, h, g = situation(3, quad=quad)
    rng = np.random.default_rng(0)
    gain = rng.normal(size=h.shape[:2])
    slope_h, slope_g = np.zeros(h.shape), np.zeros(g.shape)

    def objective(h, g):
        likelihood = np.zeros(h.shape[:2])
        choice_likelihood(d, h, g, 0.4, likelihood)
        return (gain * likelihood).sum()

    choice_slopes(d, h, g, 0.4, gain, 0.0, slope_h, slope_g)
    step = np.float32(1e-2)
    for array, slope in ((h, slope_h), (g, slope_g)):
        for where in list(np.ndindex(array.shape))[::3]:
            up, down = array.copy(), array.copy()
            up[where] += step
            down[where] -= step
            pair = (objective(up, g), objective(down, g)) if array is h else (objective(h, up), objective(h, down))
            assert slope[where] == pytest.approx((pair[0] - pair[1]) / (2 * step), abs=2e-3)


def test_more_entropy_is_where_its_slope_points():
    d, h, g = situation(5)
    slope_h, slope_g = np.zeros(h.shape), np.zeros(g.shape)
    none = np.zeros(h.shape[:2])
    before = choice_slopes(d, h, g, 0.4, none, 1.0, slope_h, slope_g)
    scratch = np.zeros(h.shape), np.zeros(g.shape)
    after = choice_slopes(d, (h + 0.01 * slope_h).astype(np.float32), g, 0.4, none, 1.0, *scratch)
    assert after > before


def test_the_only_option_left_has_no_slope():
    """Two agents, one task with room for one, everyone forced: neither had a choice."""
    one = np.ones((1, 2, 1))
    d = Decisions(
        np.array([[0, -1]]), np.zeros((1, 2, 1), np.float32), one, np.ones((1, 1)),
        np.ones((1, 2), np.bool_), np.ones((1, 2, 1), np.bool_), False,
    )  # fmt: skip
    slope = np.zeros((1, 2, 1))
    choice_slopes(
        d, np.zeros((1, 2, 1), np.float32), NO_TASK_SCORES, 0.1, np.ones((1, 2)), 0.1, slope, np.zeros((0, 0, 0))
    )
    assert not slope.any()
