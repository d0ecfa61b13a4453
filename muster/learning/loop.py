"""The training loop: updates, log, checkpoints, and candidates for the best policy."""

from __future__ import annotations

import dataclasses
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muster.checkout import code_commit
from muster.errors import EnvError, InputError, MusterError
from muster.evaluation.card import write_run_card
from muster.evaluation.episodes import run_episodes
from muster.learning.envs import make_env
from muster.learning.learner import VALIDATION, Learner, checked_parameters, checked_update, component, prefixed
from muster.learning.learners import make_learner
from muster.learning.metrics import Metrics, summarise
from muster.learning.run import Run, damaged
from muster.learning.settings import TrainSettings
from muster.learning.speed import run_seconds
from muster.learning.transfer import carried_over, check_fit
from muster.learning.validation import LOG_EPISODES, Validation, describe_validation, validate
from muster.learning.workers import WorkerPool
from muster.models.spec import Parameters
from muster.policy.files import CHECKPOINT
from muster.policy.learned import LearnedPolicy
from muster.policy.names import load
from muster.rng import episode_seeds

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end a run after its checkpoint: Ctrl-C, a request of the system, a closed terminal."""
AVERAGED = ("dm", "linear")
"""Kinds of models whose parameters may be averaged: all of them are weights, and few."""


class Report(Protocol):
    """Callback of a training run: a function report(row, progress), called after each row of the log.

    `row` is that of metrics.jsonl: steps, updates, episodes, reward, outcome, losses or fitness, further metrics by
    name, cpu_seconds and steps_per_second. `progress` goes from 0 to 1. Return True to finish the run here, as if its
    time were up.
    """

    def __call__(self, row: Mapping[str, Any], progress: float, /) -> bool | None:
        """Called after each row of the log."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of a training run."""

    policy: LearnedPolicy
    """The best policy: by validation in a run with a folder, otherwise by training reward."""
    steps: int
    cpu_minutes: float
    finished: bool
    """False if the run was interrupted."""
    validation: Validation | None = None
    """Evaluations beside baselines and prior at several sizes, of a finished run with a folder."""


class Snapshots:
    """Parameters from the course of a run: after each quarter, and the mean over the updates of the later half."""

    def __init__(self) -> None:
        self.quarters: dict[int, Parameters] = {}
        """After one, two and three quarters of the run."""
        self.mean: dict[str, NDArray[Any]] = {}
        """In double precision, over `averaged` updates."""
        self.averaged = 0

    def add(self, learner: Learner, progress: float) -> None:
        """Take the learner's parameters after an update, where they are needed."""
        quarter = min(3, int(4 * progress))
        if learner.spec.kind not in AVERAGED or quarter == 0:
            return
        parameters = checked_parameters(learner)
        self.quarters.setdefault(quarter, parameters)
        if quarter == 1 or learner.averages:
            return
        self.averaged += 1
        for name, array in parameters.items():
            mean = self.mean.get(name, np.zeros(array.shape))
            self.mean[name] = mean + (array - mean) / self.averaged

    def named(self) -> dict[str, Parameters]:
        """The snapshots under the names that validation gives them."""
        mean = {name: array.astype(np.float32) for name, array in self.mean.items()}
        return {"mean of the later half": mean} | {f"{25 * k} %": parameters for k, parameters in self.quarters.items()}

    def get_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of a checkpoint; the count `averaged` is kept beside them."""
        arrays = prefixed("mean", self.mean)
        for quarter, parameters in self.quarters.items():
            arrays |= prefixed(f"quarter{quarter}", parameters)
        return arrays

    def set_arrays(self, arrays: Mapping[str, NDArray[Any]], averaged: int) -> None:
        """Restore what `get_arrays` returned."""
        quarters = {quarter: component(arrays, f"quarter{quarter}") for quarter in (1, 2, 3)}
        self.quarters = {quarter: parameters for quarter, parameters in quarters.items() if parameters}
        self.mean, self.averaged = component(arrays, "mean"), averaged


class Loop:
    """A training run in progress: `train` runs it to its end."""

    def __init__(
        self, settings: TrainSettings, run: Run | None, pool: WorkerPool | None = None, fresh: bool = False
    ) -> None:
        self.settings, self.run, self.pool = settings, run, pool
        self.fresh = fresh
        """Whether the run's folder is new, so that a failure before the first update removes it."""
        self.learner = make_learner(settings, pool)
        commit = code_commit()
        self.origin = {} if commit is None else {"commit": commit}
        """The commit of the code, where it is known."""
        self.updates = 0
        self.cpu_before = 0.0
        """CPU seconds of the run before it was resumed."""
        self.best_reward = -math.inf
        self.best: Parameters = {}
        """Parameters at the best row of the log."""
        self.window: list[Metrics] = []
        """Metrics of the updates since the last row of the log."""
        self.advised, self.remark = False, ""
        """Whether the learner's advice was shown, and the advice until the next row of the log has it."""
        self.snapshots = Snapshots()
        checkpoint = run.load_checkpoint() if run else None
        if run and checkpoint:
            try:
                self._restore(*checkpoint)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
                raise damaged(run.folder / CHECKPOINT, error) from None
        elif settings.from_policy is not None:
            self._start_from(load(settings.from_policy).variant(name=settings.from_policy))
        self.clock_at_start = self._clock()
        self.stopped = False
        self.signal: int | None = None
        """The signal other than Ctrl-C that stopped the run."""

    def _start_from(self, policy: LearnedPolicy) -> None:
        learner = self.learner
        check_fit(policy, learner.spec, learner.inference.method, learner.envs[0])
        learner.start(carried_over(policy, learner.spec, learner.parameters()))

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the run's updates so far, its workers' included; setting up is not counted."""
        return self.cpu_before + self._clock() - self.clock_at_start

    def _clock(self) -> float:
        return time.process_time() + (self.pool.cpu_seconds if self.pool else 0.0)

    @property
    def progress(self) -> float:
        """Share of the run's length that is over, from 0 to 1."""
        if self.settings.steps is not None:
            return self.learner.steps / self.settings.steps
        return self.cpu_seconds / run_seconds(self.settings)

    def train(self, report: Report | None, announce: Callable[[str], None] | None = None) -> Outcome:
        """Train until the end or until interrupted, and save the state after the last update; then validate."""
        learner, ended_by_report = self.learner, False
        with self._interruptible():
            while self.progress < 1 and not self.stopped and not ended_by_report:
                steps = learner.steps
                try:
                    metrics = checked_update(learner, self.progress)
                except EnvError as failure:
                    raise self._save_at_failure(failure) from failure
                except InputError:  # of a custom part: the folder stays free for the next try
                    if self.run and self.updates == 0 and self.fresh:
                        self.run.undo()
                    raise
                self.window.append(metrics | (self.pool.metrics() if self.pool else {}))
                self.updates += 1
                self.snapshots.add(learner, self.progress)
                self._advise()
                if crossed(steps, learner.steps, self.settings.log_every):
                    row = self._log()
                    self._save()
                    if report:
                        ended_by_report = report(row, min(self.progress, 1.0)) is True
        finished = not self.stopped
        if self.window and finished:
            self._log()
        self._save()
        outcome = Outcome(self._best_policy(), learner.steps, self.cpu_seconds / 60, finished)
        if self.signal is not None:
            signal.raise_signal(self.signal)  # everything is saved: the process ends as the signal asks
        if not self.run or not finished:
            return outcome
        if announce and not self.settings.only_log:
            announce(describe_validation(self.settings, self.cpu_seconds))
        return self._finish(self.run, outcome)

    def _finish(self, run: Run, outcome: Outcome) -> Outcome:
        """Validate, and write policies, summary and card; the outcome with the policy that validation chose."""
        run.save_policy(self.learner.policy(), "last")
        if self.settings.only_log:
            run.amend(self._held_out())
        else:
            validation = validate(self.settings, self._candidates(outcome.policy), 60 * outcome.cpu_minutes)
            outcome = dataclasses.replace(outcome, policy=validation.policy, validation=validation)
            run.amend(validation.last)
        self._save()
        run.save_policy(outcome.policy, "best")
        run.finish(self._summary(outcome))
        self._write_card(run, outcome.validation)
        return outcome

    def _candidates(self, best: LearnedPolicy) -> dict[str, LearnedPolicy]:
        """Policies that validation chooses among, by name, without duplicates."""
        last = checked_parameters(self.learner)
        parameter_sets = {"last": last, "best row": best.parameters, **self.snapshots.named()}
        candidates: dict[str, LearnedPolicy] = {}
        for name, parameters in parameter_sets.items():
            if parameters and not any(same_arrays(parameters, other.parameters) for other in candidates.values()):
                candidates[name] = best.variant(parameters=parameters)
        return candidates

    def _write_card(self, run: Run, validation: Validation | None) -> None:
        facts: dict[str, Any] = {"command": self._command()}
        if validation:
            facts["results_from"] = "validation at the end of the run"
            if validation.fell_back:
                facts["about"] = "The environment's prior: nothing that the run learned was better."
        write_run_card(run.folder, validation.results() if validation else (), **facts)

    def _command(self) -> str | None:
        """Command line that repeats the run."""
        return f"muster train --config {self.run.folder / 'config.toml'}" if self.run else None

    def _log(self) -> dict[str, Any]:
        """Write the next row of the log, of the updates since the last one; keep the parameters if it is the best."""
        window, self.window = self.window, []
        row: dict[str, Any] = {"steps": self.learner.steps, "updates": self.updates, **summarise(window)}
        row["episodes"] = int(row["episodes"])
        reward = row.get("reward", -math.inf)
        if reward > self.best_reward or (self.learner.last_is_best and np.isfinite(reward)):
            self.best_reward = reward
            self.best = checked_parameters(self.learner)
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
        """Show the learner's advice once, on standard error and in the next row of the log."""
        advice = None if self.advised else self.learner.advice()
        if advice:
            self.remark, self.advised = advice, True
            print(f"muster: {advice}", file=sys.stderr, flush=True)

    def _held_out(self) -> Metrics:
        """Mean outcome of the present policy, without noise, on the held-out lines of a log."""
        (log,) = self.settings.envs
        episodes = self.settings.evaluate_episodes or LOG_EPISODES
        env = make_env(self.settings, f"{log.partition(',set=')[0]},set=validation", min(256, episodes))
        seeds = episode_seeds(VALIDATION, np.arange(episodes))
        return {"validation": float(run_episodes(env, self.learner.policy(), seeds).outcome.mean())}

    def _best_policy(self) -> LearnedPolicy:
        """The policy of the best row of the log, or the present one; its header has the facts of the run."""
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
        """Contents of summary.json."""
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

    def _save_at_failure(self, failure: EnvError) -> EnvError:
        """Save the run after a user's environment failed; the error, with the place where the policy is."""
        if self.run is None:
            return failure
        if self.updates == 0 and self.fresh:
            self.run.undo()
            return failure
        self.run.save_policy(self.learner.policy(), "last")
        try:
            self._save()
        except MusterError:  # the environment cannot give its state either: the policies are saved all the same
            return EnvError(f"{failure}; the policy so far is {self.run.folder / 'last.safetensors'}")
        return EnvError(f"{failure}; what was learned is in {self.run.folder}, and --resume goes on from there")

    def _save(self) -> None:
        if self.run is None:
            return
        arrays, plain = self.learner.get_state()
        arrays = {f"learner/{name}": np.ascontiguousarray(array) for name, array in arrays.items()}
        arrays |= prefixed("best", self.best) | self.snapshots.get_arrays()
        self.run.save_checkpoint(
            arrays,
            {
                "learner": plain,
                "updates": self.updates,
                "cpu_seconds": self.cpu_seconds,
                "best_reward": self.best_reward if self.best else None,
                "window": self.window,
                "averaged": self.snapshots.averaged,
                "advised": self.advised,
                "remark": self.remark,
            },
        )

    def _restore(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        self.learner.set_state(component(arrays, "learner"), plain["learner"])
        self.best = component(arrays, "best")
        self.best_reward = -math.inf if plain["best_reward"] is None else plain["best_reward"]
        self.updates, self.cpu_before, self.window = plain["updates"], plain["cpu_seconds"], plain["window"]
        self.snapshots.set_arrays(arrays, plain["averaged"])
        self.advised, self.remark = plain["advised"], plain["remark"]

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Turn SIGNALS into a stop after the present update; a second signal interrupts at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(signum: int, frame: FrameType | None) -> None:
            if self.stopped:
                raise KeyboardInterrupt
            self.stopped = True
            self.signal = None if signum == signal.SIGINT else signum

        # A signal that is ignored stays so: under nohup a run outlives its terminal.
        caught = [k for k in SIGNALS if k == signal.SIGINT or signal.getsignal(k) != signal.SIG_IGN]
        handlers = {number: signal.signal(number, stop) for number in caught}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def same_arrays(one: Parameters, other: Parameters) -> bool:
    """Whether two models have the same parameters."""
    return all(np.array_equal(one[name], other[name]) for name in other)


def crossed(before: int, after: int, every: int) -> bool:
    """Whether a multiple of `every` lies in (before, after]."""
    return before // every != after // every
