"""How often agents change from one living task to another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import muster
from muster.evaluation.episodes import LastDecision, changed_share


def seen(n_agents=4, n_tasks=3, **changes):
    env = muster.make(f"rescue:{n_agents}x{n_tasks}")
    env.reset(np.arange(1), np.zeros(1, np.uint64))
    return replace(env.observe(), **{name: np.array([value]) for name, value in changes.items()})


def share(old, new, before=None, now=None):
    before, now = before or seen(), now or before or seen()
    return float(
        changed_share(LastDecision(np.array([old]), before.agent_ids, before.task_ids), now, np.array([new]))[0]
    )


def test_only_another_task_while_the_old_one_is_alive_is_a_change():
    assert share([0, 1, 2, -1], [0, 1, 2, -1]) == 0
    assert share([0, 1, 2, -1], [1, 0, 2, 0]) == 2 / 4, "a first task is no change"
    assert share([0, 1, 2, 2], [-1, 1, 2, 2]) == 0, "nor is losing one without getting another"


def test_who_leaves_a_task_that_is_gone_has_not_changed():
    now = seen(task_alive=[False, True, True])
    assert share([0, 0, 1, 1], [1, 2, 2, 1], now=now) == 1 / 4


def test_the_share_is_of_the_living_agents():
    now = seen(agent_alive=[True, True, False, False])
    assert share([0, 1, 2, 2], [1, 1, 0, 0], now=now) == 1 / 2


def test_ids_tell_a_slot_that_is_used_again():
    before, now = seen(task_ids=[7, 8, 9]), seen(task_ids=[17, 8, 9])
    assert share([0, 1, 2, -1], [1, 2, 2, 0], before, now) == 1 / 4
    before, now = seen(agent_ids=[1, 2, 3, 4]), seen(agent_ids=[1, 2, 3, 5])
    assert share([0, 1, 2, 2], [1, 1, 2, 1], before, now) == 1 / 4


class Fixed:
    """Holds to what it is told, or takes turns between two tasks."""

    name = "fixed"

    def __init__(self, turns: int) -> None:
        self.turns, self.count = turns, 0

    def reset(self, slots, seeds) -> None:
        pass

    def act(self, observation):
        self.count += 1
        return np.full(observation.agent_alive.shape, self.count % self.turns)


@pytest.mark.parametrize(("turns", "expected"), [(1, 0.0), (2, 1.0)])
def test_an_evaluation_reports_it_per_decision(turns, expected):
    """Nothing is picked up in three steps of a large environment, so every task stays alive."""
    found = muster.evaluate(Fixed(turns), muster.make("rescue:2x3,grid=64,max_steps=3", 4), episodes=9)
    assert found.changes_per_decision == pytest.approx(expected)
    assert found.as_dict()["changes_per_decision"] == found.changes_per_decision


def test_after_one_decision_there_is_nothing_to_report():
    found = muster.evaluate(Fixed(2), muster.make("rescue:2x3,max_steps=1", 4), episodes=9)
    assert found.changes_per_decision is None


def test_tasks_and_agents_that_moved_to_another_place_are_the_same():
    """As where an environment lists what there is, and whatever comes after one that is gone moves up."""
    before, now = seen(task_ids=[5, 6, 7]), seen(task_ids=[6, 7, 8])
    assert share([1, 2, 0, -1], [0, 1, 2, 2], before, now) == 0, "6 and 7 are kept, and 5 is gone"
    assert share([1, 2, 0, -1], [1, 2, 0, 0], before, now) == 2 / 4, "6 and 7 are left, though the numbers are the same"
    before = seen(agent_ids=[0, 1, 2, 3], task_ids=[5, 6, 7])
    now = seen(agent_ids=[1, 2, 3, 9], task_ids=[5, 6, 7])
    assert share([0, 1, 2, 2], [1, 2, 0, 0], before, now) == 1 / 4, "agent 3 alone, and 9 has just come"
