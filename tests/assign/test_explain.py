"""Explanations are checked by solving again: what is said to change the answer does, and less does not."""

import time
from dataclasses import replace

import numpy as np
import pytest

import muster
from muster import InputError
from muster.assign import Answer, Solver
from muster.assign.answer import answer
from muster.data import Problem
from muster.errors import TimeLimitError
from tests.assign.cases import enumerate_best, make_problem


def solved(regime: str, method: str, seed: int, n: int = 5, m: int = 6, **settings) -> Answer:
    """One instance with negative scores, forbidden pairs, and tasks without agents."""
    rng = np.random.default_rng(seed)
    problem = make_problem(regime, "normal", 1, n, m, seed, pulls="random" if method == "quad" else None)
    scores = problem.scores + rng.choice([0.0, -1.0])
    allowed = rng.random(scores.shape) < 0.8
    allowed[0, :, rng.integers(m)] &= rng.random() < 0.5
    return answer(replace(problem, scores=scores, allowed=allowed), Solver(method, **settings), None)


def with_score(problem: Problem, i: int, j: int, score: float) -> Problem:
    scores = problem.scores.copy()
    scores[0, i, j] = score
    return replace(problem, scores=scores)


def verify(found: Answer, exact: bool) -> int:
    """Make every change that the explanation names, solve again and see; returns how many there were."""
    problem, solver = found.problem, found.solver
    tried = 0
    why = found.explain()
    scale = np.abs(problem.scores[np.isfinite(problem.scores)]).max()
    for row in why.agents:
        i = row["agent"]
        if row["task"] is not None:
            if exact and row["by"] > 1e-5 * scale:
                # It keeps its task while its score falls by less than the margin, and loses it for more.
                for share, keeps in ((0.99, True), (1.01, False)):
                    lower = with_score(problem, i, row["task"], row["score"] - share * row["by"])
                    assert (solver(lower).assignment[0, i] == row["task"]) == keeps
                    tried += 1
        elif row["needs_score"] is not None:
            j = row["runner_up"]
            assert solver(with_score(problem, i, j, row["needs_score"])).assignment[0, i] >= 0
            if exact and row["by"] > 1e-5 * scale:
                short = problem.scores[0, i, j] + 0.99 * row["by"]
                assert solver(with_score(problem, i, j, short)).assignment[0, i] < 0
            tried += 1
    for row in why.tasks:
        j, changed = row["task"], problem
        if row["needs_capacity"] is not None:
            capacities = problem.capacities.copy()
            capacities[0, j] = row["needs_capacity"]
            changed = replace(changed, capacities=capacities)
        if row["needs_score"] is not None:
            changed = with_score(changed, row["agent"], j, row["needs_score"])
            if exact and row["by"] > 1e-5 * scale and row["why"] != "no agent is allowed":
                short = with_score(changed, row["agent"], j, row["score"] + 0.99 * row["by"])
                assert (solver(short).assignment != j).all()
        if row["why"] == "no agent is allowed":
            assert not (problem.allowed[0, :, j] & (problem.scores[0, :, j] > -np.inf)).any()
            allowed = problem.allowed.copy()
            allowed[0, row["agent"], j] = True
            changed = replace(changed, allowed=allowed)
        assert (solver(changed).assignment == j).any()
        tried += 1
    return tried


@pytest.mark.parametrize(
    ("regime", "method"), [("unit", "lp"), ("hits", "lp"), ("pair", "lp"), ("closed", "lp"), ("unit", "amax")]
)
def test_what_is_said_to_change_the_answer_does(regime, method):
    exact = regime in ("unit", "hits") or method == "amax"
    assert sum(verify(solved(regime, method, seed), exact) for seed in range(12)) > 20


@pytest.mark.parametrize("regime", ["unit", "pair"])
def test_what_is_said_to_change_the_answer_does_with_task_scores(regime):
    assert sum(verify(solved(regime, "quad", seed, effort="best"), False) for seed in range(8)) > 20


@pytest.mark.slow
@pytest.mark.parametrize(("regime", "method"), [("unit", "lp"), ("pair", "lp"), ("closed", "lp"), ("pair", "quad")])
def test_a_thousand_explanations(regime, method):
    for seed in range(100, 350):
        verify(solved(regime, method, seed), exact=regime == "unit")


def test_margins_are_those_of_enumeration():
    """The best of all plans in which an agent does something else, or a task is served; task scores included."""
    placed = 0
    for seed in range(6):
        found = solved("pair", "quad", seed, n=4, m=5, effort="best")
        problem = replace(found.problem, allowed=None)
        scores = np.where(found.problem.allowed, problem.scores, -1e6)
        best = enumerate_best(replace(problem, scores=scores), 0)
        assert found.objective == pytest.approx(best)
        why = found.explain()
        for row in why.agents:
            if row["task"] is not None:
                other = scores.copy()
                other[0, row["agent"], row["task"]] = -1e6
                assert row["by"] == pytest.approx(best - enumerate_best(replace(problem, scores=other), 0), abs=1e-9)
        for row in why.tasks:
            if row["why"] == "worth less":
                # Such a bonus is not refused: what is left of it without the bonus is the best plan with the pair.
                other = scores.copy()
                other[0, row["agent"], row["task"]] += 1e4
                served = enumerate_best(replace(problem, scores=other), 0) - 1e4
                assert row["by"] == pytest.approx(best - served, abs=1e-6)
                placed += 1
    assert placed > 3


def test_a_small_case_in_words():
    found = muster.assign(
        {"a": {"x": 3.0, "y": 2.0, "w": 0.25}, "b": {"x": 2.5, "y": 0.5}, "c": {"x": 1.0}},
        capacities={"x": 1.0, "y": 1.0, "w": 0.5, "z": 1.0},
        method="lp",
    )
    why = found.explain()
    assert [list(row.values())[:6] for row in why.agents] == [
        ["a", "y", 2.0, why.agents[0]["price"], "x", 1.0],
        ["b", "x", 2.5, why.agents[1]["price"], "y", 1.0],
        ["c", None, None, None, "x", 1.5],
    ]
    assert why.agents[2]["needs_score"] == pytest.approx(2.5, abs=1e-4)
    assert [(row["task"], row["why"]) for row in why.tasks] == [("w", "no capacity"), ("z", "no agent is allowed")]
    assert why.tasks[0]["needs_capacity"] == 1.0
    assert why.tasks[0]["needs_score"] == pytest.approx(2.0, abs=1e-4)
    sentences = str(why).splitlines()
    assert sentences[0].startswith("a takes y (score 2")
    assert sentences[0].endswith("; next best x, 1 less in all")
    assert sentences[2].startswith("c has no task: no capacity left; it would take x with a score of 2.5")
    assert sentences[3].startswith("no agent takes w: its capacity is too small; 1 would do if the score were higher")
    assert sentences[4] == "no agent takes z: no agent is allowed; c would if it were, with a score of 3e-06 or more"
    assert len(found.explain(agents=["b"], tasks=["z"]).agents) == 1
    assert why.agents.frame().shape == (3, 8)


def test_the_cost_of_changes_is_part_of_the_reasons():
    found = muster.assign([[3.0, 2.0], [2.5, 0.5]], method="lp", previous=[0, 1], switch_cost=0.6)
    assert found.assignment.tolist() == [0, 1]
    assert [row["by"] for row in found.explain().agents] == pytest.approx([0.2, 0.2])


def test_what_cannot_be_explained():
    with pytest.raises(InputError, match="explanations are for amax, lp and quad"):
        muster.assign([[-1.0]], method="routes").explain()
    with pytest.raises(InputError, match="no agent 7"):
        muster.assign([[1.0]]).explain(agents=[7])
    with pytest.raises(InputError, match=r"agents must be a list of names, got 'van'; write \['van'\]"):
        muster.assign({"van": {"x": 1.0}}).explain(agents="van")


def test_an_explanation_keeps_its_time_limit():
    rng = np.random.default_rng(0)
    n = 200
    uses = rng.uniform(0.5, 1.5, (n, n))
    found = muster.assign(rng.normal(size=(n, n)), contributions=uses, capacities=np.full(n, 3.0), effort="best")
    began = time.perf_counter()
    with pytest.raises(TimeLimitError, match="not ready in time"):
        found.explain(time_limit=0.2)
    assert time.perf_counter() - began < 2.0
    # What runs out of time here runs out of it nowhere else.
    assert found.explain(agents=[0], tasks=[]).agents
