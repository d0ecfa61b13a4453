"""The threads that solve, the bounded queue before them, and the deadline of each call."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np

from muster.assign.stop import stoppable
from muster.data import Ints
from muster.parallel import thread_count
from muster.service.errors import RequestError

Answer = TypeVar("Answer")
STOPPING = 0.9
"""Share of a call's time after which the solver has to return its best plan."""
LATE = "the answer was not ready in time"


class Pool:
    """Calls outside the event loop: so many run, so many wait. Used from the event loop's thread."""

    def __init__(self, threads: int | None, queue: int) -> None:
        self.threads = threads or thread_count()
        self.queue = queue
        self.late = 0
        """Calls that ended after their deadline."""
        self._executor = ThreadPoolExecutor(self.threads, "muster")
        self._calls: dict[Future[Any], Ints] = {}
        """Calls that run or wait, with the flag that stops the solver."""
        self._deadlines: dict[int, float] = {}
        """Of the call that runs, by thread; in the time of `time.monotonic`."""

    @property
    def held(self) -> int:
        """Calls that run or wait."""
        return len(self._calls)

    @property
    def overdue(self) -> int:
        """Threads whose call is past its deadline."""
        now = time.monotonic()
        return sum(deadline < now for deadline in list(self._deadlines.values()))

    async def run(self, deadline: float, call: Callable[[], Answer], late: str = LATE) -> Answer:
        """The result of `call()` on a thread; RequestError if the queue is full, or if it is late.

        `late` is then the message; `deadline` is a time of `time.monotonic`. A call that takes longer keeps its thread
        until it ends.
        """
        if self.held >= self.threads + self.queue:
            error = f"{self.held} requests are being worked on; try again"
            raise RequestError("busy", error, "", {"Retry-After": "1"})
        stop: Ints = np.zeros(1, np.int64)

        def run() -> Answer:
            thread = threading.get_ident()
            self._deadlines[thread] = deadline
            try:
                with stoppable(stop):
                    return call()
            finally:
                del self._deadlines[thread]
                self.late += time.monotonic() > deadline

        loop = asyncio.get_running_loop()
        future = self._executor.submit(run)
        self._calls[future] = stop
        future.add_done_callback(lambda _: self._calls.pop(future))
        seconds = deadline - time.monotonic()
        timer = loop.call_later(STOPPING * seconds, stop.fill, 1)
        try:
            async with asyncio.timeout(seconds) as timeout:
                return await asyncio.wrap_future(future)
        except TimeoutError:
            if not timeout.expired():
                raise
            raise RequestError("time_limit", late, "", {"Retry-After": "1"}) from None
        finally:
            # The result is awaited no longer: the solver stops as soon as it can.
            stop.fill(1)
            timer.cancel()

    def close(self, seconds: float) -> bool:
        """Stop all calls and wait at most so many seconds for their end; whether all have ended."""
        calls = dict(self._calls)
        for stop in calls.values():
            stop.fill(1)
        self._executor.shutdown(wait=False)
        return not wait(calls, seconds).not_done
