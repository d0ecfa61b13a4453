"""The training loop: learner, log, checkpoints, best policy. Interrupted at any moment, it goes on bit for bit."""

from __future__ import annotations

import dataclasses
import inspect
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muster.checkout import code_commit
from muster.envs.registry import EnvLike, text_of
from muster.errors import EnvError, InputError, MusterError
from muster.evaluation.card import write_run_card
from muster.evaluation.episodes import run_episodes
from muster.learning.envs import make_env
from muster.learning.learner import VALIDATION, component
from muster.learning.learners import make_learner, make_pool
from muster.learning.metrics import Metrics, summarise
from muster.learning.run import Run, damaged, stored_settings
from muster.learning.settings import TrainSettings, refuse_others
from muster.learning.transfer import carried_over, check_fit
from muster.learning.validation import Validation, validate
from muster.learning.workers import WorkerPool, closing
from muster.policy.learned import LearnedPolicy
from muster.policy.names import load
from muster.rng import episode_seeds
from muster.settings import as_table, build, differences, overlaid
from muster.storage import sole_writer

DEFAULT_MINUTES = 5.0
VALIDATION_EPISODES = 500
VALIDATION_EPISODES_LARGE = 20
LARGE_GRID = 1000
"""Cells above which a positional model decides in only tens of states a second on one core."""
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What asks a run to end: Ctrl-C, the system, a terminal that is closed."""
LENGTH = ("minutes", "steps")
"""Settings that may change when a run is resumed, and are not taken from it."""
WITHOUT_EFFECT = ("workers", "cluster")
"""Settings that may change because they make no difference to the result."""


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


def train(
    env: EnvLike | Sequence[EnvLike],
    *,
    out: str | Path | None = None,
    resume: bool = False,
    report: Report | None = None,
    **settings: Any,
) -> LearnedPolicy:
    """Learn a policy on a small environment, or on several in turn, and return the best one.

    With `out` that is the best by validation, or the environment's prior where nothing learned is better; without, the
    best by training reward.

    `env` is an environment string, or a class whose module can be imported.
    The settings are the fields of `muster.learning.settings.TrainSettings`, where each is explained; those of a learner
    may be given as a dictionary: es={"sigma": 0.1}. With `out`, the run's folder keeps log, checkpoint
    and policies, and `resume` goes on with it as it was begun: only `minutes` or `steps`, `workers` and `cluster` may
    then be other than they were.
    `report` hears every row of the log (see `Report`). Ctrl-C ends the run after the update under way: its state is
    saved, and the best policy so far returned.
    """
    if isinstance(env, Sequence) and not isinstance(env, str):
        given = {"env": [text_of(one) for one in env], **settings}
    else:
        given = {"env": text_of(env), **settings}
    if resume:
        if out is None:
            raise InputError("resume needs the folder of the run (out)")
        stored = as_table(stored_settings(Path(out)))
        given = overlaid({name: value for name, value in stored.items() if name not in LENGTH}, given)
    made = build(TrainSettings, given, "")
    refuse_others(made, ((name, name) for name in settings))
    return run_training(made, None if out is None else Path(out), resume, report).policy


def _show_settings() -> None:
    """Let help() and notebooks show every setting of `train`, each of which is written down once, in TrainSettings."""
    own = list(inspect.signature(train).parameters.values())[:-1]
    fields = inspect.signature(TrainSettings).parameters.values()
    more = [field.replace(kind=field.KEYWORD_ONLY) for field in fields if field.name != "env"]
    train.__signature__ = inspect.signature(train).replace(parameters=own + more)  # type: ignore[attr-defined]


_show_settings()


def run_training(
    settings: TrainSettings, out: Path | None = None, resume: bool = False, report: Report | None = None
) -> Outcome:
    """Train as the settings say, in the folder `out` or in none; see `train`."""
    if out is None:
        if resume:
            raise InputError("resume needs the folder of the run (out)")
        with closing(make_pool(settings)) as pool:
            return Loop(settings, None, pool).go(report)
    if resume:
        settings = _resumed(settings, out)
    with sole_writer(out), closing(make_pool(settings)) as pool:
        run = Run(out) if resume else Run.create(out, settings)
        try:
            loop = Loop(settings, run, pool)
        except MusterError:  # what was asked for cannot be: the next try may have the same folder
            if not resume:
                run.undo()
            raise
        loop.fresh = not resume
        return loop.go(report)


def check_training(settings: TrainSettings) -> None:
    """Make learner and environments of a run, and drop them: raises InputError where no run can be made.

    No cluster is asked for: whether one answers says nothing about the settings.
    """
    with closing(make_pool(dataclasses.replace(settings, cluster=None))) as pool:
        Loop(settings, None, pool)


def _resumed(settings: TrainSettings, out: Path) -> TrainSettings:
    """The settings of the run in `out`, longer or shorter if asked; whatever else differs is refused."""
    stored = stored_settings(out)
    changed = [
        (name, was, now) for name, was, now in differences(stored, settings) if name not in LENGTH + WITHOUT_EFFECT
    ]
    if changed:
        told = "; ".join(f"{name} is {was!r} there, not {now!r}" for name, was, now in changed)
        raise InputError(f"{out} holds a run with other settings: {told}. Leave them out, or begin a run elsewhere")
    longer = settings.minutes is not None or settings.steps is not None
    return (
        settings
        if longer
        else dataclasses.replace(stored, **{name: getattr(settings, name) for name in WITHOUT_EFFECT})
    )


class Loop:
    """One training run in progress."""

    def __init__(self, settings: TrainSettings, run: Run | None, pool: WorkerPool | None = None) -> None:
        self.settings, self.run, self.pool = settings, run, pool
        self.fresh = False
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
        self.untimed = 0
        """Steps of first updates, whose time does not count."""
        saved = run.load_checkpoint() if run else None
        if run and saved:
            try:
                self._restore(*saved)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
                raise damaged(run.folder / "checkpoint.safetensors", error) from None
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
        """CPU time of the run so far, its workers' included: what came before a resumption too, the first update after
        it not.
        """
        return self.cpu_before + self._clock() - self.began

    def _clock(self) -> float:
        return time.process_time() + (self.pool.cpu_seconds if self.pool else 0.0)

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        if self.settings.steps is not None:
            return self.learner.steps / self.settings.steps
        return self.cpu_seconds / 60 / (self.settings.minutes or DEFAULT_MINUTES)

    def go(self, report: Report | None) -> Outcome:
        """Train until the end, or until interrupted: then the state is saved after the update that was under way."""
        settings, learner = self.settings, self.learner
        first, enough = True, False
        with self._interruptible():
            while self.progress < 1 and not self.stopped and not enough:
                before = learner.steps
                try:
                    metrics = learner.update(self.progress)
                except EnvError as failure:
                    raise self._kept(failure) from failure
                self.window.append(metrics | (self.pool.metrics() if self.pool else {}))
                self.updates += 1
                if first:  # kernels were compiled or loaded on the way: that is not training
                    self.began, first = self._clock(), False
                    self.untimed += learner.steps - before
                self._advise()
                if crossed(before, learner.steps, settings.log_every):
                    row = self._log(crossed(before, learner.steps, settings.evaluate_every))
                    if report:
                        enough = report(row, min(self.progress, 1.0)) is True
                if crossed(before, learner.steps, settings.checkpoint_every):
                    self._save()
        finished = not self.stopped
        if self.window and finished:
            self._log(validate=True)
        elif finished and self.run and self.run.rows and "validation" not in self.run.rows[-1]:
            self.run.amend(self.validate())  # the last update was one to log, or `report` has ended the run there
        self._save()
        policy = self._best_policy()
        if self.told_to_end is not None:
            signal.raise_signal(self.told_to_end)  # saved: now the process may end as it was told to
        outcome = Outcome(policy, learner.steps, self.cpu_seconds / 60, finished)
        if self.run and finished:
            self.run.save_policy(learner.policy(), "last")
            outcome = self._validated(outcome)
            self.run.save_policy(outcome.policy, "best")
            self.run.finish(self._summary(outcome))
            self._write_card(outcome.validation)
        return outcome

    def _validated(self, outcome: Outcome) -> Outcome:
        """With the policy that does best in validation: that of the best row, the last one, or the prior."""
        if self.settings.only_log:
            return outcome
        best, last = outcome.policy, self.learner.parameters()
        same = all(np.array_equal(best.parameters[name], last[name]) for name in last)
        candidates = [best] if same else [best, best.variant(parameters=last)]
        found = validate(self.settings, candidates, 60 * outcome.cpu_minutes)
        return dataclasses.replace(outcome, policy=found.policy, validation=found)

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

    def _log(self, validate: bool) -> dict[str, Any]:
        window, self.window = self.window, []
        row: dict[str, Any] = {"steps": self.learner.steps, "updates": self.updates, **summarise(window)}
        row["episodes"] = int(row["episodes"])
        reward = row.get("reward", -math.inf)
        if reward > self.best_reward or (self.learner.last_is_best and np.isfinite(reward)):
            self.best_reward = reward
            self.best = self.learner.parameters()
            if self.run:
                self.run.save_policy(self._best_policy(), "best")
        if validate:
            row |= self.validate()
        row |= self.learner.counts()
        row["cpu_seconds"] = self.cpu_seconds
        if self.learner.steps > self.untimed:
            row["steps_per_second"] = (self.learner.steps - self.untimed) / max(self.cpu_seconds, 1e-9)
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

    def validate(self) -> Metrics:
        """Mean outcome of the present policy, without noise, on held-out episodes of each environment and of all."""
        found: Metrics = {}
        for name in self.settings.envs:
            episodes = self.settings.evaluate_episodes or default_episodes(self.settings, name)
            held_out = f"{name.partition(',set=')[0]},set=validation" if self.settings.only_log else name
            env = make_env(self.settings, held_out, min(256, episodes))
            seeds = episode_seeds(VALIDATION, np.arange(episodes))
            outcome = run_episodes(env, self.learner.policy(), seeds).outcome
            found[f"validation/{name}"] = float(outcome.mean())
        mean = {"validation": float(np.mean(list(found.values())))}
        return mean if len(found) == 1 else mean | found

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
        arrays |= {f"best/{name}": array for name, array in self.best.items()}
        self.run.save_checkpoint(
            arrays,
            {
                "learner": plain,
                "updates": self.updates,
                "cpu_seconds": self.cpu_seconds,
                "best_reward": self.best_reward if self.best else None,
                "window": self.window,
                "untimed": self.untimed,
                "advised": self.advised,
                "remark": self.remark,
            },
        )

    def _restore(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        self.learner.set_state(component(arrays, "learner"), plain["learner"])
        self.best = component(arrays, "best")
        self.best_reward = -math.inf if plain["best_reward"] is None else plain["best_reward"]
        self.updates, self.cpu_before, self.window = plain["updates"], plain["cpu_seconds"], plain["window"]
        self.untimed, self.advised, self.remark = plain["untimed"], plain["advised"], plain["remark"]

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

        # Whoever began the run with nohup wants it to outlive its terminal.
        deaf = [number for number in SIGNALS if number != signal.SIGINT and signal.getsignal(number) == signal.SIG_IGN]
        before = {number: signal.signal(number, stop) for number in SIGNALS if number not in deaf}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def default_episodes(settings: TrainSettings, name: str) -> int:
    """Held-out episodes where the settings give none: few where each decision is a CNN's pass over a large grid."""
    if settings.model != "pem":
        return VALIDATION_EPISODES
    planes = make_env(settings, name, 1).observe().planes
    large = planes is not None and planes[0, 0].size > LARGE_GRID
    return VALIDATION_EPISODES_LARGE if large else VALIDATION_EPISODES


def crossed(before: int, after: int, every: int) -> bool:
    """Whether a multiple of `every` lies in (before, after]."""
    return before // every != after // every
