"""Optuna's journal file, under a lock that goes with the process that holds it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from muster.errors import InputError
from muster.storage import take_lock, writing

JOURNAL = "journal.log"


class ProcessLock(JournalFileOpenLock):
    """Optuna's own locks stay when a process is killed, and hold up all others for half a minute; this one does not.

    Whoever takes it cuts off a line that a killed process, or a full disk, left half-written: what another appended to
    it could never be read.
    """

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal))
        self._journal = journal
        self._held: IO[str] | None = None

    def acquire(self) -> bool:
        """Wait for it."""
        self._held = take_lock(self._journal.with_name(f".{self._journal.name}.lock"), wait=True)
        mend(self._journal)
        return True

    def release(self) -> None:
        """Let the next one."""
        if self._held is not None:
            self._held.close()
            self._held = None


def mend(journal: Path) -> None:
    """Cut off a last line without an end."""
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
    """The storage of a study."""
    path = folder / JOURNAL
    with writing(path):
        backend = JournalFileBackend(str(path), lock_obj=ProcessLock(path))
    try:
        return JournalStorage(backend)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}); its runs are in {folder}, begin a study elsewhere") from None
