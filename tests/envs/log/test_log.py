"""Logs: what is written is read again, what is wrong is named, and a policy is learned without a simulator."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import muster
from muster import InputError
from muster.envs.checks import check_env
from muster.envs.env import Observation
from muster.envs.log.file import FIELDS, read_log

FLEET = "fleet:4,city=small"


def write(path, *lines):
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def line(**changes):
    given = {"agent_features": [[0.2], [0.9]], "task_features": [[0.1], [0.8], [0.5]], "assignment": [0, 1]}
    return {name: value for name, value in (given | changes).items() if value != "left out"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Decisions of a baseline in search and rescue."""
    path = tmp_path_factory.mktemp("log") / "decisions.jsonl"
    muster.evaluate("lp-distance", "rescue:2x4", 40, seed=77, log=path)
    return path


def test_a_log_has_every_decision_and_its_baseline_repeats_it(recorded):
    lines = read_log(recorded)
    evaluated = muster.evaluate("lp-distance", "rescue:2x4", 40, seed=77)
    assert len(lines) == evaluated.records.decisions
    assert muster.evaluate("taken", f"log:{recorded}", "all").mean == 1.0
    # Victims that were picked up are left out, and those that wait are numbered anew.
    assert {taken.size[1] for taken in lines} == {1, 2, 3, 4}


def test_what_is_written_leads_to_the_same_decisions(recorded):
    """Of a learned policy: the situations are complete, but for the last decimals."""
    log = recorded.parent / "learned.jsonl.gz"
    muster.evaluate("rescue-2x4-lp-dm", "rescue:2x4", 20, log=log)
    policy = muster.load("rescue-2x4-lp-dm")
    same = [np.array_equal(policy.act(taken.observation), taken.assignment) for taken in read_log(log)]
    assert np.mean(same) > 0.99


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{", "line 2 of log.jsonl is not JSON"),
        ("[1]", "line 2 of log.jsonl must be an object"),
        (line(assignment="left out"), "line 2 of log.jsonl lacks assignment"),
        (line(assigment=[0, 1]), "did you mean 'assignment'"),
        (line(assignment=[0]), "assignment of line 2 .* for each of 2 agents"),
        (line(assignment=[0.5, 1]), "assignment of line 2 .* for each of 2 agents"),
        (line(assignment=[0, 3]), "line 2 .* sends agent 1 to task 3; there are tasks 0 to 2"),
        (line(assignment=[0, -2]), "line 2 .* sends agent 1 to task -2"),
        (line(agent_features=[[1.0], [2.0, 3.0]]), "agent_features of line 2 .* rows of one length"),
        (line(agent_features=[["a"], ["b"]]), "agent_features of line 2 .* must be numbers"),
        (line(agent_features=[[1, 2], [3, 4]]), r"agent_features of line 2 .* must have shape \[2, 1\], got \[2, 2\]"),
        (line(agent_features=[1.0, 2.0]), "agent_features of line 2 .* rows of numbers"),
        (line(capacities=[1, 1]), r"capacities of line 2 .* must have shape \[3\]"),
        (line(capacities=[1, -1, 1]), "capacities of line 2 .* must not be negative"),
        (line(task_alive=[True, False, True]), "line 2 .* task 1, which `task_alive` says is not there"),
        (line(agent_alive=[True, False]), "line 2 .* agent 1 a task, which `agent_alive`"),
        (line(allowed=[[True] * 3] * 2), "allowed of line 2 .* must be in every observation or in none"),
    ],
)
def test_a_line_that_is_no_good_is_named(entry, message, tmp_path):
    path = write(tmp_path / "log.jsonl", line(), entry)
    with pytest.raises(InputError, match=message):
        read_log(path)


def test_a_missing_or_empty_file_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot open the log"):
        muster.make(f"log:{tmp_path / 'none.jsonl'}")
    with pytest.raises(InputError, match="has no decisions"):
        muster.make(f"log:{write(tmp_path / 'empty.jsonl', '')}")
    with pytest.raises(InputError, match="cannot read the log"):
        muster.make(f"log:{write(tmp_path / 'plain.gz', line())}")


def test_null_is_no_task_and_lines_without_tasks_are_passed_over(tmp_path):
    path = write(tmp_path / "log.jsonl", line(assignment=[None, 2]), line(task_features=[], assignment=[None, None]))
    (only,) = read_log(path)
    assert only.assignment.tolist() == [-1, 2]


def test_idling_is_a_choice_where_somebody_idled_beside_a_task_with_capacity(tmp_path):
    full = write(tmp_path / "full.jsonl", line(task_features=[[1.0]], assignment=[None, 0]))
    assert not muster.make(f"log:{full}").idling
    free = write(tmp_path / "free.jsonl", line(assignment=[None, 0]))
    assert muster.make(f"log:{free}").idling


def test_a_log_passes_the_environment_checks(recorded):
    assert [found for found in check_env(f"log:{recorded}") if found.status == "failed"] == []


def test_a_policy_is_learned_without_a_simulator(recorded):
    settings = {"inference": "lp", "learner": "imitation", "from_log": str(recorded), "num_envs": 32}
    policy = muster.train(f"log:{recorded}", steps=10_000, **settings)
    assert policy.header["env"] == f"log:{recorded},set=training"
    found = muster.evaluate(policy, f"log:{recorded},set=validation", "all")
    assert found.metric == "agreement"
    assert found.mean > 0.85
    view = read_log(recorded)[0].observation
    assert policy.act(Observation(**{name: getattr(view, name) for name in ("agent_features", "task_features",
        "pair_features", "task_pair_features")})).shape == (2,)  # fmt: skip


def test_a_log_of_an_environment_teaches_a_policy_for_it(recorded, tmp_path):
    settings = {"inference": "lp", "learner": "imitation", "from_log": str(recorded), "num_envs": 32}
    policy = muster.train("rescue:2x4", steps=10_000, out=tmp_path / "run", **settings)
    assert policy.header["env"] == "rescue:2x4"
    assert policy.inference.assign_all
    found = muster.evaluate(policy, "rescue:2x4", 200)
    assert found.failed == 0
    assert found.mean < 13.5


def test_a_log_with_capacities_and_what_is_allowed_comes_back_whole(tmp_path):
    path = tmp_path / "days.jsonl"
    muster.evaluate("match", FLEET, 2, log=path)
    lines = read_log(path)
    assert all(np.asarray(taken.observation.allowed).shape == taken.size for taken in lines)
    assert muster.evaluate("taken", f"log:{path}", "all").mean == 1.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner": "es", "from_log": "x"}, "a log is for --learner imitation"),
        ({"learner": "imitation", "from_log": "x", "teacher": "topline"}, "leave out --teacher, or --from-log"),
        ({"from_log": "a,b"}, "no comma"),
        ({"from_log": "nowhere.jsonl"}, "cannot open the log"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        muster.train("rescue:2x4", steps=1, **settings)


def test_the_documentation_lists_every_field_of_a_line():
    table = (Path(__file__).parents[3] / "docs/how-to/logs.md").read_text().partition("| field | |")[2]
    assert {name for name in (*FIELDS, "assignment") if f"`{name}`" not in table.partition("\n\n")[0]} == set()
