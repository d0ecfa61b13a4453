"""Around every request: an id, authentication, errors as answers, and a line in the log."""

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
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muster.errors import InputError, MusterError
from muster.service.errors import RequestError, as_request_error
from muster.service.settings import LOCAL

if TYPE_CHECKING:
    from muster.service.app import Service

Handler = Callable[[Request], Awaitable[Response]]
LOG = logging.getLogger("muster.service")
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SECURITY = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", b"frame-ancestors 'none'"))
"""Headers of every answer."""


class Middleware:
    """The ASGI application: a router with authentication, error handling, metrics and a log around it."""

    def __init__(
        self, service: Service, router: ASGIApp, handlers: Mapping[tuple[str, str], Handler], public: frozenset[str]
    ) -> None:
        """`public`: paths that need no token."""
        self.service = service
        self._router, self._public = router, public
        self._handlers = handlers
        """By method and path: finding a route by a router takes as long as a small request."""
        self._paths = {path for _, path in handlers}
        settings = service.settings
        # Keeps other sites' pages from posing as this one by a name that leads here.
        self._hosts = LOCAL if settings.host in LOCAL else ()
        self.log = RequestLog(settings.log_format == "json")
        self._app: ASGIApp = self._answer
        if settings.origins:
            self._app = CORSMiddleware(
                self._answer,
                allow_origins=settings.origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
                expose_headers=["X-Request-ID", "Retry-After"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log a line without any of its content."""
        if scope["type"] != "http":
            return await self._router(scope, receive, send)
        started = time.perf_counter()
        method, path, headers = scope["method"], scope["path"], dict(scope["headers"])
        request_id = headers.get(b"x-request-id", b"").decode("latin-1")
        if not REQUEST_ID.fullmatch(request_id):
            request_id = f"{random.getrandbits(128):032x}"
        # With an app in its scope a router raises unknown paths as exceptions.
        scope["request_id"], scope["app"] = request_id, self
        status, sent = 0, 0

        async def send_counted(message: Message) -> None:
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
            self._authenticate(method, path, headers)
            await self._app(scope, receive, send_counted)
        except RequestError as error:
            await error.response()(scope, receive, send_counted)
        finally:
            if path not in self._paths:
                path = "/jobs/{id}" if path.startswith("/jobs/") else "other"
            seconds = time.perf_counter() - started
            self.service.metrics.count_request(method, path, status, seconds)
            line = {"id": request_id, "method": method[:16], "path": path, "status": status}
            length = headers.get(b"content-length", b"-").decode("latin-1")[:20]
            self.log.write(line | {"ms": round(1e3 * seconds, 3), "in": length, "out": sent})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer by a handler or the router; an exception of either becomes an answer."""
        try:
            if handler := self._handlers.get((scope["method"], scope["path"])):
                response = await handler(Request(scope, receive))
            else:
                return await self._router(scope, receive, send)
        except Exception as error:
            response = _error_of(error, scope).response()
        await response(scope, receive, send)

    def _authenticate(self, method: str, path: str, headers: dict[bytes, bytes]) -> None:
        """Raise RequestError for a foreign Host header, or where the token is needed and missing."""
        host = headers.get(b"host", b"").decode("latin-1")
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0].lower()
        if self._hosts and name not in self._hosts:
            raise RequestError("forbidden", f"the Host header must be one of {', '.join(self._hosts)}", "Host")
        token = self.service.token
        if not token or path in self._public:
            return
        # Preflight (CORS): a browser asks without a token whether a page from elsewhere may send requests.
        if method == "OPTIONS" and self.service.settings.origins and b"access-control-request-method" in headers:
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), token):
            error = "this service needs its token: Authorization: Bearer TOKEN"
            raise RequestError("unauthorized", error, "Authorization", {"WWW-Authenticate": "Bearer"})


def _error_of(error: Exception, scope: Scope) -> RequestError:
    """An exception as an answer; one that is a mistake of ours is logged."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, MusterError):
        return as_request_error(error)
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        text = f"{scope['method'][:16]} is not known here{f'; try {allowed}' if allowed else ''}"
        return RequestError("method", text, "", error.headers)
    if isinstance(error, HTTPException):
        return RequestError("not_found", "there is nothing at this address")
    LOG.error("id=%s failed", scope["request_id"], exc_info=error)
    return RequestError("internal", f"a mistake of the service; its log knows it as {scope['request_id']}")


def read_token(file: Path | None) -> bytes:
    """The secret in a file; empty without a file."""
    if file is None:
        return b""
    if not file.exists():
        raise InputError(f"the token file {file} does not exist")
    try:
        token = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    except (OSError, UnicodeDecodeError):
        token = ""
    if not token:
        raise InputError(f"cannot read the token file {file}: it must be a text file with the secret")
    return token.encode()


class RequestLog(logging.Handler):
    """Lines on standard error, of requests and of log records; those of one turn of the event loop in one write."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json
        self._lines: list[str] = []

    def write(self, entry: dict[str, Any]) -> None:
        """Write a request's line at the end of this turn."""
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._flush)
        self._lines.append(self._line(entry))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a log record at once."""
        entry = {"level": record.levelname, "message": record.getMessage()}
        if record.exc_info:
            entry["error"] = logging.Formatter().formatException(record.exc_info)
        print(self._line(entry), end="", file=sys.stderr, flush=True)

    def _line(self, entry: dict[str, Any]) -> str:
        if self._as_json:
            return json.dumps({"time": time.time()} | entry) + "\n"
        return f"{str(datetime.now())[:23]} {' '.join(map('%s=%s'.__mod__, entry.items()))}\n"

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        print("".join(lines), end="", file=sys.stderr, flush=True)
