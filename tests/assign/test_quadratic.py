import numpy as np
import pytest

from muster.assign import Solver, quadratic, solve
from muster.assign.batch import Settings
from muster.assign.frank_wolfe import scale_of, walk_up
from muster.assign.given import Given
from muster.assign.instance import fill_instance, make_instance
from muster.compile import entry
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
    scores, room = np.full((1, 3, 3), 0.1), np.full((1, 3), 3.0)
    ones = np.ones((1, 3, 3))
    gathered = solve(Problem(scores, np.eye(3)[None], ones, room)).assignment[0]
    spread = solve(Problem(scores, -0.04 * np.eye(3)[None], ones, room)).assignment[0]
    assert len(set(gathered)) == 1
    assert sorted(spread) == [0, 1, 2]


def test_without_task_scores_quad_is_at_least_as_good_as_lp():
    problem = make_problem("few-values", "normal", 100, 8, 9, seed=29)
    assert (solve(problem, "quad").objective >= solve(problem, "lp").objective - 1e-9).all()


@entry
def trace_of_paper(given, settings):
    n, m = given.scores.shape[1], given.scores.shape[2]
    it = make_instance(n, m, True)
    fill_instance(it, given, 0, False)
    work = quadratic.make_work(n, m, settings.steps)
    trace = np.full(settings.steps + 1, np.nan)
    # The walk of effort `paper` alone: the searches that other efforts go on with would have to be compiled in too.
    stop = np.zeros(1, np.int64)
    walk_up(work.walk, work.oracle, it, np.zeros(m), settings.steps, scale_of(it), trace, stop)
    ended = work.walk.ended[0]
    return trace, ended.value, ended.gap, ended.steps, work.walk.point, work.walk.loads


@pytest.mark.parametrize("pulls", PULLS)
@pytest.mark.parametrize("regime", ["unit", "hits", "real", "pair", "zeros"])
def test_frank_wolfe_never_descends_and_its_point_is_feasible(regime, pulls):
    problem = make_problem(regime, "normal", 30, 6, 8, seed=31, pulls=pulls)
    for b in range(30):
        h, g, mu, u = (a[b] for a in (problem.scores, problem.task_scores, problem.contributions, problem.capacities))
        everybody, nothing = np.ones((1, 6), np.bool_), np.zeros((0, 0, 0), np.bool_)
        ends, routes = np.zeros((0, 0, 0)), np.zeros((0, 0, 0), np.int64)
        given = Given(
            h[None], g[None], mu[None], u[None], everybody, np.ones((1, 8), np.bool_), nothing, ends, routes, False
        )
        paper = Settings(
            quadratic.PAPER, 200, rule=0, assign_all=False, rounds=0, certify=True, asked=True, proving=False, power=1
        )
        trace, reached, gap, steps, point, loads = trace_of_paper(given, paper)
        values = trace[: steps + 1]
        assert (np.diff(values) >= -1e-9 * np.abs(values).max()).all()
        assert (point.sum(1) <= 1 + 1e-9).all()
        assert point.min() >= -1e-9
        assert ((mu * point).sum(0) <= u * (1 + 1e-9) + 1e-12).all()
        assert loads == pytest.approx(point.sum(0), abs=1e-9)
        # The value it reports is the objective at its point, and the gap is the linear programme's over the gradient.
        crowd = point.sum(0)
        assert reached == pytest.approx((h * point).sum() + crowd @ g @ crowd, rel=1e-9, abs=1e-9)
        gradient = h + (g + g.T) @ crowd
        best = solve(Problem(gradient[None], None, mu[None], u[None]), "lp").relaxed_objective[0]
        assert gap == pytest.approx(best - (gradient * point).sum(), abs=1e-8)


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
    """Maximum diversity: 20 of 150 elements, uniform distances; nobody is assigned twice."""
    upper = np.triu(np.random.default_rng(5).uniform(0, 10, (150, 150)), 1)
    problem = Problem(np.zeros((1, 20, 150)), 0.5 * (upper + upper.T)[None])
    fast = Solver("quad", "fast", threads=1)(problem)
    best = Solver("quad", "best", threads=1, time_limit=0.3)(problem)
    assert len(set(fast.assignment[0].tolist())) == 20
    assert fast.objective[0] >= 0.985 * best.objective[0]
