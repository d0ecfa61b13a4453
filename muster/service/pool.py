"""The threads that solve, and the bounded queue before them."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from muster.parallel import thread_count
from muster.service.refusals import Refusal

Answer = TypeVar("Answer")


class Pool:
    """Work that is done outside the event loop, so much at once and so much waiting."""

    def __init__(self, threads: int | None, queue: int) -> None:
        self.threads = threads or thread_count()
        self.queue = queue
        self.held = 0
        """Pieces of work that run or wait."""
        self._usual = 0.01
        """Seconds that one has taken lately."""
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(self.threads, "muster")

    async def run(self, deadline: float, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """The result of `work(*arguments)` on a thread; a Refusal if there is no room, or not in time.

        `deadline` is a time of `time.monotonic`. What runs too long keeps its thread until it ends.
        """
        if self.held >= self.threads + self.queue:
            after = max(1, math.ceil(self.queue * self._usual / self.threads))
            raise Refusal(
                "busy", f"{self.held} requests are being worked on; try again", "", {"Retry-After": str(after)}
            )
        with self._lock:
            self.held += 1
        job = self._executor.submit(self._timed, work, arguments)
        job.add_done_callback(self._leave)
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + deadline - time.monotonic()):
                return await asyncio.wrap_future(job)
        except TimeoutError:
            raise Refusal("time_limit", "the answer was not ready in time", "", {"Retry-After": "1"}) from None

    def _timed(self, work: Callable[..., Answer], arguments: tuple[Any, ...]) -> Answer:
        started = time.perf_counter()
        try:
            return work(*arguments)
        finally:
            self._usual += 0.1 * (time.perf_counter() - started - self._usual)

    def _leave(self, job: Future[Any]) -> None:
        del job
        with self._lock:
            self.held -= 1

    def close(self) -> None:
        """Wait for what runs."""
        self._executor.shutdown()
