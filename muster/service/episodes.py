"""The environments and policies that the page may run, and their episodes: run once, kept for a while.

The name of an environment may hold a module to import or a file to read, and that of a policy a path. The page may run
the environments that come with muster and read no files, up to a size, those that `--envs` names, the served policies,
and the runs in the service's folder.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from muster.data import BatchObservation
from muster.envs.registry import BUILT_IN, EXAMPLES, kind_of, make
from muster.envs.size import Size, size_of
from muster.envs.vector import BatchEnv, Policy, Step
from muster.errors import InputError, MusterError, UnknownNameError
from muster.evaluation.captions import caption, label
from muster.evaluation.replay import Film, Replay, film, record
from muster.evaluation.runs import read_runs
from muster.policy.learned import LearnedPolicy
from muster.policy.names import resolve
from muster.rng import episode_seeds
from muster.service.errors import RequestError
from muster.service.policies import Policies, refuse_custom
from muster.service.settings import ServeSettings

MAX_PAIRS = 100_000
MAX_CELLS = 250_000
MAX_STEPS = 20_000
MAX_ROLLOUTS = 32
MAX_FUTURES = 32
HORIZON = 25
"""Decisions of a look-ahead with one future."""
MAX_NAME = 300
KEPT = 12
"""Episodes."""
SIZES = {
    "rescue": (
        *("rescue:2x4", "rescue:5x10", "rescue:8x15", "rescue:20x40,grid=32"),
        *("rescue:100x200,grid=64", "rescue:200x400,grid=100"),
    ),
    "battle": ("battle:m10v10", "battle:w15v17", "battle:w30v34", "battle:zh10v10", "battle:w80v82"),
    "pursuit": ("pursuit:4x2", "pursuit:8x4", "pursuit:20x10", "pursuit:40x20"),
    "fleet": ("fleet:24,city=small", "fleet:60,city=small", "fleet:100,city=large"),
}
LOOK_AHEAD = re.compile(r"(.+), (\d{1,6}) rollouts(?: x (\d{1,6}) futures)?")


class Environments:
    """The environments and policies that the page may run."""

    def __init__(self, settings: ServeSettings, policies: Policies) -> None:
        self.policies, self.runs = policies, settings.runs
        self._kinds = list(dict.fromkeys([*SIZES, *policies.custom]))

    def as_json(self) -> list[dict[str, Any]]:
        """Every kind of environment, with examples of sizes and its policies."""
        runs = [run for run in read_runs(self.runs) if run["policy"] and run["name"] not in self.policies.now]
        learned = [("learned", name, one.policy.header.get("env", "")) for name, one in self.policies.now.items()]
        learned += [("run", run["name"], run["env"]) for run in runs]
        kinds: list[dict[str, Any]] = []
        for kind in self._kinds:
            examples = SIZES.get(kind, (kind,))
            try:
                env = make(examples[0])
            except MusterError as error:
                kinds.append({"kind": kind, "examples": examples, "policies": [], "error": str(error)})
                continue
            names = [("baseline", name) for name in env.baselines()]
            names += [(source, name) for source, name, trained_on in learned if kind_of(str(trained_on)) == kind]
            words = caption(kind)
            kinds.append(
                {
                    "kind": kind,
                    "title": words.title,
                    "about": words.about,
                    "arranges": env.renderer().can("arrange"),
                    "examples": examples,
                    "policies": [{"name": name, "label": label(name, kind), "kind": source} for source, name in names],
                }
            )
        return kinds

    def make(self, text: str) -> BatchEnv:
        """The environment of that name; InputError if the page may not run it."""
        if not text or len(text) > MAX_NAME:
            raise InputError(f"env must name an environment such as {EXAMPLES[0]}, got {text!r:.80}")
        kind = kind_of(text)
        if kind not in self._kinds:
            raise UnknownNameError("environment that this service runs", kind[:80], self._kinds)
        options = text.partition(":")[2].split(",")
        if kind in BUILT_IN:
            if any(option.partition("=")[0].strip() == "trips" for option in options):
                raise InputError("env: recorded trips are files of this machine, which a page may not read")
            if size := size_of(kind, ",".join(options)):
                check_size(size)
        env = make(text)
        check_size(Size(env.n_agents, env.n_tasks, 0, env.max_steps))
        return env

    def find_policy(self, name: str, env: BatchEnv) -> Policy:
        """The policy of that name for the environment; InputError if the page may not run it.

        "NAME, 8 rollouts" is a learned policy that looks ahead; so is "NAME, 8 rollouts x 16 futures".
        """
        if name in env.baselines():
            return resolve(name, env)
        look_ahead = LOOK_AHEAD.fullmatch(name)
        if look_ahead is None:
            return resolve(self._learned(name, env), env)
        rollouts, futures = int(look_ahead[2]), int(look_ahead[3] or 1)
        if not 2 <= rollouts <= MAX_ROLLOUTS:
            raise InputError(f"policy: look-ahead takes from 2 to {MAX_ROLLOUTS} rollouts here, got {rollouts}")
        if not 1 <= futures <= MAX_FUTURES:
            raise InputError(f"policy: look-ahead takes from 1 to {MAX_FUTURES} futures here, got {futures}")
        policy = self._learned(look_ahead[1], env).variant(name=name)
        horizon = HORIZON if futures == 1 else None
        return resolve(policy.with_rollouts(rollouts, futures=futures, horizon=horizon), env)

    def _learned(self, name: str, env: BatchEnv) -> LearnedPolicy:
        """A served policy, or that of a run."""
        if name in self.policies.now:
            return self.policies.now[name].policy
        runs = {run["name"]: run["policy"] for run in read_runs(self.runs) if run["policy"]}
        if name not in runs:
            raise UnknownNameError(f"policy for {env.name}", name[:80], [*env.baselines(), *self.policies.now, *runs])
        policy = LearnedPolicy.load(runs[name]).variant(name=name)
        refuse_custom(policy, self.policies.custom)
        return policy


def check_size(size: Size) -> None:
    """Refuse an environment that is too large for the page."""
    for name, value, limit in (
        ("pairs of an agent and a task", size.agents * size.tasks, MAX_PAIRS),
        ("cells", size.cells, MAX_CELLS),
        ("steps", size.steps, MAX_STEPS),
    ):
        if value > limit:
            raise InputError(f"env: the page runs up to {limit:,} {name}, got {value:,}")


class Episode:
    """One episode of one policy."""

    def __init__(self, policy: Policy, env: BatchEnv, replay: Replay) -> None:
        self.policy, self.env, self.replay = policy, env, replay
        self.lock = threading.Lock()
        self._step = -1
        self._steps: Iterator[Step] = iter(())

    @cached_property
    def film(self) -> Film:
        """Its scenes."""
        self._step = -1
        return film(self.replay, self.env)

    def observe(self, step: int) -> BatchObservation:
        """The observation before a decision; going back runs the episode again."""
        if not 0 <= step < len(self.replay.assignments):
            raise InputError(f"step must be from 0 to {len(self.replay.assignments) - 1}, got {step}")
        if self._step < 0 or step < self._step:
            self._step, self._steps = 0, self.replay.steps(self.env)
            # The generator resets the environment with its first step.
            self.env.reset(np.arange(1), episode_seeds(self.replay.seed, np.arange(1)))
        while self._step < step:
            next(self._steps)
            self._step += 1
        return self.env.observe()


class Episodes:
    """The most recent episodes."""

    def __init__(self, environments: Environments) -> None:
        self._environments = environments
        self._lock = threading.Lock()
        self._episodes: OrderedDict[tuple[str, int, str], Episode] = OrderedDict()

    def find(self, env_name: str, seed: int, policy_name: str, deadline: float) -> Episode:
        """The episode of a policy: from memory, or run now; RequestError if that takes too long."""
        env = self._environments.make(env_name)
        key = (env.name, seed, policy_name)
        with self._lock:
            if key in self._episodes:
                self._episodes.move_to_end(key)
                return self._episodes[key]
        policy = self._environments.find_policy(policy_name, env)

        def check_time() -> None:
            if time.monotonic() > deadline:
                raise RequestError("time_limit", f"{policy_name} on {env.name} took too long")

        episode = Episode(policy, env, record(policy, env, seed, check_time))
        with self._lock:
            self._episodes[key] = episode
            while len(self._episodes) > KEPT:
                self._episodes.popitem(last=False)
        return episode
