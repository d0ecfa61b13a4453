"""The base of environments with compiled steps: a state of named arrays, which kernels change in place."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from muster.data import Ints
from muster.envs.vector import BatchEnv, State, Step
from muster.errors import InputError
from muster.parallel import share_out, thread_count
from muster.rng import Seeds
from muster.settings import to_text

Threads = Literal["auto", "one", "all"]


class CompiledEnv(BatchEnv):
    """An environment that is reset and stepped by a class of `core`."""

    kernel: Any
    """Made once from `arrays()`, which it changes in place."""

    def set_size(self, n_envs: int, n_agents: int, n_tasks: int, worthwhile: int, threads: Threads = "auto") -> None:
        """Set the sizes, and the most threads for a step: `worthwhile` ones ("auto"), one, or one per core ("all")."""
        if n_envs < 1:
            raise InputError(f"a batch needs at least 1 environment, got {n_envs}")
        self.n_envs, self.n_agents, self.n_tasks = n_envs, n_agents, n_tasks
        self._most_threads = {"auto": worthwhile, "one": 1, "all": n_envs}[threads]

    @abstractmethod
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """The whole state of the running episodes: arrays with a row for each slot."""

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Reset `slots[k]` to the first state of the episode of `seeds[k]`."""
        self.kernel.reset(np.asarray(slots, np.int64), np.asarray(seeds, np.uint64))

    def step(self, assignment: Ints) -> Step:
        """Carry out one decision; raises InputError for a task that is not -1 to M - 1."""
        assignment = np.ascontiguousarray(assignment, np.int64)
        if assignment.shape != (self.n_envs, self.n_agents):
            raise InputError(f"the assignment must have shape {(self.n_envs, self.n_agents)}, got {assignment.shape}")
        bad = self.kernel.first_bad_task(assignment)
        if bad >= 0:
            slot, agent = divmod(bad, self.n_agents)
            raise InputError(
                f"tasks are -1 to {self.n_tasks - 1}, got {assignment[slot, agent]} for agent {agent} of slot {slot}"
            )
        result = Step(np.empty(self.n_envs), np.empty(self.n_envs, np.bool_), np.empty(self.n_envs, np.bool_))

        def step_part(begin: int, end: int) -> None:
            self.kernel.step(begin, end, assignment, *result)

        self.share_out(step_part)
        return result

    def share_out(self, work: Callable[[int, int], None]) -> None:
        """Call `work(begin, end)` on equal parts of the slots, one thread each."""
        if self._most_threads <= 1:
            work(0, self.n_envs)
        else:
            share_out(self.n_envs, min(self.threads or thread_count(), self._most_threads), work)

    def get_state(self) -> State:
        """Copies of every array, by name."""
        return {name: array.copy() for name, array in self.arrays().items()}

    def set_state(self, state: State) -> None:
        """Restore what `get_state` returned."""
        for name, array in self.arrays().items():
            array[...] = state[name]


def env_name(head: str, settings: Any, size: tuple[str, ...]) -> str:
    """An environment string: `head`, which includes the settings in `size`, and all others not at their default."""
    changed = [
        f"{field.name}={to_text(getattr(settings, field.name))}"
        for field in dataclasses.fields(settings)
        if field.name not in size and getattr(settings, field.name) != field.default
    ]
    return ",".join([head, *changed])
