"""What if: a revised answer is the answer to the revised problem, and says who does something else."""

import numpy as np
import pandas as pd
import pytest

import muster
from muster import InputError

SCORES = {
    "van-1": {"north": 3.0, "south": 2.0, "west": 1.0},
    "van-2": {"north": 2.5, "south": 0.5, "west": 1.5},
    "van-3": {"north": 2.0, "south": 1.9, "west": 0.1},
}
FIRST = muster.assign(SCORES, method="lp")


def test_an_agent_off():
    found = FIRST.again(without_agents=["van-3"])
    del_one = {name: row for name, row in SCORES.items() if name != "van-3"}
    assert found.objective == muster.assign(del_one, method="lp").objective
    assert found.agents == ("van-1", "van-2")
    rows = {row["agent"]: row for row in found.difference}
    assert rows["van-3"] == {
        "agent": "van-3",
        "from": FIRST.plan["van-3"],
        "to": None,
        "score_from": SCORES["van-3"][FIRST.plan["van-3"]],
        "score_to": None,
        "note": "gone",
    }
    assert str(found.difference).startswith("agent")


def test_a_task_off_and_one_added():
    found = FIRST.again(without_tasks=["north"], with_tasks={"east": {"van-1": 9.0, "van-3": 0.1}})
    scores = {name: {"south": row["south"], "west": row["west"]} for name, row in SCORES.items()}
    scores["van-1"]["east"], scores["van-3"]["east"] = 9.0, 0.1
    assert found.objective == muster.assign(scores, method="lp").objective
    assert found.plan["van-1"] == "east"
    assert found.tasks == ("south", "west", "east")


def test_an_agent_added_and_capacities_changed():
    found = FIRST.again(with_agents={"van-4": [1.0, 0.2, 0.3]}, capacities={"north": 4})
    table = pd.DataFrame({**SCORES, "van-4": {"north": 1.0, "south": 0.2, "west": 0.3}}).T
    assert (
        found.objective == muster.assign(table, capacities={"north": 4, "south": 1, "west": 1}, method="lp").objective
    )
    assert [row["note"] for row in found.difference if row["agent"] == "van-4"] == ["new"]


def test_scores_changed_and_pairs_forbidden():
    found = FIRST.again(scores={("van-1", "north"): None, ("van-2", "west"): 8.0})
    assert found.plan["van-2"] == "west"
    assert found.plan["van-1"] == "south"


def test_the_cost_of_changes_is_kept_or_given():
    stays = muster.assign(SCORES, method="lp", previous=FIRST, switch_cost=0.7)
    assert stays.again(scores={("van-1", "south"): 3.2}).changes == 0
    dear = FIRST.again(scores={("van-1", "west"): 9.0}, switch_cost={"van-1": 99.0, "van-2": 0.0, "van-3": 0.0})
    assert dear.plan["van-1"] == FIRST.plan["van-1"]
    assert FIRST.again(scores={("van-1", "west"): 9.0}).plan["van-1"] == "west"


def test_nothing_changes_where_nothing_is_changed():
    for method in ("amax", "lp", "quad"):
        first = muster.assign(np.random.default_rng(1).normal(size=(8, 8)), method=method)
        again = first.again()
        assert (again.objective, list(again.difference), again.changes) == (first.objective, [], 0)


def test_numbers_are_names_where_there_are_no_others():
    first = muster.assign([[3.0, 2.0], [2.5, 0.5], [1.0, 1.0]], method="lp")
    found = first.again(without_agents=[1])
    assert found.agents == (0, 2)
    assert found.plan == {0: 0, 2: 1}


def test_contributions_and_task_scores_of_what_is_new():
    first = muster.assign(SCORES, contributions=[1.0, 2.0, 1.0], capacities=[2.0, 2.0, 2.0])
    found = first.again(
        with_agents={"van-4": {"north": 5.0}},
        contributions={"van-4": 2.0},
        task_scores={("north", "south"): -50.0},
    )
    assert found.problem.contributions[0, 3].tolist() == [2.0, 2.0, 2.0]
    assert found.problem.task_scores[0, 0, 1] == -50.0
    assert not {"north", "south"} <= set(found.plan.values())
    by_pair = first.again(scores={("van-1", "west"): 3.0}, contributions={("van-1", "west"): 3.0})
    assert by_pair.plan["van-1"] != "west"


def test_settings_can_be_others():
    assert FIRST.again(method="amax").assignment.tolist() == [0, 0, 0]


def test_routes_go_on():
    tasks = np.array([[0.0, 1.0], [0.0, 2.0], [5.0, 0.0], [6.0, 0.0]])
    follow = -np.linalg.norm(tasks[:, None] - tasks, axis=-1)
    first = muster.assign(-np.linalg.norm(tasks, axis=-1)[None].repeat(2, 0), follow, method="routes")
    found = first.again(without_tasks=[1])
    assert sorted(stop for route in found.routes for stop in route) == [0, 1, 2]
    assert found.objective >= first.objective


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"without_agents": ["van-9"]}, "no agent 'van-9'; did you mean 'van-3'?"),
        ({"without_agents": "van-3"}, "without_agents must be a list of names, got 'van-3'; write ['van-3']"),
        ({"without_tasks": ["nrth"]}, "no task 'nrth'; did you mean 'north'?"),
        ({"with_tasks": {"east": [1.0]}}, "with_tasks['east'] must be scores by name or 3 scores, got 1 entries"),
        ({"with_tasks": {"north": {}}}, "task 'north' is there twice"),
        ({"scores": [[1.0]]}, "scores to change must be {(agent, task): score}"),
        ({"previous": {"van-1": "north"}}, "no change or setting for again() 'previous'"),
        ({"without_agent": ["van-3"]}, "did you mean 'without_agents'?"),
        ({"capacities": [1.0]}, "capacities to change must be given by name, got list"),
        ({"capacities": {"north": -1.0}}, "capacities must not be negative"),
    ],
)
def test_bad_changes_get_a_sentence(changes, complaint):
    with pytest.raises(InputError) as refused:
        FIRST.again(**changes)
    assert complaint in str(refused.value)


def test_what_is_new_must_be_described():
    first = muster.assign(SCORES, contributions=[[1.0, 2.0, 3.0]] * 3, capacities=[2.0, 2.0, 2.0], method="lp")
    with pytest.raises(InputError, match="the new task 'east' needs a capacity"):
        first.again(with_tasks={"east": {"van-1": 1.0}}, contributions={"van-1": 1.0, "van-2": 1.0, "van-3": 1.0})
    with pytest.raises(InputError, match="agent 'van-1' needs a contribution to what is new"):
        first.again(with_tasks={"east": {"van-1": 1.0}}, capacities={"east": 1.0})
    with pytest.raises(InputError, match="nothing to differ from"):
        _ = first.difference
