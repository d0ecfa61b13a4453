"""Several cores for one batch: plain threads round kernels that release the interpreter's lock."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable


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

    def help_out(begin: int, end: int) -> None:
        try:
            work(begin, end)
        except BaseException as failure:
            failures.append(failure)

    helpers = [threading.Thread(target=help_out, args=bounds[k : k + 2]) for k in range(1, threads)]
    begun: list[threading.Thread] = []
    try:
        for helper in helpers:
            begun.append(helper)
            helper.start()
        work(bounds[0], bounds[1])
    finally:
        _wait_for(begun)
    if failures:
        raise failures[0]


def _wait_for(helpers: list[threading.Thread]) -> None:
    """Join them all, also when interrupted meanwhile: they write to arrays that the caller goes on to use."""
    interrupted = False
    for helper in helpers:
        if helper.ident is None:
            time.sleep(0.05)  # An interrupt within start() leaves a thread that is about to run.
        while helper.is_alive():
            try:
                helper.join()
            except KeyboardInterrupt:
                interrupted = True
    if interrupted:
        raise KeyboardInterrupt
