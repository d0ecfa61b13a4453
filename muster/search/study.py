"""A study: what is searched, Optuna's journal, and a training run for every trial. Any number of processes share it.

The process that runs a trial holds its lock, and the system releases that when the process ends, however it ends. A
trial that is running by the journal, and whose lock is free, is resumed by the next process from its last checkpoint.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal

import optuna
from optuna.trial import FrozenTrial, TrialState

from muster.envs.registry import make
from muster.errors import InputError
from muster.evaluation.statistics import MEANINGS
from muster.learning.optimiser import TrainingError
from muster.learning.settings import TrainSettings
from muster.learning.train import check_training, run_training
from muster.search.backend import RUNGS, NumberedSampler, make_pruner, open_journal
from muster.search.settings import StudySettings
from muster.search.space import Choice, Range
from muster.settings import from_toml, to_toml
from muster.storage import make_folder, take_lock, write_atomically, writing

ABOUT = "study.toml"
NAME = "muster"
FEWEST = 10
"""Finished trials below which nothing is said about which settings matter."""

State = Literal["done", "pruned", "failed", "running", "waiting"]
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


@dataclass(frozen=True)
class Claim:
    """A trial that this process alone runs."""

    trial: optuna.Trial
    values: dict[str, Any]
    """Dotted name -> what was sampled."""
    folder: Path
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
        self.folder, self.settings = folder, settings
        self.space = settings.parsed
        with self._turn():
            self.optuna = optuna.create_study(
                storage=open_journal(folder),
                sampler=NumberedSampler(settings.sampler, settings.seed),
                pruner=make_pruner(settings.pruner),
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
            _write_first(path, asked)
        settings = stored(folder)
        if asked is not None:
            _compare(folder, settings, asked)
        if trials is not None and trials != settings.trials:
            settings = replace(settings, trials=trials)
            write_atomically(path, to_toml(settings).encode())
        return cls(folder, settings)

    @cached_property
    def better(self) -> int:
        """1 if more of what trials are judged by is better, -1 if less."""
        if self.settings.judge == "reward":
            return 1
        return MEANINGS[make(self.settings.env[0], 1, 0).metric].better

    def claim(self) -> Claim | None:
        """The next trial for this process: one that another left, or a new one; None when all are taken."""
        with self._turn():
            known = self.optuna.get_trials(deepcopy=False)
            for trial in known:
                if trial.state == TrialState.RUNNING:
                    lock = self._lock(trial.number)
                    if lock is not None:
                        # Optuna has no public way back to a running trial; this is how `ask` makes one.
                        return self._claimed(optuna.Trial(self.optuna, trial._trial_id), lock, resumed=True)
            begun = sum(trial.state != TrialState.WAITING for trial in known)
            if begun >= self.settings.trials:
                return None
            fresh = self.optuna.ask()
            lock = self._lock(fresh.number)
            assert lock is not None, "nothing locks a trial that does not exist"
            return self._claimed(fresh, lock, resumed=False)

    def trials(self) -> list[Trial]:
        """All trials so far, by number."""
        return [_read(trial) for trial in self.optuna.get_trials(deepcopy=False)]

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
                if not self._run(claim, say):
                    return False
            finally:
                claim.release()
        return True

    def _run(self, claim: Claim, say: Say) -> bool:
        """Run one trial to its end; False if interrupted."""
        try:
            settings = self.settings.of_trial(self.space.settings(claim.values))
        except InputError as refusal:
            self._fail(claim, str(refusal))
        else:
            try:
                if not self._train(claim, settings):
                    return False
                self._tell(claim)
            except TrainingError as failure:
                self._fail(claim, str(failure))
            except InputError:
                why = _refusal(settings)
                if not why:  # a full disk, say: the next trial would fare no better
                    raise
                self._fail(claim, why)
        say(line_of(self.trials()[claim.number]) + (" (resumed)" if claim.resumed else ""))
        return True

    def _train(self, claim: Claim, settings: TrainSettings) -> bool:
        """Train in the trial's folder, from its last checkpoint if it has one, until the end or until it is pruned."""
        if "pruned_at" in claim.trial.user_attrs:
            return True  # ended, and killed before that was told
        reported = self.optuna.get_trials(deepcopy=False)[claim.number].intermediate_values
        best = max(reported.values(), default=-math.inf)
        told = set(reported)

        def hear(row: Mapping[str, Any], progress: float) -> bool:
            nonlocal best
            reward, rung = row.get("reward", math.nan), int(progress * RUNGS)
            if not math.isfinite(reward) or rung in told:
                return False
            # As in the run's own summary: but for ppo and a2c, the last row is the one that counts.
            best = max(best, reward) if settings.learner in ("ppo", "a2c") else reward
            told.add(rung)
            claim.trial.report(best, rung)
            if rung < RUNGS and claim.trial.should_prune():
                claim.trial.set_user_attr("pruned_at", rung)
                return True
            return False

        return run_training(settings, claim.folder, (claim.folder / "config.toml").exists(), hear).finished

    def _tell(self, claim: Claim) -> None:
        """Write into the journal what a finished run came to."""
        summary = json.loads((claim.folder / "summary.json").read_text(encoding="utf-8"))
        value = summary["best_training_reward"]
        if self.settings.judge == "validation":
            value = _last_validation(claim.folder)
        if value is None:
            self._fail(claim, "no episode ended before the trial did; give it longer")
            return
        _keep(claim, {"value": value, "minutes": round(summary["cpu_minutes"], 4), "steps": summary["steps"]})
        if "pruned_at" in claim.trial.user_attrs:
            self.optuna.tell(claim.trial, state=TrialState.PRUNED)
        else:
            self.optuna.tell(claim.trial, self.better * value)

    def _fail(self, claim: Claim, why: str) -> None:
        # As a pruned one rather than Optuna's FAIL: its samplers then learn to keep away from there.
        _keep(claim, {"why": why})
        self.optuna.tell(claim.trial, state=TrialState.PRUNED)

    def _claimed(self, trial: optuna.Trial, lock: IO[str], resumed: bool) -> Claim:
        values = {name: _sample(trial, name, what) for name, what in self.space.sampled.items()}
        return Claim(trial, values, self.folder / folder_of(trial.number), resumed, lock)

    def _lock(self, number: int) -> IO[str] | None:
        return take_lock(self.folder / f"{folder_of(number)}.lock")

    def _turn(self) -> IO[str]:
        """One process at a time looks for a trial; a context that ends its turn."""
        held = take_lock(self.folder / ".turn", wait=True)
        assert held is not None, "a lock that is waited for is had"
        return held


def stored(folder: Path) -> StudySettings:
    """Settings of the study in a folder."""
    if not (folder / ABOUT).exists():
        raise InputError(
            f"{folder} holds no study; name an environment to begin one there: muster search ENV --study {folder}"
        )
    return from_toml(StudySettings, folder / ABOUT)


def folder_of(number: int) -> str:
    """Where a trial's run is kept, inside the study's folder."""
    return f"trials/{number:04d}"


def ranked(trials: Sequence[Trial], better: int) -> list[Trial]:
    """Finished trials best first, then pruned ones, then the rest. `better`: 1 if more is better, -1 if less."""
    order = {"done": 0, "pruned": 1, "failed": 2, "running": 3, "waiting": 4}

    def key(trial: Trial) -> tuple[int, float, int]:
        return order[trial.state], -better * trial.value if trial.value is not None else math.inf, trial.number

    return sorted(trials, key=key)


def best_of(trials: Sequence[Trial], better: int) -> Trial | None:
    """The best finished trial; None before there is one."""
    first = ranked(trials, better)[:1]
    return first[0] if first and first[0].state == "done" else None


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


def _read(trial: FrozenTrial) -> Trial:
    said = trial.user_attrs
    state: State = "waiting"
    if trial.state.is_finished():
        state = "failed" if "why" in said else "pruned" if trial.state == TrialState.PRUNED else "done"
    elif trial.state == TrialState.RUNNING:
        state = "running"
    return Trial(
        trial.number,
        state,
        said.get("value"),
        dict(trial.params),
        said.get("minutes"),
        said.get("steps"),
        said.get("why", ""),
        folder_of(trial.number),
    )


def _refusal(settings: TrainSettings) -> str:
    """Why no run can be made with these settings; empty where one can."""
    try:
        check_training(settings)
    except InputError as refusal:
        return str(refusal)
    return ""


def _last_validation(folder: Path) -> float | None:
    with (folder / "metrics.csv").open(newline="") as lines:
        found = [row["validation"] for row in csv.DictReader(lines) if row.get("validation")]
    return float(found[-1]) if found else None


def _keep(claim: Claim, result: dict[str, Any]) -> None:
    for name, value in result.items():
        claim.trial.set_user_attr(name, value)


def _check_trials_can_be_made(asked: StudySettings) -> None:
    """Raise InputError where no trial at the ends of the ranges can be made, and so presumably none at all."""
    refusals = []
    for table in asked.parsed.corners():
        try:
            check_training(asked.of_trial(table))
        except InputError as refusal:
            refusals.append(refusal)
        else:
            return
    raise refusals[0]


def _write_first(path: Path, settings: StudySettings) -> None:
    """Write the file unless another process has written it meanwhile; then that one stays."""
    make_folder(path.parent)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    write_atomically(draft, to_toml(settings).encode())
    try:
        with writing(path):
            os.link(draft, path)
    except InputError:
        if not path.exists():
            raise
    finally:
        draft.unlink()


def _compare(folder: Path, there: StudySettings, asked: StudySettings) -> None:
    for entry in fields(StudySettings):
        was, now = getattr(there, entry.name), getattr(asked, entry.name)
        if entry.name != "trials" and was != now:
            raise InputError(
                f"{folder} holds a study with another {entry.name}: {was!r}, not {now!r}. Join it as it is with "
                f"muster search --study {folder}, or begin another elsewhere"
            )
