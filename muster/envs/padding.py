"""Observations of several environments, of any sizes, padded to one BatchObservation."""

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
    """Shape, dtype and padding of one field of an observation."""

    axes: str
    """N agents, M tasks, F features of this block."""
    kind: type
    padding: float
    """Value beyond the agents and tasks of an observation."""
    default: float | None = None
    """Value of a field that is left out; None: a field is in all observations of an environment or in none."""


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
# These are never None in a batch: they have width 0 if observations leave them out.
ALWAYS = ("pair_features", "task_pair_features")


class WrongNumberError(InputError):
    """A number that an observation must not have, with the slot of the observation."""

    def __init__(self, text: str, slot: int) -> None:
        super().__init__(text)
        self.slot = slot


class Padded:
    """Arrays with B rows for every block of the first observation, which later ones must have too."""

    def __init__(
        self,
        name: str,
        n_envs: int,
        n_agents: int,
        n_tasks: int,
        switch_cost: ArrayLike = 0.0,
        widths: Mapping[str, int] | None = None,
    ) -> None:
        """`widths`: numbers of features of blocks without a row in any observation, where [] does not say.

        None: some observation must have a row before a batch can be made.
        """
        self.name = name
        self._widths = widths
        self._unknown_width: set[str] = set()
        """Blocks of which no observation so far has a row."""
        self.switch_cost = np.asarray(switch_cost, np.float64)
        """A number or [N, M], for observations without `switch_cost`."""
        self.most = n_agents, n_tasks
        self.sizes: Ints = np.zeros((n_envs, 2), np.int64)
        """[B, 2] agents and tasks of each observation."""
        self.arrays: dict[str, NDArray[Any]] = {}
        self._absent: list[str] = []
        self._never_set = {name for name, block in BLOCKS.items() if block.default is not None}
        self._sizes_before: list[tuple[int, int] | None] = [None] * n_envs

    def write(self, slot: int, observation: Observation) -> None:
        """Write an observation to its row; raises InputError if its shapes do not fit."""
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
                # A row of a block that was never set has its default already, unless the size changed.
                if resized or name not in self._never_set:
                    self._write_default(name, slot, agents, tasks)
                continue
            self._never_set.discard(name)
            block = np.asarray(value)
            if block.dtype.kind not in "biuf":
                raise InputError(f"{name} of {self.name} must be numbers, got {block.dtype}")
            if name in self._unknown_width and block.ndim == len(BLOCKS[name].axes):
                self._unknown_width.discard(name)
                array = self._allocate(name, block.shape[-1])
            shape = _shape(BLOCKS[name].axes, agents, tasks, array.shape[-1])
            if block.shape != shape:
                block = self._fit(name, block, shape)
            if shape == array.shape[1:]:
                array[slot] = block
            else:
                array[slot] = BLOCKS[name].padding
                array[slot][_corner(shape)] = block
            if array.dtype == np.int64 and block.dtype.kind not in "iu" and block.size:
                raise InputError(f"{name} of {self.name} must be whole numbers, got {block.dtype}")
        for name in self._absent:
            if getattr(observation, name) is not None:
                raise InputError(f"{name} of {self.name} must be in every observation or in none; the first had none")
        self._sizes_before[slot] = agents, tasks

    def check(self, slots: Ints) -> None:
        """Raise WrongNumberError for a number in these rows that is not finite, or negative but must not be."""
        for name, array in self.arrays.items():
            if array.dtype.kind != "f":
                if name.endswith("_ids"):
                    self._check_ids(name, slots)
                continue
            rows = array[slots]
            valid = np.isfinite(rows)
            if name == "capacities":
                valid |= rows == np.inf
            if name in ("capacities", "minimums", "contributions", "switch_cost"):
                valid &= rows >= 0
            if not valid.all():
                row, *where = np.argwhere(~valid)[0].tolist()
                number = rows[(row, *where)]
                rule = "must not be negative" if np.isfinite(number) else "must be finite"
                raise WrongNumberError(f"{name} of {self.name} {rule}, got {number} at {where}", int(slots[row]))

    def observation(self, previous: Ints) -> BatchObservation:
        """The batch, in new arrays; with `previous` [B, N] if the observations do not have it."""
        if self._unknown_width and self._widths is None:
            raise InputError(
                f"{min(self._unknown_width)} of {self.name} are empty, and so far no observation says how many columns "
                "they have: give an empty array with columns, such as np.zeros((0, 3)), rather than []"
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
                self._unknown_width.add(name)
                width = (self._widths or {}).get(name, 0)
            self._allocate(name, width)

    def _allocate(self, name: str, width: int) -> NDArray[Any]:
        """A new array of a block, full of its padding."""
        shape, block = _shape(BLOCKS[name].axes, *self.most, width), BLOCKS[name]
        self.arrays[name] = np.full((len(self.sizes), *shape), block.padding, block.kind)
        return self.arrays[name]

    def _size(self, observation: Observation) -> tuple[int, int]:
        size = (len(observation.agent_features), len(observation.task_features))  # type: ignore[arg-type]
        for name, count, most in zip(("agents", "tasks"), size, self.most, strict=True):
            if count > most:
                raise InputError(f"{self.name} shows {count} {name}, but its n_{name} says that {most} are the most")
        return size

    def _write_default(self, name: str, slot: int, agents: int, tasks: int) -> None:
        block, array = BLOCKS[name], self.arrays[name]
        if block.default is None:
            raise InputError(f"{name} of {self.name} must be in every observation or in none; the first had it")
        array[slot] = block.padding
        array[slot][_corner(_shape(block.axes, agents, tasks, 0))] = block.default

    def _fit(self, name: str, block: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """The block in the expected shape, if it is a single switch cost or empty; InputError otherwise."""
        if name == "switch_cost" and block.ndim == 0:
            return np.broadcast_to(block, shape)
        if block.size == 0 and 0 in shape:  # no agents or no tasks, written as []
            return block.reshape(shape)
        most = _shape(BLOCKS[name].axes, *self.most, shape[-1])
        up_to = "" if most == shape else f" (of at most {list(most)})"
        wanted = (
            [*shape[:-1], "features"] if block.ndim < len(shape) and BLOCKS[name].axes.endswith("F") else list(shape)
        )
        listed = f"[{', '.join(map(str, wanted))}]{up_to}"
        raise InputError(f"{name} of {self.name} must have shape {listed}, got {list(block.shape)}")

    def _check_ids(self, name: str, slots: Ints) -> None:
        ids = np.sort(self.arrays[name][slots], axis=1)
        repeated = (ids[:, 1:] == ids[:, :-1]) & (ids[:, 1:] >= 0)
        if repeated.any():
            raise InputError(f"{name} of {self.name} must all be different, got {ids[:, 1:][repeated][0]} twice")
        if ids.min(initial=0) < -1:
            raise InputError(f"{name} of {self.name} are whole numbers from 0, or -1 for none, got {ids.min()}")


def observation_of(
    observations: Sequence[Observation], widths: Mapping[str, int] = MappingProxyType({})
) -> BatchObservation:
    """A batch of observations, padded to the largest; `previous` is -1 if they do not have it.

    `widths`: numbers of features of blocks without a row in any observation, for instance because there are no tasks.
    """
    agents = max(len(observation.agent_features) for observation in observations)  # type: ignore[arg-type]
    tasks = max(len(observation.task_features) for observation in observations)  # type: ignore[arg-type]
    padded = Padded("the observation", len(observations), agents, tasks, widths=widths)
    for slot, observation in enumerate(observations):
        padded.write(slot, observation)
    padded.check(np.arange(len(observations)))
    return padded.observation(np.full((len(observations), agents), -1, np.int64))


def observation_at(batch: BatchObservation, slot: int, agents: int, tasks: int) -> Observation:
    """The observation in a slot, without its padding."""
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
