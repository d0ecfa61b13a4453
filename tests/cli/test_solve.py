from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from muster.cli.main import main

GOOD = {"scores": [[3.0, 2.0], [2.5, 0.5]]}


@pytest.fixture
def write(tmp_path: Path):
    def to_file(content: object) -> str:
        path = tmp_path / "problem.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return to_file


def solved(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    main(["solve", *arguments, "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("method", ["amax", "lp", "quad"])
def test_json_has_the_fields_of_the_contract(capsys, write, method):
    found = solved(capsys, write(GOOD), "--method", method)
    contract = {
        "assignment",
        "objective",
        "relaxed_objective",
        "bound",
        "integer_gap",
        "status",
        "loads",
        "prices",
        "changes",
        "seconds",
    }
    assert contract <= set(found)
    assert found["assignment"] == ([0, 0] if method == "amax" else [1, 0])
    assert found["objective"] == (5.5 if method == "amax" else 4.5)
    assert len(found["loads"]) == len(found["prices"]) == 2


def test_unassigned_agents_are_null_and_have_a_reason(capsys, write):
    found = solved(capsys, write({"scores": [[1.0], [5.0], [-1.0]]}), "--method", "lp")
    assert found["assignment"] == [None, 0, None]
    assert found["unassigned"] == {"0": "no capacity left", "2": "negative scores"}


def test_standard_input_and_every_field(capsys, monkeypatch):
    problem = {
        **GOOD,
        "task_scores": [[0.0, -9.0], [0.0, 0.0]],
        "contributions": [[1, 1], [1, 1]],
        "capacities": [1, 1],
    }
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(problem)))
    found = solved(capsys, "-")
    assert sorted(found["assignment"], key=str) == [0, None]


def test_null_forbids_a_pair_and_absent_blocks(capsys, write):
    found = solved(capsys, write({"scores": [[None, 1.0], [None, 2.0]], "capacities": None}), "--method", "lp")
    assert found["assignment"] == [None, 1]


@pytest.mark.parametrize("scores", [[], [[]], [[], []]])
def test_nobody_and_nothing_is_an_answer(capsys, write, scores):
    assert solved(capsys, write({"scores": scores}))["assignment"] == [None] * len(scores)


def test_task_scores_act_on_loads_by_flag_or_field(capsys, write):
    problem = {
        "scores": [[1.0, 0.9], [1.0, 0.9]],
        "task_scores": [[-0.5, 0.0], [0.0, -0.5]],
        "contributions": [[0.1, 1.0], [0.2, 1.0]],
        "capacities": [9, 9],
    }
    assert solved(capsys, write(problem))["assignment"] in ([0, 1], [1, 0])
    by_flag = solved(capsys, write(problem), "--task-scores-on", "load")
    assert by_flag["assignment"] == [0, 0]
    assert by_flag["objective"] == pytest.approx(2 - 0.5 * 0.3**2)
    by_field = solved(capsys, write(problem | {"task_scores_on": "load"}))
    assert by_field["objective"] == by_flag["objective"]
    for content, flags, complaint in (
        (
            problem | {"task_scores_on": "load"},
            ["--task-scores-on", "count"],
            "task_scores_on came twice: 'load' in the problem's file",
        ),
        (problem | {"task_scores_on": "lots"}, [], "no task_scores_on 'lots'"),
        (problem | {"task_scores_on": []}, [], "task_scores_on must be"),
        (problem | {"task_scores_on": "load"}, ["--method", "lp"], "task_scores_on 'load' is for method 'quad'"),
    ):
        with pytest.raises(SystemExit) as left:
            main(["solve", write(content), *flags])
        assert left.value.code == 2
        assert complaint in capsys.readouterr().err


def test_tables_for_people(capsys, write):
    main(["solve", write({"scores": [[3.0], [2.5]]}), "--method", "lp"])
    text = capsys.readouterr().out
    assert "assignment" in text
    assert "no capacity left" in text
    assert "lp: optimal, objective 3" in text


def test_efforts_and_time_limit_are_passed_on(capsys, write):
    scores = [[float((7 * i * j + i) % 11) for j in range(12)] for i in range(12)]
    problem = {"scores": scores, "task_scores": [[((j * k) % 5) / 5 - 0.4 for j in range(12)] for k in range(12)]}
    assert solved(capsys, write(problem), "--effort", "best", "--time-limit", "0.1")["status"] == "time_limit"
    assert solved(capsys, write(problem), "--effort", "paper")["status"] in ("converged", "stalled", "iteration_limit")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "is not JSON (Expecting value, line 1, column 1)"),
        ('{"scores": [[1, 2]', "is not JSON"),
        ("[" * 100_000, "is nested too deeply"),
        ("[[1, 2]]", "must hold a JSON object with 'scores', got a list"),
        ("3", "got a number"),
        ("null", "got null"),
        ("{}", "has no 'scores'"),
        ({"scores": None}, "has no 'scores'"),
        ({**GOOD, "capacity": [1, 1]}, "no field 'capacity'; did you mean 'capacities'?"),
        ({"scores": [[1, 2], [3]]}, "row 0 has 2 entries but row 1 has 1"),
        ({"scores": [[1, "x"]]}, "got 'x' at [0, 1]"),
        ({"scores": [1, 2]}, "scores must have 2 dimensions, got 1"),
        ({"scores": "abc"}, "scores must be a rectangular array of real numbers, got str"),
        ({"scores": {"a": 1}}, "scores as a dictionary must be {agent: {task: score}}"),
        ({"scores": [[1, [2]]]}, "scores must be a rectangular array of real numbers"),
        ('{"scores": [[1, NaN]]}', "scores must be numbers, got nan at [0, 1]"),
        ('{"scores": [[1, Infinity]]}', "scores may be -inf but not this, got inf at [0, 1]"),
        ('{"scores": [[1, 1e308]]}', "scores must be within ±1e+100, got 1e+308 at [0, 1]"),
        ('{"scores": [[1, 1e999]]}', "got inf at [0, 1]"),
        ({**GOOD, "assignment": [0, 1]}, "holds a plan ('assignment'): muster check-plan checks one, solve makes one"),
        ({**GOOD, "capacities": [1, -2]}, "capacities must not be negative, got -2.0 at [1]"),
        ({**GOOD, "capacities": [1]}, "capacities must have shape (2,) to fit the scores, got (1,)"),
        ({**GOOD, "capacities": [1, None]}, "got None at [1]"),
        ({**GOOD, "contributions": [[1, 1]], "capacities": [1, 1]}, "contributions must have shape (2, 2) or (2,)"),
        ({**GOOD, "contributions": [1, 1]}, "contributions were given without capacities"),
        ({**GOOD, "task_scores": [[1]]}, "task_scores must have shape (2, 2) to fit the scores, got (1, 1)"),
    ],
)
def test_bad_input_gets_one_sentence_and_status_2(capsys, write, content, complaint):
    fails(capsys, complaint, write(content))


def fails(capsys: pytest.CaptureFixture[str], complaint: str, *arguments: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["solve", *arguments])
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.out == ""
    assert complaint in captured.err
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


def test_files_that_cannot_be_read(capsys, tmp_path):
    fails(capsys, "nowhere.json: No such file or directory", str(tmp_path / "nowhere.json"))
    fails(capsys, "is a folder, not a regular file", str(tmp_path))
    fails(capsys, "is a device, not a regular file", "/dev/zero")
    os.mkfifo(tmp_path / "pipe.csv")
    fails(capsys, "is a pipe, not a regular file", str(tmp_path / "pipe.csv"))
    reader, writer = os.pipe()
    os.write(writer, json.dumps(GOOD).encode())
    os.close(writer)
    assert solved(capsys, f"/dev/fd/{reader}")["assignment"] == [1, 0]
    os.close(reader)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00\x81")
    fails(capsys, "is not text", str(binary))


def test_settings_are_checked(capsys, write):
    fails(capsys, "time_limit must be a positive number of seconds, got 0.0", write(GOOD), "--time-limit", "0")
    with pytest.raises(SystemExit) as left:
        main(["solve", write(GOOD), "--method", "qaud"])
    assert left.value.code == 2


LONG = "agent,task,score\nvan-1,north,3\nvan-1,south,2\nvan-2,north,2.5\n"
WIDE = "van;north;south\nvan-1;3;2\nvan-2;2.5;\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.csv").write_text(LONG, encoding="utf-8")
    (tmp_path / "wide.csv").write_text("\ufeff" + WIDE, encoding="utf-8")
    (tmp_path / "cap.csv").write_text("Task,Capacity\nsouth,1\nnorth,1\nwest,2\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("file", ["long.csv", "wide.csv"])
def test_tables_with_names(folder, capsys, file):
    found = solved(capsys, file, "--method", "lp")
    assert found["assignment"] == ["south", "north"]
    assert (found["agents"], found["tasks"]) == (["van-1", "van-2"], ["north", "south"])


def test_csv_in_csv_out(folder, capsys):
    found = solved(capsys, "long.csv", "--capacities", "cap.csv", "--method", "lp", "--out", "plan.csv")
    assert found["tasks"] == ["north", "south", "west"]
    plan = (folder / "plan.csv").read_text(encoding="utf-8")
    assert plan == "agent,task,score,contribution,reason\nvan-1,south,2.0,1.0,\nvan-2,north,2.5,1.0,\n"
    kept = solved(capsys, "long.csv", "--method", "lp", "--previous", "plan.csv", "--switch-cost", "5")
    assert (kept["changes"], kept["objective"]) == (0, 4.5)
    solved(capsys, "long.csv", "--method", "lp", "--out", "plan.json")
    assert json.loads((folder / "plan.json").read_text(encoding="utf-8"))["assignment"] == ["south", "north"]


def test_contributions_and_task_scores_from_tables(folder, capsys):
    (folder / "use.csv").write_text("agent,contribution\nvan-1,2\nvan-2,1\n", encoding="utf-8")
    (folder / "both.csv").write_text("task,capacity\nnorth,1\nsouth,2\n", encoding="utf-8")
    found = solved(capsys, "wide.csv", "--contributions", "use.csv", "--capacities", "both.csv", "--method", "lp")
    assert found["assignment"] == ["south", "north"]
    assert found["loads"] == [1.0, 2.0]
    (folder / "pairs.csv").write_text("task,other,score\nnorth,south,-9\n", encoding="utf-8")
    assert solved(capsys, "wide.csv", "--task-scores", "pairs.csv")["assignment"] == ["north", None]


def test_names_in_json_and_in_tables_for_people(folder, capsys, write):
    problem = {"scores": {"van-1": {"north": 3, "south": 2}, "van-2": {"north": 2.5}}, "previous": {"van-1": "north"}}
    main(["solve", write({**problem, "switch_cost": 0.1}), "--method", "lp"])
    text = capsys.readouterr().out
    assert "van-1" in text
    assert "1 changed" in text


def test_what_the_service_takes_in_its_body_is_a_flag_here(write, capsys):
    with pytest.raises(SystemExit):
        main(["solve", write({"scores": [[1]], "time_limit": 3})])
    assert "'time_limit' is no field of" in (said := capsys.readouterr().err)
    assert "give --time-limit" in said


@pytest.mark.parametrize(
    ("problem", "flags", "note"),
    [
        (
            {"scores": [[-3, -2], [-1, -2]]},
            ["--method", "lp"],
            "an agent without a task is worth 0 and every task less",
        ),
        ({"scores": [[3, 2], [1, 0]]}, ["--method", "amax"], "amax looks at no capacities, and some are exceeded"),
        ({"scores": [[3]], "task_scores": [[1]]}, ["--method", "lp"], "lp looks at no task scores; quad does"),
        (
            {"scores": {"a": {"x": 1}}, "previous": {"a": "y", "b": "x"}},
            [],
            "the previous plan names agent 'b', task 'y', not there any more",
        ),
        ({"scores": {}}, [], "there are no agents: nothing is assigned"),
        ({"scores": [[-3, -2], [-1, -2]]}, ["--method", "lp", "--assign-all"], None),
        ({"scores": [[3, 2], [1, 0]], "previous": [0, None]}, [], None),
    ],
)
def test_what_nobody_expects_is_said_beside_the_answer(write, capsys, problem, flags, note):
    main(["solve", write(problem), *flags, "--json"])
    printed = capsys.readouterr()
    assert json.loads(printed.out)["status"] == "optimal"
    assert (note in printed.err) if note else (printed.err == "")


def test_the_last_line_counts_who_is_left_out(write, capsys):
    main(["solve", write({"scores": [[3], [2], [1]]}), "--method", "lp"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert "2 of 3 without a task" in last
    main(["solve", write({"scores": [[3.0]]}), "--method", "routes"])
    assert "objective -0" not in capsys.readouterr().out


def test_reasons_as_sentences_and_as_rows(folder, capsys):
    main(["solve", "long.csv", "--capacities", "cap.csv", "--method", "lp", "--explain"])
    assert "no agent takes west: no agent is allowed" in capsys.readouterr().out
    found = solved(capsys, "long.csv", "--capacities", "cap.csv", "--method", "lp", "--explain")["explanation"]
    assert [row["runner_up"] for row in found["agents"]] == ["north", None]
    assert found["tasks"][0]["why"] == "no agent is allowed"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["long.csv", "--out", "plan.xlsx"], "--out writes .csv or .json, got plan.xlsx"),
        (["long.csv", "--out", "none/plan.csv"], "cannot write none/plan.csv: there is no folder 'none'"),
        (["long.csv", "--capacities", "long.csv"], "capacities must have two columns"),
        (["bad.csv"], "bad.csv, row 3, column 'score': expected a number or nothing, got 'much'"),
        (["bad.csv"], "(other names: --columns agent=tech,task=job,score=worth)"),
        (["ragged.csv"], "ragged.csv, row 2: expected 3 cells as in the first row, got 2"),
        (["twice.csv"], "has two columns called 'x'"),
        (["empty.csv"], "empty.csv is empty; expected a table with the columns agent, task and score"),
        (["given.json", "--capacities", "cap.csv"], "capacities came twice"),
        (["costs.csv"], "got agent, task, cost; rename them, or say which is which by columns (--columns agent=…"),
        (["named.csv"], "column 'job': expected a number or nothing, got 'x y'; the file should be a table with the "),
        (["named.csv"], "(other names: --columns agent=van,task=job,score=minutes)"),
        (["sheet.xlsx"], "sheet.xlsx is not text; expected a .csv file, or a JSON object with 'scores'"),
        (["bare.csv"], "bare.csv begins with numbers; its first row must name the columns: expected a table"),
        (["comma.csv"], "column 'score': expected a number or nothing, got '3,5'; write 3.5 for it"),
        (["long.csv", "--previous", "jobs.csv"], "jobs.csv has no column 'task', got agent, job"),
        (["long.csv", "--previous", "two.csv"], "previous has agent 'van-1' twice"),
    ],
)
def test_bad_tables_get_one_sentence(folder, capsys, arguments, complaint):
    (folder / "bad.csv").write_text("agent,task,score\na,x,1\nb,x,much\n", encoding="utf-8")
    (folder / "ragged.csv").write_text("agent,task,score\na,x\n", encoding="utf-8")
    (folder / "twice.csv").write_text("agent,x,x\na,1,2\n", encoding="utf-8")
    (folder / "empty.csv").write_text("", encoding="utf-8")
    (folder / "costs.csv").write_text("agent,task,cost\na,x,1\n", encoding="utf-8")
    (folder / "named.csv").write_text("van,job,minutes\na b,x y,1\n", encoding="utf-8")
    (folder / "sheet.xlsx").write_bytes(b"PK\x03\x04\xff\xfe")
    (folder / "bare.csv").write_text("3,2\n2.5,0.5\n", encoding="utf-8")
    (folder / "comma.csv").write_text("agent;task;score\na;x;3,5\n", encoding="utf-8")
    (folder / "jobs.csv").write_text("agent,job\nvan-1,north\n", encoding="utf-8")
    (folder / "two.csv").write_text("agent,task\nvan-1,north\nvan-1,south\n", encoding="utf-8")
    (folder / "given.json").write_text(json.dumps({**GOOD, "capacities": [1, 1]}), encoding="utf-8")
    fails(capsys, complaint, *arguments)


def test_minimums_fixed_agents_costs_and_columns(folder, capsys):
    (folder / "jobs.csv").write_text(
        "tech,job,worth,site\nann,J1,3,n\nann,J7,5,n\nbob,J1,4,s\nbob,J7,4.5,s\ncy,J7,1,s\n", encoding="utf-8"
    )
    (folder / "min.csv").write_text("task,minimum\nJ7,2\n", encoding="utf-8")
    (folder / "fix.csv").write_text("agent,task\nbob,J7\n", encoding="utf-8")
    called = ("--columns", "agent=tech,task=job,score=worth")
    assert solved(capsys, "jobs.csv", *called, "--minimums", "min.csv")["assignment"] == ["J7", "J1", "J7"]
    main(["solve", "jobs.csv", *called, "--json"])
    assert "columns of jobs.csv that are ignored: site" in capsys.readouterr().err
    found = solved(capsys, "jobs.csv", *called, "--minimums", "min.csv", "--fixed", "fix.csv")
    assert found["assignment"] == ["J7", "J7", None]
    cheap = solved(capsys, "jobs.csv", *called, "--minimise", "--minimums", "1")
    assert (cheap["assignment"], cheap["objective"]) == (["J1", None, "J7"], 4.0)
    (folder / "jobs.json").write_text(json.dumps({"scores": {"ann": {"J1": 1.0}}, "minimums": 2}), encoding="utf-8")
    fails(capsys, "task 'J1' needs 2 more and can get 1 at most", "jobs.json")
