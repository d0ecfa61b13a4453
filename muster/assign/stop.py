"""Ends of a computation: its time limit, or a flag that another thread raises (core/stop.hpp checks both)."""

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
    """Time limit of a computation, and the flag that ends it earlier (`stoppable`)."""

    def __init__(self, seconds: float | None) -> None:
        flag = _FLAG.get()
        self.flag: Ints = np.zeros(1, np.int64) if flag is None else flag
        """[1] the flag that the core checks, and raises when the time is over."""
        self._end = math.inf if seconds is None else time.perf_counter() + seconds

    def left(self) -> float:
        """Seconds from now on."""
        return math.inf if self._end == math.inf else max(0.0, self._end - time.perf_counter())

    def is_over(self) -> bool:
        """Whether the flag is raised."""
        return bool(self.flag[0])


@contextmanager
def stoppable(flag: Ints) -> Iterator[None]:
    """Make computations in this context end when `flag` [1] is set to 1; the answer is the best found by then.

    Unlike a time limit this changes nothing unless the flag is raised.
    """
    token = _FLAG.set(flag)
    try:
        yield
    finally:
        _FLAG.reset(token)


@contextmanager
def stopped_after(seconds: float | None) -> Iterator[None]:
    """Raise the flag of computations in this context after so many seconds; None for no limit."""
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
    """Raise TimeLimitError if the last computation was stopped, so that its result means nothing."""
    flag = _FLAG.get()
    if flag is not None and flag[0]:
        raise TimeLimitError(f"{what} was not ready in time")
