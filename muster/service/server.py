"""`muster serve`: uvicorn with limits on connections, in one process or several, and a graceful end."""

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
from contextlib import ExitStack, suppress
from typing import Any

import uvicorn

from muster.errors import InputError
from muster.parallel import thread_count
from muster.service.connections import Connection
from muster.service.settings import SHARED, ServeSettings

LOG = logging.getLogger("muster.service")
SWITCH_INTERVAL = 0.0005
"""Seconds that a thread may hold the interpreter's lock while the event loop waits for it."""
GARBAGE = 20_000
"""Objects after which garbage is collected: a request makes hundreds, which are freed without."""
STOP = (signal.SIGTERM, signal.SIGINT)
RELOAD = (signal.SIGHUP, signal.SIGUSR1) if hasattr(signal, "SIGHUP") else ()
"""Signals to reload the policies, and to roll back."""
SIGNALS = (*STOP, *RELOAD)
PAUSE = 0.5
"""Seconds before a process that died is replaced: the next may do the same."""
BACKLOG = 2048


class Server(uvicorn.Server):
    """Uvicorn with these connections, reloading on SIGHUP, and readiness that ends before the port is closed."""

    def __init__(self, app: Any, announcement: str = "") -> None:
        self.service = app.service
        self._announcement = announcement
        self._parent = os.getppid()
        settings = self.service.settings
        config = uvicorn.Config(
            app,
            http=type("ServiceConnection", (Connection,), {"all": self.service.connections}),
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(max(1, settings.read_limit)),
            timeout_graceful_shutdown=int(settings.time_limit + settings.read_limit) + 1,
            backlog=BACKLOG,
        )
        super().__init__(config)
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        for number in RELOAD:
            signal.signal(number, self.service.reload_on_signal)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and announce it."""
        await super().startup(sockets)
        if self._announcement:
            print(self._announcement, file=sys.stderr, flush=True)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: close slow connections, write down metrics for other processes, end with the parent."""
        if counter % 3 == 0:
            self.service.connections.close_slow()
        if SHARED in os.environ:
            if counter % 5 == 0:
                self.service.metrics.refresh()
            self.should_exit |= os.getppid() != self._parent
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer requests for a while without being ready; then stop listening and finish what runs."""
        self.service.ready = False
        await asyncio.sleep(self.service.settings.grace)
        await super().shutdown(sockets)
        await self.service.close()


def serve(settings: ServeSettings, policies: tuple[str, ...]) -> None:
    """Listen until a signal to stop."""
    processes = settings.processes
    with ExitStack() as stack:
        listener = stack.enter_context(listen(settings.host, settings.port))
        if processes > 1:
            # Before prometheus_client is imported, which reads it then.
            os.environ[SHARED] = stack.enter_context(tempfile.TemporaryDirectory(prefix="muster-"))
        from muster.service.app import make_app

        app = make_app(share(settings), policies)
        LOG.addHandler(app.log)
        LOG.setLevel(logging.INFO)
        LOG.propagate = False
        # Objects that exist now stay: looking through them for garbage takes longer than a small request.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE)
        sys.setswitchinterval(SWITCH_INTERVAL)
        host, port = listener.getsockname()[:2]
        several = f"{processes} processes with " if processes > 1 else ""
        count = len(app.service.policies.now)
        announcement = f"muster: {several}{count} {'policy' if count == 1 else 'policies'} at http://{host}:{port}"
        if processes == 1:
            try:
                return Server(app, announcement).run(sockets=[listener])
            finally:
                if app.service.pool.overdue:
                    # The interpreter would wait for these threads.
                    os._exit(1)
        stopped_by = Supervisor(app, listener).run(processes, announcement)
    signal.signal(stopped_by, signal.SIG_DFL)
    signal.raise_signal(stopped_by)


class Supervisor:
    """The first of several processes: starts the others, replaces those that die, and passes signals on."""

    def __init__(self, app: Any, listener: socket.socket) -> None:
        self._app, self._listener = app, listener
        self._processes: set[int] = set()
        self._signal = 0

    def run(self, processes: int, announcement: str) -> int:
        """Keep so many processes running until a signal stops them; its number."""
        from prometheus_client.multiprocess import mark_process_dead

        for number in SIGNALS:
            signal.signal(number, self._pass_on)
        for _ in range(processes):
            self._start()
        print(announcement, file=sys.stderr, flush=True)
        while self._processes:
            process, status = os.wait()
            self._processes.remove(process)
            mark_process_dead(process)  # type: ignore[no-untyped-call]  # its gauges count no more
            if not self._signal:
                code = os.waitstatus_to_exitcode(status)
                print(f"muster: process {process} ended ({code})", file=sys.stderr, flush=True)
                time.sleep(PAUSE)
                self._start()
        return self._signal

    def _start(self) -> None:
        sys.stderr.flush()
        # Signals wait meanwhile: they would miss a process that is not in the set yet or has no handlers of its own.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        if process := os.fork():
            self._processes.add(process)
            if self._signal:  # all are to stop, this one too
                os.kill(process, signal.SIGTERM)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            return
        try:
            for number in STOP:
                signal.signal(number, signal.SIG_DFL)
            server = Server(self._app)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            server.run(sockets=[self._listener])
        finally:
            sys.stderr.flush()
            os._exit(1)

    def _pass_on(self, number: int, _frame: object) -> None:
        if number not in RELOAD:
            self._signal = number
        for process in list(self._processes):
            os.kill(process, signal.SIGTERM if number == signal.SIGINT else number)
        if number in RELOAD:
            # Here too: a process that is started later is a copy of this one. The others log what went wrong.
            with suppress(Exception):
                self._app.service.policies.reload(number == signal.SIGUSR1)


def share(settings: ServeSettings) -> ServeSettings:
    """The settings of one of the processes: its share of threads, queue and connections."""
    each = settings.processes
    threads = max(1, (settings.threads or thread_count()) // each)
    return dataclasses.replace(
        settings, threads=threads, queue=settings.queue // each, connections=settings.connections // each, processes=1
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; clients wait until requests are taken."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise InputError(f"cannot listen on port {port} of {host}: {error.strerror}; try another --port") from None
