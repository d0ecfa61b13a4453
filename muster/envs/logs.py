"""Logs of decisions: JSON Lines, each an Observation with the assignment that was taken.

    {"agent_features": [[0.2], [0.9]], "task_features": [[0.1], [0.8], [0.5]], "assignment": [0, 1]}

Numbers of agents and tasks may differ from line to line, numbers of features may not. An agent's assignment is the
index of its task, or null (or -1) for none. Lines without agents or tasks teach nothing and are passed over. A name
that ends in .gz is compressed.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.env import Observation
from muster.envs.padding import ALWAYS, BLOCKS, Padded, observation_at
from muster.envs.vector import BatchEnv, Policy, State, Step
from muster.errors import InputError, UnknownNameError
from muster.rng import Seeds
from muster.settings import check_fields, read_options
from muster.storage import check_regular

FIELDS = tuple(entry.name for entry in dataclasses.fields(Observation))
BESIDE = ("time", "id", "policy", "by", "reasons", "seconds", "agents", "tasks", "shadow")
"""What the decision log of `muster serve` says beside, of which nothing is learned."""
NEEDLESS = ("agent_ids", "task_ids")
"""Fields that tell slots apart from decision to decision, of which a line knows nothing."""
DECIMALS = 6
HELD_OUT = 10
"""Every tenth line is held out from training, for validation."""
SLACK = 1e-9
"""By which loads may exceed a capacity before they count as too much."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A line: an observation, and the assignment that was taken."""

    observation: Observation
    assignment: Ints
    """[N] -1 for none."""

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of agents and tasks."""
        return len(self.assignment), len(np.asarray(self.observation.task_features))


def open_log(path: Path, mode: str) -> IO[str]:
    """The file as text; InputError where it cannot be opened."""
    if mode == "r":
        check_regular(path)
    try:
        opener: Any = gzip.open if path.suffix == ".gz" else open
        return cast(IO[str], opener(path, mode + "t", encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot open the log {str(path)!r}: {error.strerror or error}") from None


def read_log(path: Path) -> list[Decision]:
    """Every line, checked; InputError names the first that is wrong, and why."""
    found = [(where, taken) for where, taken in _lines(path) if min(taken.size)]
    if not found:
        raise InputError(f"the log {path.name} has no lines; each is a situation and the assignment taken in it")
    sizes = [taken.size for _, taken in found]
    padded = Padded(path.name, 1, max(n for n, _ in sizes), max(m for _, m in sizes))
    for where, taken in found:
        padded.name = where
        padded.write(0, taken.observation)
        padded.check(np.arange(1))
        _check(taken, where)
    return [taken for _, taken in found]


def files_of(path: Path) -> list[Path]:
    """The files of a log: itself, or those in the folder of a decision log, in order."""
    return sorted(path.glob("*.jsonl")) if path.is_dir() else [path]


def _lines(path: Path) -> Iterator[tuple[str, Decision]]:
    for file in files_of(path):
        yield from _lines_of_file(file)


def _lines_of_file(path: Path) -> Iterator[tuple[str, Decision]]:
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
    entries = {name: value for name, value in entries.items() if name not in BESIDE}
    for name in entries:
        if name not in (*FIELDS, "assignment"):
            raise UnknownNameError(f"field in {where}", name, [*FIELDS, "assignment"])
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
    for name, least in (("agent_features", 2), ("task_features", 2)):
        if fields[name].ndim != least and fields[name].size:
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


def _check(taken: Decision, where: str) -> None:
    """Refuse an assignment to what is not there."""
    observed, (_, tasks) = taken.observation, taken.size
    for agent, task in enumerate(taken.assignment.tolist()):
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
    """A decision as a line, without the tasks that are not there; what every task or agent has anyway is left out."""
    here = np.flatnonzero(batch.task_alive[slot])
    renumbered = np.full(batch.task_alive.shape[1] + 1, -1, np.int64)
    renumbered[here] = np.arange(len(here))
    observed = observation_at(batch, slot, batch.agent_alive.shape[1], batch.task_alive.shape[1])
    entries: dict[str, Any] = {}
    for name, block in BLOCKS.items():
        value = getattr(observed, name)
        if value is None or name in NEEDLESS or (name == "previous" and batch.switch_cost is None):
            continue
        array = np.asarray(value)
        for axis, letter in enumerate(block.axes):
            if letter == "M":
                array = np.take(array, here, axis=axis)
        if name == "previous":
            array = renumbered[array]
        usual = block.default is not None and (array == block.default).all()
        if usual or (name in ALWAYS and not array.size):
            continue
        entries[name] = (array.astype(np.float64).round(DECIMALS) if array.dtype.kind == "f" else array).tolist()
    chosen = renumbered[np.where(assignment[slot] < 0, -1, assignment[slot])]
    return json.dumps(entries | {"assignment": chosen.tolist()}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Which file, and which of its lines."""

    file: str
    """JSON Lines, as `muster evaluate … --log FILE` writes them."""
    set: Literal["all", "training", "validation"] = "all"
    """All lines, every tenth (validation), or the others (training)."""

    def __post_init__(self) -> None:
        check_fields(self)


class LogEnv(BatchEnv):
    """Situations from a file. Its one baseline, `taken`, does what was done in them."""

    metric = "agreement"
    max_steps = 1
    random = False

    def __init__(self, settings: LogSettings, n_envs: int) -> None:
        self.name = f"log:{settings.file}" + ("" if settings.set == "all" else f",set={settings.set}")
        self.n_envs = n_envs
        every = _read(str(Path(settings.file).resolve()), _stamp(settings.file))
        self.n_agents, self.n_tasks = (max(sizes) for sizes in zip(*(taken.size for taken in every), strict=True))
        self.idling = any(leaves_idle(taken) for taken in every)
        held = np.arange(len(every)) % HELD_OUT == HELD_OUT - 1
        chosen = {"all": held | True, "training": ~held, "validation": held}[settings.set]
        if not chosen.any():
            raise InputError(f"{self.name} has no lines: of {len(every)} every tenth is held out for validation")
        self.lines = [every[k] for k in np.flatnonzero(chosen)]
        self.line: Ints = np.zeros(n_envs, np.int64)
        """[B] which of them is in each slot."""
        self._running = np.zeros(n_envs, np.bool_)
        self._agreement = np.zeros(n_envs)
        self._seen = Padded(self.name, n_envs, self.n_agents, self.n_tasks)

    @property
    def taken(self) -> Ints:
        """[B, N] what was done in the present situations."""
        found = np.full((self.n_envs, self.n_agents), -1, np.int64)
        for slot, line in enumerate(self.line):
            assignment = self.lines[line].assignment
            found[slot, : len(assignment)] = assignment
        return found

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Seed k below the number of lines is line k; other seeds are lines too."""
        self.line[slots] = (np.asarray(seeds, np.uint64) % np.uint64(len(self.lines))).astype(np.int64)
        self._running[slots], self._agreement[slots] = True, 0.0
        self._write(slots)

    def _write(self, slots: Ints) -> None:
        for slot in np.asarray(slots).tolist():
            self._seen.write(slot, self.lines[self.line[slot]].observation)

    def all_episodes(self) -> Seeds:
        """Every line once."""
        return np.arange(len(self.lines), dtype=np.uint64)

    def observe(self) -> BatchObservation:
        """The present situations."""
        return self._seen.observation(np.full((self.n_envs, self.n_agents), -1, np.int64))

    def step(self, assignment: Ints) -> Step:
        """The share of the agents with something to take that do what was done; every episode ends."""
        if assignment.max(initial=-1) >= self.n_tasks:
            raise InputError(f"tasks of {self.name} are 0 to {self.n_tasks - 1}, got {assignment.max()}")
        seen = self.observe()
        able = seen.agent_alive & (seen.task_alive[:, None] & (True if seen.allowed is None else seen.allowed)).any(2)
        same = np.where(assignment < 0, -1, assignment) == self.taken
        share = np.where(able.any(1), (same & able).sum(1) / np.maximum(able.sum(1), 1), 1.0)
        reward = np.where(self._running, share, 0.0)
        ended = self._running.copy()
        self._agreement[ended] = share[ended]
        self._running[:] = False
        return Step(reward, ended, np.zeros(self.n_envs, np.bool_))

    def outcome(self) -> Floats:
        """[B] the share of agreement."""
        return self._agreement.copy()

    def running(self) -> Bools:
        """[B]"""
        return self._running.copy()

    def reseed(self, seeds: Seeds) -> None:
        """Nothing is left to chance."""

    def get_state(self) -> State:
        """Which line is where, and what came of it."""
        return {"line": self.line.copy(), "running": self._running.copy(), "agreement": self._agreement.copy()}

    def set_state(self, state: State) -> None:
        """Go on from what `get_state` returned."""
        self.line[...], self._running[...] = state["line"], state["running"]
        self._agreement[...] = state["agreement"]
        self._write(np.arange(self.n_envs))

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[LogEnv], Policy]]:
        """What was done."""
        return {"taken": Taken}


class Taken(Policy):
    """Does what was done, as the file says."""

    name = "taken"

    def __init__(self, env: LogEnv) -> None:
        self._env = env

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N]"""
        del observation
        return self._env.taken


def leaves_idle(taken: Decision) -> bool:
    """Whether an agent was left without a task although one that it may take had capacity for it."""
    observed, (n, m) = taken.observation, taken.size

    def field(value: object, default: float, shape: tuple[int, ...]) -> Floats:
        return np.full(shape, default) if value is None else np.asarray(value, np.float64)

    agents, tasks = field(observed.agent_alive, 1, (n,)), field(observed.task_alive, 1, (m,))
    allowed, uses = field(observed.allowed, 1, (n, m)), field(observed.contributions, 1, (n, m))
    capacities, load = field(observed.capacities, 1, (m,)), np.zeros(m)
    for agent in np.flatnonzero(taken.assignment >= 0):
        task = taken.assignment[agent]
        load[task] += uses[agent, task]
    free = (load + uses <= capacities + SLACK) & (tasks > 0) & (allowed > 0)
    return bool((free.any(axis=1) & (taken.assignment < 0) & (agents > 0)).any())


def _stamp(file: str) -> int:
    """Time of the last change of the file, or of the newest in the folder; 0 if it does not exist."""
    return max((path.stat().st_mtime_ns for path in files_of(Path(file)) if path.exists()), default=0)


@lru_cache(maxsize=4)
def _read(path: str, stamp: int) -> list[Decision]:
    """A file is read once, however many batches are made of it."""
    del stamp
    return read_log(Path(path))


def from_options(text: str, n_envs: int) -> LogEnv:
    """The environment that `text` names: "FILE" or "FILE,set=validation"."""
    file, *texts = text.split(",")
    return LogEnv(LogSettings(file, **read_options(LogSettings, texts, "log setting", skip=("file",))), n_envs)
