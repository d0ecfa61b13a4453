"""What every part of the service shares: its settings, the threads, the policies, and how a body is read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from muster.errors import MusterError
from muster.service.crowd import Crowd
from muster.service.metrics import Metrics
from muster.service.pool import Pool
from muster.service.reading import parse
from muster.service.refusals import Refusal, refusal_of
from muster.service.replies import reply
from muster.service.scanning import scanned
from muster.service.served import Served
from muster.service.settings import ServeSettings

MOST_BODIES = 16
"""Bodies of the largest size that may be arriving at once."""
LINGER = 1.0
"""Seconds for which the rest of a body that is too large is taken in, so that its client gets to read why."""
QUICK_BODY = 32_768
"""Bytes of a body at most that the event loop may answer itself."""
MOST_QUICK = 16
"""Requests that it answers so in one turn."""
Found = TypeVar("Found")
Work = Callable[[dict[str, Any], float], Any]
"""From what was sent, and the time by which it is wanted, to what is answered."""


class Answerable(Protocol):
    """A request that has been read."""

    def answer(self) -> Any:
        """What answers it."""


QuickWork = Callable[[bytes], Answerable | None]
"""From a body to what can be answered at once; None: that would take too long, or it is not plain."""


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
    quick: int = 0
    """Requests that the event loop has been asked to answer itself in this turn."""

    async def answer(self, request: Request, work: Work, quick: QuickWork | None = None) -> Response:
        """The answer to a JSON body: `work(data, deadline)` on a thread of the pool, as JSON.

        `deadline` is a time of `time.monotonic` by which the client is told that it takes too long. What `quick(body)`
        returns is done on the spot instead: handing it over would take longer.
        """
        body = await self.read(request)
        deadline = time.monotonic() + self.settings.time_limit
        if quick is not None and (asked := self.read_at_once(body, quick)) is not None:
            return reply(asked.answer())

        def read_and_work() -> Response:
            found = _found_plainly(body, lambda data: work(data, deadline))
            if found is not None:
                return reply(found)
            data = parse(body)
            try:
                return reply(work(data, deadline))
            except MusterError as error:
                raise refusal_of(error, data) from None

        return await self.pool.run(deadline, read_and_work)

    def read_at_once(self, body: bytes, quick: QuickWork) -> Answerable | None:
        """What can be answered on the spot; None if that could take its time, or something is wrong with it."""
        if len(body) > QUICK_BODY or not self._may_be_quick():
            return None
        return _unless_wrong(lambda: quick(body))

    def _may_be_quick(self) -> bool:
        """Whether the event loop has done little in this turn: others wait for it, /health among them."""
        if self.quick == 0:
            asyncio.get_running_loop().call_soon(setattr, self, "quick", 0)
        self.quick += 1
        return self.quick <= MOST_QUICK

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


def _found_plainly(body: bytes, work: Callable[[dict[str, Any]], Found | None]) -> Found | None:
    """What answers a body of plain JSON; None if it is something else, or there is something wrong with it."""
    data = scanned(body)
    return _unless_wrong(lambda: work(data)) if isinstance(data, dict) else None


def _unless_wrong(work: Callable[[], Found | None]) -> Found | None:
    """What comes of it; None if there is something wrong with what was sent.

    What is wrong is found out, and put into words, by reading it again slowly.
    """
    try:
        return work()
    except MusterError:
        return None
    except Refusal as refusal:
        if refusal.code in ("input", "not_found"):
            return None
        raise


async def _take_in_the_rest(request: Request) -> None:
    try:
        async with asyncio.timeout(LINGER):
            while (await request.receive()).get("more_body"):
                pass
    except (TimeoutError, ClientDisconnect):
        return
