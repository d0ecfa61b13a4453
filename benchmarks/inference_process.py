"""What inference takes of the machine: threads, memory of the largest instance, time to start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.instances import KINDS, as_problem, make_instances
from muster.assign import Solver, solve

Row = dict[str, Any]

LARGE = (1000, 1000)


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
    code = f"import json; from benchmarks import inference_process as own; print(json.dumps(own.{function}()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: Row = json.loads(done.stdout)
    return found


def measure_start() -> Row:
    """Wall seconds of a bare interpreter, `import muster`, `muster --help` and `muster solve` of a small file."""
    command = "from muster.cli.main import main; main()"
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
