"""Routes against enumeration, and what holds for every plan."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from muster import InputError, assign
from muster.assign import Solver
from muster.data import Problem

LONGEST, TOTAL = "makespan", "total"


def plan_batch(scores, task_scores, iterations, objective=LONGEST, end_scores=None, before=None, **given):
    """A plan of a batch after so many iterations."""
    problem = Problem(scores=scores, task_scores=task_scores, end_scores=end_scores, routes=before, **given)
    return Solver("routes", objective=objective, steps=iterations)(problem)


def trip(seed, n, m, end=False):
    """Costs between random points of the unit square: from agents, between tasks, back to where each agent began."""
    rng = np.random.default_rng(seed)
    points = rng.random((n + m, 2))
    costs = np.linalg.norm(points[:, None] - points[None], axis=-1)
    return -costs[None, :n, n:], -costs[None, n:, n:], -costs[None, :n, n:] if end else None


def route_costs(routes, scores, task_scores, end_scores=None):
    """What each agent's route costs, from the definition."""
    costs = []
    for i, stops in enumerate(routes):
        stops = [j for j in stops if j >= 0]
        cost = -scores[i, stops[0]] if stops else 0.0
        cost -= sum(task_scores[j, k] for j, k in itertools.pairwise(stops))
        cost -= end_scores[i, stops[-1]] if end_scores is not None and stops else 0.0
        costs.append(cost)
    return costs


def every_plan(n, m):
    """All ways to share m tasks out to n agents in all orders."""
    for order in itertools.permutations(range(m)):
        for cuts in itertools.combinations_with_replacement(range(m + 1), n - 1):
            bounds = [0, *cuts, m]
            yield [order[a:b] for a, b in itertools.pairwise(bounds)]


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("power", [LONGEST, TOTAL])
@pytest.mark.parametrize("seed", range(6))
def test_small_plans_are_the_best_of_all(seed, power, end):
    scores, task_scores, end_scores = trip(seed, 2, 5, end)
    found = plan_batch(scores, task_scores, 2000, power, end_scores)
    measure = max if power == LONGEST else sum
    ends = None if end_scores is None else end_scores[0]
    best = min(measure(route_costs(plan, scores[0], task_scores[0], ends)) for plan in every_plan(2, 5))
    assert -found.objective[0] == pytest.approx(best, rel=1e-9)
    assert -found.bound[0] <= best + 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_costs_are_those_of_the_routes_and_every_task_is_visited_once(seed):
    scores, task_scores, end_scores = trip(seed, 4, 30, True)
    found = plan_batch(scores, task_scores, 500, LONGEST, end_scores)
    assert sorted(j for route in found.routes[0] for j in route if j >= 0) == list(range(30))
    costs = route_costs(found.routes[0], scores[0], task_scores[0], end_scores[0])
    assert -found.objective[0] == pytest.approx(max(costs))
    total = plan_batch(scores, task_scores, 500, TOTAL, end_scores)
    costs = route_costs(total.routes[0], scores[0], task_scores[0], end_scores[0])
    assert -total.objective[0] == pytest.approx(sum(costs))


def test_more_iterations_are_never_worse_than_none():
    scores, task_scores, _ = trip(1, 5, 40)
    built = plan_batch(scores, task_scores, 0).objective[0]
    assert plan_batch(scores, task_scores, 200).objective[0] > built


def test_the_same_seed_gives_the_same_plan_in_any_batch():
    parts = [trip(seed, 3, 12) for seed in range(4)]
    together = plan_batch(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), 300)
    for b, part in enumerate(parts):
        assert np.array_equal(plan_batch(part[0], part[1], 300).routes[0], together.routes[b])


def test_forbidden_pairs_are_not_visited_and_a_task_without_agents_stays_absent():
    scores, task_scores, _ = trip(2, 3, 9)
    allowed = np.random.default_rng(0).random((1, 3, 9)) < 0.5
    allowed[0, :, 4] = False
    found = plan_batch(scores, task_scores, 300, allowed=allowed)
    for i, route in enumerate(found.routes[0]):
        assert all(allowed[0, i, j] for j in route if j >= 0)
    visited = {j for route in found.routes[0] for j in route if j >= 0}
    assert visited == {j for j in range(9) if allowed[0, :, j].any()}


def test_end_scores_of_forbidden_pairs_are_not_looked_at():
    scores, between = -np.array([[1.0, 2.0], [3.0, 1.0]]), -np.ones((2, 2))
    allowed = np.array([[True, False], [True, True]])
    found = [
        assign(scores, between, method="routes", allowed=allowed, end_scores=np.where(allowed, -1.0, never_read))
        for never_read in (np.nan, 7.0)
    ]
    assert found[0].routes == found[1].routes
    assert found[0].objective == found[1].objective
    assert found[0].bound == found[1].bound


def test_a_task_is_visited_as_often_as_its_capacity_takes_by_different_agents():
    scores, task_scores, _ = trip(3, 4, 6)
    capacities = np.array([[1.0, 2.0, 3.0, 1.5, 0.0, 9.0]])
    found = plan_batch(scores, task_scores, 300, capacities=capacities)
    visits = [[i for i, route in enumerate(found.routes[0]) if j in route] for j in range(6)]
    assert [len(v) for v in visits] == [1, 2, 3, 1, 0, 4]
    assert all(
        (route[route >= 0][:, None] == route[route >= 0]).sum() == (route >= 0).sum() for route in found.routes[0]
    )


def test_contributions_share_a_tasks_capacity():
    scores, task_scores, _ = trip(4, 4, 5)
    rng = np.random.default_rng(1)
    contributions, capacities = rng.uniform(0.3, 1.0, (1, 4, 5)), rng.uniform(0.5, 2.0, (1, 5))
    found = plan_batch(scores, task_scores, 400, contributions=contributions, capacities=capacities)
    for j in range(5):
        loads = sum(contributions[0, i, j] for i, route in enumerate(found.routes[0]) if j in route)
        assert loads <= capacities[0, j] + 1e-9


def test_the_dead_neither_travel_nor_are_visited():
    scores, task_scores, _ = trip(5, 4, 8)
    agents, tasks = np.array([[True, False, True, True]]), np.array([[True] * 3 + [False] * 2 + [True] * 3])
    found = plan_batch(scores, task_scores, 200, agent_alive=agents, task_alive=tasks)
    assert (found.routes[0, 1] == -1).all()
    assert sorted(j for route in found.routes[0] for j in route if j >= 0) == [0, 1, 2, 5, 6, 7]


def test_going_on_from_a_plan_is_never_worse_than_it():
    for seed in range(10):
        scores, task_scores, _ = trip(seed, 5, 25)
        first = plan_batch(scores, task_scores, 2000)
        again = plan_batch(scores, task_scores, 20, before=first.routes)
        assert again.objective[0] >= first.objective[0] - 1e-12


def test_a_plan_goes_on_without_the_tasks_that_are_gone_and_with_those_that_are_new():
    scores, task_scores, _ = trip(6, 3, 10)
    alive = np.ones((1, 10), np.bool_)
    alive[0, :3] = False
    first = plan_batch(scores, task_scores, 500, task_alive=alive)
    alive = ~alive | (np.arange(10) > 6)
    again = plan_batch(scores, task_scores, 0, before=first.routes, task_alive=alive)
    assert sorted(j for route in again.routes[0] for j in route if j >= 0) == np.flatnonzero(alive).tolist()


def test_costs_of_any_scale_give_the_same_plan():
    scores, task_scores, _ = trip(7, 3, 12)
    plans = [plan_batch(scale * scores, scale * task_scores, 300) for scale in (1.0, 2.0**40, 2.0**-40)]
    assert all(np.array_equal(plan.routes, plans[0].routes) for plan in plans)


def test_an_assignment_is_the_first_stop_and_what_it_contributes():
    scores, task_scores, _ = trip(8, 3, 7)
    found = assign(scores[0], task_scores[0], method="routes")
    assert found.assignment.tolist() == [route[0] if route else -1 for route in found.routes]
    assert found.loads.sum() == sum(bool(route) for route in found.routes)
    assert (found.reasons == "").tolist() == [bool(route) for route in found.routes]


def test_more_agents_than_tasks_leaves_some_at_home_with_a_reason():
    scores, task_scores, _ = trip(9, 5, 2)
    found = assign(scores[0], task_scores[0], method="routes", objective="total")
    assert sum(map(len, found.routes)) == 2
    assert {str(reason) for reason in found.reasons} == {"", "better left out"}


def test_a_plan_that_meets_its_bound_is_optimal_and_says_so():
    """One agent on a line: it walks to the end, which no plan can shorten."""
    scores, task_scores = [[-1.0, -2.0, -3.0]], [[0.0, -1.0, -2.0], [-1.0, 0.0, -1.0], [-2.0, -1.0, 0.0]]
    found = assign(scores, task_scores, method="routes")
    assert (found.status, found.routes, found.objective, found.bound) == ("optimal", [[0, 1, 2]], -3.0, -3.0)


def test_scores_above_zero_have_no_bound():
    found = assign([[1.0, -1.0]], [[0.0, 1.0], [1.0, 0.0]], method="routes", objective="total")
    assert np.isnan(found.bound)
    assert found.routes == [[0, 1]]


def test_a_time_limit_is_kept_and_used():
    scores, task_scores, _ = trip(10, 10, 120)
    quick = assign(scores[0], task_scores[0], method="routes", time_limit=0.05)
    long = assign(scores[0], task_scores[0], method="routes", time_limit=0.6)
    assert quick.seconds < 0.6 <= long.seconds < 2.0
    assert long.status == "time_limit"
    assert long.objective >= quick.objective


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"effort": "paper"}, "the efforts fast and best"),
        ({"routes": [[0]]}, "a list of 2, one for each agent, got 1"),
        ({"routes": [[0], [3]]}, r"routes\[1\] must list different tasks from 0 to 1, got \[3\]"),
        ({"routes": [[0, 0], []]}, r"routes\[0\] must list different tasks"),
        ({"end_scores": [[0.0]]}, r"end_scores must have shape \(2, 2\)"),
        ({"end_scores": [[0.0, 1.0], [float("nan"), 0.0]]}, r"end_scores must be numbers, got nan at \[1, 0\]"),
        ({"method": "lp", "objective": "total"}, "are for method 'routes', not for 'lp'"),
        ({"method": "quad", "routes": [[], []]}, "are for method 'routes', not for 'quad'"),
    ],
)
def test_what_is_no_plan_is_refused_with_what_is(settings, message):
    with pytest.raises(InputError, match=message):
        assign([[-1.0, -2.0], [-2.0, -1.0]], **{"method": "routes"} | settings)
