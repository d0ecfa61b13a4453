"""The application: one service, and what its routes share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from mimetypes import guess_type
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from muster.errors import MusterError
from muster.evaluation import viewer
from muster.service.api import api
from muster.service.body import Bodies, parse
from muster.service.connections import Connections
from muster.service.decide import Decider
from muster.service.jobs import Jobs
from muster.service.metrics import Metrics
from muster.service.middleware import Middleware, read_token
from muster.service.policies import Policies
from muster.service.pool import LATE, Pool
from muster.service.refusal import refusal_of, reply
from muster.service.schema import Body
from muster.service.settings import ServeSettings
from muster.service.watch import watch_routes

LOG = logging.getLogger("muster.service")
PAGE = Path(__file__).parent / "page"
VIEWER = Path(viewer.__file__).parent
CLOSING_SECONDS = 2.0
"""For which the end of the service waits for threads that do not stop."""
AnyBody = TypeVar("AnyBody", bound=Body)


class Service:
    """One service: what its routes share."""

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
        """Whether requests are taken; false once the service was told to stop."""
        pool, connections = self.pool, self.connections
        self.metrics.watch(
            {
                "muster_work_held": ("Requests being worked on or waiting for a thread.", lambda: pool.held),
                "muster_work_limit": ("Requests that may be held.", lambda: pool.threads + pool.queue),
                "muster_work_overdue": ("Threads whose work is past its deadline.", lambda: pool.overdue),
                "muster_work_late": ("Pieces of work that ended after their deadline.", lambda: pool.late),
                "muster_body_bytes": ("Bytes of bodies that are arriving.", lambda: self.bodies.arriving),
                "muster_ready": ("1 while requests are taken.", lambda: float(self.is_ready)),
                "muster_policies": ("Policies served.", lambda: len(self.policies.now)),
                "muster_jobs": ("Long solves that run or wait.", lambda: self.jobs.held),
                "muster_connections": ("Open connections.", lambda: len(connections.open)),
                "muster_connections_closed_idle": ("Idle ones closed for others.", lambda: connections.closed_idle),
            }
        )

    @property
    def is_ready(self) -> bool:
        """Whether requests will be answered: it is not stopping, and not every thread is overdue."""
        return self.ready and self.pool.overdue < self.pool.threads

    async def answer(
        self, request: Request, kind: type[AnyBody], work: Callable[[AnyBody, float], Any], late: str = LATE
    ) -> Response:
        """The answer to a body of that kind: `work(body, deadline)` on a thread of the pool, as JSON.

        `deadline` is a time of `time.monotonic` by which the client is told that it takes too long.
        """
        text = await self.bodies.read(request)
        deadline = time.monotonic() + self.settings.time_limit

        def read_and_work() -> Response:
            data = parse(text)
            try:
                return reply(work(kind.read(data), deadline))
            except MusterError as error:
                raise refusal_of(error, data) from None

        return await self.pool.run(deadline, read_and_work, late)

    async def work(self, make: Callable[[], Any]) -> Response:
        """The answer to a request without a body."""
        return await self.pool.run(time.monotonic() + self.settings.time_limit, lambda: reply(make()))

    def reload(self, back: bool = False) -> dict[str, str]:
        """Read the policies again, or go back to those before; name -> version. MusterError: nothing has changed."""
        try:
            versions = self.policies.roll_back() if back else self.policies.reload()
        except MusterError:
            self.metrics.reloads.labels("failed").inc()
            raise
        self.metrics.reloads.labels("rolled back" if back else "done").inc()
        LOG.info("policies %s", " ".join(f"{name}@{version}" for name, version in versions.items()))
        return versions

    def reload_on_signal(self, back: bool) -> None:
        """The same beside requests; what goes wrong is logged."""

        def work() -> None:
            try:
                self.reload(back)
            except MusterError as error:
                LOG.error("the policies stay as they are: %s", error)

        asyncio.get_running_loop().run_in_executor(None, work)

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
        file = files[request.url.path]
        headers = {"Cache-Control": "no-cache"}
        return Response(file.read_bytes(), media_type=guess_type(file)[0], headers=headers)

    routes = [Route(one.path, one.handle, methods=[one.method]) for one in endpoints]
    routes += watch_routes(service)
    routes += [Route(path, send_file) for path in files]
    handlers = {(one.method, one.path): one.handle for one in endpoints}
    return Middleware(service, Router(routes, redirect_slashes=False), handlers, frozenset(files))


def page_files() -> dict[str, Path]:
    """The files of the page and of the viewer, by path."""
    found = {f"/{file.relative_to(PAGE).as_posix()}": file for file in PAGE.rglob("*") if file.is_file()}
    shown = [*(f"{name}.js" for name in viewer.MODULES), "viewer.css"]
    return found | {"/": PAGE / "index.html"} | {f"/viewer/{name}": VIEWER / name for name in shown}
