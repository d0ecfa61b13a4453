"""The application: one service, and what its routes share."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route, Router

from muster.errors import MusterError
from muster.evaluation import viewer
from muster.service.api import api
from muster.service.body import Bodies, parse
from muster.service.connections import Connections
from muster.service.decide import Decider
from muster.service.errors import as_request_error, reply
from muster.service.jobs import Jobs
from muster.service.metrics import Metrics
from muster.service.middleware import Handler, Middleware, read_token
from muster.service.policies import Policies
from muster.service.pool import LATE, Pool
from muster.service.schema import Body
from muster.service.settings import ServeSettings
from muster.service.watch import watch_routes

LOG = logging.getLogger("muster.service")
PAGE = Path(__file__).parent / "page"
VIEWER = Path(viewer.__file__).parent
CLOSING_SECONDS = 2.0
"""How long the end of the service waits for threads that do not stop."""
PUBLIC = ("/health", "/ready")
"""Paths that need no token, as do the files of the page."""
AnyBody = TypeVar("AnyBody", bound=Body)


class Service:
    """One service: its policies, threads, limits and metrics."""

    def __init__(self, settings: ServeSettings, policies: Sequence[str]) -> None:
        self.settings = settings
        self.token = read_token(settings.token_file)
        self.policies = Policies(policies, settings.envs)
        self.metrics = Metrics()
        self.pool = Pool(settings.threads, settings.queue)
        self.bodies = Bodies(settings.body_limit)
        self.connections = Connections(settings.connections, settings.read_limit)
        self.decider = Decider(settings, self.policies, self.pool, self.metrics)
        self.jobs = Jobs(settings.jobs, settings.job_limit, settings.size_limit)
        self.ready = True
        """False once the service was told to stop."""
        self.metrics.add_gauges(
            {
                "work_held": ("Requests being worked on or waiting for a thread.", lambda: self.pool.held),
                "work_limit": ("Requests that may be held.", lambda: self.pool.threads + self.pool.queue),
                "work_overdue": ("Threads whose work is past its deadline.", lambda: self.pool.overdue),
                "work_late": ("Pieces of work that ended after their deadline.", lambda: self.pool.late),
                "body_bytes": ("Bytes of bodies that are arriving.", lambda: self.bodies.arriving),
                "ready": ("1 while requests are taken.", lambda: float(self.is_ready)),
                "policies": ("Policies served.", lambda: len(self.policies.now)),
                "jobs": ("Long solves that run or wait.", lambda: self.jobs.held),
                "connections": ("Open connections.", lambda: len(self.connections.open)),
                "connections_closed_idle": ("Idle ones closed for others.", lambda: self.connections.closed_idle),
            }
        )

    @property
    def is_ready(self) -> bool:
        """Whether requests will be answered: it is not stopping, and not every thread is overdue."""
        return self.ready and self.pool.overdue < self.pool.threads

    def get(self, work: Callable[[], Any]) -> Handler:
        """A handler of requests without a body: `work()` on a thread, as JSON."""

        async def handle(request: Request) -> Response:
            return await self.pool.run(time.monotonic() + self.settings.time_limit, lambda: reply(work()))

        return handle

    def post(self, kind: type[AnyBody], work: Callable[[AnyBody, float], Any], late: str = LATE) -> Handler:
        """A handler of requests with a body of that kind: `work(body, deadline)` on a thread, as JSON.

        `deadline` is a time of `time.monotonic`, at which the answer is the error `late`.
        """

        async def handle(request: Request) -> Response:
            text = await self.bodies.read(request)
            deadline = time.monotonic() + self.settings.time_limit

            def read_and_work() -> Response:
                data = parse(text)
                try:
                    return reply(work(kind.read(data), deadline))
                except MusterError as error:
                    raise as_request_error(error, data) from None

            return await self.pool.run(deadline, read_and_work, late)

        return handle

    def reload(self, rollback: bool = False) -> dict[str, str]:
        """Read the policies again, or roll back; name -> version. MusterError: nothing has changed."""
        try:
            versions = self.policies.reload(rollback)
        except MusterError as error:
            self.metrics.reloads.labels("failed").inc()
            LOG.error("the policies stay as they are: %s", error)
            raise
        self.metrics.reloads.labels("rolled back" if rollback else "done").inc()
        LOG.info("policies %s", " ".join(f"{name}@{version}" for name, version in versions.items()))
        return versions

    def reload_on_signal(self, number: int, _frame: object) -> None:
        """The same on a thread of its own: SIGHUP reloads, SIGUSR1 rolls back. Errors are in the log."""

        def reload() -> None:
            with suppress(MusterError):
                self.reload(number == signal.SIGUSR1)

        threading.Thread(target=reload, daemon=True).start()

    async def close(self) -> None:
        """Finish what runs, within limits."""
        self.jobs.close()
        await self.decider.close()
        if not await asyncio.to_thread(self.pool.close, CLOSING_SECONDS):
            LOG.error("%d threads did not stop; ending without them", self.pool.overdue)


def make_app(settings: ServeSettings | None = None, policies: Sequence[str] = ()) -> Middleware:
    """The service as an ASGI application; `app.service` is its Service."""
    service = Service(settings or ServeSettings(), policies)
    endpoints = api(service)
    files = page_files()

    async def send_file(request: Request) -> Response:
        return FileResponse(files[request.url.path], headers={"Cache-Control": "no-cache"})

    routes = [Route(one.path, one.handle, methods=[one.method]) for one in endpoints]
    routes += watch_routes(service)
    routes += [Route(path, send_file) for path in files]
    handlers = {(one.method, one.path): one.handle for one in endpoints}
    return Middleware(service, Router(routes, redirect_slashes=False), handlers, frozenset((*files, *PUBLIC)))


def page_files() -> dict[str, Path]:
    """The files of the page and of the viewer, by path."""
    page = {f"/{file.relative_to(PAGE).as_posix()}": file for file in PAGE.rglob("*") if file.is_file()}
    names = [*(f"{name}.js" for name in viewer.MODULES), "viewer.css"]
    return page | {"/": PAGE / "index.html"} | {f"/viewer/{name}": VIEWER / name for name in names}
