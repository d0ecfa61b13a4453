"""A word on the console when something takes long for the first time: kernels being compiled."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Longer than any cached kernel takes to load and run on a small instance.
PATIENCE = 2.0
NOTICE = "loading kernels; the first time they are compiled, which takes about a minute …"


@contextmanager
def first_use(notice: str = NOTICE, seconds: float = PATIENCE) -> Iterator[None]:
    """Print `notice` on standard error if what is done inside takes longer than `seconds`."""
    timer = threading.Timer(seconds, print, args=(f"muster: {notice}",), kwargs={"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def load_kernels() -> None:
    """Load inference's kernels, or compile them the first time, with a word if that takes long."""
    with first_use():
        from muster.inference import assign

        assign([[1.0]])
