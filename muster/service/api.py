"""The routes that the OpenAPI document describes, and the document."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.requests import Request
from starlette.responses import Response

from muster import __version__
from muster.service import act, schema, solve
from muster.service.body import parse
from muster.service.refusal import STATUS, Refusal, reply
from muster.service.settings import SHARED

if TYPE_CHECKING:
    from muster.service.app import Service

ABOUT = """Assign agents to tasks: by the solver (`/solve`, `/check`, `/jobs`) or by a trained policy (`/act`).

Every error is one object: `code`, `error` (a sentence) and `where` (the entry). Answers carry `X-Request-ID`.
"""
ALIVE = reply({"status": "alive", "version": __version__})
ALWAYS = ("unauthorized", "forbidden", "internal")
WITH_BODY = ("input", "slow_client", "too_large", "media_type", "busy", "time_limit")


class Endpoint(NamedTuple):
    """A route and what the document says of it."""

    method: str
    path: str
    handle: Callable[[Request], Awaitable[Response]]
    summary: str
    answer: type[BaseModel] | None = None
    """None: any object, or text."""
    body: type[BaseModel] | None = None
    codes: tuple[str, ...] = ()
    """Errors that others do not have."""


def api(service: Service) -> list[Endpoint]:
    """The endpoints of a service."""
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
        return await service.answer(
            request, schema.SolveBody, lambda body, deadline: solve.solve(body, deadline, limit)
        )

    async def check(request: Request) -> Response:
        return await service.answer(
            request, schema.CheckBody, lambda body, deadline: solve.check_plan(body, deadline, limit)
        )

    async def post_act(request: Request) -> Response:
        body = await service.bodies.read(request)
        return reply(await service.decider.act(body, request.scope["request_id"]))

    async def add_job(request: Request) -> Response:
        if SHARED in os.environ:
            raise Refusal("input", "jobs need a service of one process: start it with --processes 1")
        return await service.answer(request, schema.SolveBody, lambda body, _: service.jobs.add(body))

    async def show_job(request: Request) -> Response:
        return reply(service.jobs.find(request.path_params["id"]).described())

    async def cancel_job(request: Request) -> Response:
        return reply(service.jobs.cancel(request.path_params["id"]))

    async def reload(request: Request) -> Response:
        if settings.token_file is None:
            raise Refusal("forbidden", "reloading needs a service with a token (--token-file)")
        back = schema.ReloadBody.read(parse(await service.bodies.read(request))).rollback
        if SHARED in os.environ:
            # All processes are told; that the files can be read is known before.
            found = await service.work(lambda: None if back else service.policies.read() and None)
            os.kill(os.getppid(), signal.SIGUSR1 if back else signal.SIGHUP)
            return found
        return await service.work(lambda: {"policies": service.reload(back)})

    async def openapi(request: Request) -> Response:
        return reply(document(endpoints, service))

    job, limits = ("not_found",), ("busy", "time_limit")
    long = "Solve for longer than a request may take"
    endpoints = [
        Endpoint("GET", "/health", health, "Whether the service is alive", schema.Alive),
        Endpoint("GET", "/ready", ready, "Whether requests will be answered", schema.Alive, codes=("stopping",)),
        Endpoint("GET", "/metrics", metrics, "Counters and times, as Prometheus reads them"),
        Endpoint("GET", "/policies", policies, "The policies that are served", codes=limits),
        Endpoint("POST", "/solve", post_solve, "Assign agents to tasks", schema.SolveAnswer, schema.SolveBody),
        Endpoint("POST", "/check", check, "Whether a plan is feasible", schema.CheckAnswer, schema.CheckBody),
        Endpoint("POST", "/act", post_act, "Let a policy decide", schema.ActAnswer, schema.ActBody, job),
        Endpoint("POST", "/jobs", add_job, long, schema.JobAnswer, schema.SolveBody),
        Endpoint("GET", "/jobs/{id}", show_job, "How far a long solve has come", schema.JobAnswer, codes=job),
        Endpoint("DELETE", "/jobs/{id}", cancel_job, "End a long solve", schema.JobAnswer, codes=job),
        Endpoint("POST", "/admin/reload", reload, "Read the policies again, or go back", None, schema.ReloadBody),
        Endpoint("GET", "/openapi.json", openapi, "This document"),
    ]
    return endpoints


def document(endpoints: list[Endpoint], service: Service) -> dict[str, Any]:
    """The OpenAPI document."""
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(schema.ErrorAnswer, "serialization")]
    models += [(one.answer, "serialization") for one in endpoints if one.answer]
    models += [(one.body, "validation") for one in endpoints if one.body]
    _, described = models_json_schema(list(dict.fromkeys(models)), ref_template="#/components/schemas/{model}")
    schemas = described["$defs"]
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        operation: dict[str, Any] = {"summary": one.summary, "responses": responses(one)}
        if one.body is not None:
            body = schemas[one.body.__name__]
            if one.body is schema.ActBody and service.policies.now:
                body = body | {"examples": [act.example(next(iter(service.policies.now.values())))]}
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
        if "{id}" in one.path:
            operation["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
        paths.setdefault(one.path, {})[one.method.lower()] = operation
    info = {"title": "muster", "version": __version__, "description": ABOUT}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def responses(endpoint: Endpoint) -> dict[str, dict[str, Any]]:
    """What an endpoint can answer, by status."""
    content: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
    if endpoint.answer is not None:
        content["application/json"]["schema"] = {"$ref": f"#/components/schemas/{endpoint.answer.__name__}"}
    elif endpoint.path == "/metrics":
        content = {"text/plain": {}}
    found: dict[str, dict[str, Any]] = {"200": {"description": "", "content": content}}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
    for code in (*ALWAYS, *endpoint.codes, *(WITH_BODY if endpoint.body else ())):
        entry = found.setdefault(str(STATUS[code]), {"description": "", "content": error})
        entry["description"] = " / ".join(filter(None, [entry["description"], code]))
    return found
