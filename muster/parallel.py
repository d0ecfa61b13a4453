"""Several cores for one batch: plain threads round kernels that release the interpreter's lock."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from itertools import pairwise


def thread_count() -> int:
    """Cores this process may use, or MUSTER_NUM_THREADS if that is less."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("MUSTER_NUM_THREADS", "")
    return max(1, min(cores, int(limit))) if limit.isdecimal() else cores


def share_out(size: int, threads: int, work: Callable[[int, int], None]) -> None:
    """Call `work(begin, end)` on equal runs of range(size), a thread each; the caller's thread does the first.

    Each thread takes neighbours: taking turns would have them write to the same cache lines.
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
    """A thread that works on one run, and says when it is done.

    An interrupted Thread.join of Python 3.11 takes the thread for ended while it runs, so nothing here asks for that.
    """

    def __init__(self, work: Callable[[int, int], None], begin: int, end: int, failures: list[BaseException]) -> None:
        super().__init__()
        self.work, self.bounds, self.failures, self.done = work, (begin, end), failures, threading.Event()

    def run(self) -> None:
        """Work; a failure is the caller's to raise."""
        try:
            self.work(*self.bounds)
        except BaseException as failure:
            self.failures.append(failure)
        finally:
            self.done.set()


def _wait_for(helpers: list[_Helper]) -> None:
    """Wait until all are done, also when interrupted meanwhile: they write to arrays that the caller goes on to use."""
    interrupted = False
    for helper in helpers:
        if helper.ident is None:
            time.sleep(0.05)  # An interrupt within start() leaves a thread that is about to run, or none.
        while helper.ident is not None and not helper.done.is_set():
            try:
                helper.done.wait()
            except KeyboardInterrupt:
                interrupted = True
    if interrupted:
        raise KeyboardInterrupt
