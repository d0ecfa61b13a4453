"""`python -m benchmarks marl`: muster beside MAPPO, IPPO and PPO of others, with equal CPU time and with equal samples.

Every run is a process of its own (`marl_run.py`), the peers' in an environment that has them and muster:

    python -m venv .venv-marl && .venv-marl/bin/pip install '.[outside]' stable-baselines3 benchmarl

or MUSTER_MARL names its python. Runs that the record has are not made again.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from muster.checkout import code_commit
from muster.errors import InputError

HERE = Path(__file__).resolve().parent
RECORD = HERE / "marl.json"
PEERS_PYTHON = ".venv-marl/bin/python"
SECONDS, SEEDS = 30, 3
PEERS = ("sb3", "mappo", "ippo")
FORAGING = "examples.outside.foraging:Foraging"
ENVS = {
    "rescue-2x4": ("rescue:2x4", "rescue:5x10", "5x10"),
    "rescue-5x10": ("rescue:5x10", "rescue:8x15", "8x15"),
    "foraging-3x3": (FORAGING, f"{FORAGING},n_agents=10,n_tasks=20", "10x20"),
}
"""Name -> environment to learn on, larger one to run without further learning, and size to pad to."""
NAMES = {
    "muster": "muster, equal CPU time",
    "muster-samples": "muster, equal samples",
    "mappo": "MAPPO (BenchMARL)",
    "ippo": "IPPO (BenchMARL)",
    "sb3": "PPO (Stable-Baselines3)",
}

Row = dict[str, Any]


def jobs(done: dict[str, Row]) -> Iterator[tuple[str, list[str]]]:
    """Name and arguments of every run; muster's with equal samples as soon as the peers' are there."""
    for place, (env, larger, pad) in ENVS.items():
        for seed in range(SEEDS):
            more = ["--seed", str(seed), "--larger", larger]
            for algorithm in (*PEERS, "muster"):
                yield f"{place}-{algorithm}-s{seed}", [algorithm, env, "--seconds", str(SECONDS), *more]
            if seed == 0:
                for algorithm in PEERS:
                    extra = ["--pad", pad, *more]
                    yield f"{place}-{algorithm}-padded-s0", [algorithm, env, "--seconds", str(SECONDS), *extra]
        made = [done[f"{place}-{a}-s{s}"]["steps"] for a in PEERS for s in range(SEEDS) if f"{place}-{a}-s{s}" in done]
        for seed in range(SEEDS if made else 0):
            steps = str(int(statistics.median(made)))
            more = ["--steps", steps, "--seed", str(seed), "--larger", larger]
            yield f"{place}-muster-samples-s{seed}", ["muster", env, *more]


def run(only: str = "*", markdown: bool = False) -> None:
    """Make the runs that the record lacks and whose names match, and print the table.

    Args:
        only: names of runs, such as 'rescue-2x4-*'; '' makes none.
        markdown: print the table as Markdown.

    """
    done: dict[str, Row] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name, arguments in list(jobs(done)):
        if name in done or not fnmatch(name, only):
            continue
        done = made(name, arguments)
    print("\n".join(report(done)))


def made(name: str, arguments: list[str]) -> dict[str, Row]:
    """Make a run; the record with it."""
    python = sys.executable if arguments[0] == "muster" else os.environ.get("MUSTER_MARL", PEERS_PYTHON)
    if not Path(python).exists():
        raise InputError(f"there is no {python}, which is to have the peers: see benchmarks/marl.py for how to make it")
    settings = os.environ | {"PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1", "MUSTER_NUM_THREADS": "1"}
    command = [python, str(HERE / "marl_run.py"), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=settings)
    if found.returncode:
        raise InputError(f"{name} failed: {found.stderr[-2000:]}")
    row = json.loads(found.stdout.splitlines()[-1])
    row |= {"command": shlex.join(["python", "benchmarks/marl_run.py", *arguments]), "commit": code_commit()}
    # Others may have added runs in the meantime.
    done: dict[str, Row] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    done = dict(sorted((done | {name: row}).items()))
    RECORD.write_text(
        "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(one)}" for key, one in done.items()) + "\n}\n"
    )
    print(f"{name}: {row['steps']:,} decisions, {show([row['final']])}", file=sys.stderr, flush=True)
    return done


def best(ways: dict[str, Any]) -> Row | None:
    """The better way of deciding, greedy or sampled; None where there is none."""
    ran = [one for one in ways.values() if "mean" in one]
    return min(ran, key=lambda one: one["mean"], default=None)


def show(ways: Sequence[dict[str, Any]]) -> str:
    """Mean over seeds of the better way of deciding, their range, and failures if there are any."""
    found = [one for one in map(best, ways) if one]
    if not found:
        return "cannot run"
    means = [one["mean"] for one in found]
    spread = f" ({min(means):.2f} to {max(means):.2f})" if len(means) > 1 else ""
    failed = statistics.mean(one["failed"] for one in found)
    return f"{statistics.mean(means):.2f}{spread}" + (f", {failed:.1%} fail" if failed else "")


def away(row: Row) -> dict[str, Any]:
    """What was found at the larger size, by way of deciding."""
    return {way: one for way, one in row["larger"].items() if way != "env"}


def report(done: dict[str, Row]) -> list[str]:
    """Tables of final figures and of curves."""
    lines = []
    for place, (env, larger, _) in ENVS.items():
        lines += ["", f"{env}: steps, mean of the seeds (range); then {larger} without further learning", ""]
        lines += [
            "| | seeds | decisions | CPU s | after 5, 10, 20 s | end | larger |",
            "|---|---:|---:|---:|---|---|---|",
        ]
        for algorithm, name in NAMES.items():
            for padded in ("", "-padded"):
                keys = [f"{place}-{algorithm}{padded}-s{seed}" for seed in range(SEEDS)]
                if not (rows := [done[key] for key in keys if key in done]):
                    continue
                cells = [f"{name}, padded" if padded else name, str(len(rows))]
                cells += [f"{statistics.median(row['steps'] for row in rows):,.0f}"]
                cells += [f"{statistics.median(row['seconds'] for row in rows):.0f}"]
                cells += [", ".join(at(rows, second) for second in (5, 10, 20))]
                cells += [show([row["final"] for row in rows]), show([away(row) for row in rows])]
                lines.append(f"| {' | '.join(cells)} |")
    return lines


def at(rows: list[Row], second: int) -> str:
    """Median of the curves at a CPU second."""
    found = [next((one["mean"] for one in row["curve"] if one["seconds"] >= second), None) for row in rows]
    there = [one for one in found if one is not None]
    return f"{statistics.median(there):.1f}" if len(there) == len(rows) else "–"
