import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import muster
from muster.assign import solve
from muster.data import Problem
from tests.assign.cases import REGIMES, SCORES, Highs, all_plans, enumerate_best, make_problem

ROUNDS = 49
"""Of every regime: each kind of scores seven times, at a size of its own."""


def certificate_gap(problem: Problem, solution, b: int) -> float:
    """Dual value that the prices prove, minus the relaxed objective, computed here from the input alone."""
    h, mu, u, prices = problem.scores[b], problem.contributions[b], problem.capacities[b], solution.prices[b]
    assert (prices >= 0).all()
    worth = np.maximum(0.0, (h - mu * prices).max(axis=1, initial=0.0))
    return float((u * prices).sum() + worth.sum() - solution.relaxed_objective[b])


@pytest.mark.parametrize("regime", REGIMES)
def test_relaxation_equals_highs_and_its_prices_prove_it(regime):
    highs = Highs()
    rng = np.random.default_rng(7)
    for round_ in range(ROUNDS):
        scores = SCORES[round_ % len(SCORES)]
        n, m = rng.integers(1, 9, 2)
        problem = make_problem(regime, scores, 20, int(n), int(m), seed=1000 + round_)
        solution = solve(problem, "lp")
        for b in range(20):
            expected = highs.value(problem.scores[b], problem.contributions[b], problem.capacities[b])
            # Where the optimum is 0, rounding errors of the scores' own size remain.
            tolerance = 1e-9 * abs(expected) + 1e-13 * np.abs(problem.scores[b]).max()
            assert abs(solution.relaxed_objective[b] - expected) <= tolerance, (scores, b)
            assert abs(certificate_gap(problem, solution, b)) <= tolerance, (scores, b)
            assert abs(solution.duality_gap[b]) <= tolerance, (scores, b)


@pytest.mark.parametrize("regime", ["unit", "hits", "real", "pair", "zeros"])
@pytest.mark.parametrize("size", [(30, 34), (80, 82), (120, 40)])
def test_relaxation_equals_highs_on_larger_instances(regime, size):
    highs = Highs()
    problem = make_problem(regime, "normal", 3, *size, seed=5)
    solution = solve(problem, "lp")
    for b in range(3):
        expected = highs.value(problem.scores[b], problem.contributions[b], problem.capacities[b])
        assert solution.relaxed_objective[b] == pytest.approx(expected, rel=1e-9)
        assert abs(certificate_gap(problem, solution, b)) <= 1e-9 * expected


@pytest.mark.parametrize("regime", ["unit", "hits", "pair"])
def test_short_lists_are_exact(regime):
    """Above the threshold only short lists are priced; the certificate does not know about them."""
    problem = make_problem(regime, "normal", 1, 400, 420, seed=3)
    solution = solve(problem, "lp")
    assert abs(certificate_gap(problem, solution, 0)) <= 1e-9 * solution.relaxed_objective[0]


@pytest.mark.parametrize("scores", ["normal", "ties", "negative"])
@pytest.mark.parametrize("regime", ["unit", "hits"])
def test_integral_linear_programmes_equal_enumeration(regime, scores):
    """Equal contributions and capacities that are multiples of them: the relaxation is integral, so unbeatable."""
    problem = make_problem(regime, scores, 60, 4, 5, seed=11)
    solution = solve(problem, "lp")
    for b in range(60):
        assert solution.objective[b] == pytest.approx(enumerate_best(problem, b), abs=1e-9)
        assert solution.status[b] == "optimal"


@pytest.mark.parametrize("regime", ["real", "pair", "few-values", "zeros", "closed"])
def test_rounding_lies_between_nine_tenths_of_the_best_and_the_bound(regime):
    problem = make_problem(regime, "normal", 80, 5, 5, seed=13)
    solution = solve(problem, "lp")
    best = np.array([enumerate_best(problem, b) for b in range(80)])
    assert (solution.objective <= best + 1e-9).all()
    assert (best <= solution.bound + 1e-9).all()
    assert solution.objective.sum() >= 0.9 * best.sum()
    optimal = solution.status == "optimal"
    assert solution.objective[optimal] == pytest.approx(best[optimal], abs=1e-8)
    assert solution.integer_gap[optimal] == pytest.approx(0.0, abs=1e-8)
    # The others say how much they may have lost, and it is no less than what they lost.
    lost = (best - solution.objective)[~optimal] / solution.bound[~optimal]
    assert (solution.integer_gap[~optimal] > 1e-9).all()
    assert (lost <= solution.integer_gap[~optimal] + 1e-9).all()


@pytest.mark.parametrize("scores", ["normal", "ties", "mixed"])
@pytest.mark.parametrize("regime", ["real", "pair", "few-values", "zeros", "closed"])
def test_tiny_instances_are_proven_where_proof_is_asked_for(regime, scores):
    problem = make_problem(regime, scores, 60, 4, 5, seed=17)
    found, unproven = solve(problem, "lp"), solve(problem, "lp", certify=False)
    best = np.array([enumerate_best(problem, b) for b in range(60)])
    assert found.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert found.bound == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert set(found.status) == {"optimal"}
    assert (unproven.objective <= found.objective + 1e-9).all()
    assert not unproven.prices.any()


def test_tiny_instances_leave_no_agent_out_where_that_is_asked_for():
    problem = make_problem("real", "normal", 60, 3, 4, seed=19)
    found = solve(problem, "lp", assign_all=True)
    plans, chosen = all_plans(3, 4)
    complete = 0
    for b in range(60):
        loads = (chosen * problem.contributions[b]).sum(1)
        possible = plans[(loads <= problem.capacities[b]).all(1) & (plans < 4).all(1)]
        if len(possible):
            complete += 1
            best = problem.scores[b][np.arange(3), possible].sum(1).max()
            assert (found.objective[b], found.bound[b]) == (pytest.approx(best), pytest.approx(best))
            assert found.status[b] == "optimal"
    assert complete > 20


def test_a_lone_price_lies_between_the_two_offers():
    """Two agents, one task of capacity 1: the price keeps the loser out and lets the winner in."""
    solution = solve(Problem(np.array([[[5.0], [3.0]]]), None, np.ones((1, 2, 1)), np.ones((1, 1))), "lp")
    assert solution.assignment.tolist() == [[0, -1]]
    assert 3.0 <= solution.prices[0, 0] <= 5.0
    assert solution.reasons[0, 1] == "no capacity left"


def test_instances_of_both_kinds_in_one_batch_are_solved_as_they_are_alone():
    """Contributions of the form a_i d_j are a transport problem; others have an entry of their own."""
    plain, mixed = (make_problem(regime, "normal", 20, 6, 7, seed=2) for regime in ("real", "pair"))
    fields = ("scores", "contributions", "capacities")
    order = np.random.default_rng(0).permutation(40)
    both = Problem(**{name: np.concatenate([getattr(plain, name), getattr(mixed, name)])[order] for name in fields})
    together = solve(both, "lp")
    alone = [solve(plain, "lp"), solve(mixed, "lp")]
    for name in ("assignment", "objective", "relaxed_objective", "prices", "loads", "status"):
        expected = np.concatenate([getattr(solution, name) for solution in alone])[order]
        np.testing.assert_array_equal(getattr(together, name), expected)


@pytest.mark.parametrize("assign_all", [False, True])
@pytest.mark.parametrize(("n", "m"), [(40, 40), (30, 70), (70, 30), (120, 110)])
def test_large_plain_assignments_are_those_of_scipy(n, m, assign_all):
    """Augmenting paths, which take the simplex's place where contributions and capacities are 1."""
    rng = np.random.default_rng(n + m)
    for scores in (rng.normal(size=(n, m)), rng.uniform(size=(n, m)), np.outer(np.arange(n), np.arange(m)) / m):
        for forbidden in (0.0, 0.8):
            h = np.where(rng.random((n, m)) < forbidden, -np.inf, scores)
            found = solve(Problem(h[None]), "lp", assign_all=assign_all)
            left_out = -1e4 if assign_all else 0.0
            extended = np.concatenate([np.maximum(h, -1e9), np.full((n, n), left_out)], 1)
            expected = extended[linear_sum_assignment(extended, maximize=True)].sum()
            plan = found.assignment[0]
            value = found.objective[0] + left_out * (plan < 0).sum()
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-7)
            assert found.status[0] == "optimal"
            # What the prices prove, and how they do.
            assert np.bincount(plan[plan >= 0], minlength=m).max() <= 1
            assert (found.prices >= 0.0).all()
            if not assign_all:
                net = np.maximum((h - found.prices[0]).max(1), 0.0)
                assert found.prices[0].sum() + net.sum() == pytest.approx(expected, rel=1e-9, abs=1e-7)


def test_ties_of_plain_assignments_are_resolved_as_by_the_simplex():
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 4, (1, 50, 40)).astype(float)
    plain = solve(Problem(scores), "lp")
    # A task with another capacity makes it an instance for the simplex.
    scores = np.concatenate([scores, np.full((1, 50, 1), -1.0)], 2)
    simplex = solve(Problem(scores, capacities=np.r_[np.ones(40), 2.0][None]), "lp")
    assert (plain.assignment == simplex.assignment).all()


@pytest.mark.parametrize("seed", range(20))
def test_prices_lead_agents_to_their_tasks_when_all_are_assigned(seed):
    """At cost plus price no assigned agent has a cheaper task; the cheapest price is 0, not what idling would cost."""
    rng = np.random.default_rng(seed)
    costs = rng.uniform(-5.0, 5.0, rng.integers(1, 7, 2))
    for scores in (costs, {(i, j): float(costs[i, j]) for i, j in np.ndindex(*costs.shape)}):
        answer = muster.assign(scores, sense="min", assign_all=True, method="lp")
        charged = costs + answer.prices
        placed = np.flatnonzero(answer.assignment >= 0)
        assert charged[placed, answer.assignment[placed]] == pytest.approx(charged[placed].min(axis=1))
        assert answer.prices.min() == 0.0
