"""The door: every request gets an id, a look at its token, a line in the log and an answer."""

from __future__ import annotations

import hmac
import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muster.errors import MusterError
from muster.service.refusals import Refusal, refusal_of
from muster.service.state import State

LOG = logging.getLogger("muster.service")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
Handler = Callable[[Request], Awaitable[Response]]
FIXED = ((b"x-content-type-options", b"nosniff"),)
OPEN = ("/health", "/ready")
"""What is answered without a token, beside the page's own files."""
LOCAL = ("127.0.0.1", "localhost", "::1")


class Door:
    """Round the whole application.

    The addresses in `direct` are answered from here: finding their way through a framework takes as long as a small
    request does.
    """

    def __init__(
        self,
        app: ASGIApp,
        state: State,
        direct: Mapping[tuple[str, str], Handler],
        guarded: Callable[[str], bool],
        token: str = "",
        hosts: tuple[str, ...] = (),
    ) -> None:
        self.app = app
        self.state = state
        self.direct = direct
        self.guarded = guarded
        self.token = token.encode()
        self.hosts = hosts
        """Names that the Host header may have; none: any. Keeps other sites' pages from posing as this one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and log a line without anything of what was sent."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        request = Request(scope, receive)
        given = request.headers.get("x-request-id", "")
        request_id = given if _ID.fullmatch(given) else uuid.uuid4().hex
        status, sent = 0, 0

        async def send_noted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode()), *FIXED]
                if not self.state.ready:
                    headers.append((b"connection", b"close"))
                message["headers"] = headers
            else:
                sent += len(message.get("body", b""))
            await send(message)

        handler = self.direct.get((scope["method"], scope["path"]))
        try:
            self._check(scope, request.headers)
            if handler is not None:
                await (await handler(request))(scope, receive, send_noted)
            else:
                await self.app(scope, receive, send_noted)
        except Refusal as refusal:
            await refusal.response()(scope, receive, send_noted)
        except MusterError as error:
            await refusal_of(error).response()(scope, receive, send_noted)
        except Exception:
            LOG.exception("id=%s failed", request_id)
            if status:
                raise
            await Refusal("internal", f"a mistake of the service; its log knows it as {request_id}").response()(
                scope, receive, send_noted
            )
        finally:
            seconds = time.perf_counter() - started
            path = scope["path"] if handler is not None else getattr(scope.get("route"), "path", None) or "other"
            self.state.metrics.note(scope["method"], path, status, seconds)
            LOG.info(
                "id=%s method=%s path=%s status=%d ms=%.2f in=%s out=%d",
                request_id,
                scope["method"][:16],
                path,
                status,
                1e3 * seconds,
                request.headers.get("content-length", "-")[:20],
                sent,
            )

    def _check(self, scope: Scope, headers: Headers) -> None:
        if self.hosts and _host(headers.get("host", "")) not in self.hosts:
            raise Refusal("forbidden", f"the Host header must be one of {', '.join(self.hosts)}", "Host")
        if not self.token or not self.guarded(scope["path"]):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token):
            raise Refusal(
                "unauthorized",
                "this service needs its token: Authorization: Bearer TOKEN",
                "Authorization",
                {"WWW-Authenticate": "Bearer"},
            )


def _host(text: str) -> str:
    """A Host header without its port."""
    return text[1 : text.find("]")] if text.startswith("[") else text.partition(":")[0].lower()


def plain_log(stream: Any = None) -> None:
    """Log to standard error, a line each."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
