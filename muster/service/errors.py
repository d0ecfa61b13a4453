"""Errors of requests, which are answered in one shape; and answers as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping
from typing import Any, NoReturn

import numpy as np
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
"""HTTP status by error code."""
QUOTED = 80
"""Characters of a request's text that a message repeats at most."""


class RequestError(Exception):
    """An error that is the answer to a request: code, sentence, and the entry of the body that is wrong."""

    def __init__(self, code: str, error: str, where: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error)
        self.code, self.where, self.headers = code, where, dict(headers or {})

    def response(self) -> Response:
        """The answer; the connection is closed if its client may still be sending."""
        headers = self.headers | ({"Connection": "close"} if self.code in ("slow_client", "too_large") else {})
        return reply({"code": self.code, "error": str(self), "where": self.where}, STATUS[self.code], headers)


def refuse(error: str, where: str = "") -> NoReturn:
    """Raise the RequestError of a wrong entry."""
    raise RequestError("input", error, where)


def as_request_error(error: Exception, fields: Container[str] = ()) -> RequestError:
    """A MusterError as a RequestError; `where` is the field that its message begins with."""
    word = re.match(r"\w+", str(error))
    return RequestError("input", str(error), word[0] if word and word[0] in fields else "")


def reply(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response."""
    return Response(encode(content), status, headers, "application/json")


def encode(content: Any) -> bytes:
    """JSON; numpy arrays become lists, numbers that are not finite null."""
    return to_json(content, inf_nan_mode="null", fallback=lambda array: array.tolist())


def describe(value: Any) -> str:
    """A parsed JSON value in a message."""
    if isinstance(value, (dict, list, np.ndarray)):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a very large number"
    return json.dumps(clip(value) if isinstance(value, str) else value, ensure_ascii=False)


def clip(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= QUOTED else text[:QUOTED] + "…"
