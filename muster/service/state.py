"""What every part of the service shares: its settings, the threads, the policies, and how a body is read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from muster.errors import MusterError
from muster.service.connections import Crowd
from muster.service.metrics import Metrics
from muster.service.pool import Pool
from muster.service.reading import parse
from muster.service.refusals import Refusal, refusal_of
from muster.service.replies import reply
from muster.service.served import Served
from muster.service.settings import ServeSettings

MOST_BODIES = 16
"""Bodies of the largest size that may be arriving at once."""
LINGER = 1.0
"""Seconds for which the rest of a body that is too large is taken in, so that its client gets to read why."""


@dataclass
class State:
    """One service."""

    settings: ServeSettings
    policies: dict[str, Served]
    pool: Pool
    crowd: Crowd
    metrics: Metrics = field(default_factory=Metrics)
    ready: bool = False
    """Whether kernels are compiled and nobody has asked to stop."""
    buffered: int = 0
    """Bytes of bodies in memory that are still arriving."""

    async def answer(self, request: Request, work: Callable[[dict[str, Any], float], Any]) -> Response:
        """The answer to a JSON body: `work(data, deadline)` on a thread of the pool, as JSON.

        `deadline` is a time of `time.monotonic` by which the client is told that it takes too long.
        """
        body = await self.read(request)
        deadline = time.monotonic() + self.settings.time_limit

        def read_and_work() -> Response:
            data = parse(body)
            try:
                return reply(work(data, deadline))
            except MusterError as error:
                raise refusal_of(error, data) from None

        return await self.pool.run(deadline, read_and_work)

    async def read(self, request: Request) -> bytes:
        """The body, within its limits of size and time."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal("media_type", f"Content-Type must be application/json, got {kind[:80]!r}", "Content-Type")
        body = bytearray()
        try:
            async with asyncio.timeout(self.settings.read_limit):
                async for chunk in request.stream():
                    body += chunk
                    self.buffered += len(chunk)
                    if len(body) > self.settings.body_limit:
                        break
                    if self.buffered > MOST_BODIES * self.settings.body_limit:
                        raise Refusal("busy", "too many bodies are arriving at once", "", {"Retry-After": "1"})
        except TimeoutError:
            seconds = self.settings.read_limit
            raise Refusal("slow_client", f"the body did not arrive within {seconds:g} s") from None
        except ClientDisconnect:
            raise Refusal("slow_client", "the client went away before its body had arrived") from None
        finally:
            self.buffered -= len(body)
        if len(body) > self.settings.body_limit:
            await _take_in_the_rest(request)
            raise Refusal("too_large", f"the body has more than {self.settings.body_limit:,} bytes")
        return bytes(body)


async def _take_in_the_rest(request: Request) -> None:
    try:
        async with asyncio.timeout(LINGER):
            while (await request.receive()).get("more_body"):
                pass
    except (TimeoutError, ClientDisconnect):
        return
