"""A board that the processes of one service share: each writes to its own part, all read.

What stands there is how many connections each has closed, by which new ones are dealt out, and its metrics.
"""

from __future__ import annotations

import mmap
import re
from functools import partial

import numpy as np

TEXT_BYTES = 1 << 20
"""Room for the metrics of one process; only the pages that are written to take memory."""
_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ", re.MULTILINE)


class Board:
    """Made before the processes are."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._texts = [mmap.mmap(-1, TEXT_BYTES) for _ in range(processes)]
        self.closed = np.frombuffer(mmap.mmap(-1, 8 * processes), np.int64)
        """[P] connections that each process has closed."""
        # Two numbers for each text: its length, and how often it was begun and ended to be written (odd meanwhile).
        self._state = np.frombuffer(mmap.mmap(-1, 16 * processes), np.int64).reshape(processes, 2)

    def write(self, process: int, text: bytes) -> None:
        """Put up the metrics of a process."""
        self._state[process, 1] += 1
        length = min(len(text), TEXT_BYTES)
        self._texts[process][:length] = text[:length]
        self._state[process, 0] = length
        self._state[process, 1] += 1

    def read(self, process: int) -> bytes:
        """The metrics of a process; none if they are being written again and again."""
        for _ in range(100):
            length, before = self._state[process].tolist()
            text = self._texts[process][:length]
            if before % 2 == 0 and self._state[process, 1] == before:
                return text
        return b""

    def forget(self, process: int) -> None:
        """A process is gone; another begins in its place."""
        self.closed[process] = 0
        self._state[process] = 0


def merged(texts: dict[int, bytes]) -> bytes:
    """The metrics of several processes as one text: every sample has the label `process`."""
    families: dict[str, list[str]] = {}
    for process, text in texts.items():
        for head, samples in _families(text.decode()):
            labelled = _SAMPLE.sub(partial(_labelled, process), samples)
            families.setdefault(head, []).append(labelled)
    return "".join(head + "".join(parts) for head, parts in families.items()).encode()


def _families(text: str) -> list[tuple[str, str]]:
    """Each family's two lines of explanation, and its samples."""
    found = []
    for part in re.split(r"^(?=# HELP)", text, flags=re.MULTILINE):
        if part.startswith("# HELP"):
            lines = part.splitlines(keepends=True)
            found.append(("".join(lines[:2]), "".join(lines[2:])))
    return found


def _labelled(process: int, found: re.Match[str]) -> str:
    labels = f"{found[2]}," if found[2] else ""
    return f'{found[1]}{{{labels}process="{process}"}} '
