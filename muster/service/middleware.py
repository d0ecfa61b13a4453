"""What every request passes: authentication, an id, limits on its body, and a line in the log."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muster.errors import InputError, MusterError
from muster.service.refusal import Refusal, refusal_of
from muster.service.settings import LOCAL, ServeSettings

Handler = Callable[[Request], Awaitable[Response]]
LOG = logging.getLogger("muster.service")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SECURITY = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", b"frame-ancestors 'none'"))
"""Headers of every answer."""
OPEN = ("/health", "/ready")
"""Answered without a token, as are the page's own files."""
MOST_BODIES = 16
"""Bodies of the largest size that may be arriving at once."""
LINGER = 1.0
"""Seconds for which the rest of a body that is too large is taken in, so that its client gets to read why."""


class Middleware:
    """Round the whole application."""

    def __init__(
        self, app: ASGIApp, service: Any, page_files: frozenset[str], handlers: Mapping[tuple[str, str], Handler]
    ) -> None:
        self.app = app
        self.service = service
        settings: ServeSettings = service.settings
        self._page_files = page_files
        self._paths = {path for _, path in handlers}
        # Finding the way through a framework takes as long as a small request does; but CORS is in there.
        self._direct = {} if settings.origins else dict(handlers)
        self._token: bytes = service.token
        # Keeps other sites' pages from posing as this one by a name that leads here.
        self._hosts = LOCAL if settings.host in LOCAL else ()
        self._origins = settings.origins
        self._say = (JsonLines if settings.log_format == "json" else Lines)().write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and log a line without anything of what was sent."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = dict(scope["headers"])
        wished = headers.get(b"x-request-id", b"").decode("latin-1")
        scope["request_id"] = request_id = wished if _ID.fullmatch(wished) else os.urandom(16).hex()
        status, sent = 0, 0

        async def send_noted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                added = [*message.get("headers", ()), (b"x-request-id", request_id.encode()), *SECURITY]
                if not self.service.ready:
                    added.append((b"connection", b"close"))
                message["headers"] = added
            else:
                sent += len(message.get("body", b""))
            await send(message)

        try:
            self.check(scope["method"], scope["path"], headers)
            if handler := self._direct.get((scope["method"], scope["path"])):
                await (await handler(Request(scope, receive)))(scope, receive, send_noted)
            else:
                await self.app(scope, receive, send_noted)
        except Exception as error:
            if isinstance(error, MusterError):
                error = refusal_of(error)
            if not isinstance(error, Refusal):
                LOG.exception("id=%s failed", request_id)
                if status:
                    raise
                error = Refusal("internal", f"a mistake of the service; its log knows it as {request_id}")
            await error.response()(scope, receive, send_noted)
        finally:
            path = scope["path"]
            if path not in self._paths:
                path = "/jobs/{id}" if path.startswith("/jobs/") else "other"
            length = headers.get(b"content-length", b"-").decode("latin-1")[:20]
            seconds = time.perf_counter() - started
            self.service.metrics.note(scope["method"], path, status, seconds)
            self._say(request_id, scope["method"][:16], path, status, seconds, length, sent)

    def check(self, method: str, path: str, headers: dict[bytes, bytes]) -> None:
        """Raise Refusal for a foreign Host header, and for a path that needs the token without it."""
        host = headers.get(b"host", b"").decode("latin-1")
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0].lower()
        if self._hosts and name not in self._hosts:
            raise Refusal("forbidden", f"the Host header must be one of {', '.join(self._hosts)}", "Host")
        # A browser asks without a token whether a page from elsewhere may ask at all (CORS).
        preflight = method == "OPTIONS" and bool(self._origins) and b"access-control-request-method" in headers
        if not self._token or path in OPEN or path in self._page_files or path.startswith("/viewer/") or preflight:
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
            told = "this service needs its token: Authorization: Bearer TOKEN"
            raise Refusal("unauthorized", told, "Authorization", {"WWW-Authenticate": "Bearer"})


def read_token(file: Path | None) -> str:
    """The secret in a file; none without a file."""
    if file is None:
        return ""
    try:
        token = file.read_text(encoding="utf-8").strip() if file.is_file() else None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the token file {file}: {getattr(error, 'strerror', None) or error}") from None
    if not token:
        raise InputError(f"cannot read the token file {file}: it is no file, or empty")
    return token


class Bodies:
    """Reads the bodies of requests, within limits of size, time and what may be arriving at once."""

    def __init__(self, settings: ServeSettings) -> None:
        self._limit, self._seconds = settings.body_limit, settings.read_limit
        self.arriving = 0
        """Bytes in memory of bodies that are not complete."""

    async def read(self, request: Request) -> bytes:
        """The body of a request."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal("media_type", f"Content-Type must be application/json, got {kind[:80]!r}", "Content-Type")
        body = bytearray()
        try:
            async with asyncio.timeout(self._seconds):
                async for chunk in request.stream():
                    body += chunk
                    self.arriving += len(chunk)
                    if len(body) > self._limit:
                        break
                    if self.arriving > MOST_BODIES * self._limit:
                        raise Refusal("busy", "too many bodies are arriving at once", "", {"Retry-After": "1"})
        except TimeoutError:
            raise Refusal("slow_client", f"the body did not arrive within {self._seconds:g} s") from None
        except ClientDisconnect:
            raise Refusal("slow_client", "the client went away before its body had arrived") from None
        finally:
            self.arriving -= len(body)
        if len(body) > self._limit:
            await _drain(request)
            raise Refusal("too_large", f"the body has more than {self._limit:,} bytes")
        return bytes(body)


async def _drain(request: Request) -> None:
    try:
        async with asyncio.timeout(LINGER):
            while (await request.receive()).get("more_body"):
                pass
    except (TimeoutError, ClientDisconnect):
        return


class Lines:
    """Lines of requests to standard error: those of one turn of the event loop are written together."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._kept: list[str] = []

    def write(
        self, request_id: str, method: str, path: str, status: int, seconds: float, length: str, sent: int
    ) -> None:
        """Write a line, at the end of this turn at the latest."""
        if not self._kept:
            asyncio.get_running_loop().call_soon(self._flush)
        self._kept.append(self._line(request_id, method, path, status, seconds, length, sent))

    def _line(self, id_: str, method: str, path: str, status: int, seconds: float, length: str, sent: int) -> str:
        now = time.time()
        date = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
        told = f"id={id_} method={method} path={path} status={status} ms={1e3 * seconds:.2f} in={length} out={sent}"
        return f"{date},{int(1e3 * now) % 1000:03d} {told}\n"

    def _flush(self) -> None:
        kept = "".join(self._kept)
        self._kept.clear()
        stream = self._stream or sys.stderr
        stream.write(kept)
        stream.flush()


class JsonLines(Lines):
    """The same as JSON objects."""

    def _line(self, id_: str, method: str, path: str, status: int, seconds: float, length: str, sent: int) -> str:
        line = {"time": time.time(), "id": id_, "method": method, "path": path, "status": status}
        return json.dumps(line | {"ms": round(1e3 * seconds, 3), "in": length, "out": sent}) + "\n"


class JsonFormatter(logging.Formatter):
    """What is not a request's line, as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """One object a message."""
        error = self.formatException(record.exc_info) if record.exc_info else None
        line = {"time": record.created, "level": record.levelname, "message": record.getMessage(), "error": error}
        return json.dumps({name: value for name, value in line.items() if value is not None})


def log_to_stderr(json_lines: bool) -> None:
    """Log what is not a request's line to standard error, in the same shape."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if json_lines else logging.Formatter("%(asctime)s %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
