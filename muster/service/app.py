"""The application: one service, its routes, and the page."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from muster import __version__
from muster.errors import MusterError
from muster.service import act, schema, solve
from muster.service.body import parse
from muster.service.connections import Connections
from muster.service.decide import QUICK_BODY, Decider
from muster.service.jobs import Jobs
from muster.service.metrics import Metrics
from muster.service.middleware import LOG, Bodies, Handler, Middleware, read_token
from muster.service.policies import Policies, serve_policies
from muster.service.pool import LATE, Pool
from muster.service.refusal import STATUS, Refusal, refusal_of, reply
from muster.service.settings import SHARED, ServeSettings
from muster.service.watch import watch_routes

PAGE = Path(__file__).parent / "page"
PAGE_FILES = frozenset({"/", *(f"/{file.relative_to(PAGE).as_posix()}" for file in PAGE.rglob("*") if file.is_file())})
ABOUT = """Assign agents to tasks: by the solver (`/solve`, `/check`, `/jobs`) or by a trained policy (`/act`).

Every error is one object: `code`, `error` (a sentence) and `where` (the entry). Answers carry `X-Request-ID`.
"""
ALIVE = reply({"status": "alive", "version": __version__})
CLOSING_SECONDS = 2.0
"""For which the end of the service waits for threads that do not stop."""
ALWAYS = ("unauthorized", "forbidden", "internal")
WITH_BODY = ("input", "slow_client", "too_large", "media_type", "busy", "time_limit")
Work = Callable[[dict[str, Any], float], Any]
"""From what was sent, and the time by which it is wanted, to what is answered."""


class Service:
    """One service: what its routes share."""

    def __init__(self, settings: ServeSettings, policies: Sequence[str]) -> None:
        self.settings = settings
        self.token = read_token(settings.token_file).encode()
        self.policies = Policies(policies)
        self.metrics = Metrics()
        self.pool = Pool(settings.threads, settings.queue)
        self.bodies = Bodies(settings)
        self.connections = Connections(settings.connections, settings.read_limit)
        self.decider = Decider(settings, self.policies, self.pool, self.metrics)
        self.jobs = Jobs(settings.jobs, settings.job_limit, settings.size_limit)
        self.ready = True
        """Whether requests are taken: nobody has asked the service to stop."""
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
                "muster_connections": ("Open connections.", lambda: connections.open),
                "muster_connections_closed_idle": ("Idle ones closed for others.", lambda: connections.closed_idle),
            }
        )

    @property
    def is_ready(self) -> bool:
        """Whether requests will be answered: it is not stopping, and not every thread is overdue."""
        return self.ready and self.pool.overdue < self.pool.threads

    async def answer(self, request: Request, work: Work, late: str = LATE) -> Response:
        """The answer to a JSON body: `work(data, deadline)` on a thread of the pool, as JSON.

        `deadline` is a time of `time.monotonic` by which the client is told that it takes too long.
        """
        body = await self.bodies.read(request)
        deadline = time.monotonic() + self.settings.time_limit

        def parse_and_work() -> Response:
            data = parse(body)
            try:
                return reply(work(data, deadline))
            except MusterError as error:
                raise refusal_of(error, data) from None

        return await self.pool.run(deadline, parse_and_work, late)

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


class App(FastAPI):
    """FastAPI behind the service's own middleware, which answers most requests before a framework hears of them."""

    outside: Middleware

    async def inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Through the framework."""
        await super().__call__(scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self.outside(scope, receive, send)


def make_app(settings: ServeSettings | None = None, policies: Sequence[str] = ()) -> FastAPI:
    """The service as an ASGI application; `app.state.service` is its Service."""
    settings = settings or ServeSettings()
    service = Service(settings, policies)
    app = App(title="muster", version=__version__, description=ABOUT, docs_url=None, redoc_url=None)
    app.state.service = service
    handlers = add_routes(app, service)
    app.router.routes.extend(watch_routes(service))
    app.router.routes.append(Page({route.path for route in app.router.routes if isinstance(route, Route)}))
    app.add_exception_handler(HTTPException, _not_found)
    app.add_exception_handler(Refusal, _refused)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
    app.outside = Middleware(app.inside, service, PAGE_FILES, handlers)
    return app


def add_routes(app: FastAPI, service: Service) -> dict[tuple[str, str], Handler]:
    """Add the routes that the OpenAPI document describes; by method and path, what answers."""
    settings, limit = service.settings, service.settings.size_limit

    async def health(request: Request) -> Response:
        return ALIVE

    async def ready(request: Request) -> Response:
        if not service.is_ready:
            told = "the service is being stopped" if not service.ready else "all work is past its deadline"
            raise Refusal("stopping", told)
        return reply({"status": "ready"})

    async def metrics(request: Request) -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def policies(request: Request) -> Response:
        return await service.work(lambda: {"policies": [one.described() for one in service.policies.now.values()]})

    async def post_solve(request: Request) -> Response:
        return await service.answer(request, lambda data, deadline: solve.solve(data, deadline, limit))

    async def check(request: Request) -> Response:
        return await service.answer(request, lambda data, deadline: solve.check_plan(data, deadline, limit))

    async def post_act(request: Request) -> Response:
        body = await service.bodies.read(request)
        data = parse(body) if len(body) <= QUICK_BODY else None
        return reply(await service.decider.act(data, lambda: parse(body), request.scope["request_id"]))

    async def add_job(request: Request) -> Response:
        if SHARED in os.environ:
            raise Refusal("input", "jobs need a service of one process: start it with --processes 1")
        return await service.answer(request, lambda data, _: service.jobs.add(data))

    async def show_job(request: Request) -> Response:
        return reply(service.jobs.find(request.path_params["id"]).described())

    async def cancel_job(request: Request) -> Response:
        return reply(service.jobs.cancel(request.path_params["id"]))

    async def reload(request: Request) -> Response:
        if settings.token_file is None:
            raise Refusal("forbidden", "reloading needs a service with a token (--token-file)")
        back = schema.check_body(schema.ReloadBody, parse(await service.bodies.read(request))).rollback
        if SHARED in os.environ:
            # All processes are told; that the files can be read is known before.
            found = await service.work(lambda: None if back else serve_policies(list(service.policies.now)) and None)
            os.kill(os.getppid(), signal.SIGUSR1 if back else signal.SIGHUP)
            return found
        return await service.work(lambda: {"policies": service.reload(back)})

    first = next(iter(service.policies.now.values()), None)
    examples = [] if first is None else [act.example(first)]
    bodies: dict[Any, tuple[type[BaseModel], list[Any]]] = {
        post_solve: (schema.SolveBody, []),
        check: (schema.CheckBody, []),
        post_act: (schema.ActBody, examples),
        add_job: (schema.SolveBody, []),
        reload: (schema.ReloadBody, []),
    }
    job = ("not_found",)
    handlers: dict[tuple[str, str], Handler] = {}
    for method, path, handler, answer, codes, summary in (
        ("GET", "/health", health, schema.Alive, (), "Whether the service is alive"),
        ("GET", "/ready", ready, schema.Alive, ("stopping",), "Whether requests will be answered"),
        ("GET", "/metrics", metrics, None, (), "Counters and times, as Prometheus reads them"),
        ("GET", "/policies", policies, dict[str, Any], ("busy", "time_limit"), "The policies that are served"),
        ("POST", "/solve", post_solve, schema.SolveAnswer, (), "Assign agents to tasks"),
        ("POST", "/check", check, schema.CheckAnswer, (), "Whether a plan is feasible, and what would be better"),
        ("POST", "/act", post_act, schema.ActAnswer, job, "Let a policy decide"),
        ("POST", "/jobs", add_job, schema.JobAnswer, (), "Solve for longer than a request may take"),
        ("GET", "/jobs/{id}", show_job, schema.JobAnswer, job, "How far a long solve has come"),
        ("DELETE", "/jobs/{id}", cancel_job, schema.JobAnswer, job, "End a long solve; what it found stays"),
        ("POST", "/admin/reload", reload, dict[str, Any], (), "Read the policies again, or go back"),
    ):
        body, shown = bodies.get(handler, (None, []))
        described: dict[str, Any] = {"responses": _errors((*ALWAYS, *codes, *(WITH_BODY if body else ())))}
        if answer is None:
            described["response_class"] = Response
            described["responses"][200] = {"content": {"text/plain": {}}}
        else:
            described["response_model"] = answer
        if body is not None:
            described_body = body.model_json_schema() | ({"examples": shown} if shown else {})
            content = {"application/json": {"schema": described_body}}
            described["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
        elif "{id}" in path:
            parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
            described["openapi_extra"] = {"parameters": [parameter]}
        handlers[method, path] = handler
        app.add_api_route(path, handler, methods=[method], summary=summary, **described)
    return handlers


def _errors(codes: tuple[str, ...]) -> dict[int | str, dict[str, Any]]:
    found: dict[int | str, dict[str, Any]] = {}
    for code in codes:
        entry = found.setdefault(STATUS[code], {"model": schema.ErrorAnswer, "description": ""})
        entry["description"] = " / ".join(filter(None, [entry["description"], code]))
    return found


class Page(Mount):
    """The page's files, at / and wherever there is no route."""

    def __init__(self, taken: set[str]) -> None:
        super().__init__("/", StaticFiles(directory=PAGE, html=True), name="page")
        self._taken = taken

    def matches(self, scope: Any) -> tuple[Match, Any]:
        """Leave routes alone, so that a wrong method there is called so."""
        return (Match.NONE, {}) if scope.get("path") in self._taken else super().matches(scope)


async def _refused(request: Request, refusal: Any) -> Response:
    response: Response = refusal.response()
    return response


async def _not_found(request: Request, error: Any) -> Response:
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        told = f"{request.method[:16]} is not known here{f'; try {allowed}' if allowed else ''}"
        return Refusal("method", told, "", error.headers).response()
    return Refusal("not_found", "there is nothing at this address").response()
