"""Connections with limits that uvicorn does not have: on headers, on slow readers, on how many there are.

A connection is idle while no request of it is being answered. When there are too many, the one that has been idle
longest makes room, so that a crowd of clients that say nothing keeps nobody out.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from muster.service.replies import encoded

MOST_HEADERS = 65_536
"""Bytes of a request's line and headers at most."""


class Crowd:
    """All connections of a server."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self.seconds = seconds
        """For which a client may be in the middle of its headers, or leave an answer unread."""
        self.open = 0
        self.idle: dict[Connection, None] = {}
        """Those without a request, longest first."""
        self.closed_idle = 0
        """How many had to make room."""


class Connection(HttpToolsProtocol):
    """One client."""

    crowd: Crowd
    """Of the server; a subclass for each has its own."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._header_bytes = 0
        self._patience: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it; another makes room if there are too many."""
        super().connection_made(transport)
        crowd = self.crowd
        crowd.open += 1
        crowd.idle[self] = None
        self._wait_for_headers()
        if crowd.open > crowd.most:
            crowd.closed_idle += 1
            next(iter(crowd.idle)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.crowd.open -= 1
        self.crowd.idle.pop(self, None)
        self._stop_waiting()
        if self._unread:
            self._unread.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hand on what came, as long as headers end in time and are not endless."""
        if self in self.crowd.idle:
            self._header_bytes += len(data)
            self._wait_for_headers()
        if self.parser is not None and not self.transport.is_closing():
            super().data_received(data)
        # Those of a request that is through were not counted apart from its body.
        if self in self.crowd.idle and self._header_bytes > MOST_HEADERS and not self.transport.is_closing():
            self.send_error(431, "too_large", f"the headers have more than {MOST_HEADERS:,} bytes")

    def on_headers_complete(self) -> None:
        """A request begins."""
        self.crowd.idle.pop(self, None)
        self._header_bytes = 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """A request has its answer."""
        if not self.transport.is_closing() and not self.pipeline:
            self.crowd.idle[self] = None
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client does not read: it has so long, and no longer."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.crowd.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        if self._unread:
            self._unread.cancel()
            self._unread = None

    def timeout_keep_alive_handler(self) -> None:
        """Nothing came for a while; what was not read by now never will be."""
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Tell a client that it does not speak HTTP."""
        self.send_error(400, "input", "this is no HTTP request")

    def send_error(self, status: int, code: str, error: str) -> None:
        """An error in the shape of all others, before there is a request to answer."""
        body = encoded({"code": code, "error": error, "where": ""})
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()

    def _wait_for_headers(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(self.crowd.seconds, self._lose_patience)

    def _stop_waiting(self) -> None:
        if self._patience:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        self.send_error(408, "slow_client", f"no request arrived within {self.crowd.seconds:g} s")
        # What it does not read by then is lost.
        self._unread = self.loop.call_later(1.0, self.transport.abort)
