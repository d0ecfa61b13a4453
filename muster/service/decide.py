"""Decisions of /act, alike ones together; with a fallback, a shadow and a decision log."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import logging
import os
import time
from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np

from muster.assign.outcomes import STATUS_NAMES
from muster.assign.solver import REASON_NAMES, Solver
from muster.data import BatchObservation, Floats, Ints
from muster.envs.registry import BUILT_IN, kind_of, make
from muster.envs.singles import BaselinePolicy, BatchOfSingles
from muster.errors import InputError, MusterError, in_words
from muster.policy.decision import allowed_scores, decide
from muster.service.act import ActRequest, Situation, example, read_request, stack
from muster.service.body import parse
from muster.service.errors import RequestError, encode
from muster.service.metrics import Metrics
from muster.service.policies import Policies, Served, serve_policy
from muster.service.pool import Pool
from muster.service.settings import ServeSettings
from muster.storage import make_folder, writing

LOG = logging.getLogger("muster.service")
QUICK_BYTES = 32_768
"""Size of a body that is read on the event loop at most."""
MAX_QUICK = 16
"""Requests that are decided on the event loop in one turn."""
MAX_WARNINGS = 8
FILE_BYTES = 64 * 2**20
"""Size after which the next file is begun."""


class Outcome(NamedTuple):
    """One decision: the answer, and what the shadow and the log need of it."""

    answer: dict[str, Any]
    assignment: Ints
    """[N]"""
    scores: Floats | None
    """[N, M] the policy's scores; None for a fallback's decision."""


Fallback = Callable[[BatchObservation], Ints]
"""From a batch of one to its assignment [N]."""
Decided = list[Outcome] | Exception
"""The outcome of each situation of a request, or why there is none."""


class Decider:
    """Decides on requests of /act."""

    def __init__(self, settings: ServeSettings, policies: Policies, pool: Pool, metrics: Metrics) -> None:
        self.settings, self.policies, self.pool, self.metrics = settings, policies, pool, metrics
        self._shadow = serve_policy(settings.shadow, policies.custom) if settings.shadow else None
        self._log = DecisionLog(settings.decision_log) if settings.decision_log else None
        self._fallbacks = find_fallbacks(settings.fallback, policies) if settings.fallback else {}
        self._quick: list[tuple[ActRequest, asyncio.Future[Decided]]] = []
        """Small requests of this turn of the event loop."""
        self._background: set[asyncio.Task[None]] = set()

    async def act(self, body: bytes, request_id: str) -> dict[str, Any]:
        """The answer to a body of /act."""
        started = time.monotonic()
        deadline = started + self.settings.time_limit

        def read() -> ActRequest:
            return read_request(parse(body), self.policies, self.settings.size_limit)

        request = read() if len(body) <= QUICK_BYTES else await self.pool.run(deadline, read)
        try:
            if request.is_quick and len(self._quick) < MAX_QUICK:
                outcomes = await self._decide_soon(request)
            else:
                (outcomes,) = await self.pool.run(deadline, lambda: self.decide_all([request]))
        except RequestError as error:
            if error.code != "time_limit" or request.policy.name not in self._fallbacks:
                raise
            reason = "the policy did not answer in time"
            outcomes = await asyncio.to_thread(self._fall_back, request.policy, request.situations, reason)
        if isinstance(outcomes, Exception):
            raise outcomes
        for outcome in outcomes:
            self.metrics.decisions(request.policy.name, request.policy.version, outcome.answer["by"]).inc()
        answers = [outcome.answer for outcome in outcomes]
        answer: dict[str, Any] = {"policy": request.policy.versioned_name}
        answer |= {"answers": answers} if request.is_list else answers[0]
        answer["seconds"] = time.monotonic() - started
        if self._log is not None or self._shadow is not None:
            task = asyncio.create_task(self._record(request, outcomes, answer["seconds"], request_id))
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        return answer

    async def _decide_soon(self, request: ActRequest) -> Decided:
        """The decisions on a small request, at the end of this turn, together with those on others."""
        loop = asyncio.get_running_loop()
        if not self._quick:
            loop.call_soon(self._decide_quick)
        future: asyncio.Future[Decided] = loop.create_future()
        self._quick.append((request, future))
        return await future

    def _decide_quick(self) -> None:
        quick, self._quick = self._quick, []
        for (_, future), decided in zip(quick, self.decide_all([request for request, _ in quick]), strict=True):
            if not future.done():
                future.set_result(decided)

    def decide_all(self, requests: list[ActRequest]) -> list[Decided]:
        """A decision on each situation of each request; those of one size are batched without padding."""
        alike: dict[Hashable, list[tuple[int, int]]] = {}
        for r, request in enumerate(requests):
            for s, situation in enumerate(request.situations):
                key = (request.policy, request.solver, request.scores, situation.n, situation.m, *situation.fields)
                alike.setdefault(key, []).append((r, s))
        decided: list[Any] = [[None] * len(request.situations) for request in requests]
        for members in alike.values():
            outcomes = self._decide_each(requests[members[0][0]], [requests[r].situations[s] for r, s in members])
            for (r, s), outcome in zip(members, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    decided[r] = outcome
                elif isinstance(decided[r], list):
                    decided[r][s] = outcome
        return decided

    def _decide_each(self, request: ActRequest, situations: list[Situation]) -> Sequence[Outcome | Exception]:
        """The outcome of each situation of a batch; if the batch fails, those of one after the other."""
        try:
            return self._decide(request, situations)
        except Exception as error:
            if len(situations) == 1:
                return [error]
        return [outcome for situation in situations for outcome in self._decide_each(request, [situation])]

    def _decide(self, request: ActRequest, situations: list[Situation]) -> list[Outcome]:
        """Observation -> scores -> assignment, with reasons and warnings."""
        served, observation = request.policy, stack(situations)
        has_fallback = served.name in self._fallbacks
        try:
            decision = decide(observation, served.policy.spec, served.policy.scorer, request.solver)
        except MusterError:
            raise
        except Exception:
            if not has_fallback or len(situations) > 1:
                raise
            LOG.exception("%s failed; the fallback answers", served.versioned_name)
            return self._fall_back(served, situations, "the policy failed")
        outside = served.out_of_range(observation)
        h, g = decision.scores
        solution = decision.solution
        reasons, status = REASON_NAMES[solution.reason], solution.status.tolist()
        scores = allowed_scores(decision.observation, h) if self._shadow is not None else None
        outcomes = []
        for b, situation in enumerate(situations):
            if has_fallback and (far := [feature.warning for feature in outside[b] if feature.far]):
                outcomes += self._fall_back(served, [situation], f"far from what training saw: {far[0]}")
                continue
            answer: dict[str, Any] = {
                "assignment": situation.task_names(solution.assignment[b].tolist()),
                "reasons": {situation.agent_name(i): reason for i, reason in enumerate(reasons[b]) if reason},
                "objective": float(solution.objective[b]),
                "status": STATUS_NAMES[status[b]],
                "by": "policy",
            }
            if outside[b]:
                answer["warnings"] = [feature.warning for feature in outside[b][:MAX_WARNINGS]]
            if request.scores:
                answer["scores"] = h[b].tolist()
                answer["task_scores"] = None if g is None else g[b].tolist()
            outcomes.append(Outcome(answer, solution.assignment[b], None if scores is None else scores[b]))
        for feature in chain.from_iterable(outside):
            self.metrics.out_of_range.labels(served.name, feature.feature).inc()
        return outcomes

    def _fall_back(self, served: Served, situations: list[Situation], reason: str) -> list[Outcome]:
        outcomes = []
        for situation in situations:
            assignment = self._fallbacks[served.name](stack([situation]))
            answer: dict[str, Any] = {
                "assignment": situation.task_names(assignment.tolist()),
                "reasons": {},
                "objective": None,
                "status": self.settings.fallback,
                "by": "fallback",
                "warnings": [reason],
            }
            outcomes.append(Outcome(answer, assignment, None))
        return outcomes

    async def _record(self, request: ActRequest, outcomes: list[Outcome], seconds: float, request_id: str) -> None:
        """Let the shadow decide, and write the decision log. The answer is given: what fails is only logged."""
        shadowed: list[dict[str, Any] | None] = [None] * len(outcomes)
        shadow = self._shadow
        try:
            try:
                if shadow is not None and shadow.features.hash == request.policy.features.hash:
                    deadline = time.monotonic() + self.settings.time_limit
                    pairs = list(zip(request.situations, outcomes, strict=True))
                    shadowed = await self.pool.run(deadline, lambda: [self._compare(shadow, *pair) for pair in pairs])
            finally:
                if self._log is not None:
                    facts = {"time": time.time(), "id": request_id, "policy": request.policy.versioned_name}
                    for situation, outcome, other in zip(request.situations, outcomes, shadowed, strict=True):
                        line = line_of(situation, outcome) | facts | {"seconds": seconds, "shadow": other}
                        self._log.write(line)
        except Exception as error:
            text = error if isinstance(error, (RequestError, MusterError)) else in_words(error)
            LOG.error("id=%s was answered; then the shadow or the decision log failed: %s", request_id, text)

    def _compare(self, shadow: Served, situation: Situation, outcome: Outcome) -> dict[str, Any]:
        """The shadow's decision on a situation beside the outcome, for the log; counted in the metrics."""
        spec, scorer = shadow.policy.spec, shadow.policy.scorer
        assignment = decide(stack([situation]), spec, scorer, shadow.solver()).assignment[0]
        same = int((assignment == outcome.assignment).sum())
        for label, agents in (("true", same), ("false", situation.n - same)):
            self.metrics.shadow_agents.labels(shadow.name, label).inc(agents)
        line: dict[str, Any] = {"policy": shadow.versioned_name, "assignment": assignment}
        line["agreement"] = same / max(situation.n, 1)
        if outcome.scores is not None:
            difference = total_score(outcome.scores, assignment) - total_score(outcome.scores, outcome.assignment)
            self.metrics.shadow_difference.labels(shadow.name).observe(difference)
            line["score_difference"] = difference
        return line

    async def close(self) -> None:
        """Finish what is recorded after answers."""
        if self._background:
            await asyncio.wait(self._background, timeout=1.0)


def line_of(situation: Situation, outcome: Outcome) -> dict[str, Any]:
    """A decision as a line of the log."""
    line: dict[str, Any] = {name: np.ascontiguousarray(value) for name, value in situation.fields.items()}
    line["assignment"] = np.where(outcome.assignment < 0, -1, outcome.assignment)
    line |= {"by": outcome.answer["by"], "reasons": outcome.answer["reasons"]}
    return line | {"agents": situation.agents, "tasks": situation.tasks}


def total_score(scores: Floats, assignment: Ints) -> float:
    """The sum of the scores of an assignment's pairs."""
    agents = np.flatnonzero(assignment >= 0)
    return float(scores[agents, assignment[agents]].sum())


def fallback_of(name: str, served: Served, custom: Sequence[str]) -> Fallback:
    """A baseline of the environment that a policy was trained on; InputError if it has none of that name.

    `custom`: environments of the users' own that may be imported.
    """
    if name == "prior":
        if not served.policy.spec.reads_prior:
            raise InputError(f"{served.name} reads no prior, so that there is none to fall back on")
        solver = Solver("lp", threads=1)
        return lambda batch: solver(batch.problem(cast(Floats, batch.prior))).assignment[0]
    env_name = str(served.policy.header.get("env", ""))
    kind = kind_of(env_name)
    if kind in ("", "log"):
        raise InputError(f"{served.name} was trained on no environment with baselines")
    if kind not in (*BUILT_IN, *custom):
        raise InputError(f"{kind} is imported only if --envs names it (--envs {kind})")
    env = make(env_name)
    baselines = env.baselines()
    if name not in baselines:
        raise InputError(f"{kind} has no baseline {name!r}")
    policy = baselines[name](env)

    def act(batch: BatchObservation) -> Ints:
        allowed = np.ones(batch.contributions.shape, np.bool_) if batch.allowed is None else batch.allowed
        batch = dataclasses.replace(batch, allowed=allowed)
        if isinstance(env, BatchOfSingles):
            # In place of the environment, to whose sizes its policy would cut the observation.
            _, n, m = allowed.shape
            sized: Any = SimpleNamespace(name=env.name, n_envs=0, n_agents=n, n_tasks=m)
            return BaselinePolicy(name, env.single.baselines()[name], sized).act(batch)[0]
        policy.reset(np.arange(1), np.zeros(1, np.uint64))
        return policy.act(batch)[0]

    return act


def find_fallbacks(name: str, policies: Policies) -> dict[str, Fallback]:
    """The fallback of each served policy whose environment has it, tried once; InputError if none has."""
    fallbacks: dict[str, Fallback] = {}
    problem = ""
    for served in policies.now.values():
        try:
            fallback = fallback_of(name, served, policies.custom)
            fallback(stack(read_request(example(served), policies, 100).situations))
            fallbacks[served.name] = fallback
        except InputError as error:
            problem = problem or str(error)
        except Exception:
            problem = problem or f"{name} of {served.policy.header.get('env')} reads more than /act is given"
    if not fallbacks:
        raise InputError(f"fallback {name!r} answers for none of the policies: {problem}; try prior")
    return fallbacks


class DecisionLog:
    """One JSON line a decision, in files of limited size; each process has its own.

    A line is one of a `log:` environment, an observation with its assignment: `muster train --from-log`, `muster
    evaluate POLICY log:FILE` and `muster replay` read it as it is.
    """

    def __init__(self, folder: Path, file_bytes: int = FILE_BYTES) -> None:
        self._folder, self._file_bytes = folder, file_bytes
        self._path: Path | None = None
        make_folder(folder)

    def write(self, line: dict[str, Any]) -> None:
        """Append a decision, without what is None; InputError if it cannot be written."""
        if self._path is None:
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            self._path = self._folder / f"decisions-{stamp}-{os.getpid()}-{time.monotonic_ns() % 10**6:06}.jsonl"
        with writing(self._path), self._path.open("ab", buffering=0) as file:
            data = encode({name: value for name, value in line.items() if value is not None}) + b"\n"
            if (written := file.write(data)) < len(data):
                # Half a line would be taken for a part of the next one.
                file.truncate(file.tell() - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if file.tell() > self._file_bytes:
                self._path = None
