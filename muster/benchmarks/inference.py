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
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from muster.benchmarks.envs import machine, one_core
from muster.benchmarks.inference_report import print_tables
from muster.benchmarks.instances import KINDS, REGIMES, as_problem, make_instances
from muster.data import Problem
from muster.inference import Solver, solve
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
LARGE = (1000, 1000)


def run(json: bool) -> None:
    """Measure everything in one go and print it."""
    began = time.perf_counter()
    found: dict[str, Any] = {"command": "muster bench inference", "machine": describe_machine(), "notes": []}
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
    found["floors"] = floors(found)
    if json:
        print(json_format.dumps(found, indent=1))
    else:
        print_tables(found)


def describe_machine() -> Row:
    """What the figures were measured on and with."""
    versions = {}
    for package in ("numpy", "numba", "ortools", "highspy", "scipy", "lap"):
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
            solver, repeats = Solver("lp"), repeats_for(size)
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
        command = [sys.executable, "-m", "muster.benchmarks.inference_peers", peer, file]
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


def measure_threads(method: str) -> Row:
    """Wall time of 1,024 instances of 15x17 on one thread and on two, alternating; the best of each.

    Beside it what two threads gain a plain loop, since other work on the machine may take the second core away.
    """
    problem = as_problem(make_instances((15, 17), "hits", 1024, seed=3, kind="random"))
    wall, cpu = {1: np.inf, 2: np.inf}, {1: np.inf, 2: np.inf}
    for _ in range(40):
        for threads in wall:
            solver = Solver(method, threads=threads)  # type: ignore[arg-type]
            began, spent = time.perf_counter(), time.process_time()
            solver(problem)
            wall[threads] = min(wall[threads], time.perf_counter() - began)
            cpu[threads] = min(cpu[threads], time.process_time() - spent)
    return {
        "control": plain_loop_gain(),
        "method": method,
        "one": wall[1],
        "two": wall[2],
        "ratio": wall[1] / wall[2],
        "cpu_one": cpu[1],
        "cpu_two": cpu[2],
        "load": os.getloadavg()[0],
    }


def plain_loop_gain() -> float:
    """How many times faster two threads are than one at work that shares nothing, in wall time, best of each."""

    def sines(rounds: int) -> None:
        values = np.linspace(0.0, 1.0, 20_000)
        for _ in range(rounds):
            np.sin(values, out=values)

    def halves() -> None:
        helper = threading.Thread(target=sines, args=(100,))
        helper.start()
        sines(100)
        helper.join()

    best = [np.inf, np.inf]
    for _ in range(20):
        for k, work in enumerate((lambda: sines(200), halves)):
            began = time.perf_counter()
            work()
            best[k] = min(best[k], time.perf_counter() - began)
    return best[0] / best[1]


def large_quad() -> Row:
    """Time of one 1000x1000 QUAD `fast` of each kind, and the peak memory of the process, interpreter included."""
    import resource

    solve(as_problem(make_instances((2, 4), "unit", 1, kind="random")))
    rows = []
    for kind in KINDS:
        problem = as_problem(make_instances(LARGE, "hits", 1, kind=kind))
        began = time.process_time()
        objective = float(solve(problem).objective[0])
        rows.append({"kind": kind, "seconds": time.process_time() - began, "objective": objective})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"size": f"{LARGE[0]}x{LARGE[1]}", "kinds": rows, "peak_bytes": peak}


def measure_in_child(function: str) -> Row:
    """What a function of this module finds in a process of its own."""
    code = f"import json; from muster.benchmarks import inference; print(json.dumps(inference.{function}()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: Row = json_format.loads(done.stdout)
    return found


def measure_start() -> Row:
    """Wall seconds of a bare interpreter, `import muster`, `muster --help` and `muster solve` of a small file."""
    command = "from muster.cli import main; main()"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problem.json"
        file.write_text('{"scores": [[3, 2], [2.5, 0.5]]}', encoding="utf-8")
        started = {
            "python": ["-c", ""],
            "import": ["-c", "import muster"],
            "help": ["-c", command, "--help"],
            "solve": ["-c", command, "solve", str(file)],
        }
        return {name: best_wall([sys.executable, *arguments]) for name, arguments in started.items()}


def best_wall(command: list[str]) -> float:
    """Least wall time of a command, of five runs after a first."""
    times = []
    for _ in range(6):
        began = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        times.append(time.perf_counter() - began)
    return min(times[1:])


def floors(found: dict[str, Any]) -> list[Row]:
    """Each promise with its figure; a promise whose peer is missing has none."""
    lp = {(row["size"], row["regime"]): row for row in found["lp"]}
    listed: list[Row] = []

    def add(promise: str, figure: float | None, met: bool, shown: str, remark: str = "") -> None:
        if figure is not None:
            listed.append({"promise": promise, "figure": figure, "shown": shown, "met": met, "remark": remark})

    for size, regime, peer, part, least, words in (
        ("80x82", "hits", "glop", "solve", 40, "GLOP's solve call alone"),
        ("80x82", "hits", "highs", "total", 100, "HiGHS with building"),
        ("80x82", "pair", "highs", "total", 30, "HiGHS with building"),
        ("1000x1000", "hits", "glop", "solve", 50, "GLOP's solve call alone"),
    ):
        ratio = lp[size, regime].get(peer, {}).get(f"{part}_ratio")
        if ratio is not None:
            add(f"LP {size} {regime} ≥ {least} times {words}", ratio, ratio >= least, f"{ratio:.0f} times")
    for regime in REGIMES:
        value = lp["5x10", regime]["batched"]
        add(f"LP 5x10 {regime} batched < 3 µs an instance", value, value < 3e-6, f"{1e6 * value:.2f} µs")

    quad = found["quad"]
    short = [r for r in quad if r["fast_objective"] < r["paper_objective"] - 1e-9 * abs(r["paper_objective"])]
    remark = ", ".join(f"{r['size']} {r['regime']} {r['kind']}" for r in short)
    add("QUAD fast ≥ paper on average", len(short), not short, f"{len(quad) - len(short)} of {len(quad)} cases", remark)
    at_80 = [row for row in quad if row["size"] == "80x82"]
    slow = [row for row in at_80 if row["fast_seconds"] > row["paper_seconds"]]
    remark = ", ".join(
        f"{row['regime']} {row['kind']} {1e3 * row['fast_seconds']:.2f} against {1e3 * row['paper_seconds']:.2f} ms"
        for row in slow
    )
    shown = f"{len(at_80) - len(slow)} of {len(at_80)} cases"
    add("QUAD fast never slower than paper at 80x82", len(slow), not slow, shown, remark and f"slower: {remark}")
    gap = float(np.mean([row["fast"] for row in found["enumerated"]]))
    above = [row for row in found["enumerated"] if row["fast"] > 0.005]
    remark = ", ".join(f"{row['regime']} {row['kind']} {100 * row['fast']:.2f} %" for row in above)
    promise, shown = "QUAD fast 5x10 mean gap to brute force ≤ 0.5 %", f"{100 * gap:.2f} %"
    add(promise, gap, gap <= 0.005, shown, remark and f"mean of all; above it: {remark}")
    python = [row for row in found["python_quad"] if row["size"] == "80x82"]
    if python:
        least_ratio = min(row["ratio"] for row in python)
        each = ", ".join(f"{row['kind']} {row['ratio']:.0f}" for row in python)
        promise = "QUAD paper 80x82 ≥ 100 times Python + GLOP"
        add(promise, least_ratio, least_ratio >= 100, f"{least_ratio:.0f} times at least", each)
    slowest = max(row["seconds"] for row in found["large"]["kinds"])
    add("QUAD fast 1000x1000 ≤ 5 s", slowest, slowest <= 5, f"{slowest:.2f} s", "slowest kind, hits")
    peak = found["large"]["peak_bytes"]
    add("QUAD fast 1000x1000 ≤ 1 GB", peak, peak <= 1e9, f"{peak / 1e6:.0f} MB", "whole process")
    for row in found["threads"]:
        promise = f"two threads ≥ 1.6 times one, {row['method']}, 1,024 of 15x17"
        extra = 100 * (row["cpu_two"] / row["cpu_one"] - 1)
        remark = f"load average {row['load']:.1f}; a plain loop gains {row['control']:.2f} times from two threads"
        if row["control"] < 1.6:
            remark += ", so the second core was busy and this says nothing"
        remark += f"; {extra:+.0f} % processor time"
        add(promise, row["ratio"], row["ratio"] >= 1.6, f"{row['ratio']:.2f} times", remark)
    for name, most in (("import", 0.5), ("help", 0.5), ("solve", 2.0)):
        words = {"import": "import muster", "help": "muster --help", "solve": "muster solve, cached kernels"}[name]
        value = found["start"][name]
        add(f"{words} < {most} s", value, value < most, f"{value:.2f} s", "wall time, interpreter included")
    return listed
