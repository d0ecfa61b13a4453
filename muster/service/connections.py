"""Connections with limits that uvicorn does not have: on headers, on slow readers, on how many there are."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from muster.service.refusal import encode

MOST_HEADERS = 65_536
"""Bytes of a request's line and headers at most."""
LINGER = 1.0
"""Seconds that a client has to read that it was too slow."""


class Connections:
    """All connections of a process. Those that have been idle longest are closed when there are too many."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self.seconds = seconds
        """For which a client may be in the middle of its headers, or of its body, or leave an answer unread."""
        self.open: set[Connection] = set()
        self.idle: dict[Connection, None] = {}
        """Those without a request, longest first."""
        self.closed_idle = 0

    def close_slow(self) -> None:
        """Close those that have kept the service waiting for too long; to be called every now and then."""
        now = time.monotonic()
        for connection in list(self.open):
            if connection.unread_by < now:
                connection.transport.abort()
            elif connection.sent_by < now:
                connection.send_error(408, "slow_client", f"no whole request arrived within {self.seconds:g} s")
                connection.sent_by, connection.unread_by = NEVER, now + LINGER


NEVER = float("inf")


class Connection(HttpToolsProtocol):
    """One client, with limits that uvicorn does not have: on headers, on slow readers, on how many there are."""

    all: Connections
    """Of the server; a subclass for each has its own."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._header_bytes = 0
        self.sent_by = NEVER
        """Time of `time.monotonic` by which a request's headers, or then its body, must be complete."""
        self.unread_by = NEVER
        """By which the client must go on reading."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it; if there are too many the one that has been idle longest is closed."""
        super().connection_made(transport)
        every = self.all
        every.open.add(self)
        every.idle[self] = None
        self.sent_by = time.monotonic() + every.seconds
        if len(every.open) > every.most:
            every.closed_idle += 1
            next(iter(every.idle)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.all.open.discard(self)
        self.all.idle.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass on what came, as long as headers end in time and are not endless."""
        if self in self.all.idle:
            self._header_bytes += len(data)
            if self.sent_by == NEVER:
                self.sent_by = time.monotonic() + self.all.seconds
        if self.parser is not None and not self.transport.is_closing():
            super().data_received(data)
        # Those of a request that is through were not counted apart from its body.
        if self in self.all.idle and self._header_bytes > MOST_HEADERS and not self.transport.is_closing():
            self.send_error(431, "too_large", f"the headers have more than {MOST_HEADERS:,} bytes")

    def on_headers_complete(self) -> None:
        """A request begins."""
        self.all.idle.pop(self, None)
        self._header_bytes, self.sent_by = 0, time.monotonic() + self.all.seconds
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of a request is here."""
        self.sent_by = NEVER
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A request has its answer."""
        if not self.transport.is_closing() and not self.pipeline:
            self.all.idle[self] = None
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client does not read: it has so long, and no longer."""
        super().pause_writing()
        self.unread_by = time.monotonic() + self.all.seconds

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self.unread_by = NEVER

    def timeout_keep_alive_handler(self) -> None:
        """Nothing came for a while; what was not read by now never will be."""
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Tell a client that it does not speak HTTP."""
        self.send_error(400, "input", "this is no HTTP request")

    def send_error(self, status: int, code: str, error: str) -> None:
        """An error in the shape of all others, before there is a request to answer."""
        body = encode({"code": code, "error": error, "where": ""})
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()
