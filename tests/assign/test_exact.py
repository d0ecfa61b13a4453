"""LP beyond rounding: what `fast` adds, what `exact` proves, and what `assign_all` promises under tight capacities."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import muster
from muster.assign import solve
from muster.data import Problem
from muster.errors import InputError
from tests.assign.cases import REGIMES, enumerate_best, make_problem


def tight_problem(n: int, m: int, batch: int, seed: int, share: float = 0.8, kind: str = "c") -> Problem:
    """Generalised assignment as published (types c and d), scores to be maximised."""
    rng = np.random.default_rng(seed)
    if kind == "c":
        use = rng.integers(5, 26, (batch, n, m)).astype(float)
        score = rng.integers(10, 51, (batch, n, m)).astype(float)
    else:
        use = rng.integers(1, 101, (batch, n, m)).astype(float)
        score = use + rng.integers(-10, 11, (batch, n, m))
    return Problem(score, None, use, np.floor(share * use.sum(1) / m))


def best_of_all(problem: Problem, b: int) -> tuple[int, float]:
    """(agents assigned, value) of the best assignment, most agents first."""
    h, mu, u = problem.scores[b], problem.contributions[b], problem.capacities[b]
    n, m = h.shape
    best = (-1, -np.inf)
    for tasks in itertools.product(range(-1, m), repeat=n):
        chosen = [(i, j) for i, j in enumerate(tasks) if j >= 0]
        load = np.zeros(m)
        for i, j in chosen:
            load[j] += mu[i, j]
        if (load <= u * (1 + 1e-11)).all():
            best = max(best, (len(chosen), float(sum(h[i, j] for i, j in chosen))))
    return best


@pytest.mark.parametrize("scores", ["normal", "ties", "mixed"])
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("method", ["lp", "quad"])
def test_exact_is_the_best_of_all_assignments(method, regime, scores):
    problem = make_problem(regime, scores, 8, 4, 3, seed=5)
    found = solve(problem, method, effort="exact")
    assert set(found.status) == {"optimal"}
    for b in range(8):
        best = enumerate_best(problem, b)
        assert found.objective[b] == pytest.approx(best, rel=1e-9, abs=1e-9)
        assert found.bound[b] == pytest.approx(best, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
def test_exact_assign_all_leaves_out_as_few_as_possible(share):
    problem = tight_problem(5, 3, 20, seed=7, share=share)
    found, quick = (solve(problem, "lp", effort=effort, assign_all=True) for effort in ("exact", "fast"))
    assert set(found.status) == {"optimal"}
    for b in range(20):
        count, value = best_of_all(problem, b)
        assert (np.count_nonzero(found.assignment[b] >= 0), found.objective[b]) == (count, pytest.approx(value))
        out = quick.assignment[b] < 0
        placed = np.count_nonzero(~out)
        missed = (out & (problem.contributions[b] <= problem.capacities[b]).any(1)).any()
        assert (quick.status[b] == "incomplete") == (missed and quick.status[b] != "optimal")
        assert quick.status[b] != "optimal" or (placed, quick.objective[b]) == (count, pytest.approx(value))


@pytest.mark.parametrize("minimise", [False, True])
def test_exact_agrees_with_a_mixed_integer_solver(minimise):
    highspy = pytest.importorskip("highspy")
    problem = tight_problem(30, 5, 2, seed=11)
    scores = 51.0 - problem.scores if minimise else problem.scores
    problem = Problem(scores, None, problem.contributions, problem.capacities)
    found = solve(problem, "lp", effort="exact", assign_all=True)
    assert set(found.status) == {"optimal"}
    for b in range(2):
        model = highspy.Highs()
        model.setOptionValue("output_flag", False)
        model.setOptionValue("mip_rel_gap", 0.0)
        n, m = scores[b].shape
        x = [[model.addBinary(obj=scores[b, i, j]) for j in range(m)] for i in range(n)]
        for i in range(n):
            model.addConstr(sum(x[i]) == 1)
        for j in range(m):
            model.addConstr(sum(problem.contributions[b, i, j] * x[i][j] for i in range(n)) <= problem.capacities[b, j])
        model.maximize()
        assert found.objective[b] == pytest.approx(model.getInfo().objective_function_value, abs=1e-6)
        assert (found.assignment[b] >= 0).all()


@pytest.mark.parametrize("kind", ["c", "d"])
def test_fast_places_every_agent_near_the_bound(kind):
    """Rounding leaves agents out of such instances, and quad's moves stay a few percent away."""
    problem = tight_problem(100, 10, 3, seed=13, kind=kind)
    paper, fast = (solve(problem, "lp", effort=effort, assign_all=True) for effort in ("paper", "fast"))
    assert (paper.assignment < 0).any()
    assert (fast.assignment >= 0).all()
    assert (fast.loads <= problem.capacities).all()
    assert (fast.integer_gap >= 0).all()
    assert (fast.integer_gap < (0.01 if kind == "c" else 0.025)).all()
    assert fast.bound == pytest.approx(np.floor(fast.relaxed_objective + 1e-6))


def test_what_is_whole_already_is_left_alone():
    problem = make_problem("unit", "normal", 20, 6, 7, seed=17)
    paper, fast = (solve(problem, "lp", effort=effort) for effort in ("paper", "fast"))
    assert set(paper.status) == {"optimal"}
    assert (paper.assignment == fast.assignment).all()


@pytest.mark.parametrize("regime", REGIMES)
def test_fast_is_never_worse_than_rounding_and_keeps_to_capacities(regime):
    problem = make_problem(regime, "normal", 40, 9, 5, seed=19)
    paper, fast = (solve(problem, "lp", effort=effort) for effort in ("paper", "fast"))
    assert (fast.objective >= paper.objective - 1e-12).all()
    assert (fast.loads <= problem.capacities * (1 + 1e-9) + 1e-12).all()
    assert (fast.bound >= fast.objective - 1e-9).all()


def test_a_proof_that_is_cut_short_still_bounds():
    problem = tight_problem(100, 10, 1, seed=23, kind="d")
    solve(problem, "lp", effort="exact", assign_all=True, time_limit=0.001)  # compiles
    short, longer = (
        solve(problem, "lp", effort=effort, assign_all=True, time_limit=seconds)
        for effort, seconds in (("exact", 0.15), ("best", 0.6))
    )
    assert short.status[0] == "time_limit"
    assert longer.objective[0] >= short.objective[0]
    for found in (short, longer):
        assert max(short.objective[0], longer.objective[0]) <= found.bound[0]
        assert 0.0 < found.integer_gap[0] < 0.02


def test_contributions_that_are_not_whole_are_proven_too():
    """The knapsacks' grid rounds them, so what the knapsacks choose may not fit."""
    problem = make_problem("pair", "normal", 60, 7, 3, seed=29)
    found = solve(problem, "lp", effort="exact")
    assert set(found.status) == {"optimal"}
    assert found.objective == pytest.approx([enumerate_best(problem, b) for b in range(60)])


def test_routes_and_the_authors_rounding_have_no_exact():
    with pytest.raises(InputError, match="fast and best"):
        muster.assign([[1.0]], method="routes", effort="exact")
    with pytest.raises(InputError, match="keeps to capacities"):
        muster.assign([[1.0]], method="lp", effort="exact", rounding="original")
