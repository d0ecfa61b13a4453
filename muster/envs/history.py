"""Past assignments and packed states of custom environments, from which episodes are restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import load, save

from muster.data import Ints
from muster.errors import InputError, MusterError

HISTORY_BYTES = 256 * 2**20
"""Most memory of a batch for past assignments; beyond it they are dropped, and `get_state` raises MusterError."""

FIRST_STEPS = 16
# Of PCG64: two numbers of 128 bits, a flag and a number of 32 bits.
GENERATOR_WORDS = 6


class History:
    """The past assignments of B episodes."""

    def __init__(self, n_envs: int, n_agents: int, n_tasks: int, max_steps: int) -> None:
        kind = np.int16 if n_tasks < 2**15 else np.int32
        self.max_steps = max_steps
        self.assignments: NDArray[Any] = np.full((n_envs, min(FIRST_STEPS, max_steps), n_agents), -1, kind)
        """[B, T, N]"""
        self.agents: NDArray[np.int32] = np.zeros(self.assignments.shape[:2], np.int32)
        """[B, T] number of agents at each step."""
        self.kept = True

    def forget(self, slots: Ints) -> None:
        """Clear these slots, so that a state does not depend on earlier episodes."""
        self.assignments[slots] = -1
        self.agents[slots] = 0

    def append(self, slots: Ints, steps: Ints, assignments: Ints, agents: Ints) -> None:
        """Add assignments to these slots, at their step numbers `steps`."""
        if self.kept and len(slots) and steps.max() >= self.assignments.shape[1]:
            self._grow()
        if self.kept:
            self.assignments[slots, steps] = assignments
            self.agents[slots, steps] = agents

    def _grow(self) -> None:
        n_envs, steps, n_agents = self.assignments.shape
        larger = min(2 * steps, self.max_steps)
        if self.assignments.nbytes * larger // steps > HISTORY_BYTES:
            self.kept = False
            self.assignments, self.agents = self.assignments[:, :0], self.agents[:, :0]
            return
        more = larger - steps
        fill = np.full((n_envs, more, n_agents), -1, self.assignments.dtype)
        self.assignments = np.concatenate([self.assignments, fill], axis=1)
        self.agents = np.concatenate([self.agents, np.zeros((n_envs, more), np.int32)], axis=1)

    def arrays(self, steps: Ints, name: str) -> dict[str, NDArray[Any]]:
        """Copies of the past assignments; raises MusterError if they were dropped."""
        if not self.kept:
            raise MusterError(
                f"{len(steps)} episodes of {name} need more than the {HISTORY_BYTES // 2**20} MB that muster keeps "
                "of assignments; define get_state() and set_state(), or use fewer environments"
            )
        last = int(steps.max(initial=0))
        return {"history": self.assignments[:, :last].copy(), "history_agents": self.agents[:, :last].copy()}

    def restore(self, history: NDArray[Any], agents: NDArray[Any]) -> None:
        """Restore what `arrays` returned."""
        while self.kept and self.assignments.shape[1] < history.shape[1]:
            self._grow()
        if self.kept:
            self.assignments[:, : history.shape[1]] = history
            self.agents[:, : history.shape[1]] = agents


def pack_states(states: list[Mapping[str, ArrayLike]], name: str) -> dict[str, NDArray[Any]]:
    """The states of B objects, with arrays of any shapes, as arrays with a row for each object."""
    try:
        packed = [save({key: np.array(value, order="C") for key, value in state.items()}) for state in states]
    except Exception as error:
        raise InputError(f"get_state() of {name} must give numbers and arrays of numbers by name: {error}") from None
    sizes = np.array([len(data) for data in packed], np.int64)
    rows = np.zeros((len(packed), int(sizes.max())), np.uint8)
    for row, data in zip(rows, packed, strict=True):
        row[: len(data)] = np.frombuffer(data, np.uint8)
    return {"own": rows, "own_bytes": sizes}


def unpack_state(row: NDArray[np.uint8], size: int) -> dict[str, NDArray[Any]]:
    """One object's state, in new arrays."""
    return {key: value.copy() for key, value in load(row[:size].tobytes()).items()}


def pack_generator(rng: np.random.Generator) -> NDArray[np.uint64]:
    """[6] the state of numpy's default generator (PCG64)."""
    state: Any = rng.bit_generator.state
    words = [part for number in (state["state"]["state"], state["state"]["inc"]) for part in divmod(number, 2**64)]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def unpack_generator(rng: np.random.Generator, words: NDArray[np.uint64]) -> None:
    """Restore the state of a generator from `pack_generator`."""
    high, low, more, less, flag, half = map(int, words)
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": more << 64 | less},
        "has_uint32": flag,
        "uinteger": half,
    }
