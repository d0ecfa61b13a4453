"""Requests that no user would write, at length: bodies that schemathesis makes of the OpenAPI document, and what comes
of them when they are damaged. None may be answered with a 5xx other than the documented 503, with a status or a shape
that the document does not have, or later than the time limit; memory must stay flat.

    python -m benchmarks.service_fuzz [--requests 50000] [--bodies 1500] [--seed 0]
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import random
import subprocess
import sys
import threading
import time
import urllib.request

import schemathesis
from hypothesis import HealthCheck, given, seed, settings

POLICIES = ("rescue-2x4-quad-dm", "battle-w15v17-quad-dm", "fleet-24-lp-dm")
PATHS = ("/solve", "/check", "/act")
ODD = [
    "NaN",
    "-Infinity",
    "1e400",
    "-1e99",
    "1e-320",
    '"3.5"',
    "true",
    "null",
    "[]",
    "{}",
    "9" * 400,
    '"\\u0000"',
    "0.1",
]
LIMIT = 10.0


def bodies_of(document: dict, path: str, count: int, number: int) -> list[str]:
    """Bodies that the document allows, and as many that it forbids."""
    operation = schemathesis.openapi.from_dict(document)[path]["POST"]
    found: list[str] = []
    for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):

        @seed(number)
        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        def keep(case):
            try:
                found.append(json.dumps(case.body))
            except TypeError:
                return

        keep()
    return found


def whole_bodies(path: str, policies: list[dict], rng: random.Random, count: int) -> list[str]:
    """Bodies that can be answered: what a document cannot say is that all rows must be of one length."""
    return [json.dumps(whole_body(path, rng.choice(policies), rng)) for _ in range(count)]


def whole_body(path: str, policy: dict, rng: random.Random) -> dict:
    n, m = rng.randrange(0, 9), rng.randrange(1, 9)

    def rows(height: int, width: int) -> list[list[float]]:
        return [[round(rng.gauss(0, 1), 3) for _ in range(width)] for _ in range(height)]

    if path == "/act":
        names = policy["feature_names"]
        situation = {
            "agents": {name: rows(1, n)[0] for name in names["agent"]},
            "tasks": [{name: rng.random() for name in names["task"]} for _ in range(m)],
            "pairs": {name: rows(n, m) for name in names["pair"]},
            "task_pairs": {name: rows(m, m) for name in names["task_pair"]},
            "global": {name: rng.random() for name in names["global"]},
        }
        if policy["card"]["corrects_prior"]:
            situation["prior"] = rows(n, m)
        return {"policy": policy["name"], "situation": situation, "scores": rng.random() < 0.5}
    body = {"scores": rows(n, m), "method": rng.choice(("amax", "lp", "quad", "routes")), "effort": "fast"}
    optional = {
        "task_scores": rows(m, m),
        "capacities": [rng.choice((0, 1, 2.5, None)) for _ in range(m)],
        "allowed": [[rng.random() < 0.8 for _ in range(m)] for _ in range(n)],
        "agents": [f"a{k}" for k in range(n)],
        "tasks": [f"t{k}" for k in range(m)],
        "assign_all": True,
    }
    if path == "/solve":
        optional |= {"previous": [rng.choice((None, rng.randrange(m))) for _ in range(n)], "explain": True}
    else:
        body["assignment"] = [rng.choice((None, rng.randrange(m))) for _ in range(n)]
    return body | {name: value for name, value in optional.items() if rng.random() < 0.3}


def damaged(text: str, rng: random.Random) -> str:
    """The body as it is, or with something odd in it."""
    kind = rng.randrange(6)
    if kind == 0 or len(text) < 4:
        return text
    at = rng.randrange(len(text))
    if kind == 1:
        return text[:at]
    if kind == 2:
        return text[:at] + rng.choice('[]{}",:0e-\\') + text[at + 1 :]
    digits = [k for k, letter in enumerate(text) if letter.isdigit()]
    if kind in (3, 4) and digits:
        at = rng.choice(digits)
        return text[:at] + rng.choice(ODD) + text[at + 1 :]
    return text[:-1] + ', "' + rng.choice(("scores", "policy", "x", "method")) + '": ' + rng.choice(ODD) + "}"


async def client(
    port: int, jobs: list[tuple[str, bytes]], described: dict, counts: collections.Counter, slow: list
) -> None:
    reader = writer = None
    while jobs:
        path, body = jobs.pop()
        if writer is None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        began = time.perf_counter()
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        top = await reader.readuntil(b"\r\n\r\n")
        length = int(top.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        answer = json.loads(await reader.readexactly(length))
        slow.append(time.perf_counter() - began)
        status = top[9:12].decode()
        counts[path, status] += 1
        if status not in described[path] or status == "500":
            print("NOT DOCUMENTED", path, status, body[:300], answer)
        if status != "200" and answer.keys() != {"code", "error", "where"}:
            print("OTHER SHAPE", path, status, body[:300], answer)
        if b"connection: close" in top.lower():
            writer = None


def resident(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith("VmRSS"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--bodies", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "muster", "serve", *POLICIES, "--port", "0", "--time-limit", str(LIMIT)]
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        port = next(int(line.strip().rpartition(":")[2]) for line in service.stderr if "policies at" in line)
        traces: list[str] = []
        reading = (traces.append(line) for line in service.stderr if "Traceback" in line or "failed" in line)
        threading.Thread(target=lambda: list(reading), daemon=True).start()
        with urllib.request.urlopen(f"http://localhost:{port}/openapi.json") as answer:
            document = json.load(answer)
        described = {path: document["paths"][path]["post"]["responses"] for path in PATHS}
        rng = random.Random(arguments.seed)
        made = [(path, body) for path in PATHS for body in bodies_of(document, path, arguments.bodies, arguments.seed)]
        with urllib.request.urlopen(f"http://localhost:{port}/policies") as answer:
            policies = json.load(answer)["policies"]
        made += [(path, body) for path in PATHS for body in whole_bodies(path, policies, rng, 2 * arguments.bodies)]
        print(f"{len(made)} bodies made")
        counts: collections.Counter = collections.Counter()
        times: list[float] = []
        share = max(1, arguments.requests // 10)
        for part in range(10):
            jobs = []
            for _ in range(share):
                path, body = rng.choice(made)
                jobs.append((path, damaged(body, rng).encode(errors="replace")))

            async def crowd(jobs=jobs) -> None:
                await asyncio.gather(*(client(port, jobs, described, counts, times) for _ in range(8)))

            asyncio.run(crowd())
            print(f"{(part + 1) * share} requests, {resident(service.pid)} MB, slowest {max(times):.2f} s", flush=True)
        for (path, status), count in sorted(counts.items()):
            print(path, status, count)
        print(f"over the time limit: {sum(one > LIMIT + 0.5 for one in times)}; tracebacks in the log: {len(traces)}")
    finally:
        service.terminate()
        service.wait()


if __name__ == "__main__":
    main()
