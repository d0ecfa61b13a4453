"""The format of decision logs: JSON Lines, each an Observation and the assignment chosen for it.

    {"agent_features": [[0.2], [0.9]], "task_features": [[0.1], [0.8], [0.5]], "assignment": [0, 1]}

Numbers of agents and tasks may differ from line to line, numbers of features may not. An agent's assignment is the
index of its task, or null (or -1) for none. Lines without agents or tasks are skipped. A file whose name ends in .gz
is compressed.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Ints
from muster.envs.env import Observation
from muster.envs.padding import ALWAYS, BLOCKS, Padded, observation_at
from muster.errors import InputError, UnknownNameError
from muster.storage import check_regular

FIELDS = tuple(entry.name for entry in dataclasses.fields(Observation))
SERVICE_FIELDS = ("time", "id", "policy", "by", "reasons", "seconds", "agents", "tasks", "shadow")
"""Fields that the decision log of `muster serve` adds; they are not read."""
IDS = ("agent_ids", "task_ids")
"""Fields that are not written: they identify agents and tasks across decisions, and a line is one decision."""
DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Decision:
    """A line: an observation and its assignment."""

    observation: Observation
    assignment: Ints
    """[N] -1 for none."""

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of agents and tasks, (N, M)."""
        return len(self.assignment), len(np.asarray(self.observation.task_features))


def open_log(path: Path, mode: str) -> IO[str]:
    """The open file, as text; raises InputError if it cannot be opened."""
    if mode == "r":
        check_regular(path)
    try:
        opener: Any = gzip.open if path.suffix == ".gz" else open
        return cast(IO[str], opener(path, mode + "t", encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot open the log {str(path)!r}: {error.strerror or error}") from None


def read_log(path: Path) -> list[Decision]:
    """All decisions of a log; raises InputError that names the first wrong line."""
    decisions = [(where, decision) for where, decision in _lines(path) if min(decision.size)]
    if not decisions:
        raise InputError(f"the log {path.name} has no decisions; each line has an observation and its assignment")
    sizes = [decision.size for _, decision in decisions]
    padded = Padded(path.name, 1, max(n for n, _ in sizes), max(m for _, m in sizes))
    for where, decision in decisions:
        padded.name = where
        padded.write(0, decision.observation)
        padded.check(np.arange(1))
        _check(decision, where)
    return [decision for _, decision in decisions]


def files_of(path: Path) -> list[Path]:
    """The files of a log: the file itself, or the .jsonl files of a folder, sorted."""
    return sorted(path.glob("*.jsonl")) if path.is_dir() else [path]


def _lines(log: Path) -> Iterator[tuple[str, Decision]]:
    """("line 3 of FILE", its decision) for each line that is not empty."""
    for path in files_of(log):
        with open_log(path, "r") as file:
            try:
                for number, text in enumerate(file, 1):
                    if text.strip():
                        where = f"line {number} of {path.name}"
                        yield where, _parse(text, where)
            except (OSError, EOFError, UnicodeDecodeError) as error:
                raise InputError(f"cannot read the log {str(path)!r}: {error}") from None


def _parse(text: str, where: str) -> Decision:
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise InputError(f"{where} is not JSON: {error}") from None
    if not isinstance(entries, dict):
        raise InputError(f"{where} must be an object with agent_features, task_features and assignment")
    entries = {name: value for name, value in entries.items() if name not in SERVICE_FIELDS}
    for name in entries:
        if name not in (*FIELDS, "assignment"):
            raise UnknownNameError("field", name, [*FIELDS, "assignment"], f"in {where}")
    for name in ("agent_features", "task_features", "assignment"):
        if name not in entries:
            raise InputError(f"{where} lacks {name}")
    fields: dict[str, Any] = {}
    for name, value in entries.items():
        if value is None:
            continue
        if name == "capacities" and isinstance(value, list):
            value = [float("inf") if capacity is None else capacity for capacity in value]
        if name == "assignment" and isinstance(value, list):
            value = [-1 if task is None else task for task in value]
        fields[name] = _array(name, value, where)
    assignment = fields.pop("assignment", np.zeros((), np.int64))
    n_agents = len(np.atleast_1d(fields["agent_features"]))
    if assignment.shape != (n_agents,) or assignment.dtype.kind not in ("iu" if n_agents else "iuf"):
        raise InputError(f"assignment of {where} must hold a task or null for each of {n_agents} agents")
    for name in ("agent_features", "task_features"):
        if fields[name].ndim != 2 and fields[name].size:
            raise InputError(f"{name} of {where} must be rows of numbers, got shape {list(fields[name].shape)}")
    return Decision(Observation(**fields), assignment.astype(np.int64))


def _array(name: str, value: Any, where: str) -> NDArray[Any]:
    try:
        array = np.array(value)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "iufb":
        raise InputError(f"{name} of {where} must be numbers in rows of one length")
    kind = BLOCKS[name].kind if name in BLOCKS else np.int64
    return array.astype(kind) if kind in (np.float32, np.float64, np.bool_) else array


def _check(decision: Decision, where: str) -> None:
    """Raise InputError for a task out of range, an agent or task that is not alive, or a forbidden pair."""
    observed, (_, tasks) = decision.observation, decision.size
    for agent, task in enumerate(decision.assignment.tolist()):
        if task == -1:
            continue
        if not 0 <= task < tasks:
            raise InputError(f"{where} sends agent {agent} to task {task}; there are tasks 0 to {tasks - 1}")
        if observed.task_alive is not None and not np.asarray(observed.task_alive)[task]:
            raise InputError(f"{where} sends agent {agent} to task {task}, which `task_alive` says is not there")
        if observed.agent_alive is not None and not np.asarray(observed.agent_alive)[agent]:
            raise InputError(f"{where} gives agent {agent} a task, which `agent_alive` says is not there")
        if observed.allowed is not None and not np.asarray(observed.allowed)[agent, task]:
            raise InputError(f"{where} sends agent {agent} to task {task}, which `allowed` forbids")


def line_of(batch: BatchObservation, slot: int, assignment: Ints) -> str:
    """The decision in a slot as a line, without tasks that are not alive and without fields at their default."""
    alive = np.flatnonzero(batch.task_alive[slot])
    # The last entry is what index -1, no task, becomes.
    renumbered = np.full(batch.task_alive.shape[1] + 1, -1, np.int64)
    renumbered[alive] = np.arange(len(alive))
    observed = observation_at(batch, slot, batch.agent_alive.shape[1], batch.task_alive.shape[1])
    entries: dict[str, Any] = {}
    for name, block in BLOCKS.items():
        value = getattr(observed, name)
        if value is None or name in IDS or (name == "previous" and batch.switch_cost is None):
            continue
        array = np.asarray(value)
        for axis, letter in enumerate(block.axes):
            if letter == "M":
                array = np.take(array, alive, axis=axis)
        if name == "previous":
            array = renumbered[array]
        default = block.default is not None and (array == block.default).all()
        if default or (name in ALWAYS and not array.size):
            continue
        entries[name] = (array.astype(np.float64).round(DECIMALS) if array.dtype.kind == "f" else array).tolist()
    chosen = renumbered[np.where(assignment[slot] < 0, -1, assignment[slot])]
    return json.dumps(entries | {"assignment": chosen.tolist()}, separators=(",", ":"))
