"""The training loop: learner, log, checkpoints, candidates for the best policy."""

from __future__ import annotations

import dataclasses
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muster.checkout import code_commit
from muster.errors import EnvError, MusterError
from muster.evaluation.card import write_run_card
from muster.evaluation.episodes import run_episodes
from muster.learning.envs import make_env
from muster.learning.learner import VALIDATION, checked_update, component, prefixed
from muster.learning.learners import make_learner
from muster.learning.metrics import Metrics, summarise
from muster.learning.run import Run, damaged
from muster.learning.settings import TrainSettings
from muster.learning.speed import run_seconds
from muster.learning.transfer import carried_over, check_fit
from muster.learning.validation import LOG_EPISODES, Validation, validate
from muster.learning.workers import WorkerPool
from muster.models.direct import Parameters
from muster.policy.files import CHECKPOINT
from muster.policy.learned import LearnedPolicy
from muster.policy.names import load
from muster.rng import episode_seeds

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What asks a run to end: Ctrl-C, the system, a terminal that is closed."""
AVERAGED = ("dm", "linear")
"""Kinds of models whose parameters may be averaged: all of them are weights, and few."""


class Report(Protocol):
    """What hears of a run's progress: a function of a row of the log and of how far the run is."""

    def __call__(self, row: Mapping[str, Any], progress: float, /) -> bool | None:
        """`row` has what metrics.jsonl has: steps, updates, episodes, reward, outcome, losses or fitness, cpu_seconds,
        steps_per_second and, after an evaluation, validation. `progress` goes from 0 to 1. True ends the run here, as
        if its time were up.
        """


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    policy: LearnedPolicy
    """The best: of a run with a folder by validation, otherwise by training reward."""
    steps: int
    cpu_minutes: float
    finished: bool
    """False if it was interrupted."""
    validation: Validation | None = None
    """Of a finished run with a folder: what was kept, beside baselines and prior at several sizes."""


class Loop:
    """One training run in progress."""

    def __init__(
        self, settings: TrainSettings, run: Run | None, pool: WorkerPool | None = None, fresh: bool = False
    ) -> None:
        self.settings, self.run, self.pool = settings, run, pool
        self.fresh = fresh
        """Whether the run's folder was made for it just now."""
        self.learner = make_learner(settings, pool)
        commit = code_commit()
        self.origin = {} if commit is None else {"commit": commit}
        """The commit of the code, where it is known."""
        self.updates = 0
        self.cpu_before = 0.0
        self.best_reward = -math.inf
        self.best: dict[str, NDArray[Any]] = {}
        self.window: list[Metrics] = []
        self.advised, self.remark = False, ""
        self.quarters: dict[int, dict[str, NDArray[Any]]] = {}
        """Parameters after one, two and three quarters of the run."""
        self.mean: dict[str, NDArray[Any]] = {}
        """Of the parameters after each update of the later half."""
        self.averaged = 0
        """Over so many updates."""
        saved = run.load_checkpoint() if run else None
        if run and saved:
            try:
                self._restore(*saved)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
                raise damaged(run.folder / CHECKPOINT, error) from None
        elif settings.from_policy is not None:
            self._start_from(load(settings.from_policy).variant(name=settings.from_policy))
        self.began = self._clock()
        self.stopped = False
        self.told_to_end: int | None = None

    def _start_from(self, policy: LearnedPolicy) -> None:
        learner = self.learner
        check_fit(policy, learner.spec, learner.inference.method, learner.envs[0])
        learner.start(carried_over(policy, learner.spec, learner.parameters()))

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the run's updates so far, its workers' included; setting up is not counted."""
        return self.cpu_before + self._clock() - self.began

    def _clock(self) -> float:
        return time.process_time() + (self.pool.cpu_seconds if self.pool else 0.0)

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        if self.settings.steps is not None:
            return self.learner.steps / self.settings.steps
        return self.cpu_seconds / run_seconds(self.settings)

    def go(self, report: Report | None) -> Outcome:
        """Train until the end, or until interrupted: then the state is saved after the update that was under way."""
        learner, enough = self.learner, False
        with self._interruptible():
            while self.progress < 1 and not self.stopped and not enough:
                before = learner.steps
                try:
                    metrics = checked_update(learner, self.progress, str(self.settings.learner))
                except EnvError as failure:
                    raise self._kept(failure) from failure
                self.window.append(metrics | (self.pool.metrics() if self.pool else {}))
                self.updates += 1
                self._remember()
                self._advise()
                if crossed(before, learner.steps, self.settings.log_every):
                    row = self._log()
                    self._save()
                    if report:
                        enough = report(row, min(self.progress, 1.0)) is True
        finished = not self.stopped
        if self.window and finished:
            self._log()
        self._save()
        outcome = Outcome(self._best_policy(), learner.steps, self.cpu_seconds / 60, finished)
        if self.told_to_end is not None:
            signal.raise_signal(self.told_to_end)  # saved: now the process may end as it was told to
        return self._finish(self.run, outcome) if self.run and finished else outcome

    def _finish(self, run: Run, outcome: Outcome) -> Outcome:
        """Validate, and write what the run came to; with the policy that validation chose."""
        run.save_policy(self.learner.policy(), "last")
        if self.settings.only_log:
            run.amend(self._held_out())
        else:
            found = validate(self.settings, self._candidates(outcome.policy), 60 * outcome.cpu_minutes)
            outcome = dataclasses.replace(outcome, policy=found.policy, validation=found)
            run.amend(found.last)
        self._save()
        run.save_policy(outcome.policy, "best")
        run.finish(self._summary(outcome))
        self._write_card(outcome.validation)
        return outcome

    def _remember(self) -> None:
        """Keep the parameters after each quarter of the run, and the mean of those of the later half."""
        quarter = min(3, int(4 * self.progress))
        if self.learner.spec.kind not in AVERAGED or quarter == 0:
            return
        now = self.learner.parameters()
        self.quarters.setdefault(quarter, now)
        if quarter == 1 or self.learner.averages:
            return
        self.averaged += 1
        for name, array in now.items():
            before = self.mean.get(name, np.zeros(array.shape))
            self.mean[name] = before + (array - before) / self.averaged

    def _candidates(self, best: LearnedPolicy) -> dict[str, LearnedPolicy]:
        """What validation chooses among, without those that are the same."""
        last = self.learner.parameters()
        mean = {name: array.astype(last[name].dtype) for name, array in self.mean.items()}
        named = {"last": last, "best row": best.parameters, "mean of the later half": mean}
        named |= {f"{25 * quarter} %": kept for quarter, kept in self.quarters.items()}
        found: dict[str, LearnedPolicy] = {}
        for name, parameters in named.items():
            if parameters and not any(same_arrays(parameters, one.parameters) for one in found.values()):
                found[name] = best.variant(parameters=parameters)
        return found

    def _write_card(self, validation: Validation | None) -> None:
        assert self.run is not None
        facts: dict[str, Any] = {"command": self._command()}
        if validation:
            facts["results_from"] = "validation at the end of the run"
            if validation.fell_back:
                facts["about"] = "The environment's prior: nothing that the run learned was better."
        write_run_card(self.run.folder, validation.results() if validation else (), **facts)

    def _command(self) -> str | None:
        """What repeats the run."""
        return f"muster train --config {self.run.folder / 'config.toml'}" if self.run else None

    def _log(self) -> dict[str, Any]:
        window, self.window = self.window, []
        row: dict[str, Any] = {"steps": self.learner.steps, "updates": self.updates, **summarise(window)}
        row["episodes"] = int(row["episodes"])
        reward = row.get("reward", -math.inf)
        if reward > self.best_reward or (self.learner.last_is_best and np.isfinite(reward)):
            self.best_reward = reward
            self.best = self.learner.parameters()
            if self.run:
                self.run.save_policy(self._best_policy(), "best")
        row |= self.learner.counts()
        row["cpu_seconds"] = self.cpu_seconds
        row["steps_per_second"] = self.learner.steps / max(self.cpu_seconds, 1e-9)
        if self.remark:
            row["remark"], self.remark = self.remark, ""
        if self.run:
            self.run.log(row)
        return row

    def _advise(self) -> None:
        """Say once, on standard error and in the next row of the log, that learning stands still and what to do."""
        advice = None if self.advised else self.learner.advice()
        if advice:
            self.remark, self.advised = advice, True
            print(f"muster: {advice}", file=sys.stderr, flush=True)

    def _held_out(self) -> Metrics:
        """Mean outcome of the present policy, without noise, on the lines of a log that were held out."""
        (log,) = self.settings.envs
        episodes = self.settings.evaluate_episodes or LOG_EPISODES
        env = make_env(self.settings, f"{log.partition(',set=')[0]},set=validation", min(256, episodes))
        seeds = episode_seeds(VALIDATION, np.arange(episodes))
        return {"validation": float(run_episodes(env, self.learner.policy(), seeds).outcome.mean())}

    def _best_policy(self) -> LearnedPolicy:
        policy = self.learner.policy()
        header = {
            **policy.header,
            "seed": self.settings.seed,
            "learner": self.settings.learner,
            "steps": self.learner.steps,
            "cpu_minutes": round(self.cpu_seconds / 60, 3),
            "training_reward": None if not self.best else self.best_reward,
            **self.origin,
        }
        return policy.variant(parameters=self.best or policy.parameters, header=header)

    def _summary(self, outcome: Outcome) -> dict[str, Any]:
        return {
            "env": self.settings.envs[0],
            "envs": list(self.settings.envs),
            "inference": self.settings.inference,
            "model": self.settings.model,
            "learner": self.settings.learner,
            "seed": self.settings.seed,
            "steps": outcome.steps,
            "updates": self.updates,
            "cpu_minutes": outcome.cpu_minutes,
            "best_training_reward": self.best_reward if self.best else None,
            "command": self._command(),
            "commit": self.origin.get("commit"),
            **(outcome.validation.summary() if outcome.validation else {}),
        }

    def _kept(self, failure: EnvError) -> EnvError:
        """Save what was learned before a user's environment failed, and say so."""
        if self.run is None:
            return failure
        if self.updates == 0 and self.fresh:
            self.run.undo()
            return failure
        self.run.save_policy(self.learner.policy(), "last")
        try:
            self._save()
        except MusterError:  # an environment that cannot tell its state either: the policies are there all the same
            return EnvError(f"{failure}; the policy so far is {self.run.folder / 'last.safetensors'}")
        return EnvError(f"{failure}; what was learned is in {self.run.folder}, and --resume goes on from there")

    def _save(self) -> None:
        if self.run is None:
            return
        arrays, plain = self.learner.get_state()
        arrays = {f"learner/{name}": np.ascontiguousarray(array) for name, array in arrays.items()}
        arrays |= prefixed("best", self.best) | prefixed("mean", self.mean)
        for quarter, parameters in self.quarters.items():
            arrays |= prefixed(f"quarter{quarter}", parameters)
        self.run.save_checkpoint(
            arrays,
            {
                "learner": plain,
                "updates": self.updates,
                "cpu_seconds": self.cpu_seconds,
                "best_reward": self.best_reward if self.best else None,
                "window": self.window,
                "averaged": self.averaged,
                "advised": self.advised,
                "remark": self.remark,
            },
        )

    def _restore(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        self.learner.set_state(component(arrays, "learner"), plain["learner"])
        self.best = component(arrays, "best")
        self.best_reward = -math.inf if plain["best_reward"] is None else plain["best_reward"]
        self.updates, self.cpu_before, self.window = plain["updates"], plain["cpu_seconds"], plain["window"]
        kept = {quarter: component(arrays, f"quarter{quarter}") for quarter in (1, 2, 3)}
        self.quarters = {quarter: parameters for quarter, parameters in kept.items() if parameters}
        self.mean, self.averaged = component(arrays, "mean"), plain["averaged"]
        self.advised, self.remark = plain["advised"], plain["remark"]

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C, or the system's request to end, ends the loop after the present update; a second one at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(signum: int, frame: FrameType | None) -> None:
            if self.stopped:
                raise KeyboardInterrupt
            self.stopped = True
            self.told_to_end = None if signum == signal.SIGINT else signum

        # A run begun with nohup is to outlive its terminal.
        deaf = [number for number in SIGNALS if number != signal.SIGINT and signal.getsignal(number) == signal.SIG_IGN]
        before = {number: signal.signal(number, stop) for number in SIGNALS if number not in deaf}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def same_arrays(one: Parameters, other: Parameters) -> bool:
    """Whether two models have the same parameters."""
    return all(np.array_equal(one[name], other[name]) for name in other)


def crossed(before: int, after: int, every: int) -> bool:
    """Whether a multiple of `every` lies in (before, after]."""
    return before // every != after // every
