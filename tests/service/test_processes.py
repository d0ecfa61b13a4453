"""Several processes behind one port: shared out, counted, replaced, and ended together."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.errors import InputError
from muster.service.board import Board, merged
from muster.service.run import share
from muster.service.settings import ServeSettings
from tests.service.test_server import NEEDS_PROC, Service, children_of, read_answers, request, small_decision

pytestmark = NEEDS_PROC


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    found = Service("--processes", "2", "--grace", "0.2")
    yield found
    if found.process.poll() is None:
        found.end()


def metrics_of(service: Service) -> dict[str, float]:
    with service.connect() as connection:
        connection.sendall(request("/metrics"))
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    lines = received.partition(b"\r\n\r\n")[2].decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def acts(found: dict[str, float]) -> list[float]:
    names = [f'muster_requests_total{{method="POST",path="/act",status="200",process="{k}"}}' for k in range(2)]
    return [found.get(name, 0.0) for name in names]


def test_connections_are_shared_out_and_all_that_is_answered_is_counted(service):
    before = acts(metrics_of(service))
    crowd = [service.connect() for _ in range(8)]
    for connection in crowd:
        for _ in range(3):
            connection.sendall(request("/act", small_decision(), close=False))
            read_answers(connection, 1)
    time.sleep(1.2)
    found = metrics_of(service)
    # The connection that asks is one of theirs too.
    assert sorted(found[f'muster_connections{{process="{k}"}}'] for k in range(2)) == [4.0, 5.0]
    assert [now - then for now, then in zip(acts(found), before, strict=True)] == [12.0, 12.0]
    for connection in crowd:
        connection.close()


def test_a_process_that_dies_is_replaced_and_the_others_go_on(service):
    time.sleep(1.0)
    first, second = children_of(service.process.pid)
    os.kill(first, signal.SIGKILL)
    end = time.monotonic() + 10
    while len(children := children_of(service.process.pid)) < 2 or first in children:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert second in children
    assert [service.ask("/act", small_decision())[0] for _ in range(4)] == [200] * 4
    assert any(re.search(r"process \d ended \(-9\)", line) for line in service.lines)


def test_processes_end_when_the_first_is_killed(service):
    children = children_of(service.process.pid)
    assert len(children) == 2
    service.process.kill()
    service.process.wait(10)
    end = time.monotonic() + 10
    while any(_lives(child) for child in children):
        assert time.monotonic() < end
        time.sleep(0.05)


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_limits_are_shared_out():
    settings = ServeSettings(processes=2, threads=5, queue=7, connections=101)
    shared = share(settings)
    assert (shared.processes, shared.threads, shared.queue, shared.connections) == (1, 2, 3, 50)
    assert share(ServeSettings(queue=7, threads=3)) == ServeSettings(queue=7, threads=3)


@pytest.mark.parametrize("name", ["threads", "connections"])
def test_what_cannot_be_shared_out_is_refused(name):
    with pytest.raises(InputError, match=f"{name} must be at least processes"):
        ServeSettings(processes=3, **{name: 2})


def test_metrics_of_several_processes_are_told_apart():
    text = b'# HELP a A.\n# TYPE a counter\na{b="c"} 1.0\na{b="d"} 2.0\n# HELP e E.\n# TYPE e gauge\ne 3.0\n'
    board = Board(2)
    board.write(0, text)
    board.write(1, b"x" * 5000)
    board.write(1, text.replace(b"3.0", b"4.0"))
    found = merged({k: board.read(k) for k in range(2)}).decode()
    assert found == (
        "# HELP a A.\n# TYPE a counter\n"
        'a{b="c",process="0"} 1.0\na{b="d",process="0"} 2.0\na{b="c",process="1"} 1.0\na{b="d",process="1"} 2.0\n'
        '# HELP e E.\n# TYPE e gauge\ne{process="0"} 3.0\ne{process="1"} 4.0\n'
    )
    board.forget(0)
    assert board.read(0) == b""
