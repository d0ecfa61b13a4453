"""The features of a fleet, and the arrays of its observations.

Units mean the same in any city and with any number of vehicles: money in mean margins of a request, vehicles and
requests of a zone in mean vehicles per zone, trips in mean minutes of a trip, waiting in units of five minutes.
Positions are not observed; instead a zone has its demand, the probability of a request there, and its worth
(core/envs/fleet/worth.hpp).
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from muster.data import Bools, Floats, Floats32

FEATURE_NAMES = {
    "agent": ("free in", "empty", "worth", "chance", "demand after"),
    "task": (
        *("margin", "minutes", "open vehicles", "requests here", "demand here"),
        *("chance there", "demand there", "worth there"),
    ),
    "pair": ("profit", "pick-up in", "worth gained", "empty driving"),
    "task_pair": ("same pick-up", "same drop-off", "minutes between drop-offs"),
    "global": ("time", "busyness", "empty vehicles", "requests now"),
}


class Buffers(NamedTuple):
    """The arrays of an observation, in the kernel's order."""

    agents: Floats32
    tasks: Floats32
    pairs: Floats32
    task_pairs: Floats32
    global_features: Floats32
    task_alive: Bools
    allowed: Bools
    prior: Floats

    @classmethod
    def empty(cls, b: int, n: int, m: int, pairs: bool) -> Buffers:
        """Arrays for B environments, N vehicles and M requests, with pair features or without."""
        width = {kind: len(names) if pairs or "pair" not in kind else 0 for kind, names in FEATURE_NAMES.items()}
        return cls(
            agents=np.empty((b, n, width["agent"]), np.float32),
            tasks=np.empty((b, m, width["task"]), np.float32),
            pairs=np.empty((b, n, m, width["pair"]), np.float32),
            task_pairs=np.empty((b, m, m, width["task_pair"]), np.float32),
            global_features=np.empty((b, width["global"]), np.float32),
            task_alive=np.empty((b, m), np.bool_),
            allowed=np.empty((b, n, m), np.bool_),
            prior=np.empty((b, n, m)),
        )


class BufferPool:
    """Buffers that are reused once no observation refers to any of their arrays.

    The page faults of fresh memory take as long as filling it.
    """

    KEPT = 3
    """The present observation, the one before, and one to fill."""
    UNUSED = 3
    """References to an unused array: by its buffers, by the loop, and by the call that counts them."""

    def __init__(self, n_envs: int, n_agents: int, n_tasks: int, *, pairs: bool) -> None:
        self._shape = n_envs, n_agents, n_tasks, pairs
        self._kept: list[Buffers] = []

    def take(self) -> Buffers:
        """Buffers that are not in use, with arbitrary content."""
        for buffers in self._kept:
            if all(sys.getrefcount(array) <= self.UNUSED for array in buffers):
                return buffers
        buffers = Buffers.empty(*self._shape)
        if len(self._kept) < self.KEPT:
            self._kept.append(buffers)
        return buffers
