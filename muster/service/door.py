"""The door of the application: every request gets an id, passes the gate and gets an answer."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muster.errors import MusterError
from muster.service.gate import FIXED, LOG, Gate, request_id
from muster.service.refusals import Refusal, refusal_of
from muster.service.state import State

Handler = Callable[[Request], Awaitable[Response]]


class Door:
    """Round the whole application.

    The addresses in `direct` are answered from here: finding their way through a framework takes as long as a small
    request does.
    """

    def __init__(self, app: ASGIApp, state: State, gate: Gate, direct: Mapping[tuple[str, str], Handler]) -> None:
        self.app = app
        self.state = state
        self.gate = gate
        self.direct = direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and log a line without anything of what was sent."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        request = Request(scope, receive)
        headers = request.headers
        id_ = request_id(headers.get("x-request-id", ""))
        status, sent = 0, 0

        async def send_noted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                added = [*message.get("headers", ()), (b"x-request-id", id_.encode()), *FIXED]
                if not self.state.ready:
                    added.append((b"connection", b"close"))
                message["headers"] = added
            else:
                sent += len(message.get("body", b""))
            await send(message)

        handler = self.direct.get((scope["method"], scope["path"]))
        try:
            self.gate.check(scope["path"], headers.get("host", ""), headers.get("authorization", ""))
            if handler is not None:
                await (await handler(request))(scope, receive, send_noted)
            else:
                await self.app(scope, receive, send_noted)
        except Refusal as refusal:
            await refusal.response()(scope, receive, send_noted)
        except MusterError as error:
            await refusal_of(error).response()(scope, receive, send_noted)
        except Exception:
            LOG.exception("id=%s failed", id_)
            if status:
                raise
            await Refusal("internal", f"a mistake of the service; its log knows it as {id_}").response()(
                scope, receive, send_noted
            )
        finally:
            path = scope["path"] if handler is not None else getattr(scope.get("route"), "path", None) or "other"
            length = headers.get("content-length", "-")
            self.gate.note(id_, scope["method"], path, status, time.perf_counter() - started, length, sent)
