"""Worker processes: each runs a share of every update, and one that dies or hangs is replaced.

A learner gives every worker of the pool a `Job`, and then calls the pool with a message for each. A new worker, at the
start or in place of a lost one, receives the job with its first message. An answer depends on job and message alone, so
losing a worker costs time and changes no result.

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
"""Seconds without an answer after which a worker counts as hanging, unless earlier answers took long."""
LONGER = 20.0
"""An answer may take so many times as long as the longest before it."""
STARTING = 60.0
"""Additional seconds for the first answer of a worker."""
ATTEMPTS = 3
"""Workers lost over the same share of an update before the run gives up."""
STALL = 60
"""Seconds without a byte sent or received after which a message fails."""
BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from muster.learning.workers import serve; serve(int(sys.argv[1]))"
)


class Job(ABC):
    """The work of one worker, sent to it once, before its first message."""

    @abstractmethod
    def make(self) -> Callable[[Any], Any]:
        """The worker's function from a message to its answer, which depends on nothing else."""


class Reply(NamedTuple):
    """A worker's answer with the time that it took."""

    answer: Any
    """The answer, or a MusterError."""
    seconds: float
    cpu_seconds: float
    """CPU time of the message alone: making environments is not part of the training."""


class Host:
    """The worker's side: bytes in, bytes out."""

    def answer(self, data: bytes) -> bytes:
        """Answer one message; the first comes with the job."""
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
    """A worker's error as one that pickles: of a class with one text as its argument."""
    if isinstance(error, MusterError):
        kinds = (kind for kind in (InputError, EnvError, TrainingError) if isinstance(error, kind))
        return next(kinds, MusterError)(str(error))
    failure = MusterError(f"a worker failed: {in_words(error)}")
    failure.add_note(f"in a worker:\n{traceback.format_exc()}")
    return failure


def _packed(message: Any) -> bytes:
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


class WorkerLostError(Exception):
    """A worker has ended or cannot be reached; the message says how."""


class Worker(Protocol):
    """The run's side of one worker."""

    def send(self, data: bytes) -> None:
        """Send bytes; WorkerLostError where it is gone."""

    def receive(self) -> bytes:
        """The answer; WorkerLostError where it is gone. Only after `Executor.wait` returned the worker."""

    def end(self) -> None:
        """Kill the worker."""


class Executor(Protocol):
    """Starts workers: processes of this machine, or actors of a cluster."""

    def capacity(self) -> int:
        """Number of workers with a core each."""

    def start(self) -> Worker:
        """A new worker."""

    def wait(self, workers: Sequence[Worker], seconds: float) -> list[Worker]:
        """Workers that have answered, or have ended, within so many seconds; none if none has."""

    def close(self) -> None:
        """Release resources."""


class Process:
    """A worker in a process of this machine."""

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
        """Receive the answer that has begun to arrive."""
        try:
            return self.pipe.recv_bytes()
        except (OSError, EOFError):
            raise WorkerLostError(self._ending()) from None

    def end(self) -> None:
        """Kill the process: the run has all state."""
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
    """Executor of processes of this machine."""

    def __init__(self) -> None:
        if os.name != "posix":
            raise InputError("--workers needs Linux or macOS; leave it out")

    def capacity(self) -> int:
        """Cores of this machine, or as many as MUSTER_NUM_THREADS says."""
        return thread_count()

    def start(self) -> Worker:
        """A new process."""
        return Process()

    def wait(self, workers: Sequence[Worker], seconds: float) -> list[Worker]:
        """Workers that have answered, or have ended, within so many seconds."""
        pipes = {worker.pipe: worker for worker in workers if isinstance(worker, Process)}
        return [pipes[pipe] for pipe in connection.wait(list(pipes), max(0.0, seconds))]  # type: ignore[index]

    def close(self) -> None:
        """There is nothing to release."""


def serve(handle: int) -> None:
    """Main loop of a worker's process: answer messages until the run ends."""
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    host = Host()
    with connection.Connection(handle) as pipe, suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(host.answer(pipe.recv_bytes()))


def _end_with_the_run() -> None:
    """Exit when standard input closes, as it does when the run's process ends."""
    while os.read(0, 1):
        pass
    os._exit(0)


class Due(NamedTuple):
    """Deadline of an answer."""

    moment: float
    """Time of the monotonic clock at which the worker counts as hanging."""
    patience: float
    new: bool
    """Whether the worker has just started."""


class WorkerPool:
    """A fixed number of workers, by index, started when they are first needed."""

    def __init__(self, executor: Executor, size: int) -> None:
        self.executor, self.size = executor, size
        self.jobs: Sequence[Job] = ()
        self.workers: dict[int, Worker] = {}
        self._have_job: set[int] = set()
        """Indices of workers that have received their job."""
        self.patience, self.starting = PATIENCE, STARTING
        self.cpu_seconds = 0.0
        """CPU time of all workers so far."""
        self.replaced = 0
        """Workers that died or hung."""
        self._longest = 0.0
        self._messages, self._bytes, self._busy, self._since = 0, 0, 0.0, time.perf_counter()

    def assign(self, jobs: Sequence[Job]) -> None:
        """Give each worker a job in place of its present one."""
        assert len(jobs) == self.size
        self.jobs = jobs
        self._have_job.clear()

    def call(self, messages: Sequence[Any]) -> list[Any]:
        """Answers of the workers to one message each; raises the first error of a worker."""
        losses = [0] * self.size
        awaited = {index: self._send(index, message) for index, message in enumerate(messages)}
        answers: dict[int, Any] = {}
        while awaited:
            for index, why in self._receive_next(awaited, answers).items():
                losses[index] += 1
                self.replaced += 1
                self._dismiss(index)
                if losses[index] == ATTEMPTS:
                    raise TrainingError(
                        f"a worker was lost {ATTEMPTS} times over the same share of an update ({why}); is there memory "
                        "for all of them, and does every step of the environment come to an end? Try fewer --workers"
                    )
                awaited[index] = self._send(index, messages[index])
        for index in range(self.size):
            if isinstance(answers[index], MusterError):
                raise answers[index]
        return [answers[index] for index in range(self.size)]

    def metrics(self) -> Metrics:
        """Since the last call: seconds, idle share of the workers' time, messages and bytes in both directions."""
        now = time.perf_counter()
        seconds = now - self._since
        idle = 1.0 - self._busy / max(seconds * self.size, 1e-9)
        metrics = {"update_seconds": seconds, "idle": min(max(idle, 0.0), 1.0), "messages": float(self._messages)}
        metrics["message_bytes"] = float(self._bytes)
        self._messages, self._bytes, self._busy, self._since = 0, 0, 0.0, now
        return metrics

    def close(self) -> None:
        """Kill all workers and release the executor."""
        for index in list(self.workers):
            self._dismiss(index)
        self.executor.close()

    def _send(self, index: int, message: Any) -> Due:
        """Send the message, with the job to a worker that does not have it; the deadline of the answer."""
        patience = max(self.patience, LONGER * self._longest)
        new = index not in self._have_job
        if new:
            if index not in self.workers:
                self.workers[index] = self.executor.start()
            self._have_job.add(index)
            patience += self.starting
        data = _packed((self.jobs[index] if new else None, message))
        self._messages += 1
        self._bytes += len(data)
        # `_receive_next` notices a worker that is gone already.
        with suppress(WorkerLostError):
            self.workers[index].send(data)
        return Due(time.monotonic() + patience, patience, new)

    def _receive_next(self, awaited: dict[int, Due], answers: dict[int, Any]) -> dict[int, str]:
        """Wait for the next answers and move them from `awaited` to `answers`; workers lost meanwhile, with reasons."""
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
            # The run itself may have been suspended: an answer that has arrived meanwhile counts.
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
        self._have_job.discard(index)
        worker = self.workers.pop(index, None)
        if worker is not None:
            worker.end()


def shares(size: int, parts: int) -> list[tuple[int, int]]:
    """Divide range(size) into consecutive ranges (begin, end), as equal as possible."""
    return list(pairwise(k * size // parts for k in range(parts + 1)))


@contextmanager
def closing(pool: WorkerPool | None) -> Iterator[WorkerPool | None]:
    """Context in which the pool is open; its workers end with it."""
    try:
        yield pool
    finally:
        if pool is not None:
            pool.close()
