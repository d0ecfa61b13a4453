"""Atomic writes of files, and locks of folders that one process at a time may write to."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from muster.errors import InputError, MusterError

LOCK = ".lock"


def check_regular(path: Path, kind: type[MusterError] = InputError) -> None:
    """Raise an error for a folder, or for a pipe or device, from which reading might never end."""
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "a pipe" if path.is_fifo() else "a device"
        raise kind(f"{path} is {what}, not a regular file")


def check_parent(path: Path) -> None:
    """Refuse a file to be written to a folder that does not exist, before anything long is computed."""
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {str(path.parent)!r}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise InputError in one sentence for an OSError while writing to `path`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def make_folder(folder: Path) -> None:
    """Create the folder and its parents, if they do not exist; InputError where it is a file."""
    if folder.is_file():
        raise InputError(f"cannot write into {folder}: it is a file, where a folder is expected")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file completely or, if interrupted, not at all."""
    make_folder(path.parent)
    draft = path.with_name(path.name + ".part")
    with writing(path):
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Lock a folder against other writing processes and threads; the lock ends with this process.

    There is no lock on systems without flock, which are not POSIX.
    """
    path = folder / LOCK
    file = take_lock(path)
    if file is None:
        holder = path.read_text().strip() or "another process"
        raise InputError(f"{folder} is being written to by {holder}; wait until that ends, or stop it")
    with file:
        began = time.strftime("%Y-%m-%d %H:%M:%S")
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()} since {began}\n")
        file.flush()
        try:
            yield
        finally:
            # The file is kept: if it were deleted, a third process could lock a new one of that name.
            file.truncate(0)


def take_lock(path: Path, wait: bool = False) -> IO[str] | None:
    """The file at `path`, locked until it is closed or this process ends; None while another holds it.

    With `wait` the call blocks until the lock is free. The file is kept. There is no lock on systems without flock.
    """
    make_folder(path.parent)
    with writing(path):
        file = path.open("a")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass
    except OSError:
        file.close()
        return None
    return file
