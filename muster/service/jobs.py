"""POST /jobs: solves that take longer than a request may, a few at a time, with progress.

A job solves with twice the time limit again and again until the answer is optimal or its time is over; what the last
round found, the incumbent and the bound, is its progress, and a job that is cancelled keeps it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

import numpy as np

from muster.assign import assign
from muster.assign.as_json import answer_as_json
from muster.assign.stop import stoppable
from muster.data import Ints
from muster.errors import MusterError
from muster.service.errors import RequestError
from muster.service.schema import SolveBody
from muster.service.solve import arguments_of

FIRST_ROUND = 0.5
"""Seconds."""
KEPT = 100
"""Jobs that have ended and can still be asked about."""


@dataclass
class Job:
    """One long solve."""

    id: str
    body: SolveBody
    arguments: dict[str, Any]
    status: str = "waiting"
    answer: dict[str, Any] | None = None
    error: str | None = None
    began: float = 0.0
    ended: float = 0.0
    stop: Ints = field(default_factory=lambda: np.zeros(1, np.int64))

    def as_json(self) -> dict[str, Any]:
        """What GET /jobs/ID answers."""
        found = self.answer or {}
        seconds = (self.ended or time.monotonic()) - self.began if self.began else 0.0
        progress = {key: found.get(key) for key in ("objective", "bound")}
        shown = {"id": self.id, "status": self.status, "seconds": seconds, **progress}
        return shown | {"answer": self.answer, "error": self.error}

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in ("done", "cancelled", "failed")


class Jobs:
    """The jobs of one process: one is worked on, some wait, some that have ended are kept."""

    def __init__(self, queue: int, seconds: float, size_limit: int) -> None:
        self.queue, self.seconds, self.size_limit = queue, seconds, size_limit
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[Job] = SimpleQueue()
        self._worker: threading.Thread | None = None

    @property
    def held(self) -> int:
        """Jobs that run or wait."""
        return sum(not job.is_over for job in list(self._jobs.values()))

    def add(self, body: SolveBody) -> dict[str, Any]:
        """Take a body of /solve as a job; RequestError where too many wait."""
        arguments = arguments_of(body, self.size_limit)
        if body.explain:
            raise RequestError("input", "explain is for /solve", "explain")
        if body.time_limit is not None and body.time_limit > self.seconds:
            raise RequestError("input", f"time_limit must be at most {self.seconds:g} s here", "time_limit")
        with self._lock:
            if self.held > self.queue:
                raise RequestError("busy", f"{self.held} jobs are waiting; try again", "", {"Retry-After": "10"})
            for old in [job.id for job in self._jobs.values() if job.is_over][:-KEPT]:
                del self._jobs[old]
            job = Job(secrets.token_hex(8), body, arguments)
            self._jobs[job.id] = job
            if self._worker is None:
                self._worker = threading.Thread(target=self._serve, name="muster-jobs", daemon=True)
                self._worker.start()
        self._waiting.put(job)
        return job.as_json()

    def find(self, id_: str) -> Job:
        """The job of that id."""
        if id_ not in self._jobs:
            raise RequestError("not_found", f"no job {id_!r:.40}; those that ended are kept for a while only")
        return self._jobs[id_]

    def cancel(self, id_: str) -> dict[str, Any]:
        """End a job; what it found stays."""
        job = self.find(id_)
        if not job.is_over:
            job.status = "cancelled"
        job.stop.fill(1)
        return job.as_json()

    def close(self) -> None:
        """End all jobs."""
        for job in list(self._jobs.values()):
            self.cancel(job.id)

    def _serve(self) -> None:
        while True:
            job = self._waiting.get()
            if not job.is_over:
                self._solve(job)

    def _solve(self, job: Job) -> None:
        job.began, job.status = time.monotonic(), "running"
        limit = job.body.time_limit or self.seconds
        seconds = min(FIRST_ROUND, limit)
        try:
            while True:
                left = limit - (time.monotonic() - job.began)
                # A round raises its flag itself when its time is over: the next has its own.
                job.stop = np.full(1, job.is_over, np.int64)
                with stoppable(job.stop):
                    found = assign(**job.arguments, time_limit=max(1e-3, min(seconds, left)))
                _keep_better(job, answer_as_json(found))
                if job.is_over or found.status != "time_limit" or left <= seconds:
                    break
                seconds *= 2.0
        except MusterError as error:
            job.error, job.status = str(error), "failed"
        except Exception as error:
            job.error, job.status = f"a mistake of the service: {type(error).__name__}", "failed"
        job.ended = time.monotonic()
        if not job.is_over:
            job.status = "done"


def _keep_better(job: Job, found: dict[str, Any]) -> None:
    """Keep the better of two answers, with the better bound."""
    before, sign = job.answer, 1.0 if job.body.sense == "max" else -1.0
    if before is None:
        job.answer = found
        return
    bounds = [answer["bound"] for answer in (before, found) if answer["bound"] is not None]
    better = found if sign * found["objective"] >= sign * before["objective"] else before
    job.answer = better | {"bound": min(bounds, key=lambda bound: sign * bound) if bounds else None}
