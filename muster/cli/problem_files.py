"""Problems and plans in files: JSON objects and CSV tables become the arguments of `muster.assign`."""

from __future__ import annotations

import json
from typing import Any

from muster.assign.settings import TaskScoresOn
from muster.cli.csv_tables import is_csv, is_number, read_csv, read_text
from muster.errors import InputError, UnknownNameError

FIELDS = (
    "scores",
    "task_scores",
    "contributions",
    "capacities",
    "allowed",
    "end_scores",
    "routes",
    "agents",
    "tasks",
    "previous",
    "switch_cost",
    "minimums",
    "fixed",
)

# What JSON may say about the problem beside its numbers.
MEANINGS = ("task_scores_on",)

# What the service takes in its JSON, and a command as a flag.
FLAGS = ("method", "effort", "rounding", "assign_all", "objective", "time_limit", "explain")

SCORES = (
    "a table with the columns agent, task and score (other names: --columns agent=tech,task=job,score=worth), or a row "
    "per agent and a column per task"
)


def read_problem(file: str, *, extra: tuple[str, ...] = (), columns: str | None = None) -> dict[str, Any]:
    """The arguments of `muster.assign` in a JSON or CSV file, or as JSON on standard input, and `extra` fields."""
    if is_csv(file):
        return {"scores": read_csv(file, SCORES, pairs=read_columns(columns))}
    if columns is not None:
        raise InputError("--columns names the columns of a CSV file")
    source = "standard input" if file == "-" else file
    text = read_text(file, "a .csv file, or a JSON object with 'scores'")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(
            f"{source} is not JSON ({error.msg}, {where}); expected an object with 'scores', or a .csv file"
        ) from None
    except RecursionError:
        raise InputError(f"{source} is nested too deeply; expected an object with 'scores'") from None
    if not isinstance(data, dict):
        raise InputError(f"{source} must hold a JSON object with 'scores', got {_kind(data)}")
    for key in data:
        if key == "sense":
            raise InputError(f"'sense' is no field of {source}: give --minimise")
        if key in FLAGS:
            raise InputError(f"{key!r} is no field of {source}: give --{key.replace('_', '-')}")
        if key not in FIELDS + MEANINGS + extra:
            raise UnknownNameError("field", key, FIELDS + MEANINGS + extra)
    if data.get("scores") is None:
        raise InputError(f"{source} has no 'scores': a row per agent with a number per task")
    scores = data["scores"]
    if isinstance(scores, list):
        # JSON has no infinity: null in a row of scores forbids the pair.
        data["scores"] = [
            [float("-inf") if entry is None else entry for entry in row] if isinstance(row, list) else row
            for row in scores
        ]
    return {key: value for key, value in data.items() if value is not None}


def add_tables(problem: dict[str, Any], **files: str | None) -> dict[str, Any]:
    """The problem with more of its fields, each from a CSV file of its own; minimums may be one number for all."""
    expected = {
        "capacities": "a table with the columns task and capacity",
        "contributions": "a table with the columns agent and contribution, or a row per agent and a column per task",
        "task_scores": "a table with the columns task, other and score, or a row and a column per task",
        "previous": "a table with the columns agent and task",
        "minimums": "a table with the columns task and minimum",
        "fixed": "a table with the columns agent and task",
    }
    for field, file in files.items():
        if file is None:
            continue
        if field in problem:
            raise InputError(f"{field} came twice: in the problem's file and in {file}; give one of them")
        if field == "minimums" and is_number(file):
            problem[field] = float(file)
            continue
        needs = ("agent", "task") if field in ("previous", "fixed") else ()
        problem[field] = read_csv(file, expected[field], needs)
    return problem


def read_columns(text: str | None) -> dict[str, str]:
    """agent=tech,task=job,score=worth as {"agent": "tech", …}."""
    if text is None:
        return {}
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and equals and column.strip() for name, equals, column in parts):
        raise InputError(f"--columns must be as agent=tech,task=job,score=worth, got {text!r}")
    return {name.strip(): column.strip() for name, _, column in parts}


def take_task_scores_on(problem: dict[str, Any], flag: TaskScoresOn | None) -> TaskScoresOn:
    """What task scores act on, by the problem's file or by the flag; the problem is left without it."""
    said: TaskScoresOn | None = problem.pop("task_scores_on", None)
    if said is not None and flag is not None and said != flag:
        raise InputError(
            f"task_scores_on came twice: {said!r} in the problem's file and --task-scores-on {flag}; give one of them"
        )
    return said if said is not None else flag if flag is not None else "count"


def _kind(data: object) -> str:
    return {list: "a list", str: "a string", type(None): "null", bool: "a boolean"}.get(type(data), "a number")
