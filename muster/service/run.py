"""The server: kernels first, then the port; and an end that finishes what runs."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
from typing import Any, get_args

import uvicorn
from fastapi import FastAPI

from muster.errors import InputError
from muster.inference import assign
from muster.inference.settings import Method
from muster.service import acting
from muster.service.app import make_app
from muster.service.connections import Connection
from muster.service.door import plain_log
from muster.service.scanning import scanned
from muster.service.settings import ServeSettings
from muster.service.state import State

SWITCH_INTERVAL = 0.0005
"""Seconds that a thread may hold the interpreter's lock while others want it: the event loop answers meanwhile."""


def serve(settings: ServeSettings, policies: tuple[str, ...]) -> None:
    """Listen until told to stop."""
    app = make_app(settings, policies)
    state: State = app.state.service
    with bound(settings.host, settings.port) as listener:
        warm(state)
        plain_log()
        # What is there now stays: it need not be looked through for garbage, which takes longer than a small request.
        gc.collect()
        gc.freeze()
        sys.setswitchinterval(SWITCH_INTERVAL)
        Server(app, settings).run(sockets=[listener])


def bound(host: str, port: int) -> socket.socket:
    """A socket that has its port, and does not listen yet."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except OSError as error:
        raise InputError(f"cannot listen on {host}: {error.strerror or error}") from None
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise InputError(f"cannot listen on port {port} of {host}: {error.strerror}; try another --port") from None
    return listener


def warm(state: State) -> None:
    """Use everything once that has kernels: nobody's request waits for a compiler."""
    one: dict[str, Any] = {"scores": [[1.0, 0.5]], "contributions": [[1.0, 2.0]], "capacities": [1.0, 1.0]}
    for method in get_args(Method):
        assign(**one, method=method, previous=[0], switch_cost=1.0)
    scanned(b"{}")
    for served in state.policies.values():
        acting.act(acting.example(served), state.policies, state.settings.size_limit)
        served.described()


class Server(uvicorn.Server):
    """Uvicorn, with the limits of its connections, and an end in two steps."""

    def __init__(self, app: FastAPI, settings: ServeSettings) -> None:
        self.service: State = app.state.service
        # Protocols are made by their class alone.
        own = type("Connection", (Connection,), {"crowd": self.service.crowd})
        super().__init__(
            uvicorn.Config(
                app,
                http=own,
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=int(max(1, settings.read_limit)),
                timeout_graceful_shutdown=int(settings.time_limit + settings.read_limit) + 1,
                backlog=2048,
            )
        )
        logging.getLogger("uvicorn").setLevel(logging.ERROR)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        address = "http://{}:{}".format(*(sockets or [])[0].getsockname()[:2])
        print(f"muster: {len(self.service.policies)} policies at {address}", file=sys.stderr, flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """First say that the end is near, and answer what is on its way; then close the door and finish."""
        self.service.ready = False
        await asyncio.sleep(self.service.settings.grace)
        await super().shutdown(sockets)
        self.service.pool.close()
