"""The gate: who may come in, and what is noted of each request: a count, its time, and a line in the log."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from muster.service.metrics import Metrics
from muster.service.refusals import Refusal

LOG = logging.getLogger("muster.service")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
FIXED = ((b"x-content-type-options", b"nosniff"),)
"""Headers of every answer."""
OPEN = ("/health", "/ready")
"""What is answered without a token, beside the page's own files."""
LOCAL = ("127.0.0.1", "localhost", "::1")


def request_id(given: str) -> str:
    """The id that a client gave its request, if it is a plain one; else a new one."""
    return given if _ID.fullmatch(given) else os.urandom(16).hex()


@dataclass
class Gate:
    """What every request passes, whichever way it is answered."""

    metrics: Metrics
    guarded: Callable[[str], bool]
    """Whether a path needs the token."""
    token: bytes = b""
    hosts: tuple[str, ...] = ()
    """Names that the Host header may have; none: any. Keeps other sites' pages from posing as this one."""
    say: Callable[[str], None] = LOG.info
    """Takes the line of a request."""

    def check(self, path: str, host: str, authorization: str) -> None:
        """Raise Refusal for who may not come in; `host` and `authorization` are what the headers say."""
        if self.hosts and _without_port(host) not in self.hosts:
            raise Refusal("forbidden", f"the Host header must be one of {', '.join(self.hosts)}", "Host")
        if not self.token or not self.guarded(path):
            return
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token):
            raise Refusal(
                "unauthorized",
                "this service needs its token: Authorization: Bearer TOKEN",
                "Authorization",
                {"WWW-Authenticate": "Bearer"},
            )

    def note(self, id_: str, method: str, path: str, status: int, seconds: float, length: str, sent: int) -> None:
        """A request has been answered; `length` is what its Content-Length said."""
        self.metrics.note(method, path, status, seconds)
        self.say(
            f"id={id_} method={method[:16]} path={path} status={status} ms={1e3 * seconds:.2f} "
            f"in={length[:20]} out={sent}"
        )


def _without_port(host: str) -> str:
    return host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0].lower()


class Lines:
    """Lines with their time to a stream: those of one turn of the event loop are written together."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._kept: list[str] = []
        self._second, self._date = 0, ""

    def say(self, line: str) -> None:
        """Write a line, at the end of this turn at the latest."""
        if not self._kept:
            asyncio.get_running_loop().call_soon(self._flush)
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second, self._date = second, time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        self._kept.append(f"{self._date},{int(1e3 * (now - second)):03d} {line}\n")

    def _flush(self) -> None:
        kept = "".join(self._kept)
        self._kept.clear()
        self._stream.write(kept)
        self._stream.flush()


def plain_log(stream: TextIO | None = None) -> None:
    """Log what is not a request's line to standard error, in the same shape."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
