"""A log of decisions as an environment: an episode is one situation, its return the share of agents that agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.log.lines import Decision, files_of, read_log
from muster.envs.padding import Padded
from muster.envs.vector import BatchEnv, Policy, State, Step
from muster.errors import InputError
from muster.rng import Seeds
from muster.settings import check_fields, read_options

HELD_OUT = 10
"""Every tenth line is held out from training, for validation."""
SLACK = 1e-9
"""By which loads may exceed a capacity before they count as too much."""


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
