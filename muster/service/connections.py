"""Connections with limits that uvicorn does not have: on headers, on slow clients, on how many there are."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from muster.service.errors import encode

MAX_HEADERS = 65_536
"""Bytes of a request's line and headers at most."""
LINGER = 1.0
"""Seconds that a client has to read that it was too slow."""
NEVER = float("inf")


class Connections:
    """The connections of a process. If there are too many, those that have been idle longest are closed."""

    def __init__(self, limit: int, seconds: float) -> None:
        self.limit = limit
        self.seconds = seconds
        """Limit of the time for headers, for a body, and for a client that does not read its answer."""
        self.open: set[Connection] = set()
        self.idle: dict[Connection, None] = {}
        """Those without a request, longest first."""
        self.closed_idle = 0

    def close_slow(self) -> None:
        """Close connections whose client took too long; to be called every now and then."""
        now = time.monotonic()
        for connection in list(self.open):
            if connection.read_by < now:
                connection.transport.abort()
            elif connection.sent_by < now:
                connection.send_error(408, "slow_client", f"no whole request arrived within {self.seconds:g} s")
                connection.sent_by, connection.read_by = NEVER, now + LINGER


class Connection(HttpToolsProtocol):
    """Uvicorn's HTTP connection with deadlines in the time of `time.monotonic`."""

    all: Connections
    """Set by a subclass of each server."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._header_bytes = 0
        self.sent_by = NEVER
        """When the client must have sent its headers, or then its body."""
        self.read_by = NEVER
        """When the client must have gone on reading."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it; if there are too many, close the one that has been idle longest."""
        super().connection_made(transport)
        self.all.open.add(self)
        self.all.idle[self] = None
        self.sent_by = time.monotonic() + self.all.seconds
        if len(self.all.open) > self.all.limit:
            self.all.closed_idle += 1
            next(iter(self.all.idle)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.all.open.discard(self)
        self.all.idle.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived; refuse endless headers."""
        if self in self.all.idle:
            self._header_bytes += len(data)
            self.sent_by = min(self.sent_by, time.monotonic() + self.all.seconds)
        if self.parser is not None and not self.transport.is_closing():
            super().data_received(data)
        # Still idle: its headers are not complete.
        if self in self.all.idle and self._header_bytes > MAX_HEADERS and not self.transport.is_closing():
            self.send_error(431, "too_large", f"the headers have more than {MAX_HEADERS:,} bytes")

    def on_headers_complete(self) -> None:
        """Begin a request."""
        self.all.idle.pop(self, None)
        self._header_bytes, self.sent_by = 0, time.monotonic() + self.all.seconds
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End a request's body."""
        self.sent_by = NEVER
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End a request."""
        if not self.transport.is_closing() and not self.pipeline:
            self.all.idle[self] = None
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self.read_by = time.monotonic() + self.all.seconds

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self.read_by = NEVER

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, although its client may not have read all."""
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no HTTP."""
        self.send_error(400, "input", "this is no HTTP request")

    def send_error(self, status: int, code: str, error: str) -> None:
        """Send an error in the usual shape, before there is a request to answer, and close the connection."""
        body = encode({"code": code, "error": error, "where": ""})
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()
