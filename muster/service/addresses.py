"""The addresses: what is asked there, what comes back, and how the OpenAPI document describes it."""

from __future__ import annotations

import time
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from muster import __version__
from muster.service import acting, bodies, solving
from muster.service.door import Handler
from muster.service.forms import Forms, answer_together
from muster.service.refusals import STATUS, Refusal
from muster.service.replies import reply
from muster.service.scanning import scanned
from muster.service.served import Served
from muster.service.shortcut import Answer, Read
from muster.service.state import State

ADDRESSES = {
    ("GET", "/health"): "Whether the service is alive",
    ("GET", "/ready"): "Whether requests will be answered: kernels are compiled, and nobody has asked it to stop",
    ("GET", "/metrics"): "Counters and times, as Prometheus reads them",
    ("GET", "/policies"): "The policies that are served, with their cards",
    ("POST", "/solve"): "Assign agents to tasks",
    ("POST", "/check"): "Whether a plan keeps the rules, what it is worth, and what would be better",
    ("POST", "/act"): "Let a policy decide",
}
ALIVE = {"status": "alive", "version": __version__}
ALWAYS = ("unauthorized", "forbidden", "internal")
WITH_BODY = ("input", "slow_client", "too_large", "media_type", "busy", "time_limit")


def add_to(app: FastAPI, state: State) -> dict[tuple[str, str], Handler]:
    """Add all addresses to the application; by method and path, who answers."""
    handlers = handlers_of(state)
    schemas: dict[str, dict[str, Any]] = {
        "/health": {"response_model": bodies.Alive},
        "/ready": _described(bodies.Alive, codes=("stopping",)),
        "/metrics": {"responses": {200: {"content": {"text/plain": {}}}}, "response_class": Response},
        "/policies": {"response_model": dict[str, Any], "responses": _errors(("busy", "time_limit"))},
        "/solve": _described(bodies.SolveAnswer, bodies.SolveBody),
        "/check": _described(bodies.CheckAnswer, bodies.CheckBody),
        "/act": _described(bodies.ActAnswer, bodies.ActBody, ("not_found",), _act_examples(state)),
    }
    for (method, path), summary in ADDRESSES.items():
        described = schemas[path]
        described["responses"] = _errors(ALWAYS if path != "/health" else ("forbidden",)) | described.get(
            "responses", {}
        )
        app.add_api_route(path, handlers[method, path], methods=[method], summary=summary, **described)
    return handlers


def handlers_of(state: State) -> dict[tuple[str, str], Handler]:
    """Who answers at each address."""
    limit, served = state.settings.size_limit, state.policies.values()

    async def health(request: Request) -> Response:
        return reply(ALIVE)

    async def ready(request: Request) -> Response:
        if not state.ready:
            raise Refusal("stopping", "the service is being stopped")
        return reply({"status": "ready"})

    async def metrics(request: Request) -> Response:
        return Response(state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def policies(request: Request) -> Response:
        deadline = time.monotonic() + state.settings.time_limit
        return await state.pool.run(deadline, lambda: reply({"policies": list(map(Served.described, served))}))

    async def solve(request: Request) -> Response:
        return await state.answer(request, lambda data, deadline: solving.solve(data, deadline, limit))

    async def check(request: Request) -> Response:
        return await state.answer(request, lambda data, deadline: solving.check_plan(data, deadline, limit))

    async def act(request: Request) -> Response:
        return await state.answer(
            request,
            lambda data, deadline: acting.act(data, state.policies, limit),
            lambda body: acting.quick_asked(scanned(body), state.policies, limit),
        )

    found = (health, ready, metrics, policies, solve, check, act)
    return dict(zip(ADDRESSES, found, strict=True))


def ways_of(state: State) -> dict[tuple[bytes, bytes], tuple[Read, Answer]]:
    """By address, how small requests are read and answered in the turn in which they arrive."""
    forms = Forms(lambda data: acting.quick_asked(data, state.policies, state.settings.size_limit))
    return {
        (b"GET", b"/health"): (lambda body: ALIVE, lambda asked: asked),
        (b"POST", b"/act"): (lambda body: state.read_at_once(body, forms.read), answer_together),
    }


def _described(
    answer: type[BaseModel],
    body: type[BaseModel] | None = None,
    codes: tuple[str, ...] = (),
    examples: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """What FastAPI wants to know of an address that reads and writes JSON."""
    described: dict[str, Any] = {"response_model": answer, "responses": _errors((*codes, *(WITH_BODY if body else ())))}
    if body is not None:
        schema = body.model_json_schema()
        if examples:
            schema["examples"] = examples
        content = {"application/json": {"schema": schema}}
        described["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
    return described


def _errors(codes: tuple[str, ...]) -> dict[int | str, dict[str, Any]]:
    found: dict[int | str, dict[str, Any]] = {}
    for code in codes:
        entry = found.setdefault(STATUS[code], {"model": bodies.ErrorAnswer, "description": ""})
        entry["description"] = " / ".join(filter(None, [entry["description"], code]))
    return found


def _act_examples(state: State) -> list[dict[str, Any]]:
    return [acting.example(served) for served in list(state.policies.values())[:1]]
