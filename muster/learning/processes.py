"""Workers on this machine: processes without torch, joined to the run by a socket each.

They are fresh interpreters with the run's module path, so that they find a custom environment, in sessions of their
own, so that Ctrl-C reaches the run alone. A worker's standard input is a pipe that closes with the run, however that
ends, and the worker ends with it.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence

from muster.errors import InputError
from muster.learning.workers import Host, Worker, WorkerLostError
from muster.parallel import thread_count

STALL = 60.0
"""Seconds in which not a byte moves, after which a message is given up."""
BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from muster.learning.processes import serve; serve(int(sys.argv[1]))"
)
LENGTH = struct.Struct("!Q")


class Process:
    """A worker that is a process of this machine."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(STALL)
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
            _send(self.socket, data)
        except OSError:
            raise WorkerLostError(self._ending()) from None

    def receive(self) -> bytearray:
        """The answer that has begun to come."""
        try:
            return _receive(self.socket)
        except (OSError, EOFError):
            raise WorkerLostError(self._ending()) from None

    def end(self) -> None:
        """End it at once: all that counts is in the run."""
        self.child.kill()
        self.child.wait()
        self.socket.close()
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
        if not hasattr(socket, "AF_UNIX") or os.name != "posix":
            raise InputError("--workers needs Linux or macOS; leave it out")

    def capacity(self) -> int:
        """Cores that there are for workers."""
        return thread_count()

    def start(self, index: int) -> Worker:
        """A new process."""
        del index
        return Process()

    def wait(self, workers: Sequence[Worker], seconds: float) -> list[Worker]:
        """Those that have answered, or have ended, within so many seconds."""
        poll = select.poll()
        by_number = {}
        for worker in workers:
            assert isinstance(worker, Process)
            poll.register(worker.socket, select.POLLIN)
            by_number[worker.socket.fileno()] = worker
        return [by_number[number] for number, _ in poll.poll(max(0.0, seconds) * 1000)]

    def close(self) -> None:
        """Nothing is held."""


def _send(connection: socket.socket, data: bytes) -> None:
    """One message: its length, then itself."""
    connection.sendall(LENGTH.pack(len(data)))
    connection.sendall(data)


def _receive(connection: socket.socket) -> bytearray:
    """One message; EOFError where the other side has ended."""
    (length,) = LENGTH.unpack(_read(connection, LENGTH.size))
    return _read(connection, length)


def _read(connection: socket.socket, length: int) -> bytearray:
    data = bytearray(length)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return data


def serve(handle: int) -> None:
    """The worker's process: answer until the run ends."""
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    host = Host()
    with socket.socket(fileno=handle) as connection:
        try:
            while True:
                _send(connection, host.answer(_receive(connection)))
        except (EOFError, OSError):
            return


def _end_with_the_run() -> None:
    while os.read(0, 1):
        pass
    os._exit(0)
