"""The server: uvicorn, with the limits of its connections, and an end that finishes what runs."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from muster.service.board import Board, merged
from muster.service.connections import Connection
from muster.service.processes import CONNECTION
from muster.service.state import State


class Server(uvicorn.Server):
    """Uvicorn, with the limits of its connections, and an end in two steps."""

    def __init__(self, app: FastAPI, announce: Callable[[], None] = lambda: None) -> None:
        self.service: State = app.state.service
        self.announce = announce
        settings = self.service.settings
        # Protocols are made by their class alone.
        own = type("Connection", (Connection,), {"crowd": self.service.crowd, "shortcut": app.state.shortcut})
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
        self.announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """First say that the end is near, and answer what is on its way; then close the door and finish."""
        self.service.ready = False
        await asyncio.sleep(self.service.settings.grace)
        await self.finish(sockets)

    async def finish(self, sockets: list[socket.socket] | None = None) -> None:
        """Take nothing more, and finish what is there."""
        await super().shutdown(sockets)
        self.service.pool.close()


class Worker(Server):
    """One of several processes: its connections come from the first, which also says when to stop."""

    def __init__(self, app: FastAPI, board: Board, number: int, way: socket.socket) -> None:
        super().__init__(app)
        self._board = board
        self._number = number
        self._way = way
        self.service.crowd.closed = board.closed[number : number + 1]
        self.service.metrics.with_others = self._with_others

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are for the first process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections as they are handed over."""
        await super().startup([])
        self._way.setblocking(False)
        asyncio.get_running_loop().add_reader(self._way.fileno(), self._take)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: show the others what this process counts."""
        if counter % 5 == 0:
            self._board.write(self._number, self.service.metrics.own_text())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish: that the end was near has been said."""
        self.service.ready = False
        await self.finish([])

    def _take(self) -> None:
        """What the first process hands over: a byte that says what, and a connection."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                said, files, _, _ = socket.recv_fds(self._way, 1, 1)
            except BlockingIOError:
                return
            if said == CONNECTION and files:
                task = loop.create_task(self._welcome(socket.socket(fileno=files[0])))
                self.server_state.tasks.add(task)
                task.add_done_callback(self.server_state.tasks.discard)
            elif said:
                self.service.ready = False
            else:
                loop.remove_reader(self._way.fileno())
                self.should_exit = True
                return

    async def _welcome(self, client: socket.socket) -> None:
        client.setblocking(False)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, client)
        except OSError:
            client.close()

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    def _with_others(self, own: bytes) -> bytes:
        texts = {process: self._board.read(process) for process in range(self._board.processes)}
        return merged(texts | {self._number: own})
