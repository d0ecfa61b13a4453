"""A small client of `muster serve`: synchronous, with retries and typed answers.

from muster.client import Client

with Client("http://127.0.0.1:8000") as service:
    answer = service.solve([[3, 2], [2.5, 0.5]], method="lp")
    decision = service.act("rescue-2x4-quad-dm", situation)
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Self, TypeVar

from muster.errors import MissingExtraError, MusterError

RETRIED = (429, 503)
"""Statuses after which a request is sent again: too much work, or the service is being replaced."""
Answer = TypeVar("Answer")


class ServiceError(MusterError):
    """The service refused a request; `code` and `where` are as it says, `status` is HTTP's (0: no answer)."""

    def __init__(self, status: int, code: str, error: str, where: str = "") -> None:
        super().__init__(error)
        self.status, self.code, self.where = status, code, where


@dataclass(frozen=True, slots=True)
class Assignment:
    """The answer of /solve."""

    assignment: list[int | str | None]
    """For each agent its task, by name where there are names."""
    objective: float
    bound: float | None
    status: str
    loads: list[float]
    prices: list[float]
    unassigned: dict[str, str]
    """Why an agent has no task."""
    changes: int | None
    seconds: float
    raw: dict[str, Any]
    """All of the answer."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer of /act on one situation."""

    assignment: list[int | str | None]
    reasons: dict[str, str]
    objective: float | None
    status: str
    by: str
    """"policy" or "fallback"."""
    policy: str
    """name@version"""
    warnings: list[str]
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """A long solve."""

    id: str
    status: str
    """waiting, running, done, cancelled or failed"""
    seconds: float
    objective: float | None
    bound: float | None
    answer: dict[str, Any] | None
    error: str | None


class Client:
    """One service at an address."""

    def __init__(
        self, url: str = "http://127.0.0.1:8000", token: str = "", timeout: float = 30.0, retries: int = 3
    ) -> None:
        try:
            import httpx2 as httpx
        except ImportError:
            raise MissingExtraError("muster.client", "client") from None
        self._httpx = httpx
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        self._retries = retries

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def solve(self, scores: Any, **fields: Any) -> Assignment:
        """Assign agents to tasks; `fields` are further ones of /solve, such as capacities, method, sense."""
        return _typed(Assignment, self.request("POST", "/solve", {"scores": scores, **fields}))

    def check(self, scores: Any, assignment: Any, **fields: Any) -> dict[str, Any]:
        """Whether a plan is feasible, what it is worth and what would be better."""
        return self.request("POST", "/check", {"scores": scores, "assignment": assignment, **fields})

    def act(self, policy: str, situation: Mapping[str, Any], **fields: Any) -> Decision:
        """Let a policy decide on one situation."""
        answer = self.request("POST", "/act", {"policy": policy, "situation": situation, **fields})
        return _typed(Decision, answer)

    def act_all(self, policy: str, situations: Sequence[Mapping[str, Any]], **fields: Any) -> list[Decision]:
        """Let a policy decide on several situations at once."""
        answer = self.request("POST", "/act", {"policy": policy, "situations": list(situations), **fields})
        return [_typed(Decision, one | {"policy": answer["policy"]}) for one in answer["answers"]]

    def submit(self, scores: Any, **fields: Any) -> Job:
        """Begin a long solve."""
        return _typed(Job, self.request("POST", "/jobs", {"scores": scores, **fields}))

    def job(self, id_: str) -> Job:
        """How far a long solve has come."""
        return _typed(Job, self.request("GET", f"/jobs/{id_}"))

    def cancel(self, id_: str) -> Job:
        """End a long solve; its best plan stays."""
        return _typed(Job, self.request("DELETE", f"/jobs/{id_}"))

    def progress(self, id_: str, every: float = 0.5) -> Iterator[Job]:
        """A long solve again and again until it is over."""
        while True:
            job = self.job(id_)
            yield job
            if job.status in ("done", "cancelled", "failed"):
                return
            time.sleep(every)

    def policies(self) -> list[dict[str, Any]]:
        """The policies that are served."""
        return list(self.request("GET", "/policies")["policies"])

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """The answer to a request, sent again where the service is busy, being replaced or not there; ServiceError."""
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                response = self._client.request(method, path, json=body)
            except self._httpx.TransportError as error:
                # A job may have been submitted although the answer was lost.
                if last or path == "/jobs":
                    raise ServiceError(0, "unreachable", f"{self._client.base_url} does not answer: {error}") from None
                time.sleep(_pause(attempt))
                continue
            if response.status_code in RETRIED and not last:
                time.sleep(max(_pause(attempt), min(float(response.headers.get("Retry-After", 0)), 10.0)))
                continue
            if response.is_success:
                return dict(response.json())
            try:
                refusal = response.json()
            except ValueError:
                refusal = {"code": "internal", "error": f"the service answered with status {response.status_code}"}
            raise ServiceError(response.status_code, refusal["code"], refusal["error"], refusal.get("where", ""))
        raise AssertionError("the last attempt returns or raises")


def _pause(attempt: int) -> float:
    """Seconds before the next attempt: twice as many each time, so that clients do not all come back at once."""
    return 0.1 * 2.0**attempt * random.uniform(0.5, 1.5)


def _typed(kind: type[Answer], answer: dict[str, Any]) -> Answer:
    known = {"warnings": [], **answer, "raw": answer}
    return kind(**{field.name: known[field.name] for field in fields(kind)})  # type: ignore[arg-type]
