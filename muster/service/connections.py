"""Connections with limits that uvicorn does not have, on headers, on slow readers and on how many there are, and with
a short way for small requests.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from muster.service.crowd import Crowd
from muster.service.replies import encoded
from muster.service.shortcut import Shortcut

MOST_HEADERS = 65_536
"""Bytes of a request's line and headers at most."""


class Connection(HttpToolsProtocol):
    """One client."""

    crowd: Crowd
    """Of the server; a subclass for each has its own."""
    shortcut: Shortcut
    """Also of the server."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._header_bytes = 0
        self._patience: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._begun: list[bytes] | None = None
        """The body so far of a request that may yet be answered the short way; None: there is none."""
        self._waits = False
        """Whether it is there as a whole, and has its answer at the end of this turn."""

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
        self.crowd.closed[0] += 1
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
            if self._begun is not None and not self._waits:
                self._go_the_usual_way()
        # Those of a request that is through were not counted apart from its body.
        if self in self.crowd.idle and self._header_bytes > MOST_HEADERS and not self.transport.is_closing():
            self.send_error(431, "too_large", f"the headers have more than {MOST_HEADERS:,} bytes")

    def on_headers_complete(self) -> None:
        """A request begins."""
        if self._waits:
            # Answers come in the order of requests.
            self.shortcut.answer_all()
        self.crowd.idle.pop(self, None)
        self._header_bytes = 0
        self._stop_waiting()
        if self._may_be_short():
            self._begun = []
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """More of a request."""
        if self._begun is not None:
            self._begun.append(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is there as a whole: answer it in this turn, if it can be."""
        if self._begun is None:
            super().on_message_complete()
            return
        body = b"".join(self._begun)
        self.shortcut.fixed = self.server_state.default_headers
        self._waits = self.shortcut.enter(self, self.parser.get_method(), self.url, self.headers, body)
        if not self._waits:
            self._go_the_usual_way()
            super().on_message_complete()

    def receive(self, answer: bytes | None) -> None:
        """The answer of the short way; None: the request has to go the usual one after all."""
        self._waits = False
        if self.transport.is_closing():
            self._begun = None
        elif answer is None:
            self._go_the_usual_way()
            super().on_message_complete()
        else:
            self._begun = None
            self.transport.write(answer)
            self.on_response_complete()

    def shutdown(self) -> None:
        """The server is about to end."""
        if self._waits:
            self.shortcut.answer_all()
        super().shutdown()

    def _may_be_short(self) -> bool:
        """Whether a request may be answered the short way once it is there: nothing is before it, nor unread."""
        parser = self.parser
        return (
            self.shortcut.leads_to(parser.get_method(), self.url)
            and (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
        )

    def _go_the_usual_way(self) -> None:
        """Through the application, with what is there of the request."""
        body, self._begun = b"".join(self._begun or ()), None
        super().on_headers_complete()
        if body:
            super().on_body(body)

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
