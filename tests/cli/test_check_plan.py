from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.cli.main import main

SCORES = "agent,task,score\nvan-1,north,3\nvan-1,south,2\nvan-2,north,2.5\nvan-2,south,0.5\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scores.csv").write_text(SCORES, encoding="utf-8")
    (tmp_path / "cap.csv").write_text("task,capacity\nnorth,1\nsouth,1\n", encoding="utf-8")
    return tmp_path


def test_what_solve_writes_is_feasible_and_best(folder, capsys):
    main(["solve", "scores.csv", "--capacities", "cap.csv", "--method", "lp", "--out", "plan.csv"])
    capsys.readouterr()
    main(["check-plan", "scores.csv", "--capacities", "cap.csv", "--plan", "plan.csv", "--method", "lp", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "feasible": True,
        "broken": [],
        "value": 4.5,
        "bound": 4.5,
        "optimal": True,
        "better": None,
        "changes": [],
    }


def test_a_broken_rule_leaves_with_status_1(folder, capsys):
    (folder / "plan.csv").write_text("agent,task\nvan-1,north\nvan-2,north\n", encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        main(["check-plan", "scores.csv", "--plan", "plan.csv", "--method", "lp"])
    assert left.value.code == 1
    text = capsys.readouterr().out
    assert "task 'north' has capacity 1 but gets 2 from 'van-1', 'van-2'" in text
    assert "van-1  north  south  3" in text


def test_a_plan_inside_the_problem(folder, capsys):
    problem = {"scores": [[3.0, 2.0], [2.5, None]], "assignment": [0, None]}
    (folder / "problem.json").write_text(json.dumps(problem), encoding="utf-8")
    main(["check-plan", "problem.json", "--method", "lp", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["better"] == {"assignment": [1, 0], "objective": 4.5, "status": "optimal"}
    assert found["changes"][1] == {"agent": 1, "from": None, "to": 0, "score_from": None, "score_to": 2.5}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["scores.csv"], "give the plan once"),
        (["scores.csv", "--plan", "nowhere.csv"], "cannot read nowhere.csv"),
        (
            ["scores.csv", "--plan", "cap.csv"],
            "cap.csv has no column 'agent', got task, capacity, more; expected a table",
        ),
    ],
)
def test_bad_questions_get_one_sentence_and_status_2(folder, capsys, arguments, complaint):
    (folder / "cap.csv").write_text("task,capacity,more\nnorth,1,2\n", encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        main(["check-plan", *arguments])
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert complaint in captured.err
    assert captured.err.count("\n") == 1


def test_a_plan_is_worth_its_loads(tmp_path, capsys):
    problem = {
        "scores": [[1.0], [1.0]],
        "task_scores": [[-0.5]],
        "contributions": [[0.5], [1.0]],
        "capacities": [9],
        "task_scores_on": "load",
        "assignment": [0, 0],
    }
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(problem), encoding="utf-8")
    main(["check-plan", str(path), "--json"])
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(2 - 0.5 * 1.5**2)


def test_columns_of_other_names_and_costs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "minutes.csv").write_text("van,job,minutes\na,x,4\na,y,9\nb,x,3\nb,y,7\n", encoding="utf-8")
    (tmp_path / "plan.csv").write_text("agent,task\na,x\nb,y\n", encoding="utf-8")
    columns = ["--columns", "agent=van,task=job,score=minutes", "--minimise", "--assign-all", "--method", "lp"]
    main(["check-plan", "minutes.csv", *columns, "--plan", "plan.csv"])
    assert capsys.readouterr().out == "feasible\ncost 11; no plan costs less than 11\nnothing costs less than it\n"
    main(["solve", "minutes.csv", *columns, "--explain"])
    printed = capsys.readouterr().out
    assert "objective 11, and nothing costs less" in printed
    assert "a takes x (cost 4, " in printed
    assert printed.count("1 more in all") == 2


def test_one_minimum_for_all_tasks_is_checked_as_it_is_solved(folder, capsys):
    flags = ["--method", "lp", "--minimise", "--minimums", "1"]
    main(["solve", "scores.csv", *flags, "--out", "plan.csv"])
    main(["check-plan", "scores.csv", *flags, "--plan", "plan.csv"])
    assert "nothing costs less than it" in capsys.readouterr().out
    (folder / "plan.csv").write_text("agent,task\nvan-1,north\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["check-plan", "scores.csv", *flags, "--plan", "plan.csv"])
    assert "task 'south' needs 1" in capsys.readouterr().out
