"""A study: Optuna's trials in a journal file, each a training run; any number of processes share it.

The process that runs a trial holds its file lock, which the operating system releases when the process ends or is
killed. A trial that the journal calls running and whose lock is free is resumed from its last checkpoint.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal
from zlib import crc32

import numpy as np
import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from muster.envs.registry import make
from muster.errors import InputError
from muster.evaluation.statistics import MEANINGS
from muster.learning.loop import Outcome
from muster.learning.optimiser import TrainingError
from muster.learning.settings import TrainSettings
from muster.learning.train import check_training, run_training
from muster.search.space import Choice, Range, Sampler, StudySettings
from muster.settings import differences, from_toml, to_toml
from muster.storage import take_lock, write_atomically, writing

SETTINGS_FILE = "study.toml"
JOURNAL = "journal.log"
NAME = "muster"
RUNGS = 20
"""Equal parts of a trial's length; after each it may be pruned."""
FEWEST_TRIALS = 10
"""Finished trials that an estimate of the settings' importance needs."""
PRUNERS: dict[str, Callable[[], BasePruner]] = {
    "none": NopPruner,
    "median": lambda: MedianPruner(n_startup_trials=5, n_warmup_steps=RUNGS // 5),
    "hyperband": lambda: HyperbandPruner(min_resource=1, max_resource=RUNGS, reduction_factor=3),
}

State = Literal["done", "pruned", "failed", "running"]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial and its result."""

    number: int
    state: State
    """pruned: stopped early, with the value so far; failed: its settings contradict each other, or a value was not
    finite."""
    value: float | None
    """Training reward or validation outcome, in the environment's metric (steps: fewer is better)."""
    settings: dict[str, Any]
    """Dotted name -> sampled value."""
    minutes: float | None
    steps: int | None
    why: str
    """Reason of a failure, else empty."""
    folder: str
    """Folder of the run, relative to the study's."""

    @classmethod
    def of(cls, trial: FrozenTrial) -> Trial:
        """The trial as recorded in the journal."""
        attributes = trial.user_attrs
        state: State = "running"
        if trial.state.is_finished():
            state = "failed" if "why" in attributes else "pruned" if trial.state == TrialState.PRUNED else "done"
        return cls(
            trial.number,
            state,
            attributes.get("value"),
            dict(trial.params),
            attributes.get("minutes"),
            attributes.get("steps"),
            attributes.get("why", ""),
            folder_of(trial.number),
        )


@dataclass(frozen=True)
class Claim:
    """A trial that this process holds the lock of."""

    trial: optuna.Trial
    values: dict[str, Any]
    """Dotted name -> sampled value."""
    resumed: bool
    """Whether an earlier process had started it."""
    lock: IO[str]

    @property
    def number(self) -> int:
        """Number of the trial in the study."""
        return self.trial.number

    def release(self) -> None:
        """Release the lock."""
        self.lock.close()


class Study:
    """A study in a folder."""

    def __init__(self, folder: Path, settings: StudySettings) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.folder, self.settings, self.space = folder, settings, settings.parsed
        with _lock_study(folder):
            self.optuna = optuna.create_study(
                storage=open_journal(folder / JOURNAL),
                sampler=NumberedSampler(settings.sampler, settings.seed),
                pruner=PRUNERS[settings.pruner](),
                study_name=NAME,
                direction="maximize",
                load_if_exists=True,
            )

    @classmethod
    def open(cls, folder: Path, settings: StudySettings | None, trials: int | None = None) -> Study:
        """Join the study in a folder, or create it with `settings`, which must agree with a study that exists.

        `trials`, if given, replaces the number of trials.
        """
        path = folder / SETTINGS_FILE
        if settings is not None and not path.exists():
            _check_space(settings)
            with _lock_study(folder):
                if not path.exists():  # another process may have created the same study meanwhile
                    write_atomically(path, to_toml(settings).encode())
        if not path.exists():
            raise InputError(
                f"{folder} holds no study; name an environment to begin one there: muster search ENV --study {folder}"
            )
        stored = from_toml(StudySettings, path)
        for name, was, now in differences(stored, settings or stored):
            if name != "trials":
                raise InputError(
                    f"{folder} holds a study with another {name}: {was!r}, not {now!r}. Join it as it is with "
                    f"muster search --study {folder}, or begin another elsewhere"
                )
        if trials is not None and trials != stored.trials:
            stored = replace(stored, trials=trials)
            write_atomically(path, to_toml(stored).encode())
        return cls(folder, stored)

    @cached_property
    def better(self) -> int:
        """1 if a higher value of a trial is better, -1 if a lower."""
        return 1 if self.settings.judge == "reward" else MEANINGS[make(self.settings.env[0]).metric].better

    def claim(self) -> Claim | None:
        """The next trial for this process: one left by a process that ended, or a new one; None if none is left."""
        with _lock_study(self.folder):
            known = self.optuna.get_trials(deepcopy=False)
            for trial in known:
                if trial.state == TrialState.RUNNING and (lock := self._lock(trial.number)):
                    # Optuna has no public way back to a running trial; `ask` creates one like this.
                    return self._sample(optuna.Trial(self.optuna, trial._trial_id), lock, resumed=True)
            if len(known) >= self.settings.trials:
                return None
            fresh = self.optuna.ask()
            lock = self._lock(fresh.number)
            assert lock is not None, "nothing locks a trial that does not exist"
            return self._sample(fresh, lock, resumed=False)

    def _sample(self, trial: optuna.Trial, lock: IO[str], resumed: bool) -> Claim:
        values = {name: _suggest(trial, name, domain) for name, domain in self.space.sampled.items()}
        return Claim(trial, values, resumed, lock)

    def _lock(self, number: int) -> IO[str] | None:
        return take_lock(self.folder / f"{folder_of(number)}.lock")

    def trials(self) -> list[Trial]:
        """All trials so far, by number."""
        return [Trial.of(trial) for trial in self.optuna.get_trials(deepcopy=False)]

    def importances(self) -> dict[str, float]:
        """Importance of each setting in the better half of the trials against the rest (PED-ANOVA), largest first.

        Empty if fewer than `FEWEST_TRIALS` trials are finished.
        """
        from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

        finished = [t for t in self.optuna.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
        if len(finished) < FEWEST_TRIALS or len({t.value for t in finished}) < 2:
            return {}
        evaluator = PedAnovaImportanceEvaluator(target_quantile=0.5, region_quantile=1.0)
        return get_param_importances(self.optuna, evaluator=evaluator)

    def run(self, say: Say = lambda line: None) -> bool:
        """Run trials until none is left; False if interrupted, with a checkpoint of the present trial."""
        while (claim := self.claim()) is not None:
            try:
                if not self._run(claim):
                    return False
                say(line_of(self.trials()[claim.number]) + (" (resumed)" if claim.resumed else ""))
            finally:
                claim.release()
        return True

    def _run(self, claim: Claim) -> bool:
        """Run one trial to its end; False if interrupted."""
        settings = None
        try:
            settings = self.settings.of_trial(self.space.settings(claim.values))
            outcome, pruned = self._train(claim, settings)
            if outcome.finished:
                self._record(claim, outcome, pruned)
            return outcome.finished
        except TrainingError as failure:
            self._fail(claim, str(failure))
        except InputError as failure:
            why = str(failure) if settings is None else _reason_against(settings)
            if not why:  # not the settings but, say, a full disk: the next trial would fail too
                raise
            self._fail(claim, why)
        return True

    def _train(self, claim: Claim, settings: TrainSettings) -> tuple[Outcome, bool]:
        """Train in the trial's folder, from its last checkpoint if it has one, to the end or until it is pruned."""
        reported = self.optuna.get_trials(deepcopy=False)[claim.number].intermediate_values
        best, pruned = max(reported.values(), default=-math.inf), False
        rungs = set(reported)

        def report(row: Mapping[str, Any], progress: float) -> bool:
            nonlocal best, pruned
            reward, rung = row.get("reward", math.nan), int(progress * RUNGS)
            if not math.isfinite(reward) or rung in rungs:
                return False
            # As in the run's summary: the best row counts for ppo and a2c, else the last.
            best = max(best, reward) if settings.learner in ("ppo", "a2c") else reward
            rungs.add(rung)
            claim.trial.report(best, rung)
            pruned = rung < RUNGS and claim.trial.should_prune()
            return pruned

        folder = self.folder / folder_of(claim.number)
        return run_training(settings, folder, (folder / "config.toml").exists(), report), pruned

    def _record(self, claim: Claim, outcome: Outcome, pruned: bool) -> None:
        """Write the results of a finished run into the journal."""
        value = outcome.policy.header["training_reward"]
        if self.settings.judge == "validation" and outcome.validation:
            value = outcome.validation.last["validation"]
        if value is None:
            self._fail(claim, "no episode ended before the trial did; give it longer")
            return
        results = {"value": value, "minutes": round(outcome.cpu_minutes, 4), "steps": outcome.steps}
        for name, result in results.items():
            claim.trial.set_user_attr(name, result)
        if pruned:
            self.optuna.tell(claim.trial, state=TrialState.PRUNED)
        else:
            self.optuna.tell(claim.trial, self.better * value)

    def _fail(self, claim: Claim, why: str) -> None:
        # PRUNED rather than Optuna's FAIL, which its samplers ignore: they learn to avoid such settings.
        claim.trial.set_user_attr("why", why)
        self.optuna.tell(claim.trial, state=TrialState.PRUNED)


class NumberedSampler(BaseSampler):
    """Sampler whose values depend only on the study's seed, the trial's number and the setting's name.

    Random trials are therefore the same for any number of processes, and after any interruption.
    """

    def __init__(self, kind: Sampler, seed: int) -> None:
        self._kind, self._seed = kind, seed

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """An empty space: settings are sampled independently."""
        return {}

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
        """No values: see `infer_relative_search_space`."""
        return {}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        """Sample the value of one setting."""
        words = np.random.SeedSequence([self._seed, trial.number, crc32(param_name.encode())]).generate_state(1)
        seed = int(words[0])
        # constant_liar: trials running elsewhere count as bad, so that processes spread out.
        sampler = RandomSampler(seed) if self._kind == "random" else TPESampler(seed=seed, constant_liar=True)
        return sampler.sample_independent(study, trial, param_name, param_distribution)


class ProcessLock(JournalFileOpenLock):
    """A lock that ends with its process: Optuna's stays after a kill, and delays all others for half a minute."""

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal))
        self._journal = journal
        self._held: IO[str] | None = None

    def acquire(self) -> bool:
        """Wait for the lock, then cut off a last line that a full disk left incomplete: it could not be read."""
        self._held = take_lock(self._journal.with_name(f".{self._journal.name}.lock"), wait=True)
        with writing(self._journal):
            text = self._journal.read_bytes()
            if text and not text.endswith(b"\n"):
                os.truncate(self._journal, text.rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        """Release the lock."""
        if self._held is not None:
            self._held.close()


def open_journal(path: Path) -> JournalStorage:
    """Optuna's storage in a journal file."""
    with writing(path):
        backend = JournalFileBackend(str(path), lock_obj=ProcessLock(path))
    try:
        return JournalStorage(backend)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is damaged ({error}); its runs are in {path.parent}, begin a study elsewhere"
        ) from None


def _lock_study(folder: Path) -> IO[str]:
    """Lock under which one process at a time claims a trial; a context that releases it."""
    lock = take_lock(folder / ".turn", wait=True)
    assert lock is not None, "take_lock returns None only if it does not wait"
    return lock


def folder_of(number: int) -> str:
    """Folder of a trial's run, relative to the study's."""
    return f"trials/{number:04d}"


def ranked(trials: Sequence[Trial], better: int) -> list[Trial]:
    """Trials by state (done, pruned, failed, running), best first; `better`: 1 if higher is better, -1 if lower."""
    order = ("done", "pruned", "failed", "running")

    def key(trial: Trial) -> tuple[int, float, int]:
        return order.index(trial.state), math.inf if trial.value is None else -better * trial.value, trial.number

    return sorted(trials, key=key)


def best_of(trials: Sequence[Trial], better: int) -> Trial | None:
    """The best finished trial; None if there is none."""
    return next((trial for trial in ranked(trials, better) if trial.state == "done"), None)


def line_of(trial: Trial) -> str:
    """A trial's result and sampled settings in one line."""
    sampled = " ".join(f"{name.rpartition('.')[2]}={short(value)}" for name, value in trial.settings.items())
    value = f" {trial.value:.4f}" if trial.value is not None else ""
    why = f" ({trial.why})" if trial.why else ""
    return f"trial {trial.number} {trial.state}{value}{why}: {sampled}"


def short(value: Any) -> str:
    """A sampled value as text, floats to three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _suggest(trial: optuna.Trial, name: str, domain: Range | Choice) -> Any:
    """Sample one setting; a trial that is resumed keeps its value."""
    if isinstance(domain, Choice):
        return trial.suggest_categorical(name, domain.values)
    if domain.integer:
        return trial.suggest_int(name, int(domain.low), int(domain.high), log=domain.log)
    return trial.suggest_float(name, domain.low, domain.high, log=domain.log)


def _reason_against(settings: TrainSettings) -> str:
    """Reason why a run with these settings cannot be trained; empty if it can."""
    try:
        check_training(settings)
    except InputError as error:
        return str(error)
    return ""


def _check_space(settings: StudySettings) -> None:
    """Raise InputError if neither corner of the space can be trained, since then presumably no trial can."""
    reasons = [_reason_against(settings.of_trial(table)) for table in settings.parsed.corners()]
    if all(reasons):
        raise InputError(reasons[0])
