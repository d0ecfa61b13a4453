"""What a client is told when it does not get what it asked for: one shape for every error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from muster.service.replies import reply

CODES = {
    "input": "the request is not one that can be answered; `where` names the entry",
    "unauthorized": "the token is missing or wrong",
    "forbidden": "the Host header names another machine",
    "not_found": "there is no such address or policy",
    "method": "the address knows other methods",
    "media_type": "the body must be JSON, and say so",
    "too_large": "the body or the problem is larger than the service takes",
    "slow_client": "the request did not arrive in time",
    "busy": "too much is being worked on; come back after Retry-After seconds",
    "time_limit": "the answer was not ready in time",
    "stopping": "the service is being stopped, or not ready yet",
    "internal": "a mistake of the service; its log has the request's id",
}
"""What `code` can be."""
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
        return reply(
            {"code": self.code, "error": str(self), "where": self.where}, status=STATUS[self.code], headers=headers
        )


def refusal_of(error: Exception, fields: Mapping[str, Any] | tuple[str, ...] = ()) -> Refusal:
    """One of muster's own errors as an answer; `where` is the field that its sentence begins with."""
    word = re.match(r"\w+", str(error))
    return Refusal("input", str(error), word[0] if word and word[0] in fields else "")
