"""Properties that hold for every input: feasibility, permutation, batches, threads, masks, scale, determinism."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.assign import REASONS, STATUSES, Solver, solve
from muster.data import Problem
from tests.assign.cases import PULLS, REGIMES, SCORES, make_problem

METHODS = ("amax", "lp", "quad")


def check(problem: Problem, solution, method: str) -> None:
    """Recompute from the input what the solution claims."""
    batch, n, m = problem.scores.shape
    for b in range(batch):
        plan = solution.assignment[b]
        assert ((plan >= -1) & (plan < m)).all()
        chosen = plan[:, None] == np.arange(m)
        assert solution.loads[b] == pytest.approx((chosen * problem.contributions[b]).sum(0), abs=1e-9)
        if method != "amax":
            assert (solution.loads[b] <= problem.capacities[b] * (1 + 1e-9)).all()
        scored = chosen & np.isfinite(problem.scores[b])
        assert (scored == chosen).all()
        value = problem.scores[b][chosen].sum()
        if method == "quad" and problem.task_scores is not None:
            crowd = chosen.sum(0)
            value += crowd @ problem.task_scores[b] @ crowd
        scale = np.abs(problem.scores[b]).max(initial=1e-300) * max(n, 1)
        assert solution.objective[b] == pytest.approx(value, rel=1e-9, abs=1e-9 * scale)
        assert solution.status[b] in STATUSES
        for i in range(n):
            assert solution.reasons[b, i] in REASONS
            assert (solution.reasons[b, i] == "") == (plan[i] >= 0)
    if method == "lp":
        size = np.abs(problem.scores).max(initial=0.0) * max(n, 1)
        assert (solution.objective <= solution.relaxed_objective + solution.duality_gap + 1e-9 * size).all()


def examples(count: int):
    """A law over generated inputs."""
    draw = given(
        regime=st.sampled_from(REGIMES),
        scores=st.sampled_from(SCORES),
        pulls=st.sampled_from((None, *PULLS)),
        n=st.integers(1, 7),
        m=st.integers(1, 7),
        seed=st.integers(0, 2**32 - 1),
        method=st.sampled_from(METHODS),
        effort=st.sampled_from(("paper", "fast")),
    )
    return lambda law: settings(max_examples=count, deadline=None, derandomize=True)(draw(law))


def law_of_one_input(regime, scores, pulls, n, m, seed, method, effort):
    problem = make_problem(regime, scores, 1, n, m, seed, pulls)
    solution = solve(problem, method, effort=effort)
    check(problem, solution, method)

    # Permuting agents and tasks permutes the answer. Ties aside: scores of these kinds have none, nor do walks.
    if scores in ("normal", "huge", "tiny"):
        rng = np.random.default_rng(seed)
        _, n, m = problem.scores.shape
        agents, tasks = rng.permutation(n), rng.permutation(m)
        permuted = Problem(
            np.ascontiguousarray(problem.scores[:, agents][:, :, tasks]),
            None if pulls is None else np.ascontiguousarray(problem.task_scores[:, tasks][:, :, tasks]),
            np.ascontiguousarray(problem.contributions[:, agents][:, :, tasks]),
            np.ascontiguousarray(problem.capacities[:, tasks]),
        )
        again = solve(permuted, method, effort=effort)
        size = np.abs(problem.scores).max() * n
        assert again.relaxed_objective[0] == pytest.approx(solution.relaxed_objective[0], rel=1e-7, abs=1e-7 * size)
        assert again.objective[0] == pytest.approx(solution.objective[0], rel=1e-7, abs=1e-7 * size)
        back = np.where(again.assignment[0] < 0, -1, tasks[again.assignment[0]])
        assert (back == solution.assignment[0][agents]).all()


@examples(600)
def test_answers_are_feasible_and_permute_with_the_input(**case):
    law_of_one_input(**case)


@pytest.mark.slow
@examples(10_000)
def test_ten_thousand_answers_are_feasible_and_permute_with_the_input(**case):
    law_of_one_input(**case)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("regime", ["unit", "hits", "pair", "zeros"])
def test_an_answer_depends_neither_on_its_batch_nor_on_threads(method, regime):
    problem = make_problem(regime, "normal", 200, 9, 11, seed=3, pulls="random")
    answers = [solve(problem, method, threads=threads) for threads in (1, 3)]
    alone = [
        solve(
            Problem(
                problem.scores[b : b + 1],
                problem.task_scores[b : b + 1],
                problem.contributions[b : b + 1],
                problem.capacities[b : b + 1],
            ),
            method,
        )
        for b in range(200)
    ]
    for answer in answers:
        for b in range(200):
            assert (answer.assignment[b] == alone[b].assignment[0]).all()
            assert answer.objective[b] == alone[b].objective[0]
            assert (answer.prices[b] == alone[b].prices[0]).all()


@pytest.mark.parametrize("method", METHODS)
def test_padding_changes_nothing(method):
    """An instance inside a larger, masked one gets the answer it gets alone, whatever the padding holds."""
    small = make_problem("pair", "normal", 30, 4, 6, seed=5, pulls="random")
    rng = np.random.default_rng(0)
    agents, tasks = np.sort(rng.permutation(9)[:4]), np.sort(rng.permutation(11)[:6])
    scores, pulls = np.full((30, 9, 11), np.nan), np.full((30, 11, 11), np.inf)
    contributions, capacities = np.full((30, 9, 11), -3.0), np.full((30, 11), np.nan)
    scores[:, agents[:, None], tasks] = small.scores
    pulls[:, tasks[:, None], tasks] = small.task_scores
    contributions[:, agents[:, None], tasks] = small.contributions
    capacities[:, tasks] = small.capacities
    agent_alive, task_alive = np.zeros((30, 9), bool), np.zeros((30, 11), bool)
    agent_alive[:, agents], task_alive[:, tasks] = True, True
    padded = solve(Problem(scores, pulls, contributions, capacities, agent_alive, task_alive), method)
    alone = solve(small, method)
    expected = np.where(alone.assignment < 0, -1, tasks[alone.assignment])
    assert (padded.assignment[:, agents] == expected).all()
    assert (padded.assignment[:, ~agent_alive[0]] == -1).all()
    assert set(padded.reasons[:, ~agent_alive[0]].ravel()) == {"not alive"}
    assert (padded.objective == alone.objective).all()


@pytest.mark.parametrize("effort", ["paper", "fast", "best"])
def test_the_unit_of_the_scores_does_not_matter(effort):
    """Scaling by a power of two is exact in floating point, so the assignment must be the same."""
    problem = make_problem("hits", "normal", 50, 6, 8, seed=7, pulls="indefinite")
    for scale in (2.0**20, 2.0**-20):
        scaled = Problem(problem.scores * scale, problem.task_scores * scale, problem.contributions, problem.capacities)
        first, second = solve(problem, "quad", effort=effort), solve(scaled, "quad", effort=effort)
        assert (first.assignment == second.assignment).all()
        assert second.objective == pytest.approx(first.objective * scale)


@pytest.mark.parametrize("method", METHODS)
def test_assign_all_leaves_out_no_agent_that_fits(method):
    problem = make_problem("unit", "negative", 50, 5, 7, seed=9, pulls="spread")
    assert (solve(problem, method).assignment == -1).any()
    assign_all = solve(problem, method, assign_all=True)
    assert (assign_all.assignment >= 0).all()
    crowded = make_problem("unit", "negative", 50, 7, 5, seed=9, pulls="spread")
    assert ((solve(crowded, method, assign_all=True).assignment >= 0).sum(1) >= 5).all()


def test_assign_all_linear_programmes_are_optimal_among_full_assignments():
    from scipy.optimize import linear_sum_assignment

    problem = make_problem("unit", "negative", 50, 5, 7, seed=21)
    solution = solve(problem, "lp", assign_all=True)
    for b in range(50):
        rows, columns = linear_sum_assignment(problem.scores[b], maximize=True)
        assert solution.objective[b] == pytest.approx(problem.scores[b][rows, columns].sum())
        assert solution.relaxed_objective[b] == pytest.approx(solution.objective[b])


@pytest.mark.parametrize("method", ["lp", "quad"])
def test_a_time_limit_returns_a_feasible_answer_and_says_so(method):
    problem = make_problem("pair", "normal", 1, 600, 620, seed=2, pulls="random")
    solver = Solver(method, effort="best", time_limit=0.001)
    solve(make_problem("pair", "normal", 1, 3, 4, seed=2, pulls="random"), method)  # compile outside the limit
    solution = solver(problem)
    assert solution.status[0] == "time_limit"
    assert solution.seconds < 2.0
    check(problem, solution, method)
    assert (solution.assignment >= 0).any()


def test_original_rounding_overshoots_by_one_agent_at_most():
    problem = make_problem("few-values", "normal", 300, 6, 4, seed=4)
    original, strict = (solve(problem, "lp", rounding=rule) for rule in ("original", "strict"))
    overshot = original.loads > problem.capacities + 1e-9
    assert overshot.any()
    assert not (strict.loads > problem.capacities + 1e-9).any()
    for b, j in np.argwhere(overshot):
        members = problem.contributions[b, original.assignment[b] == j, j]
        assert original.loads[b, j] - members.max() < problem.capacities[b, j] + 1e-9


def test_reasons_tell_negative_scores_from_lack_of_room():
    scores = np.array([[[2.0, -1.0], [1.5, -2.0], [-1.0, -1.0]]])
    solution = solve(Problem(scores, None, np.ones((1, 3, 2)), np.ones((1, 2))), "lp")
    assert solution.assignment.tolist() == [[0, -1, -1]]
    assert solution.reasons[0].tolist() == ["", "no capacity left", "negative scores"]


def test_an_agent_can_be_better_left_out():
    """Its score is positive and there is capacity left, but joining costs more in task scores than it brings."""
    solution = solve(
        Problem(np.array([[[2.0], [0.5]]]), np.array([[[-0.3]]]), np.ones((1, 2, 1)), np.full((1, 1), 2.0))
    )
    assert solution.assignment.tolist() == [[0, -1]]
    assert solution.reasons[0, 1] == "better left out"
