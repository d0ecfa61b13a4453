"""The training loop: learner, log, checkpoints, best policy. Interrupted at any moment, it goes on bit for bit."""

from __future__ import annotations

import dataclasses
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muster.envs.base import BatchEnv
from muster.envs.registry import make
from muster.errors import InputError, MissingExtraError
from muster.evaluation.rollout import run_episodes
from muster.inference.settings import InferenceSettings
from muster.learning.episodes import VALIDATION
from muster.learning.evolution import Evolution
from muster.learning.run import Run
from muster.learning.settings import TrainSettings
from muster.policy.learned import LearnedPolicy
from muster.rng import episode_seeds
from muster.scoring.spec import ModelSpec

if TYPE_CHECKING:
    from muster.learning.actor_critic import ActorCritic

DEFAULT_MINUTES = 5.0

Report = Callable[[dict[str, Any], float], None]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    policy: LearnedPolicy
    """The best by training reward."""
    steps: int
    cpu_minutes: float
    finished: bool
    """False if it was interrupted."""


def train(
    env: str,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    report: Report | None = None,
    **settings: Any,
) -> LearnedPolicy:
    """Learn a policy on a small world and return the best one by training reward.

    The settings are those of `muster.learning.settings.TrainSettings`. With `out`, the run's folder keeps log,
    checkpoint and policies, and `resume` goes on with it.
    """
    return run_training(TrainSettings(env=env, **settings), None if out is None else Path(out), resume, report).policy


def run_training(
    settings: TrainSettings, out: Path | None = None, resume: bool = False, report: Report | None = None
) -> Outcome:
    """Train as the settings say; `report` hears every row of the log and how far the run is (0 to 1)."""
    run: Run | None = None
    if resume:
        if out is None:
            raise InputError("resume needs the folder of the run (out)")
        run, stored = Run.reopen(out)
        if stored.env != settings.env:
            raise InputError(f"{out} holds a run on {stored.env}, not on {settings.env}")
        longer = settings.minutes is not None or settings.steps is not None
        settings = dataclasses.replace(stored, minutes=settings.minutes, steps=settings.steps) if longer else stored
    elif out is not None:
        run = Run.create(out, settings)
    loop = Loop(settings, run)
    return loop.go(report)


class Loop:
    """One training run in progress."""

    def __init__(self, settings: TrainSettings, run: Run | None) -> None:
        self.settings, self.run = settings, run
        self.learner = make_learner(settings)
        self.updates = 0
        self.cpu_before = 0.0
        self.best_reward = -math.inf
        self.best: dict[str, NDArray[Any]] = {}
        self.window: list[dict[str, float]] = []
        saved = run.load_checkpoint() if run else None
        if saved:
            self._restore(*saved)
        self.began = time.process_time()
        self.stopped = False

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the run so far: what came before a resumption included, the first update after it not."""
        return self.cpu_before + time.process_time() - self.began

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        if self.settings.steps is not None:
            return self.learner.steps / self.settings.steps
        return self.cpu_seconds / 60 / (self.settings.minutes or DEFAULT_MINUTES)

    def go(self, report: Report | None) -> Outcome:
        """Train until the end, or until interrupted: then the state is saved after the update that was under way."""
        settings, learner = self.settings, self.learner
        first = True
        with self._interruptible():
            while self.progress < 1 and not self.stopped:
                before = learner.steps
                self.window.append(learner.update(self.progress))
                self.updates += 1
                if first:  # kernels were compiled or loaded on the way: that is not training
                    self.began, first = time.process_time(), False
                if crossed(before, learner.steps, settings.log_every):
                    row = self._log(crossed(before, learner.steps, settings.evaluate_every))
                    if report:
                        report(row, min(self.progress, 1.0))
                if crossed(before, learner.steps, settings.checkpoint_every):
                    self._save()
        finished = not self.stopped
        if self.window and finished:
            self._log(validate=True)
        self._save()
        policy = self._best_policy()
        outcome = Outcome(policy, learner.steps, self.cpu_seconds / 60, finished)
        if self.run and finished:
            if not self.best:  # so short that no episode ended: there is nothing to tell policies apart by
                self.run.save_policy(policy, "best")
            self.run.save_policy(learner.policy(), "last")
            self.run.finish(self._summary(outcome))
        return outcome

    def _log(self, validate: bool) -> dict[str, Any]:
        window, self.window = self.window, []
        ended = np.array([entry["episodes"] for entry in window])
        row: dict[str, Any] = {"steps": self.learner.steps, "updates": self.updates, "episodes": int(ended.sum())}
        for name in window[0]:
            values = np.array([entry[name] for entry in window])
            known = np.isfinite(values) & (ended > 0 if name in ("outcome", "reward") else True)
            weights = ended[known] if name in ("outcome", "reward") else None
            if name != "episodes" and known.any():
                row[name] = float(np.average(values[known], weights=weights))
        reward = row.get("reward", -math.inf)
        # Evolution's rows differ by which few battles all candidates shared more than by the policy: the last counts.
        if reward > self.best_reward or (self.settings.learner == "es" and np.isfinite(reward)):
            self.best_reward = reward
            self.best = self.learner.policy().parameters
            if self.run:
                self.run.save_policy(self._best_policy(), "best")
        if validate:
            row["validation"] = self.validate()
        row["cpu_seconds"] = self.cpu_seconds
        row["steps_per_second"] = self.learner.steps / max(self.cpu_seconds, 1e-9)
        if self.run:
            self.run.log(row)
        return row

    def validate(self) -> float:
        """Mean outcome of the present policy, without noise, on held-out episodes."""
        settings = self.settings
        env = prepare_env(settings, min(256, settings.evaluate_episodes))
        seeds = episode_seeds(VALIDATION, np.arange(settings.evaluate_episodes))
        return float(run_episodes(env, self.learner.policy(), seeds).outcome.mean())

    def _best_policy(self) -> LearnedPolicy:
        policy = self.learner.policy()
        if self.best:
            policy.parameters = self.best
        policy.header = {
            **policy.header,
            "seed": self.settings.seed,
            "learner": self.settings.learner,
            "steps": self.learner.steps,
            "cpu_minutes": round(self.cpu_seconds / 60, 3),
            "training_reward": None if not self.best else self.best_reward,
        }
        return policy

    def _summary(self, outcome: Outcome) -> dict[str, Any]:
        return {
            "env": self.settings.env,
            "inference": self.settings.inference,
            "model": self.settings.model,
            "learner": self.settings.learner,
            "seed": self.settings.seed,
            "steps": outcome.steps,
            "updates": self.updates,
            "cpu_minutes": outcome.cpu_minutes,
            "best_training_reward": self.best_reward if self.best else None,
        }

    def _save(self) -> None:
        if self.run is None:
            return
        arrays, plain = self.learner.get_state()
        arrays = {f"learner/{name}": np.ascontiguousarray(array) for name, array in arrays.items()}
        arrays |= {f"best/{name}": array for name, array in self.best.items()}
        self.run.save_checkpoint(
            arrays,
            {
                "learner": plain,
                "updates": self.updates,
                "cpu_seconds": self.cpu_seconds,
                "best_reward": self.best_reward if self.best else None,
                "window": self.window,
            },
        )

    def _restore(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        def part(prefix: str) -> dict[str, NDArray[Any]]:
            return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

        self.learner.set_state(part("learner/"), plain["learner"])
        self.best = part("best/")
        self.best_reward = -math.inf if plain["best_reward"] is None else plain["best_reward"]
        self.updates, self.cpu_before, self.window = plain["updates"], plain["cpu_seconds"], plain["window"]

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C ends the loop after the present update; a second one ends it at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(signum: int, frame: FrameType | None) -> None:
            if self.stopped:
                raise KeyboardInterrupt
            self.stopped = True

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def crossed(before: int, after: int, every: int) -> bool:
    """Whether a multiple of `every` lies in (before, after]."""
    return before // every != after // every


def prepare_env(settings: TrainSettings, n_envs: int) -> BatchEnv:
    """The world of the settings, showing what the model reads."""
    env = make(settings.env, n_envs, settings.seed)
    conv = settings.model == "pem" or (settings.learner == "a2c" and settings.a2c.critic == "conv")
    env.show(pair_features=settings.pair_features, planes=conv)
    return env


def make_learner(settings: TrainSettings) -> ActorCritic | Evolution:
    """World, model and learner of the settings."""
    es = settings.es
    env = prepare_env(settings, 2 * es.pairs * es.episodes if settings.learner == "es" else settings.a2c.envs)
    env.threads = 1  # one core a run: several runs share a machine better than one run its threads
    if settings.centred and not env.positions:
        raise InputError(f"{env.name} names no positions to measure from the middle; leave out --centred")
    centred = env.positions if settings.centred else ()
    spec = ModelSpec.of(env.observe(), settings.model, task_scores=settings.inference == "quad", centred=centred)
    forced = settings.forced if settings.forced is not None else not env.idling
    inference = InferenceSettings(settings.inference, settings.effort, settings.rounding, forced)
    header = {"env": settings.env}
    if settings.learner == "es":
        return Evolution(env, spec, inference, es, settings.seed, header)
    try:
        import torch
    except ImportError:
        raise MissingExtraError("the a2c learner", "train") from None
    from muster.learning.actor_critic import ActorCritic

    # One thread: the networks are small, and a run is then the same on every machine with these libraries.
    torch.set_num_threads(1)
    return ActorCritic(env, spec, inference, settings.a2c, settings.seed, header)
