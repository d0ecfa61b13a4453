"""What every request passes: an id, authentication, errors as answers, and a line in the log."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import random
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muster.errors import InputError, MusterError
from muster.service.refusal import Refusal, refusal_of
from muster.service.settings import LOCAL

if TYPE_CHECKING:
    from muster.service.app import Service

Handler = Callable[[Request], Awaitable[Response]]
LOG = logging.getLogger("muster.service")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SECURITY = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", b"frame-ancestors 'none'"))
"""Headers of every answer."""
OPEN = ("/health", "/ready")
"""Answered without a token, as are the page's own files."""


class Middleware:
    """The application: the router, and what is round it."""

    def __init__(
        self,
        service: Service,
        router: ASGIApp,
        handlers: Mapping[tuple[str, str], Handler],
        files: frozenset[str],
    ) -> None:
        self.service = service
        self._router = router
        self._handlers = handlers
        """By method and path. Finding the way through a router takes as long as a small request does."""
        self._paths = {path for _, path in handlers}
        settings = service.settings
        self._unguarded = files | set(OPEN)
        # Keeps other sites' pages from posing as this one by a name that leads here.
        self._hosts = LOCAL if settings.host in LOCAL else ()
        self.log = RequestLog(settings.log_format == "json")
        self._inner: ASGIApp = self._answer
        if settings.origins:
            self._inner = CORSMiddleware(
                self._answer,
                allow_origins=settings.origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
                expose_headers=["X-Request-ID", "Retry-After"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and log a line without anything of what was sent."""
        if scope["type"] != "http":
            return await self._router(scope, receive, send)
        started = time.perf_counter()
        method, path, headers = scope["method"], scope["path"], dict(scope["headers"])
        wished = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = wished if _ID.fullmatch(wished) else f"{random.getrandbits(128):032x}"
        # A router raises what it does not know, rather than answering by itself, for who says that it is its app.
        scope["request_id"], scope["app"] = request_id, self
        status, sent = 0, 0

        async def send_noted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode()), *SECURITY]
                if not self.service.ready:
                    message["headers"].append((b"connection", b"close"))
            else:
                sent += len(message.get("body", b""))
            await send(message)

        try:
            self._check(method, path, headers)
            await self._inner(scope, receive, send_noted)
        except Refusal as refusal:
            await refusal.response()(scope, receive, send_noted)
        finally:
            if path not in self._paths:
                path = "/jobs/{id}" if path.startswith("/jobs/") else "other"
            seconds = time.perf_counter() - started
            self.service.metrics.note(method, path, status, seconds)
            length = headers.get(b"content-length", b"-").decode("latin-1")[:20]
            line = {"id": request_id, "method": method[:16], "path": path, "status": status}
            self.log.write(line | {"ms": round(1e3 * seconds, 3), "in": length, "out": sent})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer by a handler or the router; what either raises becomes an answer."""
        try:
            if handler := self._handlers.get((scope["method"], scope["path"])):
                response = await handler(Request(scope, receive))
            else:
                return await self._router(scope, receive, send)
        except Exception as error:
            response = _as_refusal(error, scope).response()
        await response(scope, receive, send)

    def _check(self, method: str, path: str, headers: dict[bytes, bytes]) -> None:
        """Raise Refusal for a foreign Host header, and for a path that needs the token without it."""
        host = headers.get(b"host", b"").decode("latin-1")
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0].lower()
        if self._hosts and name not in self._hosts:
            raise Refusal("forbidden", f"the Host header must be one of {', '.join(self._hosts)}", "Host")
        token = self.service.token
        if not token or path in self._unguarded:
            return
        # A browser asks without a token whether a page from elsewhere may ask at all (CORS).
        if method == "OPTIONS" and self.service.settings.origins and b"access-control-request-method" in headers:
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), token):
            told = "this service needs its token: Authorization: Bearer TOKEN"
            raise Refusal("unauthorized", told, "Authorization", {"WWW-Authenticate": "Bearer"})


def _as_refusal(error: Exception, scope: Scope) -> Refusal:
    """An error as an answer; one that is a mistake of ours is logged."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, MusterError):
        return refusal_of(error)
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        told = f"{scope['method'][:16]} is not known here{f'; try {allowed}' if allowed else ''}"
        return Refusal("method", told, "", error.headers)
    if isinstance(error, HTTPException):
        return Refusal("not_found", "there is nothing at this address")
    LOG.error("id=%s failed", scope["request_id"], exc_info=error)
    return Refusal("internal", f"a mistake of the service; its log knows it as {scope['request_id']}")


def read_token(file: Path | None) -> bytes:
    """The secret in a file; none without a file."""
    if file is None:
        return b""
    try:
        token = file.read_text(encoding="utf-8").strip() if file.is_file() else None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the token file {file}: {getattr(error, 'strerror', None) or error}") from None
    if not token:
        raise InputError(f"cannot read the token file {file}: it is no file, or empty")
    return token.encode()


@lru_cache(maxsize=1)
def date_of(seconds: int) -> str:
    """A time of `time.time` as text."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


class RequestLog(logging.Handler):
    """Lines on standard error, of requests and of what else is logged; those of one turn of the event loop together."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json
        self._kept: list[str] = []

    def write(self, line: dict[str, Any]) -> None:
        """Write a request's line, at the end of this turn at the latest."""
        if not self._kept:
            asyncio.get_running_loop().call_soon(self._flush)
        self._kept.append(self._as_text(line))

    def emit(self, record: logging.LogRecord) -> None:
        """Write what is not a request's line, at once."""
        line = {"level": record.levelname, "message": record.getMessage()}
        if record.exc_info:
            line["error"] = logging.Formatter().formatException(record.exc_info)
        sys.stderr.write(self._as_text(line))
        sys.stderr.flush()

    def _as_text(self, line: dict[str, Any]) -> str:
        now = time.time()
        if self._as_json:
            return json.dumps({"time": now} | line) + "\n"
        told = " ".join([f"{name}={value}" for name, value in line.items()])
        return f"{date_of(int(now))},{int(1e3 * now) % 1000:03d} {told}\n"

    def _flush(self) -> None:
        kept, self._kept = self._kept, []
        sys.stderr.write("".join(kept))
        sys.stderr.flush()
