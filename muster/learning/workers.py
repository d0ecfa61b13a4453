"""The workers of a run: each runs a share of every update, and one that dies or hangs is replaced.

A learner that divides its work gives every worker of the pool a `Job`, and then calls the pool with a message for each.
A worker that is new, at the start or in place of one that was lost, gets the job with the message. As an answer depends
on nothing but the two, a loss changes nothing but the time that an update takes.

On one machine workers are processes without torch: fresh interpreters with the run's module path, so that they find a
custom environment, in sessions of their own, so that Ctrl-C reaches the run alone. A worker's standard input is a pipe
that closes with the run, however that ends, and the worker ends with it. On many machines they are actors of Ray
(cluster.py).
"""

from __future__ import annotations

import json
import os
import pickle
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from multiprocessing import connection
from typing import Any, NamedTuple, Protocol

from muster.errors import EnvError, InputError, MusterError, in_words
from muster.learning.metrics import Metrics
from muster.learning.optimiser import TrainingError
from muster.parallel import thread_count

PATIENCE = 60.0
"""Seconds after which a worker that does not answer is taken to hang, unless answers have been known to take long."""
LONGER = 20.0
"""How many times longer than the longest answer so far one may take."""
STARTING = 60.0
"""Seconds more for a worker that has just started."""
ATTEMPTS = 3
"""Workers that a share may cost before the run gives up."""
STALL = 60
"""Seconds in which not a byte moves, after which a message is given up."""
BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from muster.learning.workers import serve; serve(int(sys.argv[1]))"
)


class Job(ABC):
    """All that it takes to make, in a worker, what answers messages there."""

    @abstractmethod
    def make(self) -> Callable[[Any], Any]:
        """From a message to its answer, which depends on nothing else; with environments of its own."""


class Reply(NamedTuple):
    """What comes back for a message."""

    answer: Any
    """Or a MusterError."""
    seconds: float
    cpu_seconds: float
    """Of the message alone: making environments is no part of the training."""


class Host:
    """The worker's side: bytes in, bytes out."""

    def answer(self, data: bytes) -> bytes:
        """Do what the message says, with a job if it is the first."""
        began, cpu = time.perf_counter(), time.process_time()
        try:
            job, message = pickle.loads(data)
            if job is not None:
                self.handle = job.make()
                cpu = time.process_time()
            answer = self.handle(message)
        except Exception as error:
            answer = as_sent(error)
        return _packed(Reply(answer, time.perf_counter() - began, time.process_time() - cpu))


def as_sent(error: Exception) -> MusterError:
    """What the run raises for a worker's error: of a class that any process can make of one text."""
    if isinstance(error, MusterError):
        kinds = (kind for kind in (InputError, EnvError, TrainingError) if isinstance(error, kind))
        return next(kinds, MusterError)(str(error))
    found = MusterError(f"a worker failed: {in_words(error)}")
    found.add_note(f"in a worker:\n{traceback.format_exc()}")
    return found


def _packed(message: Any) -> bytes:
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


class WorkerLostError(Exception):
    """A worker is gone; says how."""


class Worker(Protocol):
    """One worker, seen from the run."""

    def send(self, data: bytes) -> None:
        """Send bytes; WorkerLostError where it is gone."""

    def receive(self) -> bytes:
        """The answer; WorkerLostError where it is gone. Only after `Executor.wait` named it."""

    def end(self) -> None:
        """End it at once."""


class Executor(Protocol):
    """Where workers run."""

    def capacity(self) -> int:
        """How many have a core each."""

    def start(self) -> Worker:
        """A new worker."""

    def wait(self, workers: Sequence[Worker], seconds: float) -> list[Worker]:
        """Those that have answered, or have ended, within so many seconds; none if none has."""

    def close(self) -> None:
        """Release what it holds."""


class Process:
    """A worker on this machine."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            ours.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", STALL, 0))
        self.pipe = connection.Connection(ours.detach())
        path = json.dumps([os.path.abspath(entry) for entry in sys.path])
        with theirs:
            self.child = subprocess.Popen(
                [sys.executable, "-c", BOOT, str(theirs.fileno()), path],
                stdin=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def send(self, data: bytes) -> None:
        """Send bytes."""
        try:
            self.pipe.send_bytes(data)
        except OSError:
            raise WorkerLostError(self._ending()) from None

    def receive(self) -> bytes:
        """The answer that has begun to come."""
        try:
            return self.pipe.recv_bytes()
        except (OSError, EOFError):
            raise WorkerLostError(self._ending()) from None

    def end(self) -> None:
        """End it at once: all that counts is in the run."""
        self.child.kill()
        self.child.wait()
        self.pipe.close()
        if self.child.stdin:
            self.child.stdin.close()

    def _ending(self) -> str:
        try:
            code = self.child.wait(1.0)
        except subprocess.TimeoutExpired:
            return "it no longer answers"
        return f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"


class Processes:
    """Workers on this machine."""

    def __init__(self) -> None:
        if os.name != "posix":
            raise InputError("--workers needs Linux or macOS; leave it out")

    def capacity(self) -> int:
        """Cores that there are for workers."""
        return thread_count()

    def start(self) -> Worker:
        """A new process."""
        return Process()

    def wait(self, workers: Sequence[Worker], seconds: float) -> list[Worker]:
        """Those that have answered, or have ended, within so many seconds."""
        pipes = {worker.pipe: worker for worker in workers if isinstance(worker, Process)}
        return [pipes[pipe] for pipe in connection.wait(list(pipes), max(0.0, seconds))]  # type: ignore[index]

    def close(self) -> None:
        """Nothing is held."""


def serve(handle: int) -> None:
    """The worker's process: answer until the run ends."""
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    host = Host()
    with connection.Connection(handle) as pipe, suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(host.answer(pipe.recv_bytes()))


def _end_with_the_run() -> None:
    while os.read(0, 1):
        pass
    os._exit(0)


class Due(NamedTuple):
    """By when an answer is awaited."""

    moment: float
    patience: float
    new: bool
    """Whether the worker has just started."""


class WorkerPool:
    """As many workers as the run asked for, by index."""

    def __init__(self, executor: Executor, size: int) -> None:
        self.executor, self.size = executor, size
        self.jobs: Sequence[Job] = ()
        self.workers: dict[int, Worker] = {}
        self._told: set[int] = set()
        """Indices of workers that know their job."""
        self.patience, self.starting = PATIENCE, STARTING
        self.cpu_seconds = 0.0
        """CPU time of all workers so far."""
        self.replaced = 0
        """Workers that died or hung."""
        self._longest = 0.0
        self._messages, self._bytes, self._busy, self._since = 0, 0, 0.0, time.perf_counter()

    def assign(self, jobs: Sequence[Job]) -> None:
        """One job for each worker; those that had another forget it."""
        assert len(jobs) == self.size
        self.jobs = jobs
        self._told.clear()

    def call(self, messages: Sequence[Any]) -> list[Any]:
        """The answer of each worker to its message; raises what a worker raised."""
        losses = [0] * self.size
        awaited = {index: self._send(index, message) for index, message in enumerate(messages)}
        answers: dict[int, Any] = {}
        while awaited:
            for index, why in self._hear(awaited, answers).items():
                losses[index] += 1
                self.replaced += 1
                self._dismiss(index)
                if losses[index] == ATTEMPTS:
                    raise TrainingError(
                        f"a worker was lost {ATTEMPTS} times over the same share of an update ({why}); is there memory "
                        "for all of them, and does every step of the environment come to an end? Try fewer --workers"
                    )
                awaited[index] = self._send(index, messages[index])
        found = [answers[index] for index in range(self.size)]
        for answer in found:
            if isinstance(answer, MusterError):
                raise answer
        return found

    def metrics(self) -> Metrics:
        """Since it was last asked: seconds, share of the workers' time that was idle, messages and bytes either way."""
        now = time.perf_counter()
        seconds = now - self._since
        idle = 1.0 - self._busy / max(seconds * self.size, 1e-9)
        found = {"update_seconds": seconds, "idle": min(max(idle, 0.0), 1.0), "messages": float(self._messages)}
        found["message_bytes"] = float(self._bytes)
        self._messages, self._bytes, self._busy, self._since = 0, 0, 0.0, now
        return found

    def close(self) -> None:
        """End all workers."""
        for index in list(self.workers):
            self._dismiss(index)
        self.executor.close()

    def _send(self, index: int, message: Any) -> Due:
        """Send the message, to a new worker with its job."""
        patience = max(self.patience, LONGER * self._longest)
        new = index not in self._told
        if new:
            if index not in self.workers:
                self.workers[index] = self.executor.start()
            self._told.add(index)
            patience += self.starting
        data = _packed((self.jobs[index] if new else None, message))
        self._messages += 1
        self._bytes += len(data)
        # A worker that is gone already is found out when its answer is waited for.
        with suppress(WorkerLostError):
            self.workers[index].send(data)
        return Due(time.monotonic() + patience, patience, new)

    def _hear(self, awaited: dict[int, Due], answers: dict[int, Any]) -> dict[int, str]:
        """Wait for the next answers, which are moved from `awaited` to `answers`; who was lost meanwhile, and how."""
        lost: dict[int, str] = {}
        indices = {id(self.workers[index]): index for index in awaited}
        left = min(due.moment for due in awaited.values()) - time.monotonic()
        for worker in self.executor.wait([self.workers[index] for index in awaited], left):
            index = indices[id(worker)]
            try:
                answers[index] = self._receive(worker, awaited[index].new)
            except WorkerLostError as loss:
                lost[index] = str(loss)
            else:
                del awaited[index]
        now = time.monotonic()
        for index, due in awaited.items():
            # The run itself may have stood still: an answer that has come meanwhile counts.
            if index not in lost and due.moment < now and not self.executor.wait([self.workers[index]], 0.0):
                lost[index] = f"no answer within {due.patience:.0f} s"
        return lost

    def _receive(self, worker: Worker, new: bool) -> Any:
        data = worker.receive()
        reply: Reply = pickle.loads(data)  # only ever packed by this run's own workers
        self._messages += 1
        self._bytes += len(data)
        self._busy += reply.seconds
        self.cpu_seconds += reply.cpu_seconds
        if not new:
            self._longest = max(self._longest, reply.seconds)
        return reply.answer

    def _dismiss(self, index: int) -> None:
        self._told.discard(index)
        worker = self.workers.pop(index, None)
        if worker is not None:
            worker.end()


def shares(size: int, parts: int) -> list[tuple[int, int]]:
    """Neighbouring ranges (begin, end) of range(size), as equal as can be."""
    return list(pairwise(k * size // parts for k in range(parts + 1)))


@contextmanager
def closing(pool: WorkerPool | None) -> Iterator[WorkerPool | None]:
    """The pool, whose workers end with the block."""
    try:
        yield pool
    finally:
        if pool is not None:
            pool.close()
