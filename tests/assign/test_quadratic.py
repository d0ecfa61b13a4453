import numpy as np
import pytest

from muster.assign import Solver, solve
from muster.data import Problem
from tests.assign.cases import PULLS, enumerate_best, make_problem

# What the paper's procedure, a walk and its rounding, may lose on average of these small instances.
PAPER_LOSS = 0.12


@pytest.mark.parametrize("pulls", PULLS)
@pytest.mark.parametrize("regime", ["unit", "hits", "real", "pair", "few-values", "zeros", "closed"])
def test_no_effort_beats_enumeration_and_best_reaches_it(regime, pulls):
    problem = make_problem(regime, "normal", 40, 4, 5, seed=17, pulls=pulls)
    best = np.array([enumerate_best(problem, b) for b in range(40)])
    scale = np.abs(best).mean()
    for effort, mean_loss in (("paper", PAPER_LOSS), ("fast", 0.01)):
        found = solve(problem, "quad", effort=effort).objective
        assert (found <= best + 1e-9).all()
        assert np.mean(best - found) <= mean_loss * scale, effort
    proven = solve(problem, "quad", effort="best")
    assert proven.objective == pytest.approx(best, abs=1e-9)
    assert set(proven.status) == {"optimal"}


@pytest.mark.parametrize("pulls", PULLS)
@pytest.mark.parametrize("regime", ["unit", "hits", "pair"])
def test_fast_is_within_half_a_percent_of_enumeration(regime, pulls):
    problem = make_problem(regime, "normal", 16, 5, 10, seed=19, pulls=pulls)
    best = np.array([enumerate_best(problem, b) for b in range(16)])
    found = solve(problem, "quad").objective
    assert np.mean((best - found) / np.abs(best)) <= 0.005


@pytest.mark.parametrize("pulls", PULLS)
@pytest.mark.parametrize("regime", ["unit", "hits", "pair"])
@pytest.mark.parametrize("size", [(5, 10), (15, 17), (80, 82)])
def test_fast_is_at_least_as_good_as_paper_on_average(size, regime, pulls):
    problem = make_problem(regime, "normal", 64 if size[0] < 80 else 16, *size, seed=23, pulls=pulls)
    fast, paper = (solve(problem, "quad", effort=effort).objective.mean() for effort in ("fast", "paper"))
    assert fast >= paper - 1e-9 * abs(paper)


def test_focus_fire_and_spreading():
    """Equal scores: a positive diagonal gathers the agents on one task, a negative one keeps them apart."""
    scores, capacity = np.full((1, 3, 3), 0.1), np.full((1, 3), 3.0)
    ones = np.ones((1, 3, 3))
    gathered = solve(Problem(scores, np.eye(3)[None], ones, capacity)).assignment[0]
    spread = solve(Problem(scores, -0.04 * np.eye(3)[None], ones, capacity)).assignment[0]
    assert len(set(gathered)) == 1
    assert sorted(spread) == [0, 1, 2]


def test_without_task_scores_quad_is_at_least_as_good_as_lp():
    problem = make_problem("few-values", "normal", 100, 8, 9, seed=29)
    assert (solve(problem, "quad").objective >= solve(problem, "lp").objective - 1e-9).all()


@pytest.mark.parametrize("pulls", PULLS)
@pytest.mark.parametrize("regime", ["unit", "hits", "real", "pair", "zeros"])
def test_frank_wolfe_never_descends_and_its_gap_closes(regime, pulls):
    problem = make_problem(regime, "normal", 30, 6, 8, seed=31, pulls=pulls)
    walks = [solve(problem, "quad", effort="paper", steps=steps) for steps in (0, 1, 2, 3, 5, 10, 30, 200)]
    values = np.array([walk.relaxed_objective for walk in walks])
    assert (np.diff(values, axis=0) >= -1e-9 * np.abs(values).max()).all()
    linear = solve(problem, "lp", effort="paper")
    assert (walks[0].frank_wolfe_gap >= -1e-9).all()
    assert (walks[-1].frank_wolfe_gap <= walks[0].frank_wolfe_gap + 1e-9).all()
    # It starts from the best vertex for the scores alone.
    start = linear.assignment
    integral = np.flatnonzero(linear.status == "optimal")
    for b in integral:
        placed = np.flatnonzero(start[b] >= 0)
        count = np.bincount(start[b, placed], minlength=8)
        value = problem.scores[b, placed, start[b, placed]].sum() + count @ problem.task_scores[b] @ count
        assert values[0, b] == pytest.approx(value, abs=1e-9)


def test_on_a_concave_objective_the_gap_bounds_the_error():
    rng = np.random.default_rng(37)
    for _ in range(20):
        factor = rng.normal(size=(6, 6))
        problem = make_problem("unit", "normal", 1, 5, 6, seed=int(rng.integers(1e6)))
        problem = Problem(problem.scores, -0.1 * (factor @ factor.T)[None], problem.contributions, problem.capacities)
        rough = solve(problem, "quad", effort="paper", steps=3)
        fine = solve(problem, "quad", effort="paper", steps=600)
        bound = rough.relaxed_objective[0] + rough.frank_wolfe_gap[0]
        assert fine.relaxed_objective[0] <= bound + 1e-9
        assert enumerate_best(problem, 0) <= bound + 1e-9


def test_where_agents_are_alike_fast_comes_near_long_runs():
    """Maximum diversity: 20 of 150 elements, uniform distances; no task is taken twice."""
    upper = np.triu(np.random.default_rng(5).uniform(0, 10, (150, 150)), 1)
    problem = Problem(np.zeros((1, 20, 150)), 0.5 * (upper + upper.T)[None])
    fast = Solver("quad", "fast", threads=1)(problem)
    best = Solver("quad", "best", threads=1, time_limit=0.3)(problem)
    assert len(set(fast.assignment[0].tolist())) == 20
    assert fast.objective[0] >= 0.985 * best.objective[0]
