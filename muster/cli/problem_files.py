"""Problems and plans in files: read JSON objects and CSV tables as arguments of `muster.assign`."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from muster.assign.settings import Effort, Method, TaskScoresOn
from muster.errors import InputError, UnknownNameError
from muster.storage import check_regular

FIELDS = (
    *("scores", "task_scores", "contributions", "capacities", "allowed", "end_scores", "routes"),
    *("agents", "tasks", "previous", "switch_cost", "minimums", "fixed", "task_scores_on"),
)
"""Fields of a problem's JSON."""
FLAGS = ("method", "effort", "rounding", "assign_all", "objective", "time_limit", "explain")
"""Fields of the service's JSON that are flags here."""

EXPECTED_SCORES = (
    "a table with the columns agent, task and score (other names: --columns agent=tech,task=job,score=worth), or a row "
    "per agent and a column per task"
)
TEXT_COLUMNS = ("agent", "task", "other", "from", "to", "reason")
KNOWN_COLUMNS = (*TEXT_COLUMNS, "score", "contribution", "capacity")
"""Columns whose names may be in upper or lower case."""


@dataclass(frozen=True, kw_only=True)
class ProblemFlags:
    """Flags of the commands that read a problem; each documents `file` and `method` itself."""

    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    method: Method = "quad"
    effort: Effort = "fast"
    """Effort of lp, quad and routes; exact: until optimality is proved."""
    minimise: bool = False
    """Scores are costs: minimise their sum (with --assign-all or --minimums, since an idle agent costs nothing)."""
    assign_all: bool = False
    """Assign every agent that fits somewhere, however bad its scores."""
    time_limit: float | None = None
    """Seconds after which the best feasible assignment found so far is returned."""
    task_scores_on: TaskScoresOn | None = None
    """quad: what task scores act on: count, the agents on a task (the default), or load, the contributions it gets."""
    capacities: str | None = None
    """CSV with the columns task and capacity."""
    minimums: str | None = None
    """CSV with the columns task and minimum: such a task gets contributions of at least its minimum, or no agent. Or
    one number, which every task must get."""
    fixed: str | None = None
    """CSV with the columns agent and task: these agents must take these tasks."""
    columns: str | None = None
    """Names of the columns of a CSV file, such as agent=tech,task=job,score=worth."""
    contributions: str | None = None
    """CSV with the columns agent and contribution, or with a row per agent and a column per task."""
    task_scores: str | None = None
    """CSV with the columns task, other and score, or with a row and a column per task."""

    def read(self, *, extra: tuple[str, ...] = (), **files: str | None) -> dict[str, Any]:
        """Arguments of `muster.assign` from the problem's file and the flags; `extra` JSON fields are allowed too."""
        names = ("capacities", "minimums", "fixed", "contributions", "task_scores")
        problem = read_problem(self.file, extra=extra, columns=self.columns)
        problem = add_tables(problem, **{name: getattr(self, name) for name in names}, **files)
        field, flag = problem.get("task_scores_on"), self.task_scores_on
        if field is not None and flag is not None and field != flag:
            raise InputError(
                f"task_scores_on came twice: {field!r} in the problem's file and --task-scores-on {flag}; give one of "
                "them"
            )
        return {"task_scores_on": flag or "count", **problem}


def read_problem(file: str, *, extra: tuple[str, ...] = (), columns: str | None = None) -> dict[str, Any]:
    """Arguments of `muster.assign`, and `extra` fields, from a CSV or JSON file, or JSON on standard input (-)."""
    if Path(file).suffix.lower() in (".csv", ".tsv"):
        return {"scores": read_csv(file, EXPECTED_SCORES, pairs=read_columns(columns))}
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
        if key == "assignment" and key not in extra:
            raise InputError(f"{source} holds a plan ('assignment'): muster check-plan checks one, solve makes one")
        if key in FLAGS:
            raise InputError(f"{key!r} is no field of {source}: give --{key.replace('_', '-')}")
        if key not in FIELDS + extra:
            raise UnknownNameError("field", key, FIELDS + extra)
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
    """The problem with further fields, each read from a CSV file; minimums may be one number for all tasks."""
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
        required = ("agent", "task") if field in ("previous", "fixed") else ()
        problem[field] = read_csv(file, expected[field], required)
    return problem


def read_columns(text: str | None) -> dict[str, str]:
    """The dictionary {"agent": "tech", …} of the text agent=tech,task=job,score=worth."""
    if text is None:
        return {}
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and equals and column.strip() for name, equals, column in parts):
        raise InputError(f"--columns must be as agent=tech,task=job,score=worth, got {text!r}")
    return {name.strip(): column.strip() for name, _, column in parts}


def _kind(data: object) -> str:
    return {list: "a list", str: "a string", type(None): "null", bool: "a boolean"}.get(type(data), "a number")


class CsvTable:
    """Columns by name, with the part of a data frame's interface that `muster.assign.names` reads."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str | list[str]) -> Any:
        if isinstance(name, list):
            return CsvTable({each: self._columns[each] for each in name})
        return self._columns[name]

    def to_numpy(self) -> list[list[Any]]:
        """The table as a list of rows."""
        return [list(row) for row in zip(*self._columns.values(), strict=True)]


def read_text(file: str, expected: str) -> str:
    """A file's text, or standard input's for -."""
    source = "standard input" if file == "-" else file
    try:
        if file == "-":
            return sys.stdin.read()
        if not file.startswith(("/dev/fd/", "/dev/stdin")):  # the pipe of a shell's <(command) has a writer
            check_regular(Path(file))
        return Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{source} is not text; expected {expected}") from None


def read_csv(
    file: str, expected: str, required: Sequence[str] = (), pairs: Mapping[str, str] | None = None
) -> CsvTable:
    """A CSV file: the first column and those that hold names are text, all others numbers or empty.

    `required` are columns that must be there, `expected` describes the file in errors. `pairs`, for a table of pairs:
    the file's names of the columns agent, task, score and contribution; other columns are ignored.
    """
    content = read_text(file, expected)
    head = content.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    lines = [line for line in csv.reader(io.StringIO(content), delimiter=delimiter) if any(map(str.strip, line))]
    if not lines:
        raise InputError(f"{file} is empty; expected {expected}")
    header = [cell.strip() for cell in lines[0]]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{file} has two columns called {twice!r}; column names must differ")
    if is_number(header[0]):
        raise InputError(f"{file} begins with numbers; its first row must name the columns: expected {expected}")
    missing = [name for name in required if name not in [cell.lower() for cell in header]]
    if missing:
        raise InputError(f"{file} has no column {missing[0]!r}, got {', '.join(header)}; expected {expected}")
    ignored: set[int] = set()
    if pairs is not None:
        for name, column in pairs.items():
            if column not in header:
                raise InputError(f"{file} has no column {column!r} for {name}, got {', '.join(header)}")
        renamed = {column: name for name, column in pairs.items()}
        header = [renamed.get(cell, cell) for cell in header]
        words = [cell.lower() for cell in header]
        if {"agent", "task", "score"} <= set(words):
            ignored = {k for k, word in enumerate(words) if word not in ("agent", "task", "score", "contribution")}
        elif len(header) == 3 and not pairs:
            expected = expected.replace("agent=tech,task=job,score=worth", "agent={},task={},score={}".format(*header))
        if ignored:
            print(
                f"muster: columns of {file} that are ignored: {', '.join(header[k] for k in ignored)}", file=sys.stderr
            )
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(header):
            raise InputError(f"{file}, row {number}: expected {len(header)} cells as in the first row, got {len(line)}")
    columns: dict[str, list[Any]] = {}
    for k, name in enumerate(header):
        if k in ignored:
            continue
        cells = [line[k].strip() for line in lines[1:]]
        named = k == 0 or name.lower() in TEXT_COLUMNS
        columns[name.lower() if name.lower() in KNOWN_COLUMNS else name] = (
            cells if named else [_number(file, row, name, cell, expected) for row, cell in enumerate(cells, start=2)]
        )
    return CsvTable(columns)


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(file: str, row: int, column: str, cell: str, expected: str) -> float | None:
    if cell == "":
        return None
    if is_number(cell):
        return float(cell)
    point = cell.replace(",", ".")
    advice = f"write {point} for it" if is_number(point) else f"the file should be {expected}"
    raise InputError(f"{file}, row {row}, column {column!r}: expected a number or nothing, got {cell!r}; {advice}")


def write_csv(file: str, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Write rows as CSV; None becomes an empty cell."""
    with Path(file).open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
