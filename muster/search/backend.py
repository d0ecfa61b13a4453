"""What a study gives Optuna: a sampler, a pruner, and a journal that survives killed processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any, Literal
from zlib import crc32

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial

from muster.errors import InputError
from muster.storage import take_lock, writing

JOURNAL = "journal.log"
RUNGS = 20
"""Parts of a trial's length; after each it may be pruned."""
FIRST_RUNG = 4
"""No trial is pruned by the median before this many."""


class NumberedSampler(BaseSampler):
    """Samples that depend on the study's seed, a trial's number and the setting alone, in whatever process and order.

    So random trials are the same for any number of processes, and after any interruption.
    """

    def __init__(self, kind: Literal["random", "tpe"], seed: int) -> None:
        self._kind, self._seed = kind, seed

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """None: every setting is sampled by itself."""
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Nothing."""
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """The value of one setting."""
        words = np.random.SeedSequence([self._seed, trial.number, crc32(param_name.encode())]).generate_state(1)
        seed = int(words[0])
        # Trials running elsewhere count as bad ones, so that processes spread out.
        sampler = RandomSampler(seed) if self._kind == "random" else TPESampler(seed=seed, constant_liar=True)
        return sampler.sample_independent(study, trial, param_name, param_distribution)


def make_pruner(kind: Literal["none", "median", "hyperband"]) -> BasePruner:
    """What ends trials early."""
    if kind == "median":
        return MedianPruner(n_startup_trials=5, n_warmup_steps=FIRST_RUNG)
    if kind == "hyperband":
        return HyperbandPruner(min_resource=1, max_resource=RUNGS, reduction_factor=3)
    return NopPruner()


class ProcessLock(JournalFileOpenLock):
    """Optuna's own locks stay when a process is killed, and hold up all others for half a minute; this one does not.

    The process that takes it cuts off a line that a killed process, or a full disk, left half-written: what another
    appended to it could never be read.
    """

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal))
        self._journal = journal
        self._held: IO[str] | None = None

    def acquire(self) -> bool:
        """Wait for it."""
        self._held = take_lock(self._journal.with_name(f".{self._journal.name}.lock"), wait=True)
        _cut_unfinished_line(self._journal)
        return True

    def release(self) -> None:
        """Let the next one have it."""
        if self._held is not None:
            self._held.close()
            self._held = None


def _cut_unfinished_line(journal: Path) -> None:
    with writing(journal), journal.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return
        file.seek(-1, os.SEEK_END)
        if file.read(1) == b"\n":
            return
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def open_journal(folder: Path) -> JournalStorage:
    """Optuna's storage in a study's folder."""
    path = folder / JOURNAL
    with writing(path):
        backend = JournalFileBackend(str(path), lock_obj=ProcessLock(path))
    try:
        return JournalStorage(backend)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}); its runs are in {folder}, begin a study elsewhere") from None
