"""A study: Optuna's trials in a journal, and a training run for each of them. Any number of processes share it.

The process that runs a trial holds its lock, and the system releases that when the process ends, however it ends. A
trial that is running by the journal, and whose lock is free, is resumed by the next process from its last checkpoint.
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

ABOUT = "study.toml"
JOURNAL = "journal.log"
NAME = "muster"
RUNGS = 20
"""Parts of a trial's length; after each it may be pruned."""
FEWEST = 10
"""Finished trials below which nothing is said about which settings matter."""
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
    """done; pruned: ended early, the value is what there was; failed: its settings do not go together, or a value was
    not finite."""
    value: float | None
    """What trials are judged by, as the environment counts it (steps: fewer is better)."""
    settings: dict[str, Any]
    """Dotted name -> what was sampled."""
    minutes: float | None
    steps: int | None
    why: str
    """Of a failed one."""
    folder: str
    """Of its run, inside the study's."""

    @classmethod
    def of(cls, trial: FrozenTrial) -> Trial:
        """What the journal says of a trial."""
        said = trial.user_attrs
        state: State = "running"
        if trial.state.is_finished():
            state = "failed" if "why" in said else "pruned" if trial.state == TrialState.PRUNED else "done"
        results = said.get("value"), dict(trial.params), said.get("minutes"), said.get("steps"), said.get("why", "")
        return cls(trial.number, state, *results, folder_of(trial.number))


@dataclass(frozen=True)
class Claim:
    """A trial that this process alone runs."""

    trial: optuna.Trial
    values: dict[str, Any]
    """Dotted name -> what was sampled."""
    resumed: bool
    """Whether another process, or an earlier one, had begun it."""
    lock: IO[str]

    @property
    def number(self) -> int:
        """Of the trial."""
        return self.trial.number

    def release(self) -> None:
        """Others may have it."""
        self.lock.close()


class Study:
    """One study, made or joined."""

    def __init__(self, folder: Path, settings: StudySettings) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.folder, self.settings, self.space = folder, settings, settings.parsed
        with _turn(folder):
            self.optuna = optuna.create_study(
                storage=open_journal(folder / JOURNAL),
                sampler=NumberedSampler(settings.sampler, settings.seed),
                pruner=PRUNERS[settings.pruner](),
                study_name=NAME,
                direction="maximize",
                load_if_exists=True,
            )

    @classmethod
    def open(cls, folder: Path, asked: StudySettings | None, trials: int | None = None) -> Study:
        """Join the study in a folder, or begin it as asked; `asked` must agree with what is there.

        `trials`, where it is given, becomes the number of trials altogether.
        """
        path = folder / ABOUT
        if asked is not None and not path.exists():
            _check_trials_can_be_made(asked)
            with _turn(folder):
                if not path.exists():  # another process may have begun the same study meanwhile
                    write_atomically(path, to_toml(asked).encode())
        if not path.exists():
            raise InputError(
                f"{folder} holds no study; name an environment to begin one there: muster search ENV --study {folder}"
            )
        settings = from_toml(StudySettings, path)
        for name, was, now in differences(settings, asked or settings):
            if name != "trials":
                raise InputError(
                    f"{folder} holds a study with another {name}: {was!r}, not {now!r}. Join it as it is with "
                    f"muster search --study {folder}, or begin another elsewhere"
                )
        if trials is not None and trials != settings.trials:
            settings = replace(settings, trials=trials)
            write_atomically(path, to_toml(settings).encode())
        return cls(folder, settings)

    @cached_property
    def better(self) -> int:
        """1 if more of what trials are judged by is better, -1 if less."""
        return 1 if self.settings.judge == "reward" else MEANINGS[make(self.settings.env[0]).metric].better

    def claim(self) -> Claim | None:
        """The next trial for this process: one that another left, or a new one; None when all are taken."""
        with _turn(self.folder):
            known = self.optuna.get_trials(deepcopy=False)
            for trial in known:
                if trial.state == TrialState.RUNNING and (lock := self._lock(trial.number)):
                    # Optuna has no public way back to a running trial; this is how `ask` makes one.
                    return self._claimed(optuna.Trial(self.optuna, trial._trial_id), lock, resumed=True)
            if len(known) >= self.settings.trials:
                return None
            fresh = self.optuna.ask()
            lock = self._lock(fresh.number)
            assert lock is not None, "nothing locks a trial that does not exist"
            return self._claimed(fresh, lock, resumed=False)

    def _claimed(self, trial: optuna.Trial, lock: IO[str], resumed: bool) -> Claim:
        values = {name: _sample(trial, name, what) for name, what in self.space.sampled.items()}
        return Claim(trial, values, resumed, lock)

    def _lock(self, number: int) -> IO[str] | None:
        return take_lock(self.folder / f"{folder_of(number)}.lock")

    def trials(self) -> list[Trial]:
        """All trials so far, by number."""
        return [Trial.of(trial) for trial in self.optuna.get_trials(deepcopy=False)]

    def importances(self) -> dict[str, float]:
        """Share of each setting in what tells the better half of the trials from the rest (PED-ANOVA), largest first.

        Empty while fewer than `FEWEST` trials are finished.
        """
        from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

        finished = [t for t in self.optuna.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
        if len(finished) < FEWEST or len({t.value for t in finished}) < 2:
            return {}
        evaluator = PedAnovaImportanceEvaluator(target_quantile=0.5, region_quantile=1.0)
        return get_param_importances(self.optuna, evaluator=evaluator)

    def run(self, say: Say = lambda line: None) -> bool:
        """Run trials until all are taken; False if interrupted, when the present one is left as a run to resume."""
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
                self._tell(claim, outcome, pruned)
            return outcome.finished
        except TrainingError as failure:
            self._fail(claim, str(failure))
        except InputError as failure:
            why = str(failure) if settings is None else _refusal(settings)
            if not why:  # a full disk, say: the next trial would fare no better
                raise
            self._fail(claim, why)
        return True

    def _train(self, claim: Claim, settings: TrainSettings) -> tuple[Outcome, bool]:
        """Train in the trial's folder, from its last checkpoint if it has one, to the end or until it is pruned."""
        reported = self.optuna.get_trials(deepcopy=False)[claim.number].intermediate_values
        best, pruned = max(reported.values(), default=-math.inf), False
        told = set(reported)

        def hear(row: Mapping[str, Any], progress: float) -> bool:
            nonlocal best, pruned
            reward, rung = row.get("reward", math.nan), int(progress * RUNGS)
            if not math.isfinite(reward) or rung in told:
                return False
            # As in the run's own summary: but for ppo and a2c, the last row is the one that counts.
            best = max(best, reward) if settings.learner in ("ppo", "a2c") else reward
            told.add(rung)
            claim.trial.report(best, rung)
            pruned = rung < RUNGS and claim.trial.should_prune()
            return pruned

        folder = self.folder / folder_of(claim.number)
        return run_training(settings, folder, (folder / "config.toml").exists(), hear), pruned

    def _tell(self, claim: Claim, outcome: Outcome, pruned: bool) -> None:
        """Write into the journal what a finished run came to."""
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
        # As a pruned one rather than Optuna's FAIL: its samplers then learn to keep away from there.
        claim.trial.set_user_attr("why", why)
        self.optuna.tell(claim.trial, state=TrialState.PRUNED)


class NumberedSampler(BaseSampler):
    """Samples that depend on the study's seed, a trial's number and the setting alone, in whatever process and order.

    So random trials are the same for any number of processes, and after any interruption.
    """

    def __init__(self, kind: Sampler, seed: int) -> None:
        self._kind, self._seed = kind, seed

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """None: every setting is sampled by itself."""
        return {}

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
        """Nothing."""
        return {}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        """The value of one setting."""
        words = np.random.SeedSequence([self._seed, trial.number, crc32(param_name.encode())]).generate_state(1)
        seed = int(words[0])
        # Trials running elsewhere count as bad ones, so that processes spread out.
        sampler = RandomSampler(seed) if self._kind == "random" else TPESampler(seed=seed, constant_liar=True)
        return sampler.sample_independent(study, trial, param_name, param_distribution)


class ProcessLock(JournalFileOpenLock):
    """Optuna's own locks stay when a process is killed, and hold up all others for half a minute; this one does not."""

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal))
        self._journal = journal
        self._held: IO[str] | None = None

    def acquire(self) -> bool:
        """Wait for it; a line that a full disk left half-written is cut off, or what follows could never be read."""
        self._held = take_lock(self._journal.with_name(f".{self._journal.name}.lock"), wait=True)
        with writing(self._journal):
            text = self._journal.read_bytes()
            if text and not text.endswith(b"\n"):
                os.truncate(self._journal, text.rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        """Let the next one have it."""
        if self._held is not None:
            self._held.close()


def open_journal(path: Path) -> JournalStorage:
    """Optuna's storage in a study's folder."""
    with writing(path):
        backend = JournalFileBackend(str(path), lock_obj=ProcessLock(path))
    try:
        return JournalStorage(backend)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is damaged ({error}); its runs are in {path.parent}, begin a study elsewhere"
        ) from None


def _turn(folder: Path) -> IO[str]:
    """One process at a time looks for a trial; a context that ends its turn."""
    held = take_lock(folder / ".turn", wait=True)
    assert held is not None, "a lock that is waited for is had"
    return held


def folder_of(number: int) -> str:
    """Where a trial's run is kept, inside the study's folder."""
    return f"trials/{number:04d}"


def ranked(trials: Sequence[Trial], better: int) -> list[Trial]:
    """Finished trials best first, then pruned ones, then the rest. `better`: 1 if more is better, -1 if less."""
    order = ("done", "pruned", "failed", "running")

    def key(trial: Trial) -> tuple[int, float, int]:
        return order.index(trial.state), math.inf if trial.value is None else -better * trial.value, trial.number

    return sorted(trials, key=key)


def best_of(trials: Sequence[Trial], better: int) -> Trial | None:
    """The best finished trial; None before there is one."""
    return next((trial for trial in ranked(trials, better) if trial.state == "done"), None)


def line_of(trial: Trial) -> str:
    """A trial in a line."""
    sampled = " ".join(f"{name.rpartition('.')[2]}={short(value)}" for name, value in trial.settings.items())
    value = f" {trial.value:.4f}" if trial.value is not None else ""
    why = f" ({trial.why})" if trial.why else ""
    return f"trial {trial.number} {trial.state}{value}{why}: {sampled}"


def short(value: Any) -> str:
    """A sampled value for people."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _sample(trial: optuna.Trial, name: str, what: Range | Choice) -> Any:
    """One setting; a value that the trial already has stays."""
    if isinstance(what, Choice):
        return trial.suggest_categorical(name, what.values)
    if what.whole:
        return trial.suggest_int(name, int(what.low), int(what.high), log=what.log)
    return trial.suggest_float(name, what.low, what.high, log=what.log)


def _refusal(settings: TrainSettings) -> str:
    """Why no run can be made with these settings; empty where one can."""
    try:
        check_training(settings)
    except InputError as refusal:
        return str(refusal)
    return ""


def _check_trials_can_be_made(asked: StudySettings) -> None:
    """Raise InputError where no trial at the ends of the ranges can be made, and so presumably none at all."""
    refusals = [_refusal(asked.of_trial(table)) for table in asked.parsed.corners()]
    if all(refusals):
        raise InputError(refusals[0])
