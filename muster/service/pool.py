"""The threads that solve, the bounded queue before them, and the deadline of each piece of work.

Python's own executor takes longer to pass on a small request than it takes to solve it: here a thread goes on to the
next piece of work without sleeping, and hands back all that it finished at once.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

import numpy as np

from muster.assign.stop import stoppable
from muster.data import Ints
from muster.parallel import thread_count
from muster.service.errors import RequestError

Answer = TypeVar("Answer")
STOPPING = 0.9
"""Share of a request's time after which a solver has to come to an end."""

LATE = "the answer was not ready in time"


class Work(NamedTuple):
    """A piece of work and who waits for it."""

    work: Callable[[], Any]
    waiter: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    stop: Ints
    """[1] set to 1 when the best found so far has to do."""
    deadline: float
    """A time of `time.monotonic`."""


class Pool:
    """Work that is done outside the event loop, so much at once and so much waiting."""

    def __init__(self, threads: int | None, queue: int) -> None:
        self.threads = threads or thread_count()
        self.queue = queue
        self.held = 0
        """Pieces of work that run or wait. Only the event loop's thread changes it."""
        self.late = 0
        """Pieces of work that ended after their deadline."""
        self._usual = 0.01
        """Seconds that one has taken lately."""
        self._waiting: SimpleQueue[Work | None] = SimpleQueue()
        """None: there is nothing more to do."""
        self._running: dict[int, Work] = {}
        """By thread."""
        self._workers: list[threading.Thread] = []
        """Started with the first piece of work: a process that has threads is not copied safely."""

    @property
    def overdue(self) -> int:
        """Threads whose work should have ended by now."""
        now = time.monotonic()
        return sum(work.deadline < now for work in list(self._running.values()))

    async def run(self, deadline: float, work: Callable[[], Answer], late: str = LATE) -> Answer:
        """The result of `work()` on a thread; RequestError if the queue is full, or if it is `late`.

        `deadline` is a time of `time.monotonic`. What runs too long keeps its thread until it ends.
        """
        if self.held >= self.threads + self.queue:
            after = max(1, math.ceil(self.queue * self._usual / self.threads))
            told = f"{self.held} requests are being worked on; try again"
            raise RequestError("busy", told, "", {"Retry-After": str(after)})
        self.held += 1
        if not self._workers:
            self._start()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Answer] = loop.create_future()
        stop: Ints = np.zeros(1, np.int64)
        self._waiting.put(Work(work, waiter, loop, stop, deadline))
        seconds = deadline - time.monotonic()
        timers = loop.call_later(STOPPING * seconds, stop.fill, 1), loop.call_later(seconds, _give_up, waiter, late)
        try:
            return await waiter
        finally:
            # Its waiter is gone: the work stops as soon as it can.
            stop.fill(1)
            for timer in timers:
                timer.cancel()

    def _start(self) -> None:
        self._workers = [
            threading.Thread(target=self._serve, name=f"muster-{k}", daemon=True) for k in range(self.threads)
        ]
        for worker in self._workers:
            worker.start()

    def close(self, seconds: float) -> bool:
        """Tell all work to stop and wait for the threads' end, so many seconds at most; whether all have ended."""
        end = time.monotonic() + seconds
        for work in list(self._running.values()):
            work.stop.fill(1)
        for _ in self._workers:
            self._waiting.put(None)
        for worker in self._workers:
            worker.join(max(0.0, end - time.monotonic()))
        return not any(worker.is_alive() for worker in self._workers)

    def _serve(self) -> None:
        """What a thread does."""
        me = threading.get_ident()
        while (work := self._waiting.get()) is not None:
            outcome: Any = None
            failure: BaseException | None = None
            # Who has given up is not worked for.
            if not work.waiter.done():
                self._running[me] = work
                started = time.perf_counter()
                try:
                    with stoppable(work.stop):
                        outcome = work.work()
                except StopIteration:
                    failure = RuntimeError("the work raised StopIteration, which no waiter can be given")
                except BaseException as error:
                    failure = error
                self._usual += 0.1 * (time.perf_counter() - started - self._usual)
                del self._running[me]
            try:
                work.loop.call_soon_threadsafe(self._hand_back, work, outcome, failure)
            except RuntimeError:
                # The event loop is gone, and with it everybody who waits.
                return

    def _hand_back(self, work: Work, outcome: Any, failure: BaseException | None) -> None:
        self.held -= 1
        self.late += time.monotonic() > work.deadline
        if work.waiter.done():
            return
        if failure is not None:
            work.waiter.set_exception(failure)
        else:
            work.waiter.set_result(outcome)


def _give_up(waiter: asyncio.Future[Any], late: str) -> None:
    if not waiter.done():
        waiter.set_exception(RequestError("time_limit", late, "", {"Retry-After": "1"}))
