"""What the page asks for: episodes to watch, explanations, situations to arrange, runs that learn.

These routes serve the page and change with it; the service's own are in the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.assign.settings import InferenceSettings
from muster.data import Problem
from muster.errors import InputError
from muster.evaluation import runs
from muster.evaluation.explain import Scored, explain, plain_assignment, score_decision
from muster.evaluation.packing import pack
from muster.service import situation
from muster.service.body import check_keys, read_array, read_integer, read_list
from muster.service.environments import Environments
from muster.service.episodes import Episodes
from muster.service.solve import check_size

if TYPE_CHECKING:
    from muster.service.app import Service

SLOW = "this took too long; choose a smaller environment, or fewer rollouts"
Answer = Callable[[dict[str, Any], float], Any]


def watch_routes(service: Service) -> list[Route]:
    """The routes, on one service's policies and threads."""
    environments = Environments(service.settings, service.policies)
    episodes = Episodes(environments)
    folder = service.settings.runs

    def get(path: str, make: Callable[[], Any]) -> Route:
        async def answer(request: Request) -> Response:
            return await service.work(make)

        return Route(path, answer)

    def post(path: str, work: Answer) -> Route:
        async def answer(request: Request) -> Response:
            return await service.answer(request, work, SLOW)

        return Route(path, answer, methods=["POST"])

    return [
        get("/watch/environments", lambda: {"environments": environments.listing()}),
        get("/watch/runs", lambda: _runs(folder)),
        post("/watch/curve", lambda data, _: _curve(data, service)),
        post("/watch/episode", lambda data, deadline: _episode(data, episodes, deadline)),
        post("/watch/understand", lambda data, deadline: _understand(data, episodes, deadline)),
        post("/watch/begin", lambda data, _: situation.begin(data, environments)),
        post("/watch/situation", lambda data, _: situation.decide(data, environments)),
        post("/watch/explain", lambda data, _: _explain(data, service.settings.size_limit)),
    ]


def _episode(data: dict[str, Any], episodes: Episodes, deadline: float) -> dict[str, Any]:
    """One or two policies on one episode."""
    check_keys(data, ("env", "seed", "policies"))
    policies = read_list(data.get("policies"), "policies")
    if not 1 <= len(policies) <= 2:
        raise InputError(f"policies must be one name or two, got {str(policies)!r:.80}")
    films = []
    for policy in policies:
        episode = episodes.find(data.get("env"), data.get("seed", 0), policy, deadline)
        with episode.lock:
            films.append(episode.film)
    return pack(films)


def _understand(data: dict[str, Any], episodes: Episodes, deadline: float) -> dict[str, Any]:
    """The scores behind one decision of an episode."""
    check_keys(data, ("env", "seed", "policy", "step", "method", "agent"))
    episode = episodes.find(data.get("env"), data.get("seed", 0), data.get("policy"), deadline)
    step = read_integer(data.get("step"), "step", 0, len(episode.replay.assignments) - 1)
    agent = None if data.get("agent") is None else read_integer(data["agent"], "agent", 0, episode.env.n_agents - 1)
    with episode.lock:
        scored = score_decision(episode.policy, episode.env, episode.observe(step))
    answer = explain(scored, situation.read_method(data), agent)
    return answer | {"played": plain_assignment(episode.replay.assignments[step])}


def _explain(data: dict[str, Any], limit: int) -> dict[str, Any]:
    """Why an agent gets what it gets, of a table of scores."""
    check_keys(data, ("scores", "contributions", "capacities", "method", "assign_all", "agent"))
    scores = read_array(data.get("scores"), "scores", (None, None), null=-np.inf)
    n, m = scores.shape
    check_size(n, m, limit)
    problem: dict[str, Any] = {"scores": scores[None], "capacities": np.ones((1, m))}
    if data.get("capacities") is not None:
        problem["capacities"] = read_array(data["capacities"], "capacities", (m,), null=np.inf)[None]
    if data.get("contributions") is not None:
        problem["contributions"] = read_array(data["contributions"], "contributions", (n, m))[None]
    assign_all = data.get("assign_all", False)
    if not isinstance(assign_all, bool):
        raise InputError(f"assign_all must be true or false, got {assign_all!r:.40}")
    method = situation.read_method(data) or "lp"
    if method == "routes":
        raise InputError("method: a table of scores says nothing of going from task to task, so there are no routes")
    scored = Scored(Problem(**problem), InferenceSettings(method, assign_all=assign_all), "the scores of the table")
    return explain(scored, None, None if data.get("agent") is None else read_integer(data["agent"], "agent", 0, n - 1))


def _runs(folder: Path) -> dict[str, Any]:
    """The runs in the folder, and how to begin one."""
    found = list(map(_without_path, runs.read_runs(folder)))
    return {"folder": str(folder), "runs": found, "command": runs.train_command(folder)}


def _curve(data: dict[str, Any], service: Service) -> dict[str, Any]:
    """One run with its curve."""
    check_keys(data, ("run",))
    return _without_path(runs.read_curve(service.settings.runs, str(data.get("run"))))


def _without_path(run: dict[str, Any]) -> dict[str, Any]:
    return {**run, "policy": bool(run["policy"])}
