"""A study's folder: what it is, Optuna's journal, and a run for every draw. Any number of processes share it.

Who plays a draw holds its lock, and the system lets go of that when the process ends, however it ends. A draw that is
under way by the journal, and that nobody holds, is taken up by whoever comes next, where its last checkpoint left it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import optuna
from optuna.trial import Trial, TrialState

from muster.envs.registry import make
from muster.errors import InputError
from muster.evaluation.statistics import MEANINGS
from muster.learning.train import check_training
from muster.search.drawing import NumberedSampler, draw_settings, make_pruner
from muster.search.journal import open_journal
from muster.search.results import Draw, folder_of, read_draws
from muster.search.settings import StudySettings
from muster.settings import from_toml, to_toml
from muster.storage import make_folder, take_lock, write_atomically, writing

ABOUT = "study.toml"
NAME = "muster"


@dataclass(frozen=True)
class Claim:
    """A draw that this process alone plays."""

    trial: Trial
    values: dict[str, Any]
    """Dotted name -> what was drawn."""
    folder: Path
    taken_up: bool
    """Whether another process, or an earlier one, had begun it."""
    lock: IO[str]

    @property
    def number(self) -> int:
        """Of the draw."""
        return self.trial.number

    def let_go(self) -> None:
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
    def open(cls, folder: Path, asked: StudySettings | None, draws: int | None = None) -> Study:
        """Join the study in a folder, or begin it as asked; `asked` must agree with what is there.

        `draws`, where it is given, becomes the number of draws altogether.
        """
        path = folder / ABOUT
        if asked is not None and not path.exists():
            _check_draws_can_be_made(asked)
            _write_first(path, asked)
        settings = stored(folder)
        if asked is not None:
            _compare(folder, settings, asked)
        if draws is not None and draws != settings.draws:
            settings = replace(settings, draws=draws)
            write_atomically(path, to_toml(settings).encode())
        return cls(folder, settings)

    @cached_property
    def better(self) -> int:
        """1 if more of what draws are judged by is better, -1 if less."""
        if self.settings.judge == "reward":
            return 1
        return MEANINGS[make(self.settings.env[0], 1, 0).metric].better

    def enqueue(self, values: dict[str, Any]) -> None:
        """Have this point tried before any draw; once, however often it is asked for. What it leaves out is drawn."""
        for name, value in values.items():
            if name in self.space.drawn and not self.space.drawn[name].holds(value):
                raise InputError(f"{name} is searched from {self.space.drawn[name]}, and {value} is not in there")
        with self._turn():
            self.optuna.enqueue_trial(values, skip_if_exists=True)

    def claim(self) -> Claim | None:
        """The next draw for this process: one that somebody left, or a new one; None when all are taken."""
        with self._turn():
            known = self.optuna.get_trials(deepcopy=False)
            for trial in known:
                if trial.state == TrialState.RUNNING:
                    lock = self._lock(trial.number)
                    if lock is not None:
                        # Optuna has no public way back to a trial under way; this is how `ask` makes one.
                        return self._claimed(Trial(self.optuna, trial._trial_id), lock, taken_up=True)
            begun = sum(trial.state != TrialState.WAITING for trial in known)
            if begun >= self.settings.draws:
                return None
            fresh = self.optuna.ask()
            lock = self._lock(fresh.number)
            assert lock is not None, "nobody locks a draw that does not exist"
            return self._claimed(fresh, lock, taken_up=False)

    def draws(self) -> list[Draw]:
        """All draws so far, by number."""
        return read_draws(self.optuna)

    def _claimed(self, trial: Trial, lock: IO[str], taken_up: bool) -> Claim:
        values = draw_settings(trial, self.space)
        return Claim(trial, values, self.folder / folder_of(trial.number), taken_up, lock)

    def _lock(self, number: int) -> IO[str] | None:
        return take_lock(self.folder / f"{folder_of(number)}.lock")

    def _turn(self) -> IO[str]:
        """One process at a time looks for a draw; a context that ends its turn."""
        held = take_lock(self.folder / ".turn", wait=True)
        assert held is not None, "a lock that is waited for is had"
        return held


def stored(folder: Path) -> StudySettings:
    """What the study in a folder is."""
    if not (folder / ABOUT).exists():
        raise InputError(
            f"{folder} holds no study; name an environment to begin one there: muster search ENV --study {folder}"
        )
    return from_toml(StudySettings, folder / ABOUT)


def _check_draws_can_be_made(asked: StudySettings) -> None:
    """Refuse a study of which no draw at the ends of the ranges can be made, and so presumably none at all."""
    refusals = []
    for table in asked.parsed.corners():
        try:
            check_training(asked.of_draw(table))
        except InputError as refusal:
            refusals.append(refusal)
        else:
            return
    raise refusals[0]


def _write_first(path: Path, settings: StudySettings) -> None:
    """Write the file unless another process does so at this moment: the first one's stands."""
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
        if entry.name != "draws" and was != now:
            raise InputError(
                f"{folder} holds a study with another {entry.name}: {was!r}, not {now!r}. Join it as it is with "
                f"muster search --study {folder}, or begin another elsewhere"
            )
