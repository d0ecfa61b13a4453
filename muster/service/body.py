"""Bodies of requests: taken in within limits, and read as strict JSON.

Lists of numbers that are the value of a key, or rows of one length of them, are arrays by the time they are read here:
a body has thousands of numbers, and an object for each costs more than most decisions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import jiter
import numpy as np
from starlette.requests import Request

from muster.data import Floats
from muster.kernels import core
from muster.service.refusal import Refusal, describe

MOST_BODIES = 16
"""Bodies of the largest size that may be arriving at once."""
LINGER = 1.0
"""Seconds for which the rest of a body that is too large is taken in, so that its client gets to read why."""
PLAIN = frozenset(("previous", "fixed", "assignment", "routes", "agents", "tasks", "agent_names", "task_names"))
"""Keys whose lists hold tasks by number, where 1.0 is none, or names: they stay lists."""


class Bodies:
    """Reads the bodies of requests, within limits of size and of what may be arriving at once; time is the limit of
    their connections.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.arriving = 0
        """Bytes in memory of bodies that are not complete."""

    async def read(self, request: Request) -> bytes:
        """The body of a request."""
        kind = request.headers.get("content-type", "")
        if kind != "application/json" and kind.partition(";")[0].strip().lower() != "application/json":
            raise Refusal("media_type", f"Content-Type must be application/json, got {kind[:80]!r}", "Content-Type")
        body, more = bytearray(), True
        try:
            while more and len(body) <= self._most:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise Refusal("slow_client", "the client went away before its body had arrived")
                chunk, more = message.get("body", b""), message.get("more_body", False)
                body += chunk
                self.arriving += len(chunk)
                if self.arriving > MOST_BODIES * self._most:
                    raise Refusal("busy", "too many bodies are arriving at once", "", {"Retry-After": "1"})
        finally:
            self.arriving -= len(body)
        if len(body) > self._most:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER):
                    while more:
                        more = (await request.receive()).get("more_body", False)
            raise Refusal("too_large", f"the body has more than {self._most:,} bytes")
        return bytes(body)


def parse(body: bytes) -> dict[str, Any]:
    """The object that a body holds: JSON in UTF-8, no key twice, not nested deeply.

    NaN, Infinity and 1e400 are read, to be refused where their entry has a name.
    """
    values = np.empty(len(body) // 2 + 1)
    text, lifted = core.service.lift_numbers(body, values)
    try:
        data = jiter.from_json(text, catch_duplicate_keys=True)
    except ValueError:
        # Once more, for where in the body it is; or because it has a NaN of its own.
        data, lifted = _parse_or_refuse(body), []
    if lifted:
        _put_back(data, values, iter(lifted))
    if not isinstance(data, dict):
        raise Refusal("input", f"the body must be a JSON object, got {describe(data)}")
    return data


def _parse_or_refuse(body: bytes) -> Any:
    try:
        return jiter.from_json(body, catch_duplicate_keys=True)
    except ValueError as error:
        raise Refusal("input", f"the body is not JSON as it should be: {str(error)[:200]}") from None


def _put_back(data: Any, values: Floats, lifted: Iterator[tuple[int, int, int, bool]]) -> None:
    """Put arrays where they were lifted from, in their order: each left a NaN."""
    if type(data) is dict:
        for key, value in data.items():
            if type(value) is float and value != value:
                first, rows, columns, whole = next(lifted)
                found = values[first : first + abs(rows) * columns]
                found = found if rows < 0 else found.reshape(rows, columns)
                data[key] = (found.astype(np.int64) if whole else found).tolist() if key in PLAIN else found
            elif type(value) is dict or type(value) is list:
                _put_back(value, values, lifted)
    elif type(data) is list:
        for value in data:
            _put_back(value, values, lifted)
