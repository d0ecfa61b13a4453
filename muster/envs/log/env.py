"""An environment that has one decision of a log per episode; the reward is the agreement with the log's assignment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.log.file import Decision, files_of, read_log
from muster.envs.padding import Padded
from muster.envs.vector import BatchEnv, Policy, State, Step
from muster.errors import InputError
from muster.rng import Seeds
from muster.settings import check_fields, read_options

HELD_OUT = 10
"""Every tenth line is held out from training, for validation."""
SLACK = 1e-9
"""Tolerance of a load above its capacity."""


@dataclass(frozen=True, slots=True)
class LogSettings:
    """A log file, and which of its lines are episodes."""

    file: str
    """JSON Lines, as `muster evaluate … --log FILE` writes them."""
    set: Literal["all", "training", "validation"] = "all"
    """All lines, every tenth (validation), or the others (training)."""

    def __post_init__(self) -> None:
        check_fields(self)


class LogEnv(BatchEnv):
    """Episodes of one decision each, from a log. The one baseline, `taken`, repeats the log's assignments."""

    metric = "agreement"
    max_steps = 1
    random = False

    def __init__(self, settings: LogSettings, n_envs: int) -> None:
        self.name = f"log:{settings.file}" + ("" if settings.set == "all" else f",set={settings.set}")
        self.n_envs = n_envs
        decisions = _read(str(Path(settings.file).resolve()), _modified(settings.file))
        sizes = zip(*(decision.size for decision in decisions), strict=True)
        self.n_agents, self.n_tasks = map(max, sizes)
        self.idling = any(leaves_idle(decision) for decision in decisions)
        held = np.arange(len(decisions)) % HELD_OUT == HELD_OUT - 1
        chosen = {"all": held | True, "training": ~held, "validation": held}[settings.set]
        if not chosen.any():
            raise InputError(f"{self.name} has no lines: of {len(decisions)} every tenth is held out for validation")
        self.lines = [decisions[k] for k in np.flatnonzero(chosen)]
        self.line: Ints = np.zeros(n_envs, np.int64)
        """[B] index of the line in each slot."""
        self._running = np.zeros(n_envs, np.bool_)
        self._agreement = np.zeros(n_envs)
        self._padded = Padded(self.name, n_envs, self.n_agents, self.n_tasks)

    @property
    def taken(self) -> Ints:
        """[B, N] the log's assignment in each slot."""
        taken = np.full((self.n_envs, self.n_agents), -1, np.int64)
        for slot, line in enumerate(self.line):
            assignment = self.lines[line].assignment
            taken[slot, : len(assignment)] = assignment
        return taken

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Reset slots to the lines of their seeds, modulo the number of lines: seed k below it is line k."""
        self.line[slots] = (np.asarray(seeds, np.uint64) % np.uint64(len(self.lines))).astype(np.int64)
        self._running[slots], self._agreement[slots] = True, 0.0
        self._write(slots)

    def _write(self, slots: Ints) -> None:
        for slot in np.asarray(slots).tolist():
            self._padded.write(slot, self.lines[self.line[slot]].observation)

    def all_episodes(self) -> Seeds:
        """The seeds of all lines, in order."""
        return np.arange(len(self.lines), dtype=np.uint64)

    def observe(self) -> BatchObservation:
        """The observation on the line in each slot."""
        return self._padded.observation(np.full((self.n_envs, self.n_agents), -1, np.int64))

    def step(self, assignment: Ints) -> Step:
        """End every episode; reward: share of the agents with a possible task that get the log's task."""
        if assignment.max(initial=-1) >= self.n_tasks:
            raise InputError(f"tasks of {self.name} are 0 to {self.n_tasks - 1}, got {assignment.max()}")
        able = self.observe().pairs.sum(axis=2) > 0
        same = np.where(assignment < 0, -1, assignment) == self.taken
        share = np.where(able.any(1), (same & able).sum(1) / np.maximum(able.sum(1), 1), 1.0)
        reward = np.where(self._running, share, 0.0)
        ended = self._running.copy()
        self._agreement[ended] = share[ended]
        self._running[:] = False
        return Step(reward, ended, np.zeros(self.n_envs, np.bool_))

    def outcome(self) -> Floats:
        """[B] agreement, 0 to 1, in the last step."""
        return self._agreement.copy()

    def running(self) -> Bools:
        """[B] whether the decision is still to be taken."""
        return self._running.copy()

    def reseed(self, seeds: Seeds) -> None:
        """Do nothing: nothing is random."""

    def get_state(self) -> State:
        """Line, running and agreement of each slot."""
        return {"line": self.line.copy(), "running": self._running.copy(), "agreement": self._agreement.copy()}

    def set_state(self, state: State) -> None:
        """Go on from what `get_state` returned."""
        self.line[...], self._running[...] = state["line"], state["running"]
        self._agreement[...] = state["agreement"]
        self._write(np.arange(self.n_envs))

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[LogEnv], Policy]]:
        """`taken`, which repeats the log's assignments."""
        return {"taken": Taken}


class Taken(Policy):
    """The log's own assignments."""

    name = "taken"

    def __init__(self, env: LogEnv) -> None:
        self._env = env

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the log's assignment in each slot."""
        del observation
        return self._env.taken


def leaves_idle(decision: Decision) -> bool:
    """Whether an agent has no task although an allowed one has capacity for it."""
    observed, (n, m) = decision.observation, decision.size

    def field(value: object, default: float, shape: tuple[int, ...]) -> Floats:
        return np.full(shape, default) if value is None else np.asarray(value, np.float64)

    agents, tasks = field(observed.agent_alive, 1, (n,)), field(observed.task_alive, 1, (m,))
    allowed, uses = field(observed.allowed, 1, (n, m)), field(observed.contributions, 1, (n, m))
    capacities, load = field(observed.capacities, 1, (m,)), np.zeros(m)
    assigned = np.flatnonzero(decision.assignment >= 0)
    chosen = decision.assignment[assigned]
    np.add.at(load, chosen, uses[assigned, chosen])
    free = (load + uses <= capacities + SLACK) & (tasks > 0) & (allowed > 0)
    return bool((free.any(axis=1) & (decision.assignment < 0) & (agents > 0)).any())


def _modified(file: str) -> int:
    """When the log, or the newest file of its folder, was last changed; 0 if it does not exist."""
    return max((path.stat().st_mtime_ns for path in files_of(Path(file)) if path.exists()), default=0)


@lru_cache(maxsize=4)
def _read(path: str, modified: int) -> list[Decision]:
    """The decisions of a log, read once for all batches made of it until it is modified."""
    del modified
    return read_log(Path(path))


def from_options(text: str, n_envs: int) -> LogEnv:
    """The environment of "FILE" or "FILE,set=validation"."""
    file, *texts = text.split(",")
    return LogEnv(LogSettings(file, **read_options(LogSettings, texts, "log setting", skip=("file",))), n_envs)
