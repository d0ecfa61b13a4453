"""The routes that the OpenAPI document describes, and the document."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.requests import Request
from starlette.responses import Response

from muster import __version__
from muster.service import schema, solve
from muster.service.act import example
from muster.service.body import parse
from muster.service.errors import STATUS, RequestError, refuse, reply
from muster.service.middleware import Handler
from muster.service.policies import versions
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
    """A route and its description."""

    method: str
    path: str
    handle: Handler
    summary: str
    answer: type[BaseModel] | None = None
    """None: any object, or text."""
    body: type[BaseModel] | None = None
    codes: tuple[str, ...] = ()
    """Errors beside those that all routes have, or all with a body."""


def api(service: Service) -> list[Endpoint]:
    """The endpoints of a service."""
    limit, jobs = service.settings.size_limit, service.jobs

    async def health(request: Request) -> Response:
        return ALIVE

    async def ready(request: Request) -> Response:
        if not service.is_ready:
            error = "all work is past its deadline" if service.ready else "the service is being stopped"
            raise RequestError("stopping", error)
        return reply({"status": "ready"})

    async def metrics(request: Request) -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def act(request: Request) -> Response:
        body = await service.bodies.read(request)
        return reply(await service.decider.act(body, request.scope["request_id"]))

    def add_job(body: schema.SolveBody, _: float) -> dict[str, Any]:
        if SHARED in os.environ:
            refuse("jobs need a service of one process: start it with --processes 1")
        return jobs.add(body)

    async def show_job(request: Request) -> Response:
        return reply(jobs.find(request.path_params["id"]).as_json())

    async def cancel_job(request: Request) -> Response:
        return reply(jobs.cancel(request.path_params["id"]))

    async def reload(request: Request) -> Response:
        if service.settings.token_file is None:
            raise RequestError("forbidden", "reloading needs a service with a token (--token-file)")
        rollback = schema.ReloadBody.read(parse(await service.bodies.read(request))).rollback
        if SHARED not in os.environ:
            return await service.get(lambda: {"policies": service.reload(rollback)})(request)
        # The first process tells all others, once the files were read without an error.
        answer = await service.get(lambda: {"policies": versions(service.policies.next(rollback))})(request)
        os.kill(os.getppid(), signal.SIGUSR1 if rollback else signal.SIGHUP)
        return answer

    async def openapi(request: Request) -> Response:
        return reply(document(endpoints, service))

    policies = service.get(lambda: {"policies": [one.as_json() for one in service.policies.now.values()]})
    post_solve = service.post(schema.SolveBody, lambda body, deadline: solve.solve(body, deadline, limit))
    check = service.post(schema.CheckBody, lambda body, deadline: solve.check_plan(body, deadline, limit))
    post_job = service.post(schema.SolveBody, add_job)
    unknown, long = ("not_found",), "Solve for longer than a request may take"
    endpoints = [
        Endpoint("GET", "/health", health, "Whether the service is alive"),
        Endpoint("GET", "/ready", ready, "Whether requests will be answered", codes=("stopping",)),
        Endpoint("GET", "/metrics", metrics, "Counters and times, for Prometheus"),
        Endpoint("GET", "/policies", policies, "The policies that are served", codes=("busy", "time_limit")),
        Endpoint("POST", "/solve", post_solve, "Assign agents to tasks", schema.SolveAnswer, schema.SolveBody),
        Endpoint("POST", "/check", check, "Whether a plan is feasible", schema.CheckAnswer, schema.CheckBody),
        Endpoint("POST", "/act", act, "Let a policy decide", schema.ActAnswer, schema.ActBody, unknown),
        Endpoint("POST", "/jobs", post_job, long, schema.JobAnswer, schema.SolveBody),
        Endpoint("GET", "/jobs/{id}", show_job, "The progress of a long solve", schema.JobAnswer, codes=unknown),
        Endpoint("DELETE", "/jobs/{id}", cancel_job, "End a long solve", schema.JobAnswer, codes=unknown),
        Endpoint("POST", "/admin/reload", reload, "Read the policies again, or roll back", None, schema.ReloadBody),
        Endpoint("GET", "/openapi.json", openapi, "This document"),
    ]
    return endpoints


def document(endpoints: list[Endpoint], service: Service) -> dict[str, Any]:
    """The OpenAPI document."""
    kinds: list[type[BaseModel]] = [
        schema.ErrorAnswer,
        *(kind for one in endpoints for kind in (one.answer, one.body) if kind),
    ]
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(kind, "validation") for kind in dict.fromkeys(kinds)]
    schemas = models_json_schema(models, ref_template="#/components/schemas/{model}")[1]["$defs"]
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        operation: dict[str, Any] = {"summary": one.summary, "responses": responses(one)}
        if one.body is not None:
            body = schemas[one.body.__name__]
            if one.body is schema.ActBody and service.policies.now:
                body = body | {"examples": [example(next(iter(service.policies.now.values())))]}
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
        if "{id}" in one.path:
            operation["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
        paths.setdefault(one.path, {})[one.method.lower()] = operation
    info = {"title": "muster", "version": __version__, "description": ABOUT}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def responses(endpoint: Endpoint) -> dict[str, dict[str, Any]]:
    """The answers of an endpoint by status."""

    def content(answer: type[BaseModel]) -> dict[str, Any]:
        return {"application/json": {"schema": {"$ref": f"#/components/schemas/{answer.__name__}"}}}

    anything: dict[str, Any] = {"text/plain": {}} if endpoint.path == "/metrics" else {"application/json": {}}
    answers: dict[str, dict[str, Any]] = {
        "200": {"description": "", "content": content(endpoint.answer) if endpoint.answer else anything}
    }
    for code in (*ALWAYS, *endpoint.codes, *(WITH_BODY if endpoint.body else ())):
        entry = answers.setdefault(str(STATUS[code]), {"description": "", "content": content(schema.ErrorAnswer)})
        entry["description"] = " / ".join(filter(None, [entry["description"], code]))
    return answers
