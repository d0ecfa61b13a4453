"""Every committed record says how it was made, by commits that are on the branch that is checked out."""

from __future__ import annotations

import json
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from benchmarks import marl
from paper.bias import NOISES, READINGS, RECORD, SIZES, tables
from paper.run_names import PAPER
from paper.tables.engine import CHECKOUT, COMMIT

SUMMARIES = sorted(PAPER.rglob("summary.json"))
RECORDS = sorted({*PAPER.rglob("*.json"), *(CHECKOUT / "benchmarks").glob("*.json")} - set(SUMMARIES))
WITHOUT_COMMAND = {"es-battle-w15v17-quad", "figures", "quad_or_lp", "record", "workers"}
"""Records from before 0.2.0: the module or the page beside each says how it was made."""
COMMANDS = (
    "python -m paper",
    "python paper/search.py ",
    "python -m benchmarks ",
    "python benchmarks/marl_run.py ",
    "muster ",
)
REBASED = {"80c495ea3b6b", "90ed84a5f9ba"}
"""Commits of six runs (rescue-5x10, imitation) that are on no branch any more."""


@cache
def branch() -> set[str]:
    """First digits of its commits; none where the checkout is shallow, or where there is no git."""
    asked = ["git", "rev-parse", "--is-shallow-repository"], ["git", "rev-list", "HEAD"]
    shallow, commits = (subprocess.run(one, cwd=CHECKOUT, capture_output=True, text=True, check=False) for one in asked)
    return {line[:12] for line in commits.stdout.split()} if shallow.stdout.strip() == "false" else set()


def values(record: Any, *names: str) -> Iterator[str]:
    """Texts under one of the names, at any depth, alone or in a list."""
    for key, part in record.items() if isinstance(record, dict) else enumerate(record):
        if key in names:
            yield from [part] if isinstance(part, str) else part or ()
        elif isinstance(part, dict | list):
            yield from values(part, *names)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_names_its_command_and_commits_of_this_branch(path):
    record = json.loads(path.read_text(), parse_constant=pytest.fail)
    commands = list(values(record, "command", "commands"))
    assert commands or path.stem in WITHOUT_COMMAND
    assert all(command.startswith(COMMANDS) for command in commands)
    for commit in values(record, "commit", "commits"):
        assert COMMIT.fullmatch(commit), f"{commit} is not a commit, or of a changed tree"
        assert not branch() or commit in branch(), f"{commit} is not on this branch"


@pytest.mark.parametrize(
    "folder", sorted({path.parents[1] for path in SUMMARIES}), ids=lambda folder: folder.parent.name
)
def test_runs_say_how_long_they_took_and_of_which_code(folder):
    """Some from before 0.2.0 name no commit, or a changed tree; those by steps must not."""
    for path in SUMMARIES:
        if path.parents[1] != folder:
            continue
        summary, config = json.loads(path.read_text()), tomllib.loads((path.parent / "config.toml").read_text())
        assert summary["steps"] > 0
        assert summary["cpu_minutes"] > 0
        assert summary["seed"] == config["seed"]
        commit, _, changed = summary.get("commit", "").partition(", ")
        assert not commit or not branch() or commit in branch() | REBASED, path
        assert "steps" not in config or (commit and not changed), path


def test_the_record_of_the_bias_has_every_row():
    record = json.loads(RECORD.read_text())
    assert len(record["one_step"]) == len(SIZES) * len(NOISES) * 4
    assert [row["reading"] for row in record["readings"]] == list(READINGS)
    assert {row["likelihood"] for row in record["episodes"]} == {*list(READINGS)[:2], "choices"}
    assert "\n".join(tables(record)).count("\n|---") == 3


def test_the_rows_of_marl_are_what_their_names_say():
    rows = json.loads(marl.RECORD.read_text())
    for name, row in rows.items():
        place, _, rest = name.partition(f"-{row['algorithm']}-")
        assert marl.ENVS[place][0] == row["env"]
        assert rest.endswith(f"s{row['seed']}")
        assert ("padded" in rest) == (row["pad"] is not None)
        assert ("samples" in rest) == ("--steps" in row["command"])
        assert row["larger"]["env"] == marl.ENVS[place][1]
        assert shlex.split(row["command"])[2:4] == [row["algorithm"], row["env"]]
