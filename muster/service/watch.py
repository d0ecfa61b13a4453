"""What the page asks for: episodes to watch, reasons, situations of its own, runs that learn.

These addresses serve the page and change with it; the service's own are in the OpenAPI document.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from muster.assign.settings import InferenceSettings
from muster.data import Problem
from muster.errors import InputError, UnknownNameError
from muster.evaluation import viewer
from muster.evaluation.packing import pack
from muster.service import reading, runs, sandbox
from muster.service.refusals import Refusal
from muster.service.replies import reply
from muster.service.solving import check_size
from muster.service.state import State
from muster.service.theatre import Theatre
from muster.service.understanding import Judged, explain, judge, plain
from muster.service.worlds import Worlds

KINDS = {"js": "text/javascript", "css": "text/css"}


def router(state: State) -> APIRouter:
    """The addresses, on one service's policies and threads."""
    envs = Worlds(state.policies, state.settings.runs)
    theatre = Theatre(envs)
    found = APIRouter(include_in_schema=False)

    async def work(make: Callable[[], Response]) -> Response:
        return await state.pool.run(time.monotonic() + state.settings.time_limit, make)

    @found.get("/viewer/{name}")
    async def viewer_file(name: str) -> Response:
        """A file of the viewer, which replays carry inside them."""
        stem, _, kind = name.partition(".")
        if kind not in KINDS or not stem.isidentifier() or stem not in (*viewer.MODULES, "viewer"):
            raise Refusal("not_found", f"the viewer has no file {name!r:.80}")
        return Response(viewer.read(name), media_type=KINDS[kind], headers={"Cache-Control": "no-cache"})

    @found.get("/watch/environments")
    async def list_worlds() -> Response:
        """Every environment with sizes and policies."""
        return await work(lambda: reply({"environments": envs.listing()}))

    @found.get("/watch/runs")
    async def list_runs() -> Response:
        """The runs in the service's folder."""
        folder = state.settings.runs
        return await work(lambda: reply({"folder": str(folder), "runs": _shown(runs.runs_in(folder))}))

    @found.post("/watch/curve")
    async def curve(request: Request) -> Response:
        """One run with its curve."""
        return await state.answer(request, lambda data, _: _curve(data, state.settings.runs))

    @found.post("/watch/episode")
    async def episode(request: Request) -> Response:
        """One or two policies on one episode."""
        return await state.answer(request, lambda data, deadline: _episode(data, theatre, deadline))

    @found.post("/watch/understand")
    async def understand(request: Request) -> Response:
        """The scores behind one decision of an episode."""
        return await state.answer(request, lambda data, deadline: _understand(data, theatre, deadline))

    @found.post("/watch/begin")
    async def begin(request: Request) -> Response:
        """A situation to start from."""
        return await state.answer(request, lambda data, _: sandbox.begin(data, envs))

    @found.post("/watch/situation")
    async def situation(request: Request) -> Response:
        """What a policy makes of a situation."""
        return await state.answer(request, lambda data, _: sandbox.decide(data, envs))

    @found.post("/watch/explain")
    async def explain_scores(request: Request) -> Response:
        """Why an agent gets what it gets, of a table of scores."""
        return await state.answer(request, lambda data, _: _explain(data, state.settings.size_limit))

    return found


def _episode(data: dict[str, Any], theatre: Theatre, deadline: float) -> dict[str, Any]:
    _known(data, ("env", "seed", "policies"))
    policies = data.get("policies")
    if not isinstance(policies, list) or not 1 <= len(policies) <= 2:
        raise InputError(f"policies must be one name or two, got {str(policies)!r:.80}")
    films = []
    for policy in policies:
        showing = theatre.show(data.get("env"), data.get("seed", 0), policy, deadline)
        with showing.lock:
            films.append(showing.film)
    return pack(films)


def _understand(data: dict[str, Any], theatre: Theatre, deadline: float) -> dict[str, Any]:
    _known(data, ("env", "seed", "policy", "step", "method", "agent"))
    showing = theatre.show(data.get("env"), data.get("seed", 0), data.get("policy"), deadline)
    step = sandbox.whole(data.get("step"), "step", 0, len(showing.replay.assignments) - 1)
    agent = None if data.get("agent") is None else sandbox.whole(data["agent"], "agent", 0, showing.env.n_agents - 1)
    with showing.lock:
        judged = judge(showing.policy, showing.env, showing.observe(step))
    answer = explain(judged, sandbox.method_of(data), agent)
    return answer | {"played": plain(showing.replay.assignments[step])}


def _explain(data: dict[str, Any], limit: int) -> dict[str, Any]:
    _known(data, ("scores", "contributions", "capacities", "method", "assign_all", "agent"))
    scores = reading.matrix(data.get("scores"), "scores", null=-np.inf)
    n, m = scores.shape
    check_size(n, m, limit)
    problem: dict[str, Any] = {"scores": scores[None]}
    problem["capacities"] = np.ones((1, m))
    if data.get("capacities") is not None:
        problem["capacities"] = reading.vector(data["capacities"], "capacities", m, null=np.inf)[None]
    if data.get("contributions") is not None:
        problem["contributions"] = reading.matrix(data["contributions"], "contributions", (n, m))[None]
    assign_all = data.get("assign_all", False)
    if not isinstance(assign_all, bool):
        raise InputError(f"assign_all must be true or false, got {assign_all!r:.40}")
    method = sandbox.method_of(data) or "lp"
    if method == "routes":
        raise InputError("method: a table of scores says nothing of going from task to task, so there is no plan")
    judged = Judged(Problem(**problem), InferenceSettings(method, assign_all=assign_all), "the scores of the table")
    agent = None if data.get("agent") is None else sandbox.whole(data["agent"], "agent", 0, n - 1)
    return explain(judged, None, agent)


def _curve(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    _known(data, ("run",))
    return _shown([runs.curve_of(folder, str(data.get("run")))])[0]


def _known(data: dict[str, Any], fields: tuple[str, ...]) -> None:
    for key in data:
        if key not in fields:
            raise UnknownNameError("field", key[:80], fields)


def _shown(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without paths of this machine."""
    return [{**run, "policy": bool(run["policy"])} for run in found]
