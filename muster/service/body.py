"""Request bodies: received within limits and parsed as strict JSON.

Lists of numbers, and lists of rows of one length, are numpy arrays when they are the value of a key: a body has
thousands of numbers, and making a Python object of each takes longer than most decisions.
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
from muster.service.errors import RequestError, describe, refuse

MAX_BODIES = 16
"""Bodies of the largest size that may be arriving at once."""
LINGER = 1.0
"""Seconds for which the rest of a body that is too large is received, so that its client reads the error."""
LISTS = frozenset(("previous", "fixed", "assignment", "routes", "agents", "tasks", "agent_names", "task_names"))
"""Keys of task numbers (1.0 is none) and names, whose values stay lists."""


class Bodies:
    """Receives bodies, with limits on the size of each and of all that are arriving."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.arriving = 0
        """Bytes of bodies that are not complete."""

    async def read(self, request: Request) -> bytes:
        """The body of a request; its connection limits the time."""
        kind = dict(request.scope["headers"]).get(b"content-type", b"").decode("latin-1")
        if kind.partition(";")[0].strip().lower() != "application/json":
            error = f"Content-Type must be application/json, got {kind[:80]!r}"
            raise RequestError("media_type", error, "Content-Type")
        body, more = bytearray(), True
        try:
            while more and len(body) <= self._limit:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise RequestError("slow_client", "the client went away before its body had arrived")
                chunk, more = message.get("body", b""), message.get("more_body", False)
                body += chunk
                self.arriving += len(chunk)
                if self.arriving > MAX_BODIES * self._limit:
                    raise RequestError("busy", "too many bodies are arriving at once", "", {"Retry-After": "1"})
        finally:
            self.arriving -= len(body)
        if len(body) > self._limit:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER):
                    while more:
                        more = (await request.receive()).get("more_body", False)
            raise RequestError("too_large", f"the body has more than {self._limit:,} bytes")
        return bytes(body)


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object in a body; RequestError for other text, keys given twice and deep nesting.

    NaN, Infinity and 1e400 are parsed: the checks of the body's fields refuse them by the entry's name.
    """
    values = np.empty(len(body) // 2 + 1)
    text, arrays = core.service.lift_numbers(body, values)
    try:
        data = jiter.from_json(text, catch_duplicate_keys=True)
    except ValueError:
        # The text has a NaN of its own; or the error is to say where in the body it is.
        arrays = []
        try:
            data = jiter.from_json(body, catch_duplicate_keys=True)
        except ValueError as error:
            refuse(f"the body is not JSON as it should be: {str(error)[:200]}")
    if arrays:
        _fill_in(data, values, iter(arrays))
    if not isinstance(data, dict):
        refuse(f"the body must be a JSON object, got {describe(data)}")
    return data


def _fill_in(data: Any, values: Floats, arrays: Iterator[tuple[int, int, int, bool]]) -> None:
    """Replace each NaN by the array that the kernel read there: (first value, rows or -1, columns, all integers)."""
    if type(data) is dict:
        for key, value in data.items():
            if type(value) is float and value != value:
                first, rows, columns, integers = next(arrays)
                array = values[first : first + abs(rows) * columns]
                array = array if rows < 0 else array.reshape(rows, columns)
                data[key] = (array.astype(np.int64) if integers else array).tolist() if key in LISTS else array
            elif type(value) is dict or type(value) is list:
                _fill_in(value, values, arrays)
    elif type(data) is list:
        for value in data:
            _fill_in(value, values, arrays)
