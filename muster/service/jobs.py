"""POST /jobs: solves that take longer than a request may, one at a time, with progress.

A job solves with twice the time limit again and again until the answer is optimal or its time is over. Its progress is
the incumbent and the bound of the rounds so far; a job that is cancelled keeps them.
"""

from __future__ import annotations

import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from muster.assign import assign
from muster.assign.as_json import answer_as_json
from muster.assign.stop import stoppable
from muster.data import Ints
from muster.errors import MusterError
from muster.service.errors import RequestError, refuse
from muster.service.schema import SolveBody
from muster.service.solve import arguments_of

FIRST_ROUND = 0.5
"""Seconds."""
KEPT = 100
"""Jobs that are over and can still be asked for."""


@dataclass
class Job:
    """One long solve."""

    id: str
    body: SolveBody
    arguments: dict[str, Any]
    status: str = "waiting"
    answer: dict[str, Any] | None = None
    error: str | None = None
    started: float = 0.0
    ended: float = 0.0
    stop: Ints = field(default_factory=lambda: np.zeros(1, np.int64))

    @property
    def is_over(self) -> bool:
        """Whether it is done, cancelled or failed."""
        return self.status in ("done", "cancelled", "failed")

    def as_json(self) -> dict[str, Any]:
        """The answer to GET /jobs/ID."""
        answer = self.answer or {}
        seconds = (self.ended or time.monotonic()) - self.started if self.started else 0.0
        shown = {"id": self.id, "status": self.status, "seconds": seconds, "answer": self.answer, "error": self.error}
        return shown | {"objective": answer.get("objective"), "bound": answer.get("bound")}

    def update(self, answer: dict[str, Any]) -> None:
        """Keep the better of two answers, with the better bound."""
        if self.answer is None:
            self.answer = answer
            return
        best, worst = (max, min) if self.body.sense == "max" else (min, max)
        bounds = [one["bound"] for one in (self.answer, answer) if one["bound"] is not None]
        better = best(answer, self.answer, key=lambda one: one["objective"])
        self.answer = better | {"bound": worst(bounds) if bounds else None}

    def solve(self, limit: float) -> None:
        """Solve until the answer is optimal, the job is cancelled or `limit` seconds are over."""
        if self.is_over:
            return
        self.started, self.status = time.monotonic(), "running"
        seconds = min(FIRST_ROUND, limit)
        try:
            while True:
                left = limit - (time.monotonic() - self.started)
                # A round raises its flag when its time is over: each needs its own.
                self.stop = np.full(1, self.is_over, np.int64)
                with stoppable(self.stop):
                    solution = assign(**self.arguments, time_limit=max(1e-3, min(seconds, left)))
                self.update(answer_as_json(solution))
                if self.is_over or solution.status != "time_limit" or left <= seconds:
                    break
                seconds *= 2.0
        except MusterError as error:
            self.error, self.status = str(error), "failed"
        except Exception as error:
            self.error, self.status = f"a mistake of the service: {type(error).__name__}", "failed"
        self.ended = time.monotonic()
        if not self.is_over:
            self.status = "done"


class Jobs:
    """The jobs of one process: one runs, some wait, some that are over are kept."""

    def __init__(self, queue: int, seconds: float, size_limit: int) -> None:
        self.queue, self.seconds, self.size_limit = queue, seconds, size_limit
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(1, "muster-jobs")

    @property
    def held(self) -> int:
        """Jobs that run or wait."""
        return sum(not job.is_over for job in list(self._jobs.values()))

    def add(self, body: SolveBody) -> dict[str, Any]:
        """Queue a body of /solve; RequestError if too many wait."""
        arguments = arguments_of(body, self.size_limit)
        if body.explain:
            refuse("explain is for /solve", "explain")
        if body.time_limit is not None and body.time_limit > self.seconds:
            refuse(f"time_limit must be at most {self.seconds:g} s here", "time_limit")
        with self._lock:
            if self.held > self.queue:
                raise RequestError("busy", f"{self.held} jobs are waiting; try again", "", {"Retry-After": "10"})
            for old in [job.id for job in self._jobs.values() if job.is_over][:-KEPT]:
                del self._jobs[old]
            job = Job(secrets.token_hex(8), body, arguments)
            self._jobs[job.id] = job
        self._executor.submit(job.solve, body.time_limit or self.seconds)
        return job.as_json()

    def find(self, id_: str) -> Job:
        """The job of that id."""
        if id_ not in self._jobs:
            raise RequestError("not_found", f"no job {id_!r:.40}; those that are over are kept for a while only")
        return self._jobs[id_]

    def cancel(self, id_: str) -> dict[str, Any]:
        """End a job; its incumbent stays."""
        job = self.find(id_)
        if not job.is_over:
            job.status = "cancelled"
        job.stop.fill(1)
        return job.as_json()

    def close(self) -> None:
        """Cancel all jobs."""
        for job in list(self._jobs.values()):
            self.cancel(job.id)
        self._executor.shutdown(wait=False)
