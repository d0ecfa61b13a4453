"""Episodes that the page shows: run once, kept for a while, and gone through again to explain a step."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from muster.data import BatchObservation
from muster.envs.vector import BatchEnv, Policy, Step
from muster.errors import InputError
from muster.evaluation.replay import Film, Replay, film, record
from muster.rng import episode_seeds
from muster.service.environments import Environments
from muster.service.refusal import Refusal
from muster.service.schema import Body

KEPT = 12
"""Episodes."""


class EpisodeBody(Body):
    """Which episode: of an environment, the one that a seed makes."""

    env: str
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


class Episode:
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
        """What was observed before decision `row`; going on is quick, going back runs the episode again."""
        if not 0 <= row < len(self.replay.assignments):
            raise InputError(f"step must be from 0 to {len(self.replay.assignments) - 1}, got {row}")
        if self._row < 0 or row < self._row:
            self._row, self._steps = 0, self.replay.steps(self.env)
            # A generator begins the episode when it is first asked.
            self.env.reset(np.arange(1), episode_seeds(self.replay.seed, np.arange(1)))
        while self._row < row:
            next(self._steps)
            self._row += 1
        return self.env.observe()


class Episodes:
    """The episodes of late."""

    def __init__(self, environments: Environments) -> None:
        self.environments = environments
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int, str], Episode] = OrderedDict()

    def find(self, body: EpisodeBody, policy_name: str, deadline: float) -> Episode:
        """The episode of a policy: from memory, or run now; Refusal where that takes too long."""
        env = self.environments.make(body.env)
        key = (env.name, body.seed, policy_name)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        policy = self.environments.find_policy(policy_name, env)

        def stop_in_time() -> None:
            if time.monotonic() > deadline:
                raise Refusal("time_limit", f"{policy_name} on {env.name} took too long")

        episode = Episode(policy, env, record(policy, env, body.seed, stop_in_time))
        with self._lock:
            self._kept[key] = episode
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return episode
