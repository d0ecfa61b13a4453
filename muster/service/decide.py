"""Decisions of /act: alike ones together; guarded by what training saw, with a fallback, a shadow and a log."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from prometheus_client import Counter

from muster.assign.outcomes import STATUS_NAMES
from muster.assign.solver import REASON_NAMES, Solver
from muster.data import BatchObservation, Floats, Ints, Problem
from muster.envs.registry import BUILT_IN, kind_of, make
from muster.envs.vector import Policy
from muster.errors import InputError, MusterError
from muster.policy.decision import allowed_scores, decide
from muster.service.act import Asked, Situation, example, read_asked, stack
from muster.service.body import parse
from muster.service.decision_log import DecisionLog
from muster.service.metrics import Metrics
from muster.service.policies import MOST_WARNINGS, Policies, Served, serve_policy
from muster.service.pool import Pool
from muster.service.refusal import Refusal
from muster.service.settings import ServeSettings

LOG = logging.getLogger("muster.service")
QUICK_BODY = 32_768
"""Bytes of a body at most that the event loop may answer itself."""
MOST_QUICK = 16
"""Requests that it answers so in one turn."""


class Outcome(NamedTuple):
    """One decision: what is answered, and what of it is kept for the shadow and the log."""

    answer: dict[str, Any]
    assignment: Ints
    """[N]"""
    scores: Floats | None
    """[N, M] by which it was decided; None: it is the fallback's."""


class Decider:
    """Decides on what /act is asked."""

    def __init__(self, settings: ServeSettings, policies: Policies, pool: Pool, metrics: Metrics) -> None:
        self.settings, self.policies, self.pool, self.metrics = settings, policies, pool, metrics
        self.shadow = serve_policy(settings.shadow, settings.envs) if settings.shadow else None
        self.log = DecisionLog(settings.decision_log) if settings.decision_log else None
        self._fallbacks = find_fallbacks(settings.fallback, policies) if settings.fallback else {}
        self._quick: list[tuple[Asked, asyncio.Future[list[Outcome]]]] = []
        """Asked in this turn of the event loop, to be decided at its end."""
        self._background: set[asyncio.Task[None]] = set()

    async def act(self, body: bytes, request_id: str) -> dict[str, Any]:
        """The answer to a body of /act."""
        deadline = time.monotonic() + self.settings.time_limit

        def read() -> Asked:
            return read_asked(parse(body), self.policies, self.settings.size_limit)

        asked = read() if len(body) <= QUICK_BODY else await self.pool.run(deadline, read)
        try:
            if asked.is_quick and len(self._quick) < MOST_QUICK:
                outcomes = await self._decide_together(asked)
            else:
                outcomes = await self.pool.run(deadline, lambda: self.decide_all(asked))
        except Refusal as refusal:
            if refusal.code != "time_limit" or asked.policy.name not in self._fallbacks:
                raise
            outcomes = await asyncio.to_thread(self._fall_back, asked, "the policy did not answer in time")
        self._count(asked, outcomes)
        answer = asked.answer([outcome.answer for outcome in outcomes])
        if self.log is not None or self.shadow is not None:
            task = asyncio.create_task(self._afterwards(asked, outcomes, answer["seconds"], request_id))
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        return answer

    async def _decide_together(self, asked: Asked) -> list[Outcome]:
        """The decisions of a small request, made with those of others that come in the same turn."""
        loop = asyncio.get_running_loop()
        if not self._quick:
            loop.call_soon(self._decide_quick)
        waiter: asyncio.Future[list[Outcome]] = loop.create_future()
        self._quick.append((asked, waiter))
        return await waiter

    def _decide_quick(self) -> None:
        waiting, self._quick = self._quick, []
        alike: dict[Any, list[tuple[Asked, asyncio.Future[list[Outcome]]]]] = {}
        for asked, waiter in waiting:
            alike.setdefault((asked.policy, asked.solver, asked.scores), []).append((asked, waiter))
        for members in alike.values():
            try:
                decided = iter(self.decide_all(*(asked for asked, _ in members)))
                answers: list[Any] = [[next(decided) for _ in asked.situations] for asked, _ in members]
            except Exception as error:
                answers = [error] * len(members)
            for (_, waiter), answer in zip(members, answers, strict=True):
                if waiter.done():
                    continue
                if isinstance(answer, Exception):
                    waiter.set_exception(answer)
                else:
                    waiter.set_result(answer)

    def decide_all(self, *asked: Asked) -> list[Outcome]:
        """A decision for each situation of requests for one policy. Those of the same fields and sizes are decided on
        together: nothing is padded.
        """
        first, situations = asked[0], [situation for one in asked for situation in one.situations]
        outcomes: list[Any] = [None] * len(situations)
        alike: dict[Any, list[int]] = {}
        for k, situation in enumerate(situations):
            alike.setdefault((situation.n, situation.m, *situation.fields), []).append(k)
        for members in alike.values():
            found = self._decide(first, [situations[k] for k in members])
            for k, outcome in zip(members, found, strict=True):
                outcomes[k] = outcome
        return outcomes

    def _decide(self, asked: Asked, situations: list[Situation]) -> list[Outcome]:
        """Observation -> scores -> assignment, with reasons and warnings."""
        served, seen = asked.policy, stack(situations)
        has_fallback = served.name in self._fallbacks
        try:
            decision = decide(seen, served.policy.spec, served.policy.scorer, asked.solver)
        except MusterError:
            raise
        except Exception:
            if not has_fallback:
                raise
            LOG.exception("%s failed; the fallback answers", served.versioned_name)
            return self._fall_back(asked, "the policy failed", situations)
        warnings = served.out_of_range(seen)
        h, g = decision.scores
        out = decision.solution
        reasons, status = REASON_NAMES[out.reason], out.status.tolist()
        kept = allowed_scores(decision.observation, h) if self.shadow is not None else None
        outcomes = []
        for b, situation in enumerate(situations):
            if has_fallback and any(far for _, _, far in warnings[b]):
                told = next(text for _, text, far in warnings[b] if far)
                outcomes += self._fall_back(asked, f"far from what training saw: {told}", [situation])
                continue
            answer: dict[str, Any] = {
                "assignment": situation.assigned(out.assignment[b].tolist()),
                "reasons": {situation.agent(i): reason for i, reason in enumerate(reasons[b]) if reason},
                "objective": float(out.objective[b]),
                "status": STATUS_NAMES[status[b]],
                "by": "policy",
            }
            if warnings[b]:
                answer["warnings"] = [text for _, text, _ in warnings[b][:MOST_WARNINGS]]
                for feature, _, _ in warnings[b]:
                    self.metrics.out_of_range.labels(served.name, feature).inc()
            if asked.scores:
                answer["scores"] = h[b].tolist()
                answer["task_scores"] = None if g is None else g[b].tolist()
            outcomes.append(Outcome(answer, out.assignment[b], None if kept is None else kept[b]))
        return outcomes

    def _fall_back(self, asked: Asked, reason: str, situations: Sequence[Situation] | None = None) -> list[Outcome]:
        outcomes = []
        for situation in asked.situations if situations is None else situations:
            assignment = self._fallbacks[asked.policy.name](stack([situation]))
            answer: dict[str, Any] = {
                "assignment": situation.assigned(assignment.tolist()),
                "reasons": {},
                "objective": None,
                "status": self.settings.fallback,
                "by": "fallback",
                "warnings": [reason],
            }
            outcomes.append(Outcome(answer, assignment, None))
        return outcomes

    def _count(self, asked: Asked, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            self._counter(asked.policy, outcome.answer["by"]).inc()

    @lru_cache(maxsize=256)  # noqa: B019 - there is one of these as long as the service runs
    def _counter(self, served: Served, by: str) -> Counter:
        return self.metrics.decisions.labels(served.name, served.version, by)

    async def _afterwards(self, asked: Asked, outcomes: list[Outcome], seconds: float, request_id: str) -> None:
        """Ask the shadow, and write the log, once the answer is on its way."""
        beside: list[dict[str, Any] | None] = [None] * len(outcomes)
        shadow = self.shadow
        if shadow is not None and shadow.features.hash == asked.policy.features.hash:
            try:
                deadline = time.monotonic() + self.settings.time_limit
                beside = await self.pool.run(deadline, lambda: self._ask_shadow(shadow, asked, outcomes))
            except (Refusal, MusterError) as error:
                LOG.warning("id=%s the shadow did not decide: %s", request_id, error)
        if self.log is None:
            return
        for situation, outcome, other in zip(asked.situations, outcomes, beside, strict=True):
            line: dict[str, Any] = {name: np.ascontiguousarray(value) for name, value in situation.fields.items()}
            line["assignment"] = np.where(outcome.assignment < 0, -1, outcome.assignment)
            line |= {"time": time.time(), "id": request_id, "policy": asked.policy.versioned_name}
            line |= {"by": outcome.answer["by"], "reasons": outcome.answer["reasons"], "seconds": seconds}
            line |= {"agents": situation.agents, "tasks": situation.tasks, "shadow": other}
            self.log.write({name: value for name, value in line.items() if value is not None})

    def _ask_shadow(self, shadow: Served, asked: Asked, outcomes: list[Outcome]) -> list[dict[str, Any] | None]:
        found: list[dict[str, Any] | None] = []
        for situation, outcome in zip(asked.situations, outcomes, strict=True):
            spec, scorer = shadow.policy.spec, shadow.policy.scorer
            assignment = decide(stack([situation]), spec, scorer, shadow.solver()).assignment[0]
            same = int((assignment == outcome.assignment).sum())
            for label, number in (("true", same), ("false", situation.n - same)):
                self.metrics.shadow_agents.labels(shadow.name, label).inc(number)
            line: dict[str, Any] = {"policy": shadow.versioned_name, "assignment": assignment}
            line["agreement"] = same / max(situation.n, 1)
            if outcome.scores is not None:
                difference = value_of(outcome.scores, assignment) - value_of(outcome.scores, outcome.assignment)
                self.metrics.shadow_difference.labels(shadow.name).observe(difference)
                line["score_difference"] = difference
            found.append(line)
        return found

    async def close(self) -> None:
        """Finish what is asked and written after answers."""
        if self._background:
            await asyncio.wait(self._background, timeout=1.0)
        if self.log is not None:
            self.log.close()


def value_of(scores: Floats, assignment: Ints) -> float:
    """Sum of the scores of those who have a task."""
    agents = np.flatnonzero(assignment >= 0)
    return float(scores[agents, assignment[agents]].sum())


class Fallback:
    """A baseline of the environment that a policy was trained on, asked about one observation."""

    def __init__(self, name: str, served: Served) -> None:
        env = str(served.policy.header.get("env", ""))
        self._policy: Policy | None = None
        if name == "prior":
            if not served.policy.spec.reads_prior:
                raise InputError(f"{served.name} reads no prior, so that there is none to fall back on")
            return
        if kind_of(env) not in BUILT_IN or kind_of(env) == "log":
            raise InputError(f"{env or served.name} is no environment that comes with muster")
        made = make(env)
        baselines = made.baselines()
        if name not in baselines:
            raise InputError(f"{kind_of(env)} has no baseline {name!r}")
        self._policy = baselines[name](made)

    def __call__(self, seen: BatchObservation) -> Ints:
        """[N]"""
        if seen.allowed is None:
            seen = dataclasses.replace(seen, allowed=np.ones(seen.contributions.shape, np.bool_))
        if self._policy is None:
            assert seen.prior is not None
            problem = Problem(
                seen.prior, contributions=seen.contributions, capacities=seen.capacities, allowed=seen.allowed
            )
            matched: Ints = Solver("lp", threads=1)(problem).assignment[0]
            return matched
        self._policy.reset(np.arange(1), np.zeros(1, np.uint64))
        chosen: Ints = self._policy.act(seen)[0]
        return chosen


def find_fallbacks(name: str, policies: Policies) -> dict[str, Fallback]:
    """The fallback of each served policy whose environment has it, tried once; InputError where none has."""
    found, told = {}, ""
    for served in policies.now.values():
        try:
            fallback = Fallback(name, served)
            fallback(stack(read_asked(example(served), policies, 100).situations))
            found[served.name] = fallback
        except MusterError as error:
            told = told or str(error)
        except Exception:
            told = told or f"{name} of {served.policy.header.get('env')} reads more than /act is given"
    if not found:
        raise InputError(f"fallback {name!r} answers for none of the policies: {told}; try prior")
    return found
