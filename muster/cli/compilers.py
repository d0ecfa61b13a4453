"""Processes that compile the parts of `muster warmup` side by side.

What two parts share is compiled once: each part names those that it waits for, and finds their kernels kept. A process
is a fresh interpreter that reads names of parts from its standard input, and ends when that closes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from muster.errors import MusterError

BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from muster.cli.compilers import serve; from muster.cli.warmup import parts; serve(parts())"
)


class Part(NamedTuple):
    """Something that has kernels."""

    name: str
    use: Callable[[], object]
    """Compiles them."""
    after: tuple[str, ...] = ()
    """Parts with kernels that it calls or shares."""


class Queue:
    """Parts that wait to be compiled, for several threads to take from."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._waiting = list(parts)
        self._under_way = {part.name for part in parts}
        self._changed = threading.Condition()
        self.failures: list[Exception] = []

    def take(self) -> Part | None:
        """The first part that waits for nothing any more, once there is one; None if nothing is left to do."""
        with self._changed:
            while self._waiting and not self.failures:
                for part in self._waiting:
                    if self._under_way.isdisjoint(part.after):
                        self._waiting.remove(part)
                        return part
                self._changed.wait()
        return None

    def wait(self) -> None:
        """Until all is compiled or something has failed."""
        with self._changed:
            while self._under_way and not self.failures:
                # In turns, so that Ctrl-C is heard.
                self._changed.wait(0.5)

    def finish(self, part: Part, failure: Exception | None = None) -> None:
        """Note that a part is compiled, or why not: then nothing more is begun."""
        with self._changed:
            self._under_way.discard(part.name)
            if failure:
                self.failures.append(failure)
            self._changed.notify_all()


def compile_with(workers: int, parts: Sequence[Part], tell: Callable[[str, float], None]) -> None:
    """Compile all parts in so many processes; `tell` gets each name and its seconds when it is done."""
    queue, telling = Queue(parts), threading.Lock()

    def work(process: subprocess.Popen[str]) -> None:
        while part := queue.take():
            try:
                seconds = ask(process, part.name)
            except MusterError as failure:
                queue.finish(part, failure)
                return
            with telling:
                tell(part.name, seconds)
            queue.finish(part)

    processes = [start() for _ in range(workers)]
    threads = [threading.Thread(target=work, args=(process,), daemon=True) for process in processes]
    try:
        for thread in threads:
            thread.start()
        queue.wait()
    finally:
        # All is compiled, or something failed, or the user has had enough.
        for process in processes:
            process.kill()
            process.wait()
    for thread in threads:
        thread.join()
    if queue.failures:
        raise queue.failures[0]


def start() -> subprocess.Popen[str]:
    """A process that compiles what it is asked for."""
    path = json.dumps([os.path.abspath(entry) for entry in sys.path])
    command = [sys.executable, "-c", BOOT, path]
    quiet = os.environ | {"MUSTER_QUIET": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=quiet, start_new_session=True)


def ask(process: subprocess.Popen[str], name: str) -> float:
    """The seconds in which a process compiled a part; MusterError says what went wrong."""
    assert process.stdin is not None
    assert process.stdout is not None
    answer = ""
    try:
        print(json.dumps(name), file=process.stdin, flush=True)
        answer = process.stdout.readline()
    except BrokenPipeError:
        pass
    if not answer:
        code = process.wait()
        ending = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise MusterError(
            f"{name}: the process that compiled it {ending}; if memory is short, try muster warmup --workers 1"
        )
    found = json.loads(answer)
    if "failure" in found:
        raise MusterError(f"{name} could not be used: {found['failure']}")
    return float(found["seconds"])


def serve(parts: Iterable[Part]) -> None:
    """In the process: compile each part that is named on standard input, and answer how long it took."""
    uses = {part.name: part.use for part in parts}
    answers = os.fdopen(os.dup(1), "w")
    # Whatever the parts print is no answer.
    os.dup2(2, 1)
    for line in sys.stdin:
        began = time.perf_counter()
        try:
            uses[json.loads(line)]()
            answer: dict[str, float | str] = {"seconds": time.perf_counter() - began}
        except Exception as failure:
            answer = {"failure": f"{type(failure).__name__}: {failure}"}
        print(json.dumps(answer), file=answers, flush=True)
