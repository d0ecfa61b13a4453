"""Data as they come: every form of the same table gives the same answer, and a bad one gets a sentence."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import muster
from muster import InputError

PAIRS = {("a", "x"): 3.0, ("a", "y"): 2.0, ("b", "x"): 2.5}
LONG = {"agent": ["a", "a", "b"], "task": ["x", "y", "x"], "score": [3.0, 2.0, 2.5]}
NAN = float("nan")
FORMS = {
    "pairs": PAIRS,
    "nested": {"a": {"x": 3.0, "y": 2.0}, "b": {"x": 2.5}},
    "nested with null": {"a": {"x": 3.0, "y": 2.0}, "b": {"x": 2.5, "y": None}},
    "rows": {"a": [3.0, 2.0], "b": [2.5, -np.inf]},
    "records": [{"agent": a, "task": t, "score": s} for (a, t), s in PAIRS.items()],
    "long pandas": pd.DataFrame(LONG),
    "long polars": pl.DataFrame(LONG),
    "wide pandas": pd.DataFrame({"x": [3.0, 2.5], "y": [2.0, NAN]}, index=["a", "b"]),
    "wide pandas, first column": pd.DataFrame({"who": ["a", "b"], "x": [3.0, 2.5], "y": [2.0, NAN]}),
    "wide polars": pl.DataFrame({"who": ["a", "b"], "x": [3.0, 2.5], "y": [2.0, None]}),
    "sparse": sparse.csr_array(([3.0, 2.0, 2.5], ([0, 0, 1], [0, 1, 0])), shape=(2, 2)),
    "array": np.array([[3.0, 2.0], [2.5, -np.inf]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_answer(form):
    named = {} if "a" in str(FORMS[form]) and form not in ("sparse", "array") else {"agents": ["a", "b"]}
    if form in ("rows", "sparse", "array"):
        named["tasks"] = ["x", "y"]
    found = muster.assign(FORMS[form], method="lp", **named)
    assert found.plan == {"a": "y", "b": "x"}
    assert found.objective == 4.5
    assert found.assignment.tolist() == [1, 0]


CAPACITIES = {"x": 1.0, "y": 3.0}


@pytest.mark.parametrize(
    "capacities",
    [
        CAPACITIES,
        pd.Series(CAPACITIES),
        pd.DataFrame({"task": ["y", "x"], "capacity": [3.0, 1.0]}),
        pl.DataFrame({"task": ["y", "x"], "capacity": [3.0, 1.0]}),
        [1.0, 3.0],
    ],
)
@pytest.mark.parametrize("contributions", [{"a": 2.0, "b": 1.0}, pd.Series({"b": 1.0, "a": 2.0}), [2.0, 1.0]])
def test_capacities_and_contributions_by_name(capacities, contributions):
    found = muster.assign(FORMS["nested"], capacities=capacities, contributions=contributions, method="lp")
    assert found.plan == {"a": "y", "b": "x"}
    assert found.loads.tolist() == [1.0, 2.0]


def test_contributions_in_the_table_and_by_pair():
    table = pd.DataFrame({**LONG, "contribution": [1.0, 5.0, 2.0]})
    found = muster.assign(table, capacities={"x": 2.0, "y": 5.0}, method="lp")
    assert (found.plan, found.loads.tolist()) == ({"a": "y", "b": "x"}, [2.0, 5.0])
    same = muster.assign(
        FORMS["pairs"],
        contributions={("a", "x"): 1.0, ("a", "y"): 5.0, ("b", "x"): 2.0},
        capacities={"x": 2.0, "y": 5.0},
        method="lp",
    )
    assert (same.plan, same.loads.tolist()) == (found.plan, found.loads.tolist())


@pytest.mark.parametrize(
    "task_scores",
    [
        {("x", "y"): -9.0},
        {"x": {"y": -9.0}},
        pd.DataFrame({"task": ["x"], "other": ["y"], "score": [-9.0]}),
        pd.DataFrame({"x": [0.0, 0.0], "y": [-9.0, 0.0]}, index=["x", "y"]),
        pl.DataFrame({"task": ["x", "y"], "x": [0.0, 0.0], "y": [-9.0, 0.0]}),
    ],
)
def test_task_scores_by_name(task_scores):
    found = muster.assign(FORMS["wide pandas"], task_scores=task_scores)
    assert found.plan == {"a": "x", "b": None}


def test_tasks_that_only_capacities_mention_are_there():
    found = muster.assign(PAIRS, capacities={"z": 4.0, "x": 1.0, "y": 1.0}, method="lp")
    assert found.tasks == ("x", "y", "z")
    assert found.loads.tolist() == [1.0, 1.0, 0.0]


def test_names_say_the_order():
    found = muster.assign(FORMS["wide pandas"], agents=["b", "c", "a"], tasks=["y", "x"], method="lp")
    assert found.plan == {"b": "x", "c": None, "a": "y"}
    assert found.assignment.tolist() == [1, -1, 0]
    pairs = muster.assign(PAIRS, agents=["b", "c", "a"], tasks=["y", "x"], method="lp")
    assert pairs.assignment.tolist() == [1, -1, 0]


def test_numbers_are_names_too():
    found = muster.assign(pd.DataFrame({"agent": [7, 7, 9], "task": [40, 41, 40], "score": [3.0, 2.0, 2.5]}))
    assert found.plan == {7: 41, 9: 40}


def test_a_stored_zero_is_an_allowed_pair():
    stored = sparse.coo_array(([0.0, -1.0], ([0, 1], [0, 1])), shape=(2, 3))
    found = muster.assign(stored, method="lp", assign_all=True)
    assert found.assignment.tolist() == [0, 1]


def test_allowed_and_routes_by_name():
    found = muster.assign(FORMS["nested"], allowed={("a", "x"): True, ("b", "x"): False}, method="lp")
    assert found.plan == {"a": "x", "b": None}
    planned = muster.assign(
        {"a": {"x": -1.0, "y": -2.0}}, {("x", "y"): -1.0, ("y", "x"): -1.0}, method="routes", routes={"a": ["x", "y"]}
    )
    assert planned.routes == [[0, 1]]


def test_no_library_of_tables_is_loaded_for_plain_data():
    code = "import sys, muster; muster.assign({'a': {'x': 1.0}}, method='amax'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pandas", "polars"} & set(done.stdout.split())


def test_the_table_of_an_answer():
    found = muster.assign(FORMS["nested"], capacities={"x": 1.0, "y": 0.0}, method="lp")
    assert list(found.table()) == [
        {"agent": "a", "task": "x", "score": 3.0, "contribution": 1.0, "reason": ""},
        {"agent": "b", "task": None, "score": None, "contribution": None, "reason": "no capacity left"},
    ]
    assert found.table().frame()["task"].tolist()[0] == "x"
    assert str(found.table()).splitlines()[1].split() == ["a", "x", "3", "1"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"scores": {"a": 1.0}}, "scores as a dictionary must be {agent: {task: score}}"),
        (
            {"scores": FORMS["wide pandas"], "capacities": {"x": 1, "yy": 1}},
            "capacities: no task 'yy'; did you mean 'y'?",
        ),
        ({"scores": PAIRS, "contributions": {"a": 1.0, "c": 2.0}}, "contributions: no agent 'c'; there is a, b"),
        ({"scores": pd.DataFrame({**LONG, "score": [1.0, NAN, 2.0]})}, "the score of ('a', 'y') is missing"),
        (
            {"scores": pd.DataFrame({"agent": ["a", "a"], "task": ["x", "x"], "score": [1.0, 2.0]})},
            "the pair ('a', 'x') is there twice",
        ),
        ({"scores": [{"agent": "a", "task": "x"}]}, "scores as records must have agent, task and score"),
        ({"scores": [{"agent": "a", "task": "x", "score": 1}, 3]}, "got 3 at 1"),
        ({"scores": [[1.0]], "agents": ["a", "b"]}, "agents must name each of the 1 in the scores, got 2 names"),
        ({"scores": [[1.0], [2.0]], "agents": ["a", "a"]}, "agent 'a' is there twice; names must differ"),
        ({"scores": [[1.0]], "agents": [0.5]}, "names of agents must be text or whole numbers, got 0.5"),
        ({"scores": PAIRS, "agents": ["a"]}, "the scores have agent 'b', which agents does not name"),
        ({"scores": {"a": {"x": "much"}}}, "score must be numbers, got 'much'"),
        ({"scores": FORMS["wide pandas"].astype(object).replace(2.0, "b")}, "got 'b' at ('a', 'y')"),
        ({"scores": PAIRS, "switch_cost": {"z": 1.0}, "previous": {"a": "x"}}, "switch_cost: no agent 'z'"),
        ({"scores": [[1.0]], "capacities": {"x": 1.0}}, "capacities: no task 'x'"),
        ({"scores": pd.DataFrame({"agent": [1], "task": [7], "cost": [3.0]})}, "got agent, task, cost; rename them"),
        ({"scores": pd.DataFrame({"van": [1], "job": [7], "score": [3.0]})}, "got van, job, score; rename them"),
        ({"scores": pd.DataFrame({"van": ["a"], "job": ["x"], "cost": [3.0]})}, "got van, job, cost; rename them"),
        ({"scores": pd.DataFrame({"Agent": [1], "Task": [7], "Score": [3.0]})}, "got Agent, Task, Score; rename them"),
        (
            {"scores": {"a": {"north": 1}}, "capacities": {"norht": 1}},
            "no score has task 'norht'; is 'north' meant?",
        ),
        (
            {"scores": {"a": {"job-7": 1}}, "minimums": {"Job7": 1}},
            "no score has task 'Job7'; is 'job-7' meant?",
        ),
        (
            {"scores": PAIRS, "capacities": pd.DataFrame({"task": ["x", "x"], "capacity": [1.0, 2.0]})},
            "capacities has task 'x' twice",
        ),
        (
            {"scores": PAIRS, "previous": pd.DataFrame({"agent": ["a", "a"], "task": ["x", "y"]})},
            "previous has agent 'a' twice",
        ),
        (
            {"scores": PAIRS, "allowed": pd.DataFrame({"a": ["a", "a"], "t": ["x", "x"], "ok": [1, 0]})},
            "allowed has the pair ('a', 'x') twice",
        ),
    ],
)
def test_bad_tables_get_a_sentence(arguments, complaint):
    with pytest.raises(InputError) as refused:
        muster.assign(**arguments, method="lp")
    assert complaint in str(refused.value)
