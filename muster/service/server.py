"""`muster serve`: uvicorn with limits on connections, in one process or several, and an end that finishes what runs."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import logging
import os
import signal
import socket
import sys
import tempfile
import time
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from muster.errors import InputError
from muster.parallel import thread_count
from muster.service.refusal import encode
from muster.service.settings import SHARED, ServeSettings

MOST_HEADERS = 65_536
"""Bytes of a request's line and headers at most."""
SWITCH_INTERVAL = 0.0005
"""Seconds that a thread may hold the interpreter's lock while others want it: the event loop answers meanwhile."""
RELOADING = (signal.SIGHUP, signal.SIGUSR1) if hasattr(signal, "SIGHUP") else ()
"""Read the policies again; serve those of before."""
YOUNG = 1.0
"""Seconds: a process that dies before is not replaced, since the next would do the same."""


class Connections:
    """All connections of a process. Those that have been idle longest are closed when there are too many."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self.seconds = seconds
        """For which a client may be in the middle of its headers, or leave an answer unread."""
        self.open = 0
        self.idle: dict[Connection, None] = {}
        """Those without a request, longest first."""
        self.closed_idle = 0


class Connection(HttpToolsProtocol):
    """One client, with limits that uvicorn does not have: on headers, on slow readers, on how many there are."""

    all: Connections
    """Of the server; a subclass for each has its own."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._header_bytes = 0
        self._headers_due: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it; if there are too many the one that has been idle longest is closed."""
        super().connection_made(transport)
        every = self.all
        every.open += 1
        every.idle[self] = None
        self._wait_for_headers()
        if every.open > every.most:
            every.closed_idle += 1
            next(iter(every.idle)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.all.open -= 1
        self.all.idle.pop(self, None)
        self._stop_waiting()
        if self._unread:
            self._unread.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hand on what came, as long as headers end in time and are not endless."""
        if self in self.all.idle:
            self._header_bytes += len(data)
            self._wait_for_headers()
        if self.parser is not None and not self.transport.is_closing():
            super().data_received(data)
        # Those of a request that is through were not counted apart from its body.
        if self in self.all.idle and self._header_bytes > MOST_HEADERS and not self.transport.is_closing():
            self.send_error(431, "too_large", f"the headers have more than {MOST_HEADERS:,} bytes")

    def on_headers_complete(self) -> None:
        """A request begins."""
        self.all.idle.pop(self, None)
        self._header_bytes = 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """A request has its answer."""
        if not self.transport.is_closing() and not self.pipeline:
            self.all.idle[self] = None
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client does not read: it has so long, and no longer."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.all.seconds, self.transport.abort)

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
        body = encode({"code": code, "error": error, "where": ""})
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()

    def _wait_for_headers(self) -> None:
        if self._headers_due is None:
            self._headers_due = self.loop.call_later(self.all.seconds, self._stop_client)

    def _stop_waiting(self) -> None:
        if self._headers_due:
            self._headers_due.cancel()
            self._headers_due = None

    def _stop_client(self) -> None:
        self.send_error(408, "slow_client", f"no request arrived within {self.all.seconds:g} s")
        # What it does not read by then is lost.
        self._unread = self.loop.call_later(1.0, self.transport.abort)


class Server(uvicorn.Server):
    """Uvicorn with these connections, reloading on SIGHUP, and an end in two steps."""

    def __init__(self, app: Any, announce: str = "") -> None:
        self.service = app.state.service
        self._announce = announce
        self._parent = os.getppid()
        settings = self.service.settings
        # Protocols are made by their class alone.
        own = type("OwnConnection", (Connection,), {"all": self.service.connections})
        config = uvicorn.Config(
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
        super().__init__(config)
        logging.getLogger("uvicorn").setLevel(logging.ERROR)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        for kind in RELOADING:
            back = kind is not signal.SIGHUP
            asyncio.get_running_loop().add_signal_handler(kind, self.service.reload_on_signal, back)
        if self._announce:
            print(self._announce, file=sys.stderr, flush=True)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: write down the metrics for other processes; end if the first process is gone."""
        if SHARED in os.environ:
            if counter % 5 == 0:
                self.service.metrics.refresh()
            if os.getppid() != self._parent:
                self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """First say that the end is near, and answer what is on its way; then stop listening and finish."""
        self.service.ready = False
        await asyncio.sleep(self.service.settings.grace)
        await super().shutdown(sockets)
        await self.service.close()


def serve(settings: ServeSettings, policies: tuple[str, ...]) -> None:
    """Listen until told to stop."""
    with bind(settings.host, settings.port) as listener, tempfile.TemporaryDirectory(prefix="muster-") as folder:
        if settings.processes > 1:
            # Before prometheus_client is imported, which looks for it then.
            os.environ[SHARED] = folder
        from muster.service.app import make_app
        from muster.service.middleware import log_to_stderr

        app = make_app(share(settings), policies)
        log_to_stderr(settings.log_format == "json")
        # What is there now stays: it need not be looked through for garbage, which takes longer than a small request.
        gc.collect()
        gc.freeze()
        sys.setswitchinterval(SWITCH_INTERVAL)
        host, port = listener.getsockname()[:2]
        several = f"{settings.processes} processes with " if settings.processes > 1 else ""
        told = f"muster: {several}{len(app.state.service.policies.now)} policies at http://{host}:{port}"
        if settings.processes == 1:
            Server(app, told).run(sockets=[listener])
        else:
            Supervisor(app, settings.processes, listener).run(told)


class Supervisor:
    """The first of several processes: starts the others, replaces those that die, and passes signals on."""

    def __init__(self, app: Any, processes: int, listener: socket.socket) -> None:
        self._app, self._processes, self._listener = app, processes, listener
        self._began: dict[int, float] = {}
        """By process id."""
        self._signal = 0

    def run(self, announce: str) -> None:
        """Start all, wait for a signal, and wait for their end."""
        self._listener.listen(2048)
        for kind in (signal.SIGTERM, signal.SIGINT, *RELOADING):
            signal.signal(kind, self._pass_on)
        for _ in range(self._processes):
            self._start()
        print(announce, file=sys.stderr, flush=True)
        while self._began:
            process, status = os.wait()
            began = self._began.pop(process)
            if self._signal:
                continue
            print(f"muster: process {process} ended ({os.waitstatus_to_exitcode(status)})", file=sys.stderr, flush=True)
            if time.monotonic() - began < YOUNG:
                self._pass_on(signal.SIGTERM, None)
                raise InputError(f"process {process} of the service ended at once; try --processes 1")
            self._start()
        signal.signal(self._signal, signal.SIG_DFL)
        signal.raise_signal(self._signal)

    def _start(self) -> None:
        sys.stderr.flush()
        process = os.fork()
        if process:
            self._began[process] = time.monotonic()
            return
        try:
            for kind in (signal.SIGTERM, signal.SIGINT):
                signal.signal(kind, signal.SIG_DFL)
            Server(self._app).run(sockets=[self._listener])
        finally:
            sys.stderr.flush()
            os._exit(1)

    def _pass_on(self, number: int, _frame: object) -> None:
        if number not in RELOADING:
            self._signal = number
        for process in list(self._began):
            os.kill(process, signal.SIGTERM if number == signal.SIGINT else number)


def share(settings: ServeSettings) -> ServeSettings:
    """The settings of one process: its part of what is shared out among them."""
    each = settings.processes
    threads = max(1, (settings.threads or thread_count()) // each)
    return dataclasses.replace(
        settings, threads=threads, queue=settings.queue // each, connections=settings.connections // each, processes=1
    )


def bind(host: str, port: int) -> socket.socket:
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
