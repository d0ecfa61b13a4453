"""The short way: small requests are answered in the turn in which they arrive, before any framework hears of them.

A framework, and a task in the event loop for each request, take as long as a small decision does; and decisions that
are alike take less time together than one after the other. What goes this way is a request in one piece that is as it
should be; for all others there is no answer here, and they go the usual way, where words are found for what is wrong.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from muster.service.gate import FIXED, LOG, Gate, request_id
from muster.service.refusals import Refusal
from muster.service.replies import encoded
from muster.service.state import State

Read = Callable[[bytes], Any]
"""From a body to what it asks for; None: that goes the usual way."""
Answer = Callable[[list[Any]], list[Any]]
"""From what several requests ask for to the contents of their answers; None for those that go the usual way."""
Fields = list[tuple[bytes, bytes]]
"""Headers, their names in small letters."""
_UNUSUAL = {b"expect", b"transfer-encoding", b"upgrade"}
_HEAD = b"".join(b"%b: %b\r\n" % field for field in ((b"content-type", b"application/json"), *FIXED))


class Guest(Protocol):
    """Who asks."""

    def receive(self, answer: bytes | None) -> None:
        """Take the whole answer; None: go the usual way."""


@dataclass(slots=True)
class Visit:
    """A request that is being answered."""

    guest: Guest
    address: tuple[bytes, bytes]
    id: str
    length: str
    started: float
    asked: Any


class Shortcut:
    """The addresses with a short way, and the gate before it."""

    def __init__(self, state: State, gate: Gate, ways: Mapping[tuple[bytes, bytes], tuple[Read, Answer]]) -> None:
        self._state = state
        self._gate = gate
        self._ways = ways
        """By method and path, how to read a body and how to answer."""
        self._visits: list[Visit] = []
        """Those of this turn."""
        self.fixed: Fields = []
        """Headers that the server adds to every answer."""

    def leads_to(self, method: bytes, url: bytes) -> bool:
        """Whether there is a short way to this address."""
        return (method, url) in self._ways

    def enter(self, guest: Guest, method: bytes, url: bytes, headers: Fields, body: bytes) -> bool:
        """Whether a request goes this way; its guest then receives the answer at the end of this turn."""
        started = time.perf_counter()
        given = dict(headers)
        if len(given) < len(headers) or not _UNUSUAL.isdisjoint(given) or not self._state.ready:
            return False
        try:
            host, authorization, wished = (
                given.get(name, b"").decode("ascii") for name in (b"host", b"authorization", b"x-request-id")
            )
            self._gate.check(url.decode("ascii"), host, authorization)
        except (Refusal, UnicodeDecodeError):
            return False
        kind = given.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if method == b"POST" and kind != b"application/json":
            return False
        asked = self._or_none(lambda: self._ways[method, url][0](body))
        if asked is None:
            return False
        length = given.get(b"content-length", b"-").decode("ascii")
        if not self._visits:
            asyncio.get_running_loop().call_soon(self.answer_all)
        self._visits.append(Visit(guest, (method, url), request_id(wished), length, started, asked))
        return True

    def answer_all(self) -> None:
        """Answer those who have come in this turn, alike ones together."""
        visits, self._visits = self._visits, []
        by_address: dict[tuple[bytes, bytes], list[Visit]] = {}
        for visit in visits:
            by_address.setdefault(visit.address, []).append(visit)
        for address, alike in by_address.items():
            answer, asked = self._ways[address][1], [visit.asked for visit in alike]
            contents = self._or_none(lambda: answer(asked)) or [None] * len(alike)  # noqa: B023
            for visit, content in zip(alike, contents, strict=True):
                visit.guest.receive(None if content is None else self._answer(visit, content))

    def _answer(self, visit: Visit, content: Any) -> bytes:
        text = encoded(content)
        method, path = (part.decode("ascii") for part in visit.address)
        lines = [b"HTTP/1.1 200 OK\r\n", *(b"%b: %b\r\n" % field for field in self.fixed), _HEAD]
        lines.append(b"content-length: %d\r\nx-request-id: %b\r\n\r\n" % (len(text), visit.id.encode()))
        lines.append(text)
        seconds = time.perf_counter() - visit.started
        self._gate.note(visit.id, method, path, 200, seconds, visit.length, len(text))
        return b"".join(lines)

    def _or_none(self, work: Callable[[], Any]) -> Any:
        """What it returns; None if it fails, for the usual way to say why."""
        try:
            return work()
        except Refusal:
            return None
        except Exception:
            LOG.exception("what should be quick failed, and goes the usual way")
            return None
