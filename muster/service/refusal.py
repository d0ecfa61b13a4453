"""What a client is told when it does not get what it asked for: one shape for every error; and answers as JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

STATUS = {
    "input": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method": 405,
    "slow_client": 408,
    "too_large": 413,
    "media_type": 415,
    "busy": 429,
    "internal": 500,
    "stopping": 503,
    "time_limit": 503,
}
"""What `code` can be, and its HTTP status."""
SHOWN = 80
"""Letters of what was sent that a message repeats at most."""
CLOSING = {"slow_client", "too_large"}
"""After these the connection is closed: its client is still sending."""


class Refusal(Exception):  # noqa: N818 - it is an answer
    """An answer that is an error."""

    def __init__(self, code: str, error: str, where: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error)
        self.code = code
        self.where = where
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """The error as it is sent."""
        headers = self.headers | ({"Connection": "close"} if self.code in CLOSING else {})
        content = {"code": self.code, "error": str(self), "where": self.where}
        return reply(content, STATUS[self.code], headers)


def refusal_of(error: Exception, fields: Mapping[str, Any] | tuple[str, ...] = ()) -> Refusal:
    """One of muster's own errors as an answer; `where` is the field that its sentence begins with."""
    word = re.match(r"\w+", str(error))
    return Refusal("input", str(error), word[0] if word and word[0] in fields else "")


def reply(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The content as a JSON answer; numbers that are not finite are null."""
    return Response(encode(content), status, headers, "application/json")


def encode(content: Any) -> bytes:
    """The content as JSON; arrays of numpy are lists."""
    return to_json(content, inf_nan_mode="null", fallback=lambda array: array.tolist())


def describe(value: Any) -> str:
    """What a value of a body is, in words."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "a number beyond all bounds"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {clip(value)!r}"
    if isinstance(value, (int, float)):
        return f"{value:.10g}" if abs(value) < 10**30 else "a very large number"
    return "null" if value is None else "an object" if isinstance(value, dict) else "a list"


def clip(text: str) -> str:
    """No more of a text than a message should repeat."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
