"""`muster serve` under load, one run on one machine: what benchmarks/service.md records.

    python -m benchmarks service [--seconds 5] [--clients 16]
    python -m benchmarks service --before CHECKOUT --seconds 1.5     # beside an older version that has its own .venv

The service and the clients share the machine. The clients are one lean process (`service_client.py`): closed loops,
each of which sends its next request when it has its answer, and then, for /act, an open loop at a stated rate.
OR-Tools (extra `bench`) solves the same problem in a process of its own, without HTTP or JSON around it.

The long run against the OpenAPI document is schemathesis's own command:

    muster serve --port 8901 &
    st run http://localhost:8901/openapi.json --include-path-regex '^/(solve|check|act|policies|metrics)$' \
        --phases examples,coverage,fuzzing -n 17500 --max-response-time 10 --seed 16 --checks not_a_server_error,\
status_code_conformance,content_type_conformance,response_schema_conformance,negative_data_rejection,unsupported_method
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import IO, NamedTuple

import numpy as np

from muster.envs.registry import make
from muster.policy.names import resolve
from muster.service.policies import serve_policies

CLIENT = Path(__file__).with_name("service_client.py")
RESCUE, BATTLE = "rescue-2x4-quad-dm", "battle-w15v17-quad-dm"
ORTOOLS = """
import sys, time, json
import numpy as np
from ortools.graph.python import min_cost_flow
h = np.random.default_rng(0).random((40, 120)).round(4)
n, m = h.shape
ones = lambda k: np.ones(k, np.int64)
tails = np.concatenate([np.zeros(n, np.int64), np.repeat(1 + np.arange(n), m), 1 + n + np.arange(m)])
heads = np.concatenate([1 + np.arange(n), np.tile(1 + n + np.arange(m), n), np.full(m, 1 + n + m)])
costs = np.concatenate([np.zeros(n, np.int64), -(h.ravel() * 10000).round().astype(np.int64), np.zeros(m, np.int64)])
times = []
while sum(times) < float(sys.argv[1]):
    began = time.perf_counter()
    flow = min_cost_flow.SimpleMinCostFlow()
    flow.add_arcs_with_capacity_and_unit_cost(tails, heads, ones(len(tails)), costs)
    flow.set_node_supply(0, n)
    flow.set_node_supply(1 + n + m, -n)
    assert flow.solve() == flow.OPTIMAL
    times.append(time.perf_counter() - began)
print(json.dumps({"times": times, "value": -flow.optimal_cost() / 10000}))
"""


class Load(NamedTuple):
    """What the clients do."""

    seconds: float
    clients: int
    rate: float
    pid: int
    """Of the service's first process."""


def run(
    seconds: float = 5.0,
    clients: int = 16,
    processes: int = 2,
    rate: float = 400.0,
    acts_only: bool = False,
    before: Path | None = None,
) -> None:
    """`muster serve` under load: requests a second and latencies, beside OR-Tools (extra `bench`).

    Args:
        seconds: of every row.
        clients: that ask at once.
        processes: of the service.
        rate: requests a second of the open loop.
        acts_only: leave out what is measured beside other loads.
        before: checkout of an older version; its CPU time a request and ours are measured in turn, and nothing else.

    """
    if before is not None:
        compare(before / ".venv" / "bin" / "python", seconds, clients)
        return
    with serving(sys.executable, "--processes", str(processes)) as (port, pid):
        measure(port, Load(seconds, clients, rate, pid), acts_only)


@contextmanager
def serving(python: str | Path, *flags: str) -> Iterator[tuple[int, int]]:
    """Port and process id of a service. Its log goes to a file: a reader would take processor time."""
    command = [python, "-m", "muster", "serve", RESCUE, BATTLE, "--port", "0", *flags]
    with TemporaryFile("w+") as log:
        # Elsewhere, since modules are looked for in the working directory first.
        service = subprocess.Popen(command, stderr=log, cwd=gettempdir())
        try:
            yield port_of(service, log), service.pid
        finally:
            service.terminate()
            service.wait()


def compare(older: Path, seconds: float, clients: int) -> None:
    """CPU time a request of one process of two versions, in three turns; the ratio is that of the least."""
    scores = np.random.default_rng(0).random((200, 200)).round(4).tolist()
    requests = {"/solve, 200x200, lp": post("/solve", {"scores": scores, "method": "lp"}), **act_requests()}
    print("| | before, ms | now, ms | ratio |\n|---|---|---|---|")
    with serving(older) as before, serving(sys.executable) as now:
        for name, request in requests.items():
            for port, _ in (before, now):
                ask(port, request, clients, 0.5)
            turns = [
                [cpu_ms(port, request, Load(seconds, clients, 0.0, pid))[1] for port, pid in (before, now)]
                for _ in range(3)
            ]
            shown = [", ".join(f"{ms:.2f}" for ms in version) for version in zip(*turns, strict=True)]
            least = [min(version) for version in zip(*turns, strict=True)]
            print(f"| {name} | {shown[0]} | {shown[1]} | {least[1] / least[0]:.2f} |", flush=True)


def port_of(service: subprocess.Popen[bytes], log: IO[str]) -> int:
    """Where the service listens, once it does."""
    while service.poll() is None:
        log.seek(0)
        for line in log.read().splitlines():
            if "policies at" in line:
                return int(line.rpartition(":")[2])
        time.sleep(0.1)
    log.seek(0)
    raise SystemExit(f"the service ended: {log.read()[-500:]}")


def measure(port: int, load: Load, acts_only: bool) -> None:
    clients, seconds = load.clients, load.seconds
    rng = np.random.default_rng(0)
    small, large = (
        {"scores": rng.random(shape).round(4).tolist(), "method": "lp"} for shape in ((40, 120), (500, 500))
    )
    solves = {"40x120": post("/solve", small), "500x500": post("/solve", large)}
    acts = act_requests()
    print(f"| {clients} clients | requests/s | p50, ms | p99, ms | CPU of the service, ms |\n|---|---|---|---|---|")
    for name, request in {"/solve, 40x120, lp": solves["40x120"], **acts, "/health": HEALTH}.items():
        ask(port, request, clients, 0.5)
        under_load(name, port, request, load)
    for name, request in acts.items():
        under_load(f"{name}, {load.rate:g} a second whatever is answered", port, request, load, load.rate)
    if acts_only:
        return
    found = subprocess.run([sys.executable, "-c", ORTOOLS, str(seconds)], capture_output=True, text=True, check=False)
    if found.returncode == 0:
        row("OR-Tools min-cost flow, 40x120, in process, one thread", json.loads(found.stdout)["times"], seconds)
    else:
        print("OR-Tools is not installed (extra bench)", file=sys.stderr)
    for name, request in solves.items():
        probe = probing(port, seconds)
        ask(port, request, clients, seconds)
        row(f"/health, one client, beside {clients} that solve {name}", json.loads(probe.communicate()[0]), seconds)
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(1000)]
    times = json.loads(probing(port, seconds).communicate()[0])
    row("/health, one client, beside 1,000 silent connections", times, seconds)
    for connection in silent:
        connection.close()


def act_requests() -> dict[str, bytes]:
    return {
        "/act, rescue 8x15": post("/act", situation(RESCUE, "rescue:8x15")),
        "/act, battle w15v17": post("/act", situation(BATTLE, "battle:w15v17")),
    }


def under_load(name: str, port: int, request: bytes, load: Load, rate: float = 0.0) -> None:
    """A row of the table: what the clients saw, and what the service used of the processors."""
    times, ms = cpu_ms(port, request, load, rate)
    row(name, times, load.seconds, f"{ms:.2f}")


def cpu_ms(port: int, request: bytes, load: Load, rate: float = 0.0) -> tuple[list[float], float]:
    """Seconds from each request to its answer, and the service's CPU time a request."""
    began = cpu_seconds(load.pid)
    times = ask(port, request, load.clients, load.seconds, rate)
    return times, 1e3 * (cpu_seconds(load.pid) - began) / len(times)


def probing(port: int, seconds: float) -> subprocess.Popen[str]:
    """A process of its own that asks for /health: the others' clients must not delay it."""
    return started(port, HEALTH, 1, seconds, pause=0.01)


def row(name: str, times: list[float], seconds: float, cpu: str = "") -> None:
    ms = 1e3 * np.array(times)
    figures = (f"{len(ms) / seconds:.0f}", f"{np.percentile(ms, 50):.2f}", f"{np.percentile(ms, 99):.2f}", cpu)
    print(f"| {' | '.join((name, *figures))} |", flush=True)


def cpu_seconds(pid: int) -> float:
    """What the processes of the service have used of the processors so far."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = [Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split() for process in (pid, *children)]
    return sum(int(fields[11]) + int(fields[12]) for fields in found) / os.sysconf("SC_CLK_TCK")


HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(path: str, body: object) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def ask(port: int, request: bytes, clients: int, seconds: float, rate: float = 0.0) -> list[float]:
    """Seconds from each request to its answer."""
    found = started(port, request, clients, seconds, rate=rate).communicate()[0]
    times: list[float] = json.loads(found)
    return times


def started(
    port: int, request: bytes, clients: int, seconds: float, pause: float = 0.0, rate: float = 0.0
) -> subprocess.Popen[str]:
    """A process of clients that ask from now on."""
    named = {"clients": clients, "seconds": seconds, "pause": pause, "rate": rate}
    flags = [f"--{name}={value}" for name, value in named.items()]
    process = subprocess.Popen(
        [sys.executable, CLIENT, str(port), *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(request.decode())
    process.stdin.close()
    process.stdin = None
    return process


def situation(policy: str, env: str) -> dict[str, object]:
    """The first state of an episode, as columns of features."""
    batch_env = make(env)
    resolve(policy, batch_env)
    seen, names = batch_env.observe(), serve_policies((policy,))[policy].features

    def plain(block: np.ndarray) -> list[object]:
        return block.astype(float).round(4).tolist()

    return {
        "policy": policy,
        "situation": {
            "agents": {name: plain(seen.agent_features[0, :, k]) for k, name in enumerate(names.agent)},
            "tasks": {name: plain(seen.task_features[0, :, k]) for k, name in enumerate(names.task)},
            "pairs": {name: plain(seen.pair_features[0, :, :, k]) for k, name in enumerate(names.pair)},
            "task_pairs": {name: plain(seen.task_pair_features[0, :, :, k]) for k, name in enumerate(names.task_pair)},
            "capacities": plain(seen.capacities[0]),
            "contributions": plain(seen.contributions[0]),
        },
    }
