"""Threads for one batch, around kernels that release the interpreter's lock."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from itertools import pairwise


def thread_count() -> int:
    """Number of cores that this process may use, or MUSTER_NUM_THREADS if that is less."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("MUSTER_NUM_THREADS", "")
    return max(1, min(cores, int(limit))) if limit.isdecimal() else cores


def share_out(size: int, threads: int, work: Callable[[int, int], None]) -> None:
    """Call `work(begin, end)` on equal parts of range(size), one thread each; the caller's thread does the first.

    Parts are contiguous, so that threads do not write to the same cache lines.
    """
    threads = max(1, min(threads, size))
    bounds = [k * size // threads for k in range(threads + 1)]
    failures: list[BaseException] = []
    begun: list[_Helper] = []
    try:
        for begin, end in pairwise(bounds[1:]):
            begun.append(_Helper(work, begin, end, failures))
            begun[-1].start()
        work(bounds[0], bounds[1])
    finally:
        _wait_for(begun)
    if failures:
        raise failures[0]


class _Helper(threading.Thread):
    """A thread that works on one part, with an event for its end.

    Thread.join is not used: interrupted, that of Python 3.11 takes a running thread for ended.
    """

    def __init__(self, work: Callable[[int, int], None], begin: int, end: int, failures: list[BaseException]) -> None:
        super().__init__()
        self.work, self.bounds, self.failures, self.done = work, (begin, end), failures, threading.Event()

    def run(self) -> None:
        """Work, and keep an exception for the caller to raise."""
        try:
            self.work(*self.bounds)
        except BaseException as failure:
            self.failures.append(failure)
        finally:
            self.done.set()


def _wait_for(helpers: list[_Helper]) -> None:
    """Wait for all threads, even if interrupted: they write to arrays that the caller goes on to use."""
    interrupted = False
    for helper in helpers:
        if helper.ident is None:
            time.sleep(0.05)  # An interrupt within start() may leave a thread that is about to run.
        while helper.ident is not None and not helper.done.is_set():
            try:
                helper.done.wait()
            except KeyboardInterrupt:
                interrupted = True
    if interrupted:
        raise KeyboardInterrupt
