"""The threads that solve, and the bounded queue before them.

Python's own executor takes longer to hand over a small request than it takes to solve it: here a thread goes on to the
next piece of work without sleeping, and hands back all that it finished at once.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from muster.assign.solver import stoppable
from muster.data import Ints
from muster.parallel import thread_count
from muster.service.refusals import Refusal

Answer = TypeVar("Answer")
HASTE = 0.9
"""Share of a request's time after which a solver has to come to an end."""


class Job(NamedTuple):
    """A piece of work and who waits for it."""

    work: Callable[[], Any]
    waiter: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    stop: Ints
    """[1] set to 1 when the best found so far has to do."""


class Pool:
    """Work that is done outside the event loop, so much at once and so much waiting."""

    def __init__(self, threads: int | None, queue: int) -> None:
        self.threads = threads or thread_count()
        self.queue = queue
        self.held = 0
        """Pieces of work that run or wait. Only the event loop's thread changes it."""
        self._usual = 0.01
        """Seconds that one has taken lately."""
        self._jobs: deque[Job] = deque()
        self._signal = threading.Semaphore(0)
        self._closed = False
        self._workers: list[threading.Thread] = []
        """Started with the first piece of work: a process that has threads is not copied safely."""

    async def run(self, deadline: float, work: Callable[[], Answer]) -> Answer:
        """The result of `work()` on a thread; a Refusal if there is no room, or not in time.

        `deadline` is a time of `time.monotonic`. What runs too long keeps its thread until it ends.
        """
        if self.held >= self.threads + self.queue:
            after = max(1, math.ceil(self.queue * self._usual / self.threads))
            raise Refusal(
                "busy", f"{self.held} requests are being worked on; try again", "", {"Retry-After": str(after)}
            )
        self.held += 1
        if not self._workers:
            self._start()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Answer] = loop.create_future()
        stop: Ints = np.zeros(1, np.int64)
        self._jobs.append(Job(work, waiter, loop, stop))
        self._signal.release()
        seconds = deadline - time.monotonic()
        timers = loop.call_later(HASTE * seconds, stop.fill, 1), loop.call_later(seconds, _give_up, waiter)
        try:
            return await waiter
        finally:
            for timer in timers:
                timer.cancel()

    def _start(self) -> None:
        self._workers = [
            threading.Thread(target=self._serve, name=f"muster-{k}", daemon=True) for k in range(self.threads)
        ]
        for worker in self._workers:
            worker.start()

    def close(self) -> None:
        """Wait for what runs, and end the threads."""
        self._closed = True
        for _ in self._workers:
            self._signal.release()
        for worker in self._workers:
            worker.join()

    def _serve(self) -> None:
        """What a thread does."""
        while not self._closed:
            self._signal.acquire()
            try:
                job = self._jobs.popleft()
            except IndexError:
                continue
            outcome, failure = None, None
            # Who has given up is not worked for.
            if not job.waiter.done():
                started = time.perf_counter()
                try:
                    with stoppable(job.stop):
                        outcome = job.work()
                except BaseException as error:
                    failure = error
                self._usual += 0.1 * (time.perf_counter() - started - self._usual)
            try:
                job.loop.call_soon_threadsafe(self._hand_back, job.waiter, outcome, failure)
            except RuntimeError:
                # The event loop is gone, and with it everybody who waits.
                return

    def _hand_back(self, waiter: asyncio.Future[Any], outcome: Any, failure: BaseException | None) -> None:
        self.held -= 1
        if waiter.done():
            return
        if failure is not None:
            waiter.set_exception(failure)
        else:
            waiter.set_result(outcome)


def _give_up(waiter: asyncio.Future[Any]) -> None:
    if not waiter.done():
        waiter.set_exception(Refusal("time_limit", "the answer was not ready in time", "", {"Retry-After": "1"}))
