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

from muster.errors import InputError
from muster.parallel import thread_count
from muster.service.connections import Connection
from muster.service.settings import SHARED, ServeSettings

LOG = logging.getLogger("muster.service")
SWITCH_INTERVAL = 0.0005
"""Seconds that a thread may hold the interpreter's lock while others want it: the event loop answers meanwhile."""
GARBAGE = 20_000
"""Objects after which garbage is looked for: a request makes hundreds, which are freed without."""
RELOADING = (signal.SIGHUP, signal.SIGUSR1) if hasattr(signal, "SIGHUP") else ()
"""Read the policies again; serve those of before."""
YOUNG = 1.0
"""Seconds: a process that dies before is not replaced, since the next would do the same."""


class Server(uvicorn.Server):
    """Uvicorn with these connections, reloading on SIGHUP, and an end in two steps."""

    def __init__(self, app: Any, announce: str = "") -> None:
        self.service = app.service
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
        """Ten times a second: close slow connections; if there are other processes, write down the metrics for them,
        and end if the first of them is gone.
        """
        if counter % 3 == 0:
            self.service.connections.close_slow()
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

        app = make_app(share(settings), policies)
        LOG.addHandler(app.log)
        LOG.setLevel(logging.INFO)
        LOG.propagate = False
        # What is there now stays: it need not be looked through for garbage, which takes longer than a small request.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE)
        sys.setswitchinterval(SWITCH_INTERVAL)
        host, port = listener.getsockname()[:2]
        several = f"{settings.processes} processes with " if settings.processes > 1 else ""
        told = f"muster: {several}{len(app.service.policies.now)} policies at http://{host}:{port}"
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
