"""Pairs that are not allowed are never assigned, by any procedure, and nothing else of them is looked at."""

from __future__ import annotations

import numpy as np
import pytest

import muster
from muster import InputError
from muster.assign import solve
from muster.data import Problem
from tests.assign.cases import make_problem

PROCEDURES = [("amax", "fast"), ("lp", "fast"), ("quad", "paper"), ("quad", "fast"), ("quad", "best")]


def masked(regime: str, fill: float, seed: int = 3) -> tuple[Problem, Problem]:
    """Instances with half of the pairs forbidden: by the mask over entries of `fill`, and by scores of -inf."""
    plain = make_problem(regime, "normal", 12, 5, 6, seed=seed, pulls="random")
    allowed = np.random.default_rng(seed).random(plain.scores.shape) < 0.5
    allowed[0, 2] = False
    scores = np.where(allowed, plain.scores, fill)
    contributions = np.where(allowed, plain.contributions, fill)
    by_mask = Problem(scores, plain.task_scores, contributions, plain.capacities, allowed=allowed)
    by_score = Problem(
        np.where(allowed, plain.scores, -np.inf), plain.task_scores, plain.contributions, plain.capacities
    )
    return by_mask, by_score


@pytest.mark.parametrize("assign_all", [False, True])
@pytest.mark.parametrize(("method", "effort"), PROCEDURES)
@pytest.mark.parametrize("regime", ["unit", "hits", "real", "pair", "zeros"])
def test_what_is_not_allowed_is_never_assigned(regime, method, effort, assign_all):
    problem, _ = masked(regime, np.nan)
    found = solve(problem, method, effort=effort, assign_all=assign_all)
    where = np.argwhere(found.assignment >= 0)
    assert len(where) > 20
    assert all(problem.allowed[b, i, found.assignment[b, i]] for b, i in where)
    assert found.assignment[0, 2] == -1
    assert np.isfinite(found.objective).all()


@pytest.mark.parametrize(("method", "effort"), PROCEDURES[:3])
@pytest.mark.parametrize("regime", ["unit", "hits", "real", "pair"])
def test_the_mask_means_what_minus_infinity_means(regime, method, effort):
    by_mask, by_score = masked(regime, np.nan)
    one, other = solve(by_mask, method, effort=effort), solve(by_score, method, effort=effort)
    # Between programmes of equal worth, contributions of forbidden pairs may tip the balance.
    assert one.relaxed_objective == pytest.approx(other.relaxed_objective, rel=1e-7 if method != "quad" else 0.05)
    if method == "amax":
        assert (one.assignment == other.assignment).all()


@pytest.mark.parametrize("fill", [np.nan, np.inf, -1.0, 1e300])
@pytest.mark.parametrize("method", ["amax", "lp", "quad"])
def test_other_entries_of_a_forbidden_pair_are_never_read(fill, method):
    one, other = solve(masked("real", fill)[0], method), solve(masked("real", 0.25)[0], method)
    assert (one.assignment == other.assignment).all()
    assert (one.objective == other.objective).all()


def test_one_instance_takes_the_mask_too():
    assert muster.assign([[5.0, 1.0], [4.0, 1.0]], allowed=[[False, True], [True, True]]).assignment.tolist() == [1, 0]
    with pytest.raises(InputError, match="allowed must be bool"):
        muster.assign([[5.0, 1.0]], allowed=[[1.0, 0.0]])
    with pytest.raises(InputError, match="allowed must be bool"):
        muster.assign([[5.0, 1.0]], allowed=[[True]])


def test_a_bad_entry_of_an_allowed_pair_is_still_named():
    with pytest.raises(InputError, match=r"scores must be numbers, got nan at \[1, 0\]"):
        muster.assign([[np.nan, 1.0], [np.nan, 1.0]], allowed=[[False, True], [True, True]])
