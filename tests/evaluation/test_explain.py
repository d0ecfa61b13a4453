"""Why an assignment is what it is: what another choice costs, worked out by trying all."""

from __future__ import annotations

import numpy as np
import pytest

import muster
from muster.assign.settings import InferenceSettings
from muster.evaluation.explain import Scored, explain


def enumerated(scores: np.ndarray, fixed: dict[int, int]) -> float:
    """The best value of an assignment, one agent a task or none, with some fixed; by trying all."""

    def best(agent: int, taken: frozenset[int]) -> float:
        if agent == len(scores):
            return 0.0
        choices = [fixed[agent]] if agent in fixed else [-1, *range(scores.shape[1])]
        return (
            max(
                (0.0 if task < 0 else scores[agent, task]) + best(agent + 1, taken | ({task} - {-1}))
                for task in choices
                if task not in taken
            )
            if any(task not in taken for task in choices)
            else -np.inf
        )

    return best(0, frozenset())


@pytest.mark.parametrize("seed", range(6))
def test_what_another_choice_costs_is_the_difference_of_optima(seed: int):
    scores = np.random.default_rng(seed).normal(size=(4, 3))
    scored = Scored(muster.Problem(scores[None]), InferenceSettings("lp"), "a test")
    for agent in range(4):
        found = explain(scored, None, agent)
        assert found["objective"] == pytest.approx(enumerated(scores, {}))
        for other in found["alternatives"]:
            task = -1 if other["task"] is None else other["task"]
            cost = enumerated(scores, {}) - enumerated(scores, {agent: task})
            assert other["loss"] == pytest.approx(cost, abs=1e-9)
        tasks = {other["task"] for other in found["alternatives"]} | {found["assignment"][agent]}
        assert tasks == {0, 1, 2, None}


@pytest.mark.parametrize("method", ["amax", "lp", "quad"])
def test_what_is_gone_is_no_alternative(method: str):
    rng = np.random.default_rng(0)
    problem = muster.Problem(
        rng.normal(size=(1, 3, 4)),
        task_scores=rng.normal(size=(1, 4, 4)),
        agent_alive=np.array([[True, False, True]]),
        task_alive=np.array([[True, False, True, True]]),
    )
    for agent in (0, 2):
        found = explain(Scored(problem, InferenceSettings(method), "a test"), None, agent)
        tasks = {other["task"] for other in found["alternatives"]} | {found["assignment"][agent]}
        assert tasks <= {0, 2, 3, None}
        assert all(move[0] != 1 for other in found["alternatives"] for move in other["moves"])
    gone = explain(Scored(problem, InferenceSettings(method), "a test"), None, 1)
    assert gone["alternatives"] == []


def test_alternatives_exist_where_agents_outnumber_tasks():
    """Being allowed nothing else is not enough there: someone has to be left out, and it must not be the one."""
    scores = np.array([[5.0], [4.0], [3.0]])
    scored = Scored(muster.Problem(scores[None]), InferenceSettings("lp", assign_all=True), "a test")
    assert explain(scored, None, 2)["alternatives"] == [{"task": 0, "score": 3.0, "loss": 2.0, "moves": [[0, 0, None]]}]
