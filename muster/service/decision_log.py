"""The decision log: one JSON line a decision of /act, in files of limited size.

A line is one of a `log:` environment, an observation with the assignment that was taken, and says beside it when, for
which request, by which version of which policy, why agents have no task, how long it took, and what the shadow would
have done. So `muster train --from-log`, `muster evaluate POLICY log:FILE` and `muster replay` read it as it is.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import IO, Any

from muster.service.refusal import encode
from muster.storage import make_folder, writing

FILE_BYTES = 64 * 2**20
"""A file that is larger is closed, and the next one begun."""


class DecisionLog:
    """Appends lines to the newest file of this process in a folder."""

    def __init__(self, folder: Path, file_bytes: int = FILE_BYTES) -> None:
        self.folder = folder
        self._file_bytes = file_bytes
        self._file: IO[bytes] | None = None
        make_folder(folder)

    def write(self, line: dict[str, Any]) -> None:
        """Append a decision; it is on its way to the disk when this returns."""
        if self._file is None or self._file.tell() > self._file_bytes:
            self.close()
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            path = self.folder / f"decisions-{stamp}-{os.getpid()}-{time.monotonic_ns() % 10**6:06}.jsonl"
            with writing(path):
                self._file = path.open("ab", buffering=0)
        self._file.write(encode(line) + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
