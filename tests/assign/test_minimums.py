"""Tasks that need several agents, and agents whose task is given."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muster
from muster.assign import solve
from muster.assign.sparse import DENSE
from muster.data import Problem
from muster.errors import InputError

CREWS = {"ann": {"J1": 3.0, "J7": 5.0}, "bob": {"J1": 4.0, "J7": 4.5}, "cy": {"J7": 1.0}}


def best_plan(h, use, capacity, minimums, g, assign_all, serve_all):
    """(agents assigned if all have to be, value) of the best plan by enumeration; None if there is none."""
    n, m = h.shape
    best = None
    for plan in itertools.product(*([-1, *np.flatnonzero(h[i] > -np.inf)] for i in range(n))):
        load, count, value = np.zeros(m), np.zeros(m), 0.0
        for i, j in enumerate(plan):
            if j >= 0:
                load[j], count[j], value = load[j] + use[i, j], count[j] + 1, value + h[i, j]
        short = (load < minimums - 1e-9) & ((count > 0) | serve_all)
        if (load > capacity + 1e-9).any() or short.any():
            continue
        key = (int(count.sum()) if assign_all else 0, value + count @ g @ count)
        best = key if best is None or key > best else best
    return best


@st.composite
def instances(draw):
    n, m = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    h = rng.normal(1.0, 2.0, (n, m)).round(2)
    h[rng.random((n, m)) < 0.25] = -np.inf
    use = np.ones((n, m)) if draw(st.booleans()) else rng.integers(0, 4, (n, m)).astype(np.float64)
    minimums = rng.integers(0, 4, m).astype(np.float64)
    capacity = np.maximum(minimums, rng.integers(1, 5, m))
    g = rng.normal(0.0, 1.0, (m, m)).round(2) if draw(st.booleans()) else np.zeros((m, m))
    return h, use, capacity, minimums, g, draw(st.booleans()), draw(st.booleans())


@given(instances(), st.sampled_from(["fast", "best", "exact"]))
@settings(max_examples=150, deadline=None)
def test_small_instances_are_solved_as_by_enumeration(instance, effort):
    h, use, capacity, minimums, g, assign_all, serve_all = instance
    problem = Problem(
        h[None],
        g[None],
        use[None],
        capacity[None],
        minimums=minimums[None],
        serve_all=serve_all,
    )
    best = best_plan(*instance)
    if best is None:
        with pytest.raises(InputError, match="has to be served"):
            solve(problem, "quad", effort=effort, assign_all=assign_all)
        return
    found = solve(problem, "quad", effort=effort, assign_all=assign_all)
    plan = found.assignment[0]
    assert (found.loads[0] <= capacity * (1 + 1e-9)).all()
    served = np.bincount(plan[plan >= 0], minlength=len(minimums)) > 0
    assert (found.loads[0] >= minimums - 1e-9)[served | serve_all].all()
    value = h[np.flatnonzero(plan >= 0), plan[plan >= 0]].sum()
    count = np.bincount(plan[plan >= 0], minlength=len(minimums))
    assert found.objective[0] == pytest.approx(value + count @ g @ count, abs=1e-9)
    if found.status[0] == "optimal":
        assert ((count.sum() if assign_all else 0), found.objective[0]) == pytest.approx(best, abs=1e-7)
    assert effort != "exact" or found.status[0] == "optimal"
    if not assign_all and not np.isnan(found.bound[0]):
        assert found.bound[0] >= best[1] - 1e-7


def test_a_task_gets_its_minimum_or_no_agent():
    answer = muster.assign(CREWS, minimums={"J7": 2})
    assert answer.plan == {"ann": "J7", "bob": "J1", "cy": "J7"}
    assert answer.status == "optimal"
    alone = muster.assign({"ann": {"J7": 5.0}, "bob": {"J1": 4.0}}, minimums={"J7": 2})
    assert alone.plan == {"ann": None, "bob": "J1"}
    assert alone.table()[0]["reason"] == "minimum not reached"
    assert "J7: it needs 1 more" in str(alone.explain())


def test_the_same_capacity_means_exactly_so_many():
    answer = muster.assign(np.ones((5, 2)), minimums=[3, 0], capacities=[3, 1])
    assert answer.loads.tolist() == [3, 1]


def test_one_number_for_all_serves_every_task_or_says_which_it_cannot():
    costs = -np.array([[1.0, 5.0, 3.0], [2.0, 4.0, 6.0], [3.0, 3.0, 3.0]])
    assert muster.assign(costs, minimums=1).objective == -8
    with pytest.raises(InputError, match="task 'c' needs 1 more"):
        muster.assign([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]], minimums=1, tasks=["a", "b", "c"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"minimums": {"J7": 3}, "capacities": {"J7": 2}}, "task 'J7' has minimum 3, above its capacity 2"),
        ({"minimums": {"J7": -1}}, "must be finite and not negative"),
        ({"minimums": {"J7": 2}, "method": "amax"}, "knows no minimums; take lp or quad"),
        ({"minimums": {"J7": 2}, "method": "routes"}, "knows no minimums; take lp or quad"),
        ({"minimums": {"J7": 2}, "rounding": "original"}, "rounding 'strict'"),
        ({"fixed": {"cy": "J1"}}, "agent 'cy' task 'J1', which it may not take"),
        ({"fixed": {"ann": "J1", "bob": "J1"}}, "task 'J1' a load of 2, above its capacity 1"),
        ({"fixed": {"dan": "J1"}}, "no agent 'dan'"),
        ({"fixed": {"ann": "J1", "cy": "J7"}, "minimums": {"J7": 3}}, "task 'J7' needs 2 more and can get 1"),
    ],
)
def test_what_cannot_be_is_said_by_name(arguments, complaint):
    with pytest.raises(InputError) as refused:
        muster.assign(CREWS, **arguments)
    assert complaint in str(refused.value)


def test_fixed_agents_take_their_task_whatever_it_costs():
    answer = muster.assign(CREWS, fixed={"ann": "J1"})
    assert answer.plan == {"ann": "J1", "bob": "J7", "cy": None}
    again = muster.assign(CREWS, minimums={"J7": 2}).again(fixed={"cy": "J7", "bob": "J7"})
    assert again.plan == {"ann": "J1", "bob": "J7", "cy": "J7"}
    assert again.again(without_agents=["ann"]).plan == {"bob": "J7", "cy": "J7"}
    assert again.again(fixed={"bob": None}).plan == {"ann": "J7", "bob": "J1", "cy": "J7"}


@pytest.mark.parametrize("task_scores_on", ["count", "load"])
def test_fixing_what_is_chosen_changes_nothing(task_scores_on):
    rng = np.random.default_rng(0)
    for _ in range(20):
        h, g = rng.normal(1.0, 1.0, (5, 4)), rng.normal(0.0, 0.5, (4, 4))
        use = rng.integers(1, 3, (5, 4)).astype(np.float64)
        arguments = {"contributions": use, "capacities": [3.0, 4.0, 2.0, 5.0], "minimums": [2.0, 0.0, 2.0, 3.0]}
        free = muster.assign(h, g, **arguments, effort="exact", task_scores_on=task_scores_on)
        fixed = {i: int(free.assignment[i]) for i in range(2) if free.assignment[i] >= 0}
        held = muster.assign(h, g, **arguments, effort="exact", task_scores_on=task_scores_on, fixed=fixed)
        assert held.objective == pytest.approx(free.objective)
        assert held.loads.tolist() == free.loads.tolist()


def test_a_fixed_agent_that_contributes_nothing_has_its_task_served_all_the_same():
    problem = {"scores": [[1.0], [-5.0]], "contributions": [[0.0], [2.0]], "capacities": [2.0], "minimums": [2.0]}
    assert muster.assign(**problem, fixed={0: 0}, method="lp").assignment.tolist() == [0, 0]
    with pytest.raises(InputError, match=r"task 0 needs 2 more"):
        muster.assign(**problem, fixed={0: 0}, allowed=[[True], [False]], method="lp")


@pytest.mark.parametrize("effort", ["fast", "exact"])
def test_a_score_that_is_no_number_is_named_before_tasks_that_are_not_served(effort):
    with pytest.raises(InputError, match=r"scores must be numbers, got nan at \[0, 0\]"):
        muster.assign([[np.nan, 1.0]], minimums=1, method="lp", effort=effort)


def test_pairs_that_contribute_nothing_do_not_keep_a_task_open(monkeypatch):
    monkeypatch.setattr("muster.assign.call.DENSE", 0)
    table = [{"agent": "ann", "task": "J1", "score": 1.0, "contribution": 0.0}]
    found = muster.assign(table, capacities={"J1": 2.0}, minimums={"J1": 1.0}, method="lp")
    assert found.plan == {"ann": None}
    assert found.reasons.tolist() == ["minimum not reached"]


def test_check_plan_says_what_lacks():
    verdict = muster.check_plan({"scores": CREWS, "minimums": {"J7": 2}}, {"ann": "J7", "bob": "J1"})
    assert verdict.broken == ("task 'J7' needs 2 but gets 1 from 'ann'",)
    assert verdict.better is not None
    assert verdict.better.plan["cy"] == "J7"


def test_previous_plan_is_never_worth_more():
    rng = np.random.default_rng(1)
    for _ in range(20):
        h = rng.normal(1.0, 1.0, (8, 6))
        before = muster.assign(h, minimums=[2, 3, 0, 0, 2, 0])
        after = muster.assign(h, minimums=[2, 3, 0, 0, 2, 0], previous=before, switch_cost=0.1)
        assert after.objective >= before.objective - 1e-9
        assert after.changes == 0


def test_pairs_among_many_meet_minimums():
    rng = np.random.default_rng(0)
    n, m = 1200, 1000
    assert n * m > DENSE
    scores = {(f"a{i}", f"t{j}"): rng.random() for i in range(n) for j in rng.integers(0, m, 4)}
    minimums = {f"t{j}": 2 for j in range(0, m, 4)}
    answer = muster.assign(scores, minimums=minimums, method="lp")
    loads = dict(zip(answer.tasks, answer.loads, strict=True))
    assert {loads[task] for task in minimums if task in loads} <= {0.0, 2.0}
    assert answer.objective >= 0.97 * answer.bound


def test_a_large_table_is_solved_well():
    rng = np.random.default_rng(0)
    h = rng.uniform(1.0, 10.0, (40, 60))
    h[rng.random(h.shape) < 0.5] = -np.inf
    minimums = np.where(rng.random(60) < 0.2, 2.0, 0.0)
    fast = muster.assign(h, minimums=minimums, method="lp")
    exact = muster.assign(h, minimums=minimums, method="lp", effort="exact")
    assert exact.status == "optimal"
    assert fast.objective >= 0.995 * exact.objective


def test_costs_are_minimised():
    costs = [[4.0, 1.0, np.inf], [2.0, 3.0, 1.0]]
    answer = muster.assign(
        costs, sense="min", assign_all=True, agents=["a", "b"], tasks=["x", "y", "z"], effort="exact"
    )
    assert answer.plan == {"a": "y", "b": "z"}
    assert (answer.objective, answer.bound, answer.integer_gap) == (2.0, 2.0, 0.0)
    assert [row["score"] for row in answer.table()] == [1.0, 1.0]
    other = answer.again(scores={("b", "z"): 9.0}, without_tasks=["y"])
    assert (other.plan, other.objective) == ({"a": "x", "b": "z"}, 13.0)
    assert "cost" in str(answer.explain())
    verdict = muster.check_plan({"scores": costs}, [0, 1], sense="min", assign_all=True)
    assert (verdict.value, verdict.bound) == (7.0, 2.0)
    with pytest.raises(InputError, match="sense must be 'max' or 'min'"):
        muster.assign(costs, sense="least")
    with pytest.warns(UserWarning, match="no agent is assigned: every pair costs"):
        muster.assign(costs, sense="min")


def test_columns_may_be_called_otherwise_and_others_are_ignored():
    rows = [
        {"tech": "ann", "job": "J1", "worth": 3.0, "site": "north"},
        {"tech": "bob", "job": "J1", "worth": 4.0, "site": "south"},
    ]
    called = {"agent": "tech", "task": "job", "score": "worth"}
    with pytest.warns(UserWarning, match="ignored: site"):
        answer = muster.assign(rows, columns=called)
    assert answer.plan == {"ann": None, "bob": "J1"}
    with pytest.raises(InputError, match="no column 'wage'"):
        muster.assign(rows, columns={**called, "score": "wage"})
