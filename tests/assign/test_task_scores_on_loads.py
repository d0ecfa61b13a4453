"""Task scores that act on loads (`task_scores_on="load"`), and what is proven about QUAD for any g."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import muster
from muster.assign import solve
from muster.assign.instance import loads_of, value_of
from muster.assign.solver import Solver
from muster.data import Problem
from muster.errors import InputError
from tests.assign.cases import PULLS, all_plans, make_problem

KINDS = ("count", "load")
REGIMES = ("unit", "real", "agent-task", "pair", "few-values", "zeros", "closed")


def best_of_all(problem: Problem, b: int, task_scores_on: str) -> float:
    """The best value of any assignment of instance b, by trying them all."""
    h, mu, u = problem.scores[b], problem.contributions[b], problem.capacities[b]
    n, m = h.shape
    plans, chosen = all_plans(n, m)
    values = np.concatenate([h, np.zeros((n, 1))], axis=1)[np.arange(n), plans].sum(1)
    loads = np.einsum("kij,ij->kj", chosen, mu)
    c = loads if task_scores_on == "load" else chosen.sum(1).astype(float)
    values = values + ((c @ problem.task_scores[b]) * c).sum(1)
    return float(values[(loads <= u * (1 + 1e-9)).all(1)].max())


@pytest.mark.parametrize("task_scores_on", KINDS)
@pytest.mark.parametrize("pulls", PULLS)
@pytest.mark.parametrize("regime", REGIMES)
def test_nothing_beats_enumeration_and_small_ones_are_proven(regime, pulls, task_scores_on):
    problem = make_problem(regime, "normal", 10, 4, 5, seed=11, pulls=pulls)
    best = np.array([best_of_all(problem, b, task_scores_on) for b in range(10)])
    for effort in ("paper", "fast", "best", "exact"):
        found = solve(problem, "quad", effort=effort, task_scores_on=task_scores_on)
        assert (found.objective <= best + 1e-9 * (1 + np.abs(best))).all(), effort
        known = ~np.isnan(found.bound)
        assert (found.bound[known] >= best[known] - 1e-9 * (1 + np.abs(best[known]))).all(), effort
        if effort != "paper":
            assert found.objective == pytest.approx(best, abs=1e-8), effort
            assert set(found.status) == {"optimal"}
            assert known.all()


@pytest.mark.parametrize("task_scores_on", KINDS)
@pytest.mark.parametrize("pulls", PULLS)
@pytest.mark.parametrize("regime", ["unit", "real", "pair"])
def test_search_comes_near_and_exact_proves_what_fast_does_not(regime, pulls, task_scores_on):
    """5x7 has 32,768 assignments: too many for a proof at effort fast."""
    problem = make_problem(regime, "normal", 12, 5, 7, seed=13, pulls=pulls)
    best = np.array([best_of_all(problem, b, task_scores_on) for b in range(12)])
    fast, exact = (solve(problem, "quad", effort=effort, task_scores_on=task_scores_on) for effort in ("fast", "exact"))
    assert (fast.objective <= best + 1e-9).all()
    assert (fast.bound >= best - 1e-9).all()
    assert np.mean(best - fast.objective) <= 0.05 * np.abs(best).mean()
    assert exact.objective == pytest.approx(best, abs=1e-8)
    assert set(exact.status) == {"optimal"}
    assert exact.bound == pytest.approx(exact.objective)
    assert set(exact.integer_gap) == {0.0}


@pytest.mark.parametrize("effort", ["paper", "fast", "best", "exact"])
def test_loads_of_one_each_are_numbers_of_agents(effort):
    problem = make_problem("unit", "normal", 10, 5, 6, seed=17, pulls="random")
    problem = replace(problem, capacities=2.0 * problem.capacities)
    count, load = (solve(problem, "quad", effort=effort, task_scores_on=task_scores_on) for task_scores_on in KINDS)
    assert (count.assignment == load.assignment).all()
    assert (count.objective == load.objective).all()
    # A little off, every step is that of loads, and the answer is the same.
    rng = np.random.default_rng(0)
    off = 1.0 + 1e-13 * rng.random(problem.contributions.shape)
    near = solve(replace(problem, contributions=off), "quad", effort=effort, task_scores_on="load")
    assert near.objective == pytest.approx(count.objective, rel=1e-9)


@pytest.mark.parametrize("effort", ["fast", "exact"])
def test_where_a_task_gets_the_same_from_all_g_takes_the_factors(effort):
    problem = make_problem("unit", "normal", 10, 5, 6, seed=19, pulls="indefinite")
    factor = np.random.default_rng(1).uniform(0.5, 2.0, (10, 6))
    weighed = replace(problem, contributions=np.repeat(factor[:, None], 5, axis=1), capacities=2.0 * factor)
    scaled = problem.task_scores * factor[:, :, None] * factor[:, None, :]
    counted = replace(problem, task_scores=scaled, capacities=np.full((10, 6), 2.0))
    by_load, by_count = (
        solve(weighed, "quad", effort=effort, task_scores_on="load"),
        solve(counted, "quad", effort=effort),
    )
    assert by_load.objective == pytest.approx(by_count.objective)


@pytest.mark.parametrize("pulls", PULLS)
def test_the_numbering_does_not_matter(pulls):
    problem = make_problem("pair", "normal", 20, 9, 8, seed=23, pulls=pulls)
    rng = np.random.default_rng(2)
    agents, tasks = rng.permutation(9), rng.permutation(8)
    other = Problem(
        problem.scores[:, agents][:, :, tasks],
        problem.task_scores[:, tasks][:, :, tasks],
        problem.contributions[:, agents][:, :, tasks],
        problem.capacities[:, tasks],
    )
    # BEST's random starts go by the tasks' numbers.
    first, second = (solve(one, "quad", task_scores_on="load") for one in (problem, other))
    assert second.objective == pytest.approx(first.objective, rel=1e-9)


@pytest.mark.parametrize("task_scores_on", KINDS)
@pytest.mark.parametrize("pulls", PULLS)
def test_no_move_and_no_swap_improves_a_local_optimum(pulls, task_scores_on):
    """So what the search takes a step to gain is what it gains."""
    problem = make_problem("pair", "normal", 6, 9, 8, seed=29, pulls=pulls)
    found = solve(problem, "quad", task_scores_on=task_scores_on)
    for b in range(6):
        one = Problem(*(block[b : b + 1] for block in one_of(problem)))
        plan = found.assignment[b]
        for other in neighbours(plan, 8):
            if (loads_of(one, other) <= one.capacities[0] * (1 + 1e-9)).all():
                assert value_of(one, other, "quad", task_scores_on) <= found.objective[b] + 1e-9


def one_of(problem):
    return problem.scores, problem.task_scores, problem.contributions, problem.capacities


def neighbours(plan, m):
    """All plans that a move or a swap makes of this one."""
    for i, k in itertools.product(range(len(plan)), range(-1, m)):
        moved = plan.copy()
        moved[i] = k
        yield moved
    for i, k in itertools.combinations(range(len(plan)), 2):
        swapped = plan.copy()
        swapped[[i, k]] = plan[[k, i]]
        yield swapped


@pytest.mark.parametrize("task_scores_on", KINDS)
@pytest.mark.parametrize("pulls", PULLS)
@pytest.mark.parametrize("regime", ["unit", "hits", "pair"])
def test_bounds_hold_where_enumeration_is_too_long(regime, pulls, task_scores_on):
    problem = make_problem(regime, "normal", 6, 12, 14, seed=31, pulls=pulls)
    fast, best = (solve(problem, "quad", effort=effort, task_scores_on=task_scores_on) for effort in ("fast", "best"))
    assert (np.minimum(fast.bound, best.bound) >= np.maximum(fast.objective, best.objective) - 1e-9).all()
    assert (best.bound <= fast.bound + 1e-6 * np.abs(fast.bound)).all()


def test_a_proof_that_is_cut_short_still_bounds():
    problem = make_problem("hits", "normal", 1, 14, 14, seed=37, pulls="indefinite")
    for task_scores_on in KINDS:
        found = solve(problem, "quad", effort="exact", task_scores_on=task_scores_on, time_limit=0.2)
        assert found.status[0] == "time_limit"
        assert found.objective[0] < found.bound[0] < np.inf


def test_agents_that_are_alike_are_not_tried_in_every_order():
    """Choosing 6 of 14 elements: 3,003 choices, of which each has 720 orders."""
    rng = np.random.default_rng(4)
    distance = np.triu(rng.uniform(0, 10, (14, 14)), 1)
    found = muster.assign(np.zeros((6, 14)), distance, assign_all=True, effort="exact", time_limit=20.0)
    chosen = np.array([[(k >> j) & 1 for j in range(14)] for k in range(1 << 14)])
    chosen = chosen[chosen.sum(1) == 6]
    assert found.status == "optimal"
    assert found.objective == pytest.approx(((chosen @ distance) * chosen).sum(1).max())


def test_assign_all_leaves_no_agent_out_by_loads():
    rng = np.random.default_rng(5)
    scores, uses = rng.normal(size=(5, 4)) - 3.0, rng.uniform(0.5, 1.5, (5, 4))
    g = -rng.uniform(0, 1, (4, 4))
    for effort in ("fast", "best", "exact"):
        found = muster.assign(scores, g, uses, np.full(4, 4.0), assign_all=True, effort=effort, task_scores_on="load")
        assert (found.assignment >= 0).all()
        assert found.objective < 0


def test_plans_that_stay_and_checked_plans_count_loads():
    rng = np.random.default_rng(6)
    for seed in range(20):
        problem = make_problem("pair", "normal", 1, 6, 5, seed=seed, pulls="indefinite")
        call = {
            "scores": problem.scores[0],
            "task_scores": problem.task_scores[0],
            "contributions": problem.contributions[0],
            "capacities": problem.capacities[0],
        }
        before = np.full(6, -1)
        capacity = problem.capacities[0].copy()
        for i in range(6):
            j = int(rng.integers(0, 5))
            if problem.contributions[0, i, j] <= capacity[j]:
                before[i], capacity[j] = j, capacity[j] - problem.contributions[0, i, j]
        loads = np.bincount(before[before >= 0], problem.contributions[0, before >= 0, before[before >= 0]], 5)
        worth = problem.scores[0, before >= 0, before[before >= 0]].sum() + loads @ problem.task_scores[0] @ loads
        verdict = muster.check_plan(call, before, task_scores_on="load")
        assert verdict.feasible
        assert verdict.value == pytest.approx(worth)
        stays = muster.assign(**call, previous=before, switch_cost=0.3, task_scores_on="load")
        assert stays.objective >= worth - 1e-9
        assert stays.again().solver.task_scores_on == "load"
        assert muster.check_plan(stays, stays.assignment).value == pytest.approx(
            muster.check_plan(call, stays.assignment, task_scores_on="load").value
        )


def test_explanations_count_loads():
    rng = np.random.default_rng(7)
    for _ in range(20):
        scores, uses, g = rng.normal(size=(3, 4)), rng.uniform(0.5, 2.0, (3, 4)), 0.2 * rng.normal(size=(4, 4))
        call = {"task_scores": g, "contributions": uses, "capacities": np.full(4, 2.5), "task_scores_on": "load"}
        solution = muster.assign(scores, **call)
        assert solution.status == "optimal"
        why = solution.explain()
        for i, row in enumerate(why.agents):
            if row["task"] is not None:
                # The best plan in which the agent does something else.
                without = scores.copy()
                without[i, row["task"]] = -np.inf
                other = muster.assign(without, **call)
                assert row["by"] == pytest.approx(solution.objective - other.objective, abs=1e-9)
            elif row["needs_score"] is not None:
                raised = scores.copy()
                raised[i, row["runner_up"]] = row["needs_score"]
                assert muster.assign(raised, **call).assignment[i] >= 0
        for row in why.tasks:
            if row["needs_score"] is not None and row["why"] == "worth less":
                raised = scores.copy()
                raised[row["agent"], row["task"]] = row["needs_score"]
                assert (muster.assign(raised, **call).assignment == row["task"]).any()


@pytest.mark.parametrize("method", ["amax", "lp", "routes"])
def test_only_quad_has_a_crowd(method):
    with pytest.raises(InputError, match=f"task_scores_on 'load' is for method 'quad'.*got method '{method}'"):
        muster.assign([[1.0]], method=method, task_scores_on="load")


def test_no_other_crowd_and_no_overflow():
    with pytest.raises(InputError, match="no task_scores_on 'weight'; there is count, load"):
        muster.assign([[1.0]], task_scores_on="weight")
    with pytest.raises(InputError, match="task_scores times contributions squared"):
        muster.assign(
            [[1.0, 1.0]] * 2, np.full((2, 2), 1e60), [[1e40, 1e40], [2e40, 1e40]], [1e50, 1e50], task_scores_on="load"
        )


@pytest.mark.parametrize("certify", [True, False])
def test_few_that_live_among_many_are_solved_as_if_alone(certify):
    """Proofs of small problems have space in large arrays too."""
    rng = np.random.default_rng(3)
    batch, n, m = 24, 30, 34
    scores, g = rng.normal(size=(batch, n, m)), 0.3 * rng.normal(size=(batch, m, m))
    agents, tasks = np.zeros((batch, n), np.bool_), np.zeros((batch, m), np.bool_)
    for b in range(batch):
        agents[b, rng.permutation(n)[: rng.integers(0, 4) if b % 2 else n]] = True
        tasks[b, rng.permutation(m)[: rng.integers(0, 4) if b % 2 else b % 4]] = True
    solve = Solver("quad", certify=certify)
    found = solve(Problem(scores, g, np.ones((batch, n, m)), np.full((batch, m), 2.0), agents, tasks))
    for b in range(batch):
        i, j = np.flatnonzero(agents[b]), np.flatnonzero(tasks[b])
        if not len(i) or not len(j):
            assert (found.assignment[b] == -1).all()
            continue
        alone = Problem(
            scores[b][np.ix_(i, j)][None],
            g[b][np.ix_(j, j)][None],
            np.ones((1, len(i), len(j))),
            np.full((1, len(j)), 2.0),
        )
        assert found.objective[b] == pytest.approx(solve(alone).objective[0])
