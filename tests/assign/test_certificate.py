"""What a Solution claims about its own quality, and how it shows itself."""

from __future__ import annotations

import numpy as np
import pytest

import muster
from muster.assign import solve
from tests.assign.cases import PULLS, REGIMES, enumerate_best, make_problem

# The third agent is worth most per unit of capacity and leaves room for half of another: 7, where 8 could be had.
WASTEFUL = {"scores": [[4.0, 0.0], [4.0, 0.0], [7.0, 0.0]], "contributions": [2.0, 2.0, 3.0], "capacities": [4.0, 0.0]}


@pytest.mark.parametrize("pulls", [None, *PULLS])
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("method", ["amax", "lp", "quad"])
def test_no_assignment_is_worth_more_than_the_bound(method, regime, pulls):
    problem = make_problem(regime, "normal", 12, 3, 4, seed=41, pulls=pulls)
    linear = make_problem(regime, "normal", 12, 3, 4, seed=41)
    found = solve(problem, method)
    known = ~np.isnan(found.bound)
    assert known.all() or method == "quad"
    for b in np.flatnonzero(known):
        best = enumerate_best(problem if method == "quad" else linear, b, capacities=method != "amax")
        assert best <= found.bound[b] + 1e-9
        if found.status[b] == "optimal":
            assert found.objective[b] == pytest.approx(best, abs=1e-9)
            assert found.integer_gap[b] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("method", ["lp", "quad"])
def test_optimal_is_said_wherever_the_bound_is_reached(method):
    """Integral programmes, larger than what is enumerated: QUAD without task scores knows it as well as LP."""
    problem = make_problem("unit", "normal", 30, 9, 11, seed=43)
    found = solve(problem, method)
    assert set(found.status) == {"optimal"}
    assert found.objective == pytest.approx(found.bound)
    assert solve(problem, "lp").objective == pytest.approx(found.objective)


def test_rounding_that_loses_says_how_much_it_may_have_lost():
    found = muster.assign(**WASTEFUL, method="lp", effort="paper")
    assert found.status == "rounded"
    assert found.convergence_gap == pytest.approx(0.0, abs=1e-9)
    assert (found.objective, found.bound) == (7.0, pytest.approx(9.0))
    assert found.integer_gap == pytest.approx((found.bound - found.objective) / found.bound)


def test_a_capacity_that_is_exceeded_proves_nothing():
    """The original's rounding may be worth more than any feasible assignment; that is not optimal."""
    problem = make_problem("pair", "normal", 200, 5, 4, seed=47)
    found = solve(problem, "lp", rounding="original")
    exceeded = (found.loads > problem.capacities * (1 + 1e-9)).any(axis=1)
    assert exceeded.sum() > 10
    assert not (found.status[exceeded] == "optimal").any()
    assert (found.integer_gap < -1e-9).any()


@pytest.mark.parametrize("method", ["lp", "quad"])
def test_assign_all_bounds_those_that_leave_no_agent_out(method):
    found = muster.assign([[-1.0, -5.0], [-2.0, -9.0]], method=method, assign_all=True)
    assert found.objective == pytest.approx(-7.0)
    assert found.bound == pytest.approx(-7.0)
    crowded = muster.assign([[-1.0], [-2.0]], method=method, assign_all=True)
    assert (crowded.status, crowded.bound) == ("optimal", -1.0)


def test_without_certificate_there_is_no_bound_but_every_reason():
    problem = make_problem("pair", "normal", 5, 11, 3, seed=43, pulls="random")
    for method in ("lp", "quad"):
        quick, proven = solve(problem, method, certify=False), solve(problem, method)
        assert np.isnan(quick.bound).all()
        assert (quick.reasons == proven.reasons).all()
        assert len(set(quick.reasons.flat)) > 1


def test_a_solution_shows_itself_in_a_line():
    one = repr(muster.assign(**WASTEFUL, method="lp", effort="paper"))
    assert one.startswith("Solution(assigned ")
    for word in (" of 3", "objective", "bound", "status rounded", "seconds"):
        assert word in one
    problem = make_problem("unit", "normal", 7, 3, 4, seed=1)
    many = solve(problem, "lp")
    assert "instances 7" in repr(many)
    assert "7 optimal" in repr(many)
    assert len(one) <= 120
    assert len(repr(many)) <= 120
    assert "bound" not in repr(muster.assign(np.ones((9, 9)), np.ones((9, 9)), effort="paper"))
    html = many._repr_html_()
    assert html.startswith("<table>")
    assert "7 optimal" in html
