"""Several processes behind one port, since one interpreter works on one request at a time.

The first process accepts connections and hands each to the process with the fewest; it answers none itself. What it
warmed, policies and compiled kernels, is there in the others, which begin as copies of it (fork). A process that dies
is replaced. To stop, it tells all of them that the end is near, goes on handing out connections for as long as the
grace lasts, then closes the port and the ways to the others: they finish what they have, and end.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from muster.errors import InputError
from muster.service.board import Board

CONNECTION, STOPPING = b"c", b"s"
"""What the first process tells another: here is a connection; readiness ends."""
YOUNG = 1.0
"""Seconds: a process that dies before is not replaced, since the next would do the same."""
Work = Callable[[int, socket.socket], None]
"""What a process does: its number, and its end of the way from the first."""


@dataclass
class Child:
    """Another process, as the first knows it."""

    number: int
    id: int
    way: socket.socket
    began: float
    given: int = 0
    """Connections handed to it."""


class Doorkeeper:
    """The first process."""

    def __init__(self, listener: socket.socket, board: Board, grace: float, work: Work) -> None:
        self._listener = listener
        self._board = board
        self._grace = grace
        self._work = work
        self._children: list[Child] = []
        self._signal = 0
        self._bell, self._rope = socket.socketpair()

    def run(self, announce: Callable[[], None]) -> None:
        """Start the others, announce, and hand out connections until a signal comes; then wait for their end."""
        if threading.active_count() > 1:
            raise AssertionError("processes are copied before threads are started")
        for number in range(self._board.processes):
            self._start(number)
        before = {kind: signal.signal(kind, self._hear) for kind in (signal.SIGTERM, signal.SIGINT)}
        self._rope.setblocking(False)
        signal.set_wakeup_fd(self._rope.fileno())
        try:
            self._listener.listen(2048)
            self._listener.setblocking(False)
            announce()
            self._hand_out()
            self._stop()
        finally:
            signal.set_wakeup_fd(-1)
            for kind, handler in before.items():
                signal.signal(kind, handler)
        signal.raise_signal(self._signal)

    def _hear(self, number: int, _frame: object) -> None:
        if self._signal:
            # Who asks twice does not want to wait.
            for child in self._children:
                with suppress(ProcessLookupError):
                    os.kill(child.id, signal.SIGKILL)
        self._signal = number

    def _start(self, number: int) -> None:
        near, far = socket.socketpair()
        self._board.forget(number)
        sys.stderr.flush()
        id_ = os.fork()
        if id_ == 0:
            self._be_child(number, near, far)
        far.close()
        near.setblocking(False)
        self._children.append(Child(number, id_, near, time.monotonic()))
        self._children.sort(key=lambda child: child.number)

    def _be_child(self, number: int, near: socket.socket, far: socket.socket) -> NoReturn:
        """Work, and never come back from here: what the first process goes on to do is not for this one."""
        status = 1
        try:
            # The ways of others, held open here, would hide from them that the first process has died.
            for mine in (near, self._listener, self._bell, self._rope, *(child.way for child in self._children)):
                mine.close()
            signal.set_wakeup_fd(-1)
            # The first process says when to stop, also if a terminal or a supervisor signals all of them.
            for kind in (signal.SIGTERM, signal.SIGINT):
                signal.signal(kind, signal.SIG_IGN)
            self._work(number, far)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _hand_out(self, until: float = float("inf")) -> None:
        """Hand out connections until a signal comes, or until a time of `time.monotonic`."""
        with selectors.DefaultSelector() as watched:
            for file in (self._listener, self._bell, *(child.way for child in self._children)):
                watched.register(file, selectors.EVENT_READ)
            while time.monotonic() < until and (until < float("inf") or not self._signal):
                patience = None if until == float("inf") else max(0.0, until - time.monotonic())
                for key, _ in watched.select(patience):
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.fileobj is self._bell:
                        self._bell.recv(4096)
                    else:
                        watched.unregister(key.fileobj)
                        self._replace(key.fileobj, watched)

    def _accept(self) -> None:
        """Hand on all who are waiting at the port."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                # No room for more open files: those that are open end some time.
                print(f"muster: cannot accept a connection: {error.strerror}", file=sys.stderr, flush=True)
                time.sleep(0.05)
                return
            with connection:
                for child in sorted(self._children, key=self._open):
                    try:
                        socket.send_fds(child.way, [CONNECTION], [connection.fileno()])
                    except OSError:
                        # It is dying, or has not taken in the last few hundred.
                        continue
                    child.given += 1
                    break

    def _open(self, child: Child) -> int:
        return child.given - int(self._board.closed[child.number])

    def _replace(self, way: object, watched: selectors.BaseSelector) -> None:
        """A process has closed its end: it is dead."""
        child = next(child for child in self._children if child.way is way)
        self._children.remove(child)
        child.way.close()
        _, status = os.waitpid(child.id, 0)
        if self._signal:
            return
        code = os.waitstatus_to_exitcode(status)
        print(f"muster: process {child.number} ended ({code})", file=sys.stderr, flush=True)
        if time.monotonic() - child.began < YOUNG:
            self._signal = signal.SIGTERM
            raise InputError(f"process {child.number} of the service ended at once; try --processes 1")
        self._start(child.number)
        watched.register(self._children[child.number].way, selectors.EVENT_READ)

    def _stop(self) -> None:
        for child in self._children:
            with suppress(OSError):
                child.way.send(STOPPING)
        self._hand_out(until=time.monotonic() + self._grace)
        self._accept()
        self._listener.close()
        for child in self._children:
            child.way.close()
        for child in self._children:
            os.waitpid(child.id, 0)
