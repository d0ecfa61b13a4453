"""Assignments a second: muster's LP and QUAD beside the solvers that a Python user would otherwise call.

Seconds are those of the processor, one thread, every instance from a cold start, unless a figure says otherwise; ratios
compare the same instances in the same run. A figure of ours is a whole call: checking the input, solving, rounding and
the certificate.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json as json_format
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.envs import machine, one_core
from benchmarks.inference_process import measure_in_child, measure_start, measure_threads
from benchmarks.inference_report import print_tables, targets
from benchmarks.instances import KINDS, REGIMES, as_problem, make_instances
from muster.assign import Solver, solve
from muster.data import Problem
from muster.parallel import thread_count

Row = dict[str, Any]

# Agents x tasks -> instances in a batch of ours, and instances that the peers solve too.
LP_COUNTS = {
    (2, 4): (4096, 30),
    (5, 10): (4096, 30),
    (15, 17): (1024, 20),
    (30, 34): (256, 10),
    (80, 82): (64, 8),
    (200, 200): (8, 2),
    (1000, 1000): (1, 1),
}
QUAD_COUNTS = {(2, 4): 512, (5, 10): 256, (15, 17): 128, (30, 34): 48, (80, 82): 16, (200, 200): 1}
PYTHON_QUAD_COUNTS = {(5, 10): 4, (15, 17): 3, (30, 34): 2, (80, 82): 2}
ENUMERATED = 30
AGREEMENT = 1e-6
LP_PEERS = ("glop", "highs", "scipy", "lap")
UNIT_ONLY = ("scipy", "lap")


def run(json: bool = False) -> None:
    """Assignments a second, beside GLOP, HiGHS, scipy and lap (extra `bench`).

    Args:
        json: print one JSON object.

    """
    began = time.perf_counter()
    found: dict[str, Any] = {"command": "python -m benchmarks inference", "machine": describe_machine(), "notes": []}
    with one_core():
        solve(as_problem(make_instances((2, 4), "unit", 1, kind="random")))
        found["lp"] = measure_lp(found["notes"])
        found["quad"] = [
            measure_quad(size, regime, kind)
            for size in QUAD_COUNTS
            for regime in (REGIMES if size[0] < 200 else ("hits",))
            for kind in KINDS
        ]
        found["python_quad"] = measure_python_quad(found["notes"])
        found["enumerated"] = [measure_gap(regime, kind) for regime in REGIMES for kind in KINDS]
    found["threads"] = [measure_threads(method) for method in ("lp", "quad")] if thread_count() > 1 else []
    found["large"] = measure_in_child("large_quad")
    found["start"] = measure_start()
    found["load_at_end"] = os.getloadavg()[0]
    found["seconds"] = time.perf_counter() - began
    found["targets"] = targets(found)
    if json:
        print(json_format.dumps(found, indent=1))
    else:
        print_tables(found)


def describe_machine() -> Row:
    """What the figures were measured on and with."""
    versions = {}
    for package in ("numpy", "ortools", "highspy", "scipy", "lap"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "description": machine(),
        "versions": versions,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "load": os.getloadavg()[0],
    }


def cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """Least processor time of the work."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def single_calls(solver: Solver, problems: list[Problem], repeats: int) -> float:
    """Processor seconds of a call, mean over the problems, best of the repeats of each."""
    return sum(cpu_seconds(lambda p=problem: solver(p), repeats) for problem in problems) / len(problems)  # type: ignore[misc]


def repeats_for(size: tuple[int, int]) -> int:
    """Enough for a steady figure, few for large instances."""
    return 20 if size[0] <= 30 else 5


def measure_lp(notes: list[str]) -> list[Row]:
    """LP of every size and regime, ours and the peers'."""
    rows, shared = [], []
    for size, (batch, count) in LP_COUNTS.items():
        for regime in REGIMES:
            arrays = make_instances(size, regime, batch)
            # The relaxation, rounded: what the peers solve, and no search after it.
            solver, repeats = Solver("lp", "paper"), repeats_for(size)
            row: Row = {"size": f"{size[0]}x{size[1]}", "regime": regime, "batch": batch, "compared": count}
            problem = as_problem(arrays)
            solution = solver(problem)
            row["batched"] = cpu_seconds(lambda p=problem, s=solver: s(p), repeats) / batch  # type: ignore[misc]
            row["single"] = single_calls(solver, [as_problem(arrays, k, k + 1) for k in range(count)], repeats)
            rows.append((row, solution.relaxed_objective[:count]))
            shared.append((arrays[0][:count], arrays[2][:count], arrays[3][:count], None, regime))
    for peer in LP_PEERS:
        chosen = [k for k, (*_, regime) in enumerate(shared) if peer not in UNIT_ONLY or regime == "unit"]
        answers = ask_peer(peer, [shared[k][:4] for k in chosen], notes)
        for k, answer in zip(chosen, answers, strict=False):
            row, objectives = rows[k]
            row[peer] = summarise_peer(answer, objectives)
            for name in ("solve", "total", "warm"):
                if name in row[peer]:
                    row[peer][f"{name}_ratio"] = row[peer][name] / row["single"]
    return [row for row, _ in rows]


def summarise_peer(answers: list[Row], objectives: Any) -> Row:
    """Mean times of a peer, and by how much its objectives differ from ours."""
    failed = [answer["failed"] for answer in answers if "failed" in answer]
    found: Row = {"failed": failed[0]} if failed else {}
    for name in ("solve", "total", "warm"):
        if all(name in answer for answer in answers):
            found[name] = sum(answer[name] for answer in answers) / len(answers)
    if not failed:
        pairs = zip(answers, objectives, strict=True)
        found["difference"] = float(max(abs(answer["objective"] - own) / max(abs(own), 1e-12) for answer, own in pairs))
        found["agrees"] = found["difference"] <= AGREEMENT
    return found


def ask_peer(peer: str, groups: list[Any], notes: list[str]) -> list[list[Row]]:
    """The peer's answers to groups of instances (h, mu, u, g); none, and a note, where it is not installed."""
    flat = [(h[k], mu[k], u[k], None if g is None else g[k]) for h, mu, u, g in groups for k in range(len(h))]
    named = {
        f"{name}{k}": array
        for k, arrays in enumerate(flat)
        for name, array in zip(("h", "mu", "u", "g"), arrays, strict=True)
        if array is not None
    }
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "instances.npz")
        np.savez(file, **named)
        command = [sys.executable, "-m", "benchmarks.inference_peers", peer, file]
        single = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=single)
    if done.returncode:
        notes.append(f"{peer} failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
        return []
    answers = json_format.loads(done.stdout.strip().splitlines()[-1])
    if isinstance(answers, dict):
        notes.append(f"{answers['skipped']}; install it with: pip install 'muster-rl[bench]'")
        return []
    rest = iter(answers)
    return [list(itertools.islice(rest, len(group[0]))) for group in groups]


def measure_quad(size: tuple[int, int], regime: str, kind: str) -> Row:
    """Mean objective and time of `paper` and `fast` on the same instances."""
    count = QUAD_COUNTS[size]
    problem = as_problem(make_instances(size, regime, count, seed=1, kind=kind))
    row: Row = {"size": f"{size[0]}x{size[1]}", "regime": regime, "kind": kind, "instances": count}
    for effort in ("paper", "fast"):
        solver = Solver("quad", effort)
        row[f"{effort}_objective"] = float(solver(problem).objective.mean())
        row[f"{effort}_seconds"] = cpu_seconds(lambda s=solver: s(problem), 3) / count  # type: ignore[misc]
    return row


def measure_python_quad(notes: list[str]) -> list[Row]:
    """`paper` against the same procedure in plain Python and GLOP, capacities in hits."""
    cases = [(size, kind) for size in PYTHON_QUAD_COUNTS for kind in KINDS]
    groups = [make_instances(size, "hits", PYTHON_QUAD_COUNTS[size], seed=1, kind=kind) for size, kind in cases]
    answers = ask_peer("python-quad", [(h, mu, u, g) for h, g, mu, u in groups], notes)
    rows = []
    for (size, kind), arrays, answer in zip(cases, groups, answers, strict=False):
        count = PYTHON_QUAD_COUNTS[size]
        solver = Solver("quad", "paper")
        problems = [as_problem(arrays, k, k + 1) for k in range(count)]
        own = [float(solver(problem).relaxed_objective[0]) for problem in problems]
        differences = [one["objective"] - mine for one, mine in zip(answer, own, strict=True)]
        row: Row = {"size": f"{size[0]}x{size[1]}", "kind": kind, "instances": count}
        row["single"] = single_calls(solver, problems, 5)
        for name in ("solve", "total", "steps"):
            row[name] = sum(one[name] for one in answer) / count
        row["ratio"] = row["total"] / row["single"]
        row["solve_ratio"] = row["solve"] / row["single"]
        row["difference"] = max(abs(d) / abs(mine) for d, mine in zip(differences, own, strict=True))
        row["agrees"] = row["difference"] <= AGREEMENT
        row["mean_objective"] = float(np.mean(own))
        row["python_mean_objective"] = sum(one["objective"] for one in answer) / count
        rows.append(row)
    return rows


def measure_gap(regime: str, kind: str) -> Row:
    """Mean relative gap at 5x10 between each effort and the best of all assignments."""
    n, m = 5, 10
    arrays = make_instances((n, m), regime, ENUMERATED, seed=2, kind=kind)
    h, g, mu, u = arrays
    assert g is not None
    plans = np.array(list(itertools.product(range(m + 1), repeat=n)))
    chosen = (plans[:, :, None] == np.arange(m)).astype(float)
    crowds = chosen.sum(1)
    best = np.zeros(ENUMERATED)
    for b in range(ENUMERATED):
        values = np.tensordot(chosen, h[b], 2) + ((crowds @ g[b]) * crowds).sum(1)
        loads = np.einsum("kij,ij->kj", chosen, mu[b])
        best[b] = values[(loads <= u[b] * (1 + 1e-9)).all(1)].max()
    row: Row = {"regime": regime, "kind": kind, "instances": ENUMERATED}
    for effort in ("paper", "fast", "best"):
        found = solve(as_problem(arrays), "quad", effort=effort).objective
        row[effort] = float(np.mean((best - found) / np.abs(best)))
    return row
