"""Plans that stay: what a change costs, that it is paid once, and that nothing is lost against the previous plan."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import muster
from muster import InputError
from muster.assign import solve
from muster.data import BatchObservation, Problem
from muster.policy.decision import allowed_scores
from tests.assign.cases import make_problem

COSTS = (0.0, 0.1, 0.3, 1.0, 3.0)


def feasible_plans(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """A random assignment within the capacities for each instance."""
    size, n, m = problem.scores.shape
    plans = np.full((size, n), -1)
    for b in range(size):
        capacity = problem.capacities[b].copy()
        for i in range(n):
            j = rng.integers(-1, m)
            if j >= 0 and problem.contributions[b, i, j] <= capacity[j]:
                plans[b, i], capacity[j] = j, capacity[j] - problem.contributions[b, i, j]
    return plans


def values(problem: Problem, plans: np.ndarray, method: str) -> np.ndarray:
    """What assignments are worth, without any cost of changes."""
    chosen = plans[:, :, None] == np.arange(problem.scores.shape[2])
    total = (chosen * problem.scores).sum((1, 2))
    if method == "quad" and problem.task_scores is not None:
        crowd = chosen.sum(1).astype(float)
        total = total + np.einsum("bi,bij,bj->b", crowd, problem.task_scores, crowd)
    return total


def resolve(count: int, method: str, effort: str, regime: str, seed: int) -> None:
    """Solve once more with a previous plan, at several costs, and hold every promise."""
    rng = np.random.default_rng(seed)
    problem = make_problem(regime, "normal", count, 6, 7, seed, pulls="random" if method == "quad" else None)
    before = feasible_plans(problem, rng)
    if seed % 2:
        # What was the best before the scores moved a little is a plan that is hard to beat.
        shaken = replace(problem, scores=problem.scores + 0.3 * rng.normal(size=problem.scores.shape))
        before = solve(shaken, method).assignment
    worth = values(problem, before, method)
    changes = []
    for cost in COSTS:
        found = solve(replace(problem, previous=before, switch_cost=cost), method, effort=effort)
        scale = 1e-9 * (1.0 + np.abs(worth))
        assert (found.objective >= worth - scale).all()
        left = (before >= 0) & (found.assignment >= 0) & (found.assignment != before)
        assert (found.changes == left.sum(1)).all()
        paid = values(problem, found.assignment, method) - cost * found.changes
        np.testing.assert_allclose(found.objective, paid, atol=1e-9)
        if method != "amax":
            chosen = found.assignment[:, :, None] == np.arange(7)
            assert ((chosen * problem.contributions).sum(1) <= problem.capacities * (1 + 1e-9)).all()
            assert (found.bound[~np.isnan(found.bound)] >= found.objective[~np.isnan(found.bound)] - 1e-9).all()
        changes.append(found.changes.mean())
    assert all(more >= fewer for more, fewer in pairwise(changes)), changes
    assert changes[0] > changes[-1]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("method", "effort", "regime"),
    [("amax", "fast", "unit"), ("lp", "fast", "unit"), ("lp", "paper", "pair"), ("quad", "fast", "pair")],
)
def test_no_answer_is_worth_less_than_the_plan_before(method, effort, regime, seed):
    """Four procedures, two kinds of previous plan, five costs, 250 instances each: 10,000 answers."""
    resolve(250, method, effort, regime, seed)


def test_of_plans_worth_the_same_the_one_before_is_kept():
    equal = np.ones((5, 5))
    before = [3, 1, 4, 0, 2]
    for method in ("lp", "quad"):
        found = muster.assign(equal, method=method, previous=before)
        assert (found.assignment.tolist(), found.changes) == (before, 0)


def test_a_cost_counts_per_agent_and_per_pair():
    scores = [[3.0, 2.0], [2.5, 0.5]]
    stays = {"method": "lp", "previous": [0, 1]}
    assert muster.assign(scores, switch_cost=0.4, **stays).changes == 2
    assert muster.assign(scores, switch_cost=0.6, **stays).changes == 0
    assert muster.assign(scores, switch_cost=[0.9, 0.0], **stays).changes == 2
    assert muster.assign(scores, switch_cost=[1.1, 0.0], **stays).changes == 0
    assert muster.assign(scores, switch_cost=[[5.0, 0.0], [0.0, 5.0]], **stays).changes == 2
    assert muster.assign(scores, switch_cost=[[0.0, 5.0], [0.0, 0.0]], **stays).changes == 0


def test_a_first_task_and_becoming_idle_cost_nothing():
    first = muster.assign([[1.0]], method="lp", previous=[None], switch_cost=9.0)
    assert (first.plan, first.changes, first.objective) == ({0: 0}, 0, 1.0)
    with pytest.warns(UserWarning, match="no agent is assigned"):
        idle = muster.assign([[-1.0, -2.0]], method="lp", previous=[0], switch_cost=9.0)
    assert (idle.plan, idle.changes, idle.objective) == ({0: None}, 0, 0.0)


def test_an_impossible_plan_before_is_repaired():
    found = muster.assign([[3.0, 2.0], [2.5, 0.5]], method="quad", previous=[0, 0], switch_cost=0.1)
    assert found.objective == pytest.approx(4.4)
    assert found.changes == 1


def test_answers_and_names_are_plans_before():
    scores = {"a": {"x": 3.0, "y": 2.0}, "b": {"x": 2.5, "y": 0.5}}
    first = muster.assign(scores, method="lp")
    assert first.plan == {"a": "y", "b": "x"}
    fewer = {"b": {"y": 0.5, "x": 0.6}}
    for before in (first, {"b": "x", "a": "y"}, {"b": "x", "gone": "x"}):
        again = muster.assign(fewer, method="lp", previous=before, switch_cost=1.0)
        assert (again.plan, again.changes) == ({"b": "x"}, 0)


def test_policies_and_the_solver_mean_the_same_by_a_change():
    rng = np.random.default_rng(0)
    scores, previous = rng.normal(size=(4, 5, 6)), rng.integers(-1, 6, (4, 5))
    cost, task_alive = rng.uniform(0, 1, (4, 5, 6)), rng.random((4, 6)) < 0.7
    nothing = np.zeros((4, 0, 0), np.float32)
    seen = BatchObservation(
        nothing,
        nothing,
        nothing,
        nothing,
        np.ones((4, 5), bool),
        task_alive,
        np.ones((4, 5, 6)),
        np.ones((4, 6)),
        previous=previous,
        switch_cost=cost,
    )
    by_policy = solve(Problem(allowed_scores(seen, scores), task_alive=task_alive), "lp")
    by_solver = solve(Problem(scores, task_alive=task_alive, previous=previous, switch_cost=cost), "lp")
    np.testing.assert_allclose(by_solver.objective, by_policy.objective)
    # By hand, from the words: it had a task, that is still there, and another is taken.
    for b in range(4):
        by_hand = sum(
            previous[b, i] >= 0 and task_alive[b, previous[b, i]] and 0 <= now != previous[b, i]
            for i, now in enumerate(by_solver.assignment[b])
        )
        assert by_solver.changes[b] == by_hand


def test_routes_go_on_and_no_plan_is_longer_than_before():
    rng = np.random.default_rng(3)
    for _ in range(20):
        agents, tasks = rng.uniform(0, 10, (3, 2)), rng.uniform(0, 10, (9, 2))
        first = -np.linalg.norm(agents[:, None] - tasks, axis=-1)
        follow = -np.linalg.norm(tasks[:, None] - tasks, axis=-1)
        before = muster.assign(first, follow, method="routes")
        again = muster.assign(first, follow, method="routes", routes=before.routes, switch_cost=5.0)
        assert again.objective >= before.objective - 1e-9
        # The routes are still the best that is known, so no agent pays for another first stop.
        assert again.changes == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"previous": [0]}, "previous must say each of the 2 agents' task (None for none), got 1 entries"),
        ({"previous": [0, 2]}, "previous must be tasks from 0 to 1, or -1 for none, got 2 for agent 1"),
        ({"previous": [0, 0.5]}, "got 0.5 for agent 1"),
        ({"previous": 3}, "got int"),
        ({"previous": [0, 1], "switch_cost": -1.0}, "switch_cost must be finite and not negative, got -1.0"),
        ({"previous": [0, 1], "switch_cost": float("nan")}, "switch_cost must be finite and not negative, got nan"),
        ({"previous": [0, 1], "switch_cost": [1.0]}, "switch_cost must be a number or have shape (2,) or (2, 2)"),
    ],
)
def test_bad_plans_and_costs_get_a_sentence(arguments, complaint):
    with pytest.raises(InputError) as refused:
        muster.assign([[3.0, 2.0], [2.5, 0.5]], method="lp", **arguments)
    assert complaint in str(refused.value)


def test_a_cost_without_a_plan_before_is_refused_at_every_door():
    scores, pairs = [[3.0, 2.0], [2.5, 0.5]], {(i, j): 1.0 for i in range(1001) for j in (i, i + 1)}
    for cost in (0.5, -1.0, [0.5, 0.0], [[0.0, 0.5], [0.0, 0.0]]):
        with pytest.raises(InputError, match="give previous too"):
            muster.assign(scores, method="lp", switch_cost=cost)
    with pytest.raises(InputError, match="give previous too"):
        muster.assign(pairs, method="lp", switch_cost=0.5)
    with pytest.raises(InputError, match="give previous too"):
        solve(Problem(np.ones((2, 3, 4)), switch_cost=np.full((2, 3, 4), 0.5)), "lp")
    for field in ("previous", "switch_cost"):
        with pytest.raises(InputError, match=f"leave {field} out"):
            muster.check_plan({"scores": scores, field: [0, 1]}, [0, 1])
    assert muster.assign(scores, method="lp", switch_cost=0).changes is None
    assert muster.assign(scores, method="lp", switch_cost=0.5, previous=[None, None]).changes == 0


def test_a_batch_wants_its_plans_as_whole_numbers():
    with pytest.raises(InputError, match="previous must hold a task index for each agent"):
        solve(Problem(np.ones((2, 3, 4)), previous=np.zeros((2, 3))), "lp")
    with pytest.raises(InputError, match=r"got 4 at \(1, 2\)"):
        solve(Problem(np.ones((2, 3, 4)), previous=np.array([[0, 1, 2], [0, 1, 4]])), "lp")
    with pytest.raises(InputError, match="switch_cost must be a number or have shape"):
        solve(Problem(np.ones((2, 3, 4)), previous=np.zeros((2, 3), np.int64), switch_cost=np.ones(3)), "lp")


@pytest.mark.parametrize(
    ("previous", "complaint"),
    [
        ({"Van 1": "leak"}, "previous: no agent 'Van 1'; is 'van-1' meant?"),
        ({"van-1": "LEAK"}, "previous: no task 'LEAK'; is 'leak' meant?"),
        ({"leak": "van-1"}, "previous must be {agent: task}, got {task: agent}"),
        ({"van-1": ["leak"]}, "previous must be one task for each agent, got ['leak'] for 'van-1'"),
    ],
)
def test_a_previous_plan_in_another_spelling_is_refused(previous, complaint):
    scores = {"van-1": {"leak": 3.0, "roof": 2.0}, "van-2": {"roof": 1.0}}
    with pytest.raises(InputError, match=re.escape(complaint)):
        muster.assign(scores, previous=previous, switch_cost=1.0)


def test_a_previous_plan_by_number_names_numbers_that_are_there():
    with pytest.raises(InputError, match="previous: no agent 5"):
        muster.assign([[1.0, 2.0]], previous={5: 1}, switch_cost=1.0)
    with pytest.raises(InputError, match="previous: no task 7"):
        muster.assign([[1.0, 2.0]], previous={0: 7}, switch_cost=1.0)
    found = muster.assign([[1.0, 2.0]], previous={0: -1}, switch_cost=1.0)
    assert (found.plan, found.changes) == ({0: 1}, 0)


def test_a_name_that_is_gone_is_said_where_one_near_it_is_new():
    scores = {"anna": {"leak": 3.0}}
    with pytest.warns(UserWarning, match="previous names agent 'ana', .* is 'anna' meant?"):
        muster.assign(scores, previous={"ana": "leak"}, switch_cost=1.0)
    assert muster.assign(scores, previous={"zoe": "garden"}, switch_cost=1.0).changes == 0
