"""Public problems: how near muster comes within a time, beside the mixed-integer solvers that a Python user would call.

Every solver has one thread and the same wall time; one that proves its answer earlier is done. Gaps are to the best
known value, or to the best of this run where none is published.
"""

from __future__ import annotations

import json as json_format
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inference import describe_machine
from benchmarks.public_peers import PEERS
from benchmarks.public_report import markdown
from benchmarks.public_sets import (
    FOLDER,
    SMALL_SIZES,
    Public,
    diversity_problem,
    gap_problems,
    make_diversity,
    make_gap,
    small_problems,
)
from muster.assign import Solver
from muster.data import Problem
from muster.errors import InputError
from muster.storage import write_atomically

Row = dict[str, Any]

LIMITS = (0.1, 1.0, 10.0)
"""Seconds."""
DIVERSE = (500, 50)
"""Elements, and how many of them are chosen."""
DIVERSE_SEEDS = (0, 1)
DIVERSE_LIMITS = (1.0, 10.0, 60.0)
"""Seconds; the last is what the others are measured by."""
SMALL_SEEDS, SMALL_LIMIT = range(5), 60.0
PROVER = "HiGHS"
"""The peer that has as long as we have for a proof."""
PLAIN_SIZES = (50, 200, 1000)
"""Agents and tasks of plain assignment."""


def run(
    json: bool = False, limits: tuple[float, ...] = LIMITS, proof: float | None = None, record: Path | None = None
) -> None:
    """Problems that others made, beside HiGHS and other mixed-integer solvers.

    Args:
        json: print one JSON object.
        limits: seconds that each solver has for a problem.
        proof: seconds that effort exact and HiGHS have beside that, to prove their answers (60: half an hour more).
        record: JSON file to keep the results in, with a Markdown page beside it.

    """
    if not limits or min(limits) <= 0:
        raise InputError(f"limits must be positive numbers of seconds, got {limits}")
    if proof is not None and not proof > 0:
        raise InputError(f"proof must be a positive number of seconds, got {proof}")
    began = time.perf_counter()
    command = f"python -m benchmarks public --limits {' '.join(f'{limit:g}' for limit in limits)}"
    command += "" if proof is None else f" --proof {proof:g}"
    found: Row = {"command": command, "machine": describe_machine(), "notes": [], "limits": list(limits)}
    if not FOLDER.is_dir():
        found["notes"].append("There is no shared/public/gap beside the repository: types c, d, e are made here.")
    warm_up()
    found["small"] = [measure_small(machines, jobs) for machines, jobs in SMALL_SIZES]
    found["diversity"] = [measure_diversity(kind, seed) for kind in ("MDG-a", "GKD-c") for seed in DIVERSE_SEEDS]
    found["plain"] = [measure_plain(size) for size in PLAIN_SIZES]
    found["gap"] = measure_gap(gap_problems(), limits, proof, found["notes"])
    found["load_at_end"], found["seconds"] = os.getloadavg()[0], time.perf_counter() - began
    if record is not None:
        write_atomically(record, (json_format.dumps(found, indent=1) + "\n").encode())
        write_atomically(record.with_suffix(".md"), (markdown(found) + "\n").encode())
    if json:
        print(json_format.dumps(found, indent=1))
    else:
        print(markdown(found))


def warm_up() -> None:
    """Compile or load every kernel: that is not solving."""
    cost, use, capacity = make_gap("c", 5, 20, seed=1)
    for effort in ("fast", "best", "exact"):
        Solver("lp", effort, assign_all=True, threads=1)(Problem(cost[None], None, use[None], capacity[None]))
    Solver("quad", "best", threads=1, time_limit=0.01)(diversity_problem(make_diversity("MDG-a", 10, 0), 3))


def measure_gap(
    problems: Iterable[Public], limits: tuple[float, ...], proof: float | None, notes: list[str]
) -> list[Row]:
    """Generalised assignment: our efforts and the peers at each limit, then the two that have `proof` for a proof."""
    rows = []
    for public in problems:
        row: Row = {
            "name": public.name,
            "sense": public.sense,
            "known": public.best_known,
            "runs": [],
        }
        row["runs"].append({"solver": "muster fast", "limit": None, **own(public, "fast", None)})
        for limit in limits:
            row["runs"].append({"solver": "muster best", "limit": limit, **own(public, "best", limit)})
            row["runs"].append({"solver": "muster exact", "limit": limit, **own(public, "exact", limit)})
            row["runs"] += ask_peers(PEERS, public, limit, notes)
        if proof is not None and proof not in limits:
            row["runs"].append({"solver": "muster exact", "limit": proof, **own(public, "exact", proof)})
            row["runs"] += ask_peers((PROVER,), public, proof, notes)
        values = [run["value"] for run in row["runs"] if run["value"] is not None]
        if np.isnan(row["known"]) and values:
            row["known"] = max(values) if public.sense == "max" else min(values)
        for entry in row["runs"]:
            missing = entry["value"] is None
            entry["gap"] = None if missing else abs(entry["value"] - row["known"]) / abs(row["known"])
        rows.append(row)
    return rows


def own(public: Public, effort: Any, limit: float | None) -> Row:
    """Our answer in the problem's own numbers; None for a value that leaves a job out."""
    began, started = time.process_time(), time.perf_counter()
    solution = Solver("lp", effort, assign_all=True, threads=1, time_limit=limit)(public.problem)
    spent, taken = time.process_time() - began, time.perf_counter() - started
    whole = bool((solution.assignment >= 0).all())
    return {
        "value": public.in_own_numbers(float(solution.objective[0])) if whole else None,
        "bound": public.in_own_numbers(float(solution.bound[0])),
        "proven": whole and solution.status[0] == "optimal",
        "seconds": spent,
        "wall": taken,
    }


def ask_peers(names: Iterable[str], public: Public, limit: float, notes: list[str]) -> list[Row]:
    """The answers of those that are installed; a note of those that are not."""
    rows = []
    for name in names:
        answer = ask_peer(name, public, limit)
        if "skipped" not in answer:
            rows.append({"solver": name, "limit": limit, **answer})
        elif answer["skipped"] not in notes:
            notes.append(answer["skipped"])
    return rows


def measure_small(machines: int, jobs: int) -> Row:
    """Small ones of type c: how many are proven, and how long the longest proof takes."""
    runs = [own(public, "exact", SMALL_LIMIT) for public in small_problems(machines, jobs, SMALL_SEEDS)]
    seconds = [entry["seconds"] for entry in runs]
    return {
        "size": f"{machines}x{jobs}",
        "problems": len(runs),
        "proven": sum(entry["proven"] for entry in runs),
        "mean": float(np.mean(seconds)),
        "longest": max(seconds),
        "longest_wall": max(entry["wall"] for entry in runs),
    }


def ask_peer(name: str, public: Public, limit: float) -> Row:
    """A peer's answer likewise, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "instance.npz")
        np.savez(file, h=public.scores, mu=public.contributions, u=public.capacities)
        command = [sys.executable, "-m", "benchmarks.public_peers", name, file, str(limit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"skipped": f"{name} failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"}
    answer: Row = json_format.loads(done.stdout.strip().splitlines()[-1])
    if "skipped" in answer:
        return answer
    value, bound = answer["value"], answer["bound"]
    proven = value is not None and bound - value < 1.0 - 1e-6
    return {
        "value": None if value is None else round(public.in_own_numbers(value), 6),
        "bound": public.in_own_numbers(bound),
        "proven": proven,
        "seconds": answer["seconds"],
    }


def measure_diversity(kind: str, seed: int, limits: tuple[float, ...] = DIVERSE_LIMITS) -> Row:
    """Maximum diversity by QUAD: fast, and best at each limit; gaps are to the best of these."""
    problem = diversity_problem(make_diversity(kind, DIVERSE[0], seed), DIVERSE[1])
    row: Row = {"kind": kind, "seed": seed, "runs": []}
    for effort, limit in (("fast", None), *(("best", limit) for limit in limits)):
        began = time.process_time()
        solution = Solver("quad", effort, assign_all=True, threads=1, time_limit=limit)(problem)  # type: ignore[arg-type]
        spent = time.process_time() - began
        row["runs"].append({"effort": effort, "limit": limit, "value": float(solution.objective[0]), "seconds": spent})
    best = max(entry["value"] for entry in row["runs"])
    for entry in row["runs"]:
        entry["gap"] = (best - entry["value"]) / best
    return row


def measure_plain(size: int) -> Row:
    """Plain assignment, uniform costs: a call of ours beside scipy's and lap's, in processor seconds."""
    scores = np.random.default_rng(size).random((size, size))
    row: Row = {"size": size}
    began = time.process_time()
    solution = Solver("lp", "fast", assign_all=True, threads=1)(Problem(scores[None]))
    row["muster"], row["value"] = time.process_time() - began, float(solution.objective[0])
    try:
        from scipy.optimize import linear_sum_assignment

        began = time.process_time()
        agents, tasks = linear_sum_assignment(scores, maximize=True)
        row["scipy"] = time.process_time() - began
        row["agrees"] = bool(abs(scores[agents, tasks].sum() - row["value"]) < 1e-9 * size)
    except ImportError:
        row["scipy"] = None
    try:
        import lap

        began = time.process_time()
        lap.lapjv(-scores)
        row["lap"] = time.process_time() - began
    except ImportError:
        row["lap"] = None
    return row
