"""What the page asks for: episodes to watch, explanations, situations to arrange, runs that learn.

These routes serve the page and change with it; the service's own are in the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.assign.settings import InferenceSettings, Method
from muster.data import Problem
from muster.errors import InputError
from muster.evaluation import runs
from muster.evaluation.explain import Scored, explain, plain_assignment, score_decision
from muster.evaluation.packing import pack
from muster.service.arrange import Arrangement, begin, decide
from muster.service.environments import Environments
from muster.service.episodes import EpisodeBody, Episodes
from muster.service.schema import Body, Index, LimitRow, Rows, Table
from muster.service.solve import check_size

if TYPE_CHECKING:
    from muster.service.app import AnyBody, Service

SLOW = "this took too long; choose a smaller environment, or fewer rollouts"


class FilmBody(EpisodeBody):
    """One or two policies on one episode."""

    policies: Annotated[list[str], Field(min_length=1, max_length=2)]


class UnderstandBody(EpisodeBody):
    """One decision of an episode."""

    policy: str
    step: Index
    method: Method | None = None
    agent: Index | None = None


class ExplainBody(Body):
    """A table of scores."""

    scores: Table
    contributions: Rows | None = None
    capacities: LimitRow | None = None
    method: Method = "lp"
    assign_all: bool = False
    agent: Index | None = None


class CurveBody(Body):
    """A run."""

    run: str


def watch_routes(service: Service) -> list[Route]:
    """The routes, on one service's policies and threads."""
    environments = Environments(service.settings, service.policies)
    episodes = Episodes(environments)
    folder = service.settings.runs

    def get(path: str, make: Callable[[], Any]) -> Route:
        async def answer(request: Request) -> Response:
            return await service.work(make)

        return Route(path, answer)

    def post(path: str, kind: type[AnyBody], work: Callable[[AnyBody, float], Any]) -> Route:
        async def answer(request: Request) -> Response:
            return await service.answer(request, kind, work, SLOW)

        return Route(path, answer, methods=["POST"])

    def show_runs() -> dict[str, Any]:
        found = list(map(without_path, runs.read_runs(folder)))
        return {"folder": str(folder), "runs": found, "command": runs.train_command(folder)}

    return [
        get("/watch/environments", lambda: {"environments": environments.listing()}),
        get("/watch/runs", show_runs),
        post("/watch/curve", CurveBody, lambda body, _: without_path(runs.read_curve(folder, body.run))),
        post("/watch/episode", FilmBody, lambda body, deadline: show_films(body, episodes, deadline)),
        post("/watch/understand", UnderstandBody, lambda body, deadline: understand(body, episodes, deadline)),
        post("/watch/begin", EpisodeBody, lambda body, _: begin(body, environments)),
        post("/watch/situation", Arrangement, lambda body, _: decide(body, environments)),
        post("/watch/explain", ExplainBody, lambda body, _: explain_table(body, service.settings.size_limit)),
    ]


def show_films(body: FilmBody, episodes: Episodes, deadline: float) -> dict[str, Any]:
    """One or two policies on one episode."""
    films = []
    for policy in body.policies:
        episode = episodes.find(body, policy, deadline)
        with episode.lock:
            films.append(episode.film)
    return pack(films)


def understand(body: UnderstandBody, episodes: Episodes, deadline: float) -> dict[str, Any]:
    """The scores behind one decision of an episode."""
    episode = episodes.find(body, body.policy, deadline)
    with episode.lock:
        scored = score_decision(episode.policy, episode.env, episode.observe(body.step))
    answer = explain(scored, body.method, check_agent(body.agent, episode.env.n_agents))
    return answer | {"played": plain_assignment(episode.replay.assignments[body.step])}


def explain_table(body: ExplainBody, limit: int) -> dict[str, Any]:
    """Why an agent gets what it gets, of a table of scores."""
    n, m = body.scores.shape
    check_size(n, m, limit)
    if body.method == "routes":
        raise InputError("method: a table of scores says nothing of going from task to task, so there are no routes")
    limits = {"capacities": np.ones(m)} | body.given("capacities", "contributions")
    problem = Problem(body.scores[None], **{name: value[None] for name, value in limits.items()})
    settings = InferenceSettings(body.method, assign_all=body.assign_all)
    return explain(Scored(problem, settings, "the scores of the table"), None, check_agent(body.agent, n))


def check_agent(agent: int | None, n: int) -> int | None:
    """The agent, if there is one of that number."""
    if agent is not None and agent >= n:
        raise InputError(f"agent must be from 0 to {n - 1}, got {agent}")
    return agent


def without_path(run: dict[str, Any]) -> dict[str, Any]:
    """What is told of a run: whether it has a policy, not where."""
    return {**run, "policy": bool(run["policy"])}
