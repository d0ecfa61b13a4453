"""When a computation has to end: at its time limit, or where others raise its flag (core/stop.hpp looks at both)."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from muster.data import Ints
from muster.errors import TimeLimitError

_FLAG: ContextVar[Ints | None] = ContextVar("stop", default=None)


class Deadline:
    """When a computation has to end: its time limit, or earlier where the flag is raised (`stoppable`)."""

    def __init__(self, seconds: float | None) -> None:
        given = _FLAG.get()
        self.flag: Ints = np.zeros(1, np.int64) if given is None else given
        """[1] what the core looks at all the time, and raises when time is over."""
        self._end = math.inf if seconds is None else time.perf_counter() + seconds

    def left(self) -> float:
        """Seconds from now on."""
        return math.inf if self._end == math.inf else max(0.0, self._end - time.perf_counter())

    def is_over(self) -> bool:
        """Whether the flag is raised."""
        return bool(self.flag[0])


@contextmanager
def stoppable(flag: Ints) -> Iterator[None]:
    """Let others end what is solved meanwhile: they set `flag` [1] to 1, and the best found by then is the answer.

    Unlike a time limit this changes nothing unless the flag is raised.
    """
    token = _FLAG.set(flag)
    try:
        yield
    finally:
        _FLAG.reset(token)


@contextmanager
def stopped_after(seconds: float | None) -> Iterator[None]:
    """Raise the flag of all that is solved meanwhile after so many seconds; None: leave it to others."""
    if seconds is None:
        yield
        return
    flag: Ints = np.zeros(1, np.int64)
    timer = threading.Timer(seconds, flag.fill, (1,))
    timer.daemon = True
    timer.start()
    try:
        with stoppable(flag):
            yield
    finally:
        timer.cancel()


def check_stopped(what: str) -> None:
    """Raise TimeLimitError if what was solved last was stopped, and tells nothing."""
    flag = _FLAG.get()
    if flag is not None and flag[0]:
        raise TimeLimitError(f"{what} was not ready in time")
