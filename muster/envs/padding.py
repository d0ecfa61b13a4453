"""Observations of several environments, of any sizes, as one padded BatchObservation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muster.data import BatchObservation, Ints
from muster.envs.env import Observation
from muster.errors import InputError


@dataclass(frozen=True, slots=True)
class Block:
    """How one field of an observation becomes an array."""

    axes: str
    """N agents, M tasks, F a width of its own that never changes."""
    kind: type
    padding: float
    """What stands where there is nothing."""
    default: float | None = None
    """What it means to leave the field out; None: then it is left out always."""


BLOCKS = {
    "agent_features": Block("NF", np.float32, 0),
    "task_features": Block("MF", np.float32, 0),
    "pair_features": Block("NMF", np.float32, 0),
    "task_pair_features": Block("MMF", np.float32, 0),
    "agent_alive": Block("N", np.bool_, 0, default=1),
    "task_alive": Block("M", np.bool_, 0, default=1),
    "contributions": Block("NM", np.float64, 1, default=1),
    "capacities": Block("M", np.float64, 1, default=1),
    "minimums": Block("M", np.float64, 0),
    "allowed": Block("NM", np.bool_, 0),
    "prior": Block("NM", np.float64, 0),
    "task_prior": Block("MM", np.float64, 0),
    "global_features": Block("F", np.float32, 0),
    "agent_ids": Block("N", np.int64, -1),
    "task_ids": Block("M", np.int64, -1),
    "switch_cost": Block("NM", np.float64, 0),
    "previous": Block("N", np.int64, -1),
}
# An observation has these always, if need be with width 0.
ALWAYS = ("pair_features", "task_pair_features")


class WrongNumberError(InputError):
    """A number in an observation that is not allowed, and the slot of the observation."""

    def __init__(self, text: str, slot: int) -> None:
        super().__init__(text)
        self.slot = slot


class Padded:
    """B rows of every block. Those that the first observation has are those that there are."""

    def __init__(
        self,
        name: str,
        n_envs: int,
        n_agents: int,
        n_tasks: int,
        switch_cost: ArrayLike = 0.0,
        widths: Mapping[str, int] | None = None,
    ) -> None:
        """`widths` are those of blocks of which no observation has a row: [] does not tell how wide one is.

        None: some observation must tell them before there is a batch.
        """
        self.name = name
        self._widths = widths
        self._untold: set[str] = set()
        """Blocks of which no observation so far has told the width."""
        self.switch_cost = np.asarray(switch_cost, np.float64)
        """A number or [N, M], for observations that do not have their own."""
        self.most = n_agents, n_tasks
        self.sizes: Ints = np.zeros((n_envs, 2), np.int64)
        """[B, 2] agents and tasks of each observation."""
        self.arrays: dict[str, NDArray[Any]] = {}
        self._absent: list[str] = []
        self._never_given = {name for name, block in BLOCKS.items() if block.default is not None}
        self._sizes_before: list[tuple[int, int] | None] = [None] * n_envs

    def write(self, slot: int, observation: Observation) -> None:
        """Put an observation into its row; raises InputError where its shapes do not fit."""
        if not self.arrays:
            self._begin(observation)
        agents, tasks = self._size(observation)
        resized = self._sizes_before[slot] != (agents, tasks)
        if resized:
            self.sizes[slot] = agents, tasks
        for name, array in self.arrays.items():
            value = getattr(observation, name)
            if value is None and name == "capacities" and observation.minimums is not None:
                value = np.maximum(1.0, np.asarray(observation.minimums, np.float64))
            if value is None:
                # The default of what no observation has ever given stands there already, unless the size changed.
                if resized or name not in self._never_given:
                    self._leave_out(name, slot, agents, tasks)
                continue
            self._never_given.discard(name)
            given = np.asarray(value)
            if name in self._untold and given.ndim == len(BLOCKS[name].axes):
                array = self._widen(name, given.shape[-1])
            wanted = _shape(BLOCKS[name].axes, agents, tasks, array.shape[-1])
            if given.shape != wanted:
                given = self._fit(name, given, wanted)
            if wanted == array.shape[1:]:
                array[slot] = given
            else:
                array[slot] = BLOCKS[name].padding
                array[slot][_corner(wanted)] = given
            if array.dtype == np.int64 and given.dtype.kind not in "iu" and given.size:
                raise InputError(f"{name} of {self.name} must be whole numbers, got {given.dtype}")
        for name in self._absent:
            if getattr(observation, name) is not None:
                raise InputError(f"{name} of {self.name} must be in every observation or in none; the first had none")
        self._sizes_before[slot] = agents, tasks

    def check(self, slots: Ints) -> None:
        """Raise WrongNumberError for numbers in these rows that are not finite, or negative where they must not be."""
        for name, array in self.arrays.items():
            if array.dtype.kind != "f":
                if name.endswith("_ids"):
                    self._check_ids(name, slots)
                continue
            rows = array[slots]
            fine = np.isfinite(rows)
            if name == "capacities":
                fine |= rows == np.inf
            if name in ("capacities", "minimums", "contributions", "switch_cost"):
                fine &= rows >= 0
            if not fine.all():
                slot, *where = np.argwhere(~fine)[0].tolist()
                wanted = "must be finite" if not np.isfinite(rows[(slot, *where)]) else "must not be negative"
                text = f"{name} of {self.name} {wanted}, got {rows[(slot, *where)]} at {where}"
                raise WrongNumberError(text, int(slots[slot]))

    def observation(self, previous: Ints) -> BatchObservation:
        """Everything, in fresh arrays; `previous` [B, N] where the observations do not have it."""
        if self._untold and self._widths is None:
            name = min(self._untold)
            raise InputError(
                f"{name} of {self.name} are empty, and no observation so far has told how many columns there are: give "
                "an empty array with that many, such as np.zeros((0, 3)), rather than []"
            )
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        arrays.setdefault("previous", previous)
        n_envs, (agents, tasks) = len(self.sizes), self.most
        if "switch_cost" not in arrays and self.switch_cost.any():
            arrays["switch_cost"] = np.tile(np.broadcast_to(self.switch_cost, (agents, tasks)), (n_envs, 1, 1))
        for name in ALWAYS:
            if name not in arrays:
                shape = _shape(BLOCKS[name].axes, agents, tasks, 0)
                arrays[name] = np.zeros((n_envs, *shape), np.float32)
        return BatchObservation(**arrays)

    def _begin(self, observation: Observation) -> None:
        for name, block in BLOCKS.items():
            value = getattr(observation, name)
            if value is None and block.default is None:
                self._absent.append(name)
                continue
            width = np.shape(value)[-1] if block.axes.endswith("F") and np.ndim(value) else 0
            if block.axes.endswith("F") and np.ndim(value) < len(block.axes) and not np.size(value):
                self._untold.add(name)
                width = (self._widths or {}).get(name, 0)
            shape = _shape(block.axes, *self.most, width)
            self.arrays[name] = np.full((len(self.sizes), *shape), block.padding, block.kind)

    def _widen(self, name: str, width: int) -> NDArray[Any]:
        """Arrays with so many columns, now that they are told; nothing was written there yet."""
        self._untold.discard(name)
        shape, block = _shape(BLOCKS[name].axes, *self.most, width), BLOCKS[name]
        self.arrays[name] = np.full((len(self.sizes), *shape), block.padding, block.kind)
        return self.arrays[name]

    def _size(self, observation: Observation) -> tuple[int, int]:
        size = (len(observation.agent_features), len(observation.task_features))  # type: ignore[arg-type]
        for name, found, most in zip(("agents", "tasks"), size, self.most, strict=True):
            if found > most:
                raise InputError(f"{self.name} shows {found} {name}, but its n_{name} says that {most} are the most")
        return size

    def _leave_out(self, name: str, slot: int, agents: int, tasks: int) -> None:
        block, array = BLOCKS[name], self.arrays[name]
        if block.default is None:
            raise InputError(f"{name} of {self.name} must be in every observation or in none; the first had it")
        array[slot] = block.padding
        array[slot][_corner(_shape(block.axes, agents, tasks, 0))] = block.default

    def _fit(self, name: str, given: NDArray[Any], wanted: tuple[int, ...]) -> NDArray[Any]:
        if name == "switch_cost" and given.ndim == 0:
            return np.broadcast_to(given, wanted)
        if given.size == 0 and 0 in wanted:  # no agents or no tasks, written as []
            return given.reshape(wanted)
        agents, tasks = self.most
        most = list(_shape(BLOCKS[name].axes, agents, tasks, wanted[-1]))
        up_to = "" if most == list(wanted) else f" (of at most {most})"
        raise InputError(f"{name} of {self.name} must have shape {list(wanted)}{up_to}, got {list(given.shape)}")

    def _check_ids(self, name: str, slots: Ints) -> None:
        ids = np.sort(self.arrays[name][slots], axis=1)
        twice = (ids[:, 1:] == ids[:, :-1]) & (ids[:, 1:] >= 0)
        if twice.any():
            raise InputError(f"{name} of {self.name} must all be different, got {ids[:, 1:][twice][0]} twice")
        if ids.min(initial=0) < -1:
            raise InputError(f"{name} of {self.name} are whole numbers from 0, or -1 for none, got {ids.min()}")


def observation_of(
    observations: Sequence[Observation], name: str = "the observation", widths: Mapping[str, int] = MappingProxyType({})
) -> BatchObservation:
    """Any observations as one batch, padded to the largest; `previous` is -1 where an observation does not say.

    `widths` are those of features of which no observation has a row, for instance because there are no tasks.
    """
    agents = max(len(observation.agent_features) for observation in observations)  # type: ignore[arg-type]
    tasks = max(len(observation.task_features) for observation in observations)  # type: ignore[arg-type]
    padded = Padded(name, len(observations), agents, tasks, widths=widths)
    for slot, observation in enumerate(observations):
        padded.write(slot, observation)
    padded.check(np.arange(len(observations)))
    return padded.observation(np.full((len(observations), agents), -1, np.int64))


def observation_at(batch: BatchObservation, slot: int, agents: int, tasks: int) -> Observation:
    """One row of an observation without its padding."""
    fields = {}
    for name, block in BLOCKS.items():
        array = getattr(batch, name)
        if array is not None:
            shape = _shape(block.axes, agents, tasks, array.shape[-1])
            fields[name] = array[slot][_corner(shape)]
    return Observation(**fields)


def _corner(shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(size) for size in shape)


@lru_cache(maxsize=4096)
def _shape(axes: str, agents: int, tasks: int, width: int) -> tuple[int, ...]:
    sizes = {"N": agents, "M": tasks, "F": width}
    return tuple(sizes[axis] for axis in axes)
