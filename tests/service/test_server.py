"""The server as a process: slow clients, crowds, too much work, and its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from muster.cli import main

POLICY = "rescue-2x4-quad-dm"
SLOW = {"scores": [[1.0] * 40] * 40, "task_scores": [[0.1] * 40] * 40, "effort": "best", "time_limit": 0.4}
"""A problem that takes 0.4 s."""


class Service:
    """`muster serve` on a port of its own."""

    def __init__(self, *flags: str) -> None:
        command = [sys.executable, "-m", "muster", "serve", POLICY, "--port", "0", *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.lines: list[str] = []
        for line in self.process.stderr:
            if "policies at http" in line:
                self.port = int(line.strip().rpartition(":")[2])
                break
            self.lines.append(line)
        else:
            raise AssertionError("".join(self.lines))
        self._reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True)
        self._reader.start()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def ask(self, path: str = "/health", body: object = None) -> tuple[int, dict[str, object]]:
        with self.connect() as connection:
            connection.sendall(request(path, body))
            return answer(connection)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self._reader.join(10)


def request(path: str, body: object = None, close: bool = True) -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: localhost\r\n"
    head += "Connection: close\r\n" if close else ""
    head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def answer(connection: socket.socket) -> tuple[int, dict[str, object]]:
    """Status and body of an answer after which the connection is closed."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    found = Service(
        "--read-limit", "1", "--connections", "60", "--threads", "1", "--queue", "2", "--body-limit", "100000"
    )
    yield found
    found.end()


def test_headers_and_bodies_that_do_not_arrive_are_not_waited_for(service):
    with service.connect() as silent, service.connect() as halting, service.connect() as slow:
        halting.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        slow.sendall(request("/solve", SLOW)[:-10])
        began = time.perf_counter()
        for connection in (silent, halting, slow):
            status, found = answer(connection)
            assert (status, found["code"]) == (408, "slow_client")
        assert time.perf_counter() - began < 10


def test_what_is_no_http_gets_an_error_of_the_usual_shape(service):
    with service.connect() as connection:
        connection.sendall(b"hello\r\n\r\n")
        assert answer(connection) == (400, {"code": "input", "error": "this is no HTTP request", "where": ""})


def test_endless_headers_are_refused(service):
    with service.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\n" + b"X-Long: " + b"a" * 200_000)
        # Who goes on sending may lose the answer; the connection is closed all the same.
        with suppress(ConnectionResetError):
            assert answer(connection)[0] == 431


def test_oversize_bodies_are_refused_though_their_client_goes_on_sending(service):
    with service.connect() as connection:
        connection.sendall(request("/solve", {"scores": [[1.5] * 30_000] * 3}))
        status, found = answer(connection)
    assert (status, found["code"]) == (413, "too_large")


def test_a_crowd_that_says_nothing_keeps_nobody_out(service):
    crowd = [service.connect() for _ in range(100)]
    try:
        assert service.ask()[0] == 200
    finally:
        for connection in crowd:
            connection.close()


def test_under_full_load_health_answers_and_what_is_too_much_is_told_when_to_come_back(service):
    crowd = [service.connect() for _ in range(8)]
    for connection in crowd:
        connection.sendall(request("/solve", SLOW))
    time.sleep(0.1)
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        assert service.ask()[0] == 200
        seconds.append(time.perf_counter() - began)
    found = [answer(connection) for connection in crowd]
    assert sorted(status for status, _ in found) == [200] * 3 + [429] * 5
    # The promise is 50 ms on a machine of one's own; here others may be at work.
    assert min(seconds) < 0.2


def test_sigterm_in_the_middle_of_100_requests_loses_none():
    service = Service("--queue", "200")
    crowd = [service.connect() for _ in range(100)]
    body = SLOW | {"time_limit": 0.02}
    for connection in crowd:
        connection.sendall(request("/solve", body, close=False))
    os.kill(service.process.pid, signal.SIGTERM)
    statuses = [answer(connection)[0] for connection in crowd]
    assert statuses == [200] * 100
    service.process.wait(30)
    service._reader.join(10)
    logged = [line for line in service.lines if "path=/solve status=200" in line]
    assert len(logged) == 100
    assert not any("Traceback" in line for line in service.lines)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["no-such-policy"], "no learned policy 'no-such-policy'"),
        (["--token-file", "/no/such/file"], "cannot read the token file"),
        (["--port", "70000"], "port must be between 0 and 65535"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid"),
    ],
)
def test_wrong_arguments_get_one_sentence(flags, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["serve", POLICY, *flags])
    said = capsys.readouterr().err
    assert words in said
    assert len(said.strip().splitlines()) == 1


def test_a_port_in_use_gets_one_sentence(service, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["serve", POLICY, "--port", str(service.port)])
    assert f"cannot listen on port {service.port} of 127.0.0.1" in capsys.readouterr().err


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(SystemExit, match="2"):
        main(["serve"])
    assert "pip install 'muster-rl[serve]'" in capsys.readouterr().err
