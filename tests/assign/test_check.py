"""A plan is judged: which constraint it violates, what it is worth, and what a better one changes."""

import math

import numpy as np
import pytest

import muster
from muster import InputError
from muster.data import Problem
from tests.assign.cases import enumerate_best, make_problem

PROBLEM = {
    "scores": {"a": {"x": 3.0, "y": 2.0}, "b": {"x": 2.5, "y": 0.5}, "c": {"y": 1.0}},
    "capacities": {"x": 1.0, "y": 1.0},
}


def test_each_rule_that_breaks_is_named():
    verdict = muster.check_plan(PROBLEM, {"a": "x", "b": "x", "c": "x"}, method="lp")
    assert not verdict.feasible
    assert verdict.broken == (
        "agent 'c' may not take task 'x'",
        "task 'x' has capacity 1 but gets 3 from 'a', 'b', 'c'",
    )
    assert math.isnan(verdict.value)
    assert verdict.better.plan == {"a": "y", "b": "x", "c": None}
    assert "not feasible" in str(verdict)


def test_a_worse_plan_is_shown_what_to_change():
    verdict = muster.check_plan(PROBLEM, {"a": "x", "b": "y"}, method="lp")
    assert verdict.feasible
    assert (verdict.value, verdict.bound, verdict.optimal) == (3.5, 4.5, False)
    assert list(verdict.changes) == [
        {"agent": "a", "from": "x", "to": "y", "score_from": 3.0, "score_to": 2.0},
        {"agent": "b", "from": "y", "to": "x", "score_from": 0.5, "score_to": 2.5},
    ]
    assert "a better plan is worth 4.5 and changes:" in str(verdict)


def test_the_best_plan_is_said_to_be_that():
    verdict = muster.check_plan(PROBLEM, ["y", "x", None], method="lp")
    assert verdict.feasible
    assert verdict.optimal
    assert verdict.better is None
    assert list(verdict.changes) == []
    assert str(verdict).endswith("nothing exceeds it")


def test_assign_all_leaves_out_no_agent_that_fits():
    problem = {"scores": [[-1.0, -2.0]]}
    assert muster.check_plan(problem, [None], method="lp").feasible
    verdict = muster.check_plan(problem, [None], method="lp", assign_all=True)
    assert verdict.broken == ("agent 0 has no task though 0 has capacity left for it",)


def test_an_answer_is_checked_with_its_own_settings():
    solution = muster.assign([[3.0, 2.0], [2.5, 0.5]], method="lp")
    assert muster.check_plan(solution, solution.assignment).optimal
    assert not muster.check_plan(solution, [0, 0]).feasible
    assert muster.check_plan(muster.assign([[3.0, 2.0], [2.5, 0.5]], method="amax"), [0, 0]).feasible


@pytest.mark.parametrize("regime", ["unit", "pair", "few-values", "closed"])
@pytest.mark.parametrize("method", ["lp", "quad"])
def test_verdicts_agree_with_enumeration(method, regime):
    """Random plans: feasible by the constraints written again, worth what the formula says, bounded by the best."""
    rng = np.random.default_rng(5)
    problem = make_problem(regime, "normal", 12, 4, 4, 7, pulls="random" if method == "quad" else None)
    seen = set()
    for b in range(12):
        one = Problem(*(None if block is None else block[b : b + 1] for block in fields(problem)))
        plan = rng.integers(-1, 4, 4)
        verdict = muster.check_plan(one, plan, method=method, effort="best")
        chosen = plan[:, None] == np.arange(4)
        feasible = ((chosen * one.contributions[0]).sum(0) <= one.capacities[0] * (1 + 1e-9)).all()
        assert verdict.feasible == feasible
        seen.add(bool(feasible))
        value = (chosen * one.scores[0]).sum()
        if method == "quad":
            value += chosen.sum(0) @ one.task_scores[0] @ chosen.sum(0)
        assert verdict.value == pytest.approx(value)
        best = enumerate_best(problem, b)
        assert math.isnan(verdict.bound) or verdict.bound >= best - 1e-9
        if verdict.better is not None and method == "quad":
            assert verdict.better.objective == pytest.approx(best)
        elif verdict.better is None:
            assert value == pytest.approx(best)
    assert regime == "closed" or True in seen


def fields(problem: Problem) -> tuple:
    return problem.scores, problem.task_scores, problem.contributions, problem.capacities


@pytest.mark.parametrize(
    ("problem", "assignment", "complaint"),
    [
        (PROBLEM, {"a": "z"}, "no task 'z'; there is x, y"),
        (PROBLEM, {"d": "x"}, "no agent 'd'; there is a, b, c"),
        (PROBLEM, [0, 1], "assignment must say each of the 3 agents' task (None for none), got 2 entries"),
        (PROBLEM, [0, 1, 7], "assignment must be tasks from 0 to 1, or -1 for none, got 7 for agent 2"),
        ({"scores": [[1.0]], "capacity": [1.0]}, [0], "no field 'capacity'; did you mean 'capacities'?"),
        ("rescue:2x4", [0], "an environment is checked by `muster check-env`"),
        (Problem(np.ones((2, 1, 1))), [0], "check takes one instance without masks"),
    ],
)
def test_bad_questions_get_a_sentence(problem, assignment, complaint):
    with pytest.raises(InputError) as refused:
        muster.check_plan(problem, assignment, method="lp")
    assert complaint in str(refused.value)


def test_routes_are_not_checked():
    with pytest.raises(InputError, match="check is for amax, lp and quad"):
        muster.check_plan({"scores": [[-1.0]]}, [0], method="routes")
