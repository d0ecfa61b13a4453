"""The features of a fleet, and the arrays that they are written to.

They are in units that mean the same in another city and with another number of vehicles: money in mean margins of a
request, vehicles and requests in a zone in mean vehicles a zone, trips in mean minutes of a trip, waiting in fives.
Positions are not observed: what a zone is good for is observed through its demand, the chance to be needed there, and
its worth, which core/envs/fleet/worth.hpp explains.
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
    """The arrays of an observation, to be filled; in the order in which the kernel takes them."""

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
        """Arrays for B environments, N vehicles and M requests, with features of pairs or without."""
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
    """Buffers that are handed out again once no observation refers to any of their arrays.

    Touching fresh memory page by page takes as long as all that is written to it.
    """

    KEPT = 3
    """The present observation, the one before, and one to fill."""
    UNUSED = 3
    """References to an array that is here only: of its buffers, of the loop, and of the call that counts them."""

    def __init__(self, n_envs: int, n_agents: int, n_tasks: int, *, pairs: bool) -> None:
        self._shape = n_envs, n_agents, n_tasks, pairs
        self._kept: list[Buffers] = []

    def take(self) -> Buffers:
        """Buffers with anything in them."""
        for buffers in self._kept:
            if all(sys.getrefcount(array) <= self.UNUSED for array in buffers):
                return buffers
        buffers = Buffers.empty(*self._shape)
        if len(self._kept) < self.KEPT:
            self._kept.append(buffers)
        return buffers
