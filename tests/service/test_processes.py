"""Several processes behind one port: shared out, counted, replaced, and ended together."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from muster.errors import InputError
from muster.policy.names import SHIPPED
from muster.service.server import share
from muster.service.settings import ServeSettings
from tests.service.test_server import NEEDS_PROC, POLICY, Service, children_of, read_answers, request, small_decision

pytestmark = NEEDS_PROC


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service("--processes", "2", "--grace", "0.2") as found:
        yield found


def metric(service: Service, name: str) -> float:
    with service.connect() as connection:
        connection.sendall(request("/metrics"))
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    lines = received.decode().splitlines()
    return float(next((line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")), 0.0))


def answered(service: Service) -> float:
    return metric(service, 'muster_requests_total{method="POST",path="/act",status="200"}')


def kill(service: Service, *processes: int) -> None:
    """Kill processes and wait for those that replace them."""
    before = children_of(service.process.pid)
    for process in processes:
        os.kill(process, signal.SIGKILL)
    end = time.monotonic() + 20
    while len(now := children_of(service.process.pid)) < len(before) or not set(processes).isdisjoint(now):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_all_processes_answer_and_all_that_is_answered_is_counted(service):
    before = answered(service)
    connections = [service.connect() for _ in range(8)]
    for connection in connections:
        for _ in range(3):
            connection.sendall(request("/act", small_decision(), close=False))
            read_answers(connection, 1)
    end = time.monotonic() + 10
    while (counted := answered(service) - before) < 24.0 and time.monotonic() < end:
        time.sleep(0.05)
    assert counted == 24.0
    for connection in connections:
        connection.close()


def test_a_process_that_dies_is_replaced_and_the_others_go_on(service):
    time.sleep(1.0)
    first, second = children_of(service.process.pid)
    assert metric(service, "muster_policies") == 2.0
    kill(service, first)
    assert second in children_of(service.process.pid)
    assert [service.ask("/act", small_decision())[0] for _ in range(4)] == [200] * 4
    assert any(re.search(r"process \d+ ended \(-9\)", line) for line in service.lines)
    time.sleep(1.0)  # twice as long as a process takes to write down its gauges
    assert metric(service, "muster_policies") == 2.0


def test_a_process_that_replaces_another_serves_the_policies_of_now(tmp_path):
    file = tmp_path / "mine.safetensors"
    shutil.copy(SHIPPED / f"{POLICY}.safetensors", file)
    with Service("--processes", "2", policy=str(file)) as service:

        def version() -> str:
            versions = {service.ask("/policies")[1]["policies"][0]["version"] for _ in range(6)}
            return versions.pop() if len(versions) == 1 else "several"

        def signal_and_kill(number: int, unlike: str) -> str:
            """The version after a signal to the first process and the death of all others."""
            os.kill(service.process.pid, number)
            end = time.monotonic() + 20
            while version() in ("several", unlike):
                assert time.monotonic() < end
                time.sleep(0.05)
            kill(service, *children_of(service.process.pid))
            return version()

        first = version()
        shutil.copy(SHIPPED / "rescue-2x4-lp-dm.safetensors", file)
        second = signal_and_kill(signal.SIGHUP, unlike=first)
        assert second not in ("several", first)
        assert signal_and_kill(signal.SIGUSR1, unlike=second) == first


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


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_end_leaves_no_files(processes, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    Service("--processes", processes).end()
    assert list(tmp_path.iterdir()) == []


def test_limits_are_shared_out():
    settings = ServeSettings(processes=2, threads=5, queue=7, connections=101)
    shared = share(settings)
    assert (shared.processes, shared.threads, shared.queue, shared.connections) == (1, 2, 3, 50)
    assert share(ServeSettings(queue=7, threads=3)) == ServeSettings(queue=7, threads=3)


@pytest.mark.parametrize("name", ["threads", "connections"])
def test_what_cannot_be_shared_out_is_refused(name):
    with pytest.raises(InputError, match=f"{name} must be at least processes"):
        ServeSettings(processes=3, **{name: 2})


def test_a_reload_over_http_answers_as_that_of_one_process(tmp_path):
    secret = tmp_path / "token"
    secret.write_text("s3cret")
    with Service("--processes", "2", "--token-file", str(secret)) as service:
        address, headers = f"http://127.0.0.1:{service.port}/admin/reload", {"Authorization": "Bearer s3cret"}
        refused = httpx.post(address, json={"rollback": True}, headers=headers)
        assert (refused.status_code, refused.json()["error"]) == (400, "rollback: nothing was reloaded yet")
        assert list(httpx.post(address, json={}, headers=headers).json()["policies"]) == [POLICY]
