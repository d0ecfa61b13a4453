"""Episodes that the page watches: played once, kept for a while, and gone through again to explain a step."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from muster.data import BatchObservation
from muster.envs.vector import BatchEnv, Policy, Step
from muster.errors import InputError
from muster.evaluation.film import Film, film
from muster.evaluation.replay import Replay, record
from muster.rng import episode_seeds
from muster.service.refusals import Refusal
from muster.service.worlds import Worlds

KEPT = 12
"""Episodes."""


class Showing:
    """One episode of one policy."""

    def __init__(self, policy: Policy, env: BatchEnv, replay: Replay) -> None:
        self.policy = policy
        self.env = env
        self.replay = replay
        self.lock = threading.Lock()
        self._film: Film | None = None
        self._row = -1
        self._steps: Iterator[Step] = iter(())

    @property
    def film(self) -> Film:
        """Its scenes; made once."""
        if self._film is None:
            self._film = film(self.replay, self.env)
            self._row = -1
        return self._film

    def observe(self, row: int) -> BatchObservation:
        """What was seen before decision `row`; going on is quick, going back plays the episode again."""
        if not 0 <= row < len(self.replay.assignments):
            raise InputError(f"step must be from 0 to {len(self.replay.assignments) - 1}, got {row}")
        if self._row < 0 or row < self._row:
            self._row, self._steps = 0, self.replay.play(self.env)
            # A generator begins the episode when it is first asked.
            self.env.reset(np.arange(1), episode_seeds(self.replay.seed, np.arange(1)))
        while self._row < row:
            next(self._steps)
            self._row += 1
        return self.env.observe()


class Theatre:
    """The episodes of late."""

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int, str], Showing] = OrderedDict()

    def show(self, env: Any, seed: Any, policy: Any, deadline: float) -> Showing:
        """The episode that a policy plays: from memory, or played now; Refusal where that takes too long."""
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**31:
            raise InputError(f"seed must be a whole number from 0 to {2**31 - 1}, got {seed!r:.40}")
        world = self.worlds.make(env)
        key = (world.name, seed, str(policy))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        player = self.worlds.player(policy, world)

        def watch_the_clock() -> None:
            if time.monotonic() > deadline:
                raise Refusal("time_limit", f"{policy} on {world.name} took too long; choose a smaller environment")

        showing = Showing(player, world, record(player, world, seed, watch_the_clock))
        with self._lock:
            self._kept[key] = showing
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return showing
