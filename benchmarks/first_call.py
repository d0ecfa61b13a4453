"""What a fresh process waits for: importing muster, first solves, the service; and the memory of one that solves."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request

SOLVE = """
import numpy as np
import muster
rng = np.random.default_rng(0)
muster.assign(rng.normal(size=(5, 10)), rng.normal(size=(10, 10)) if {quad} else None, method="{method}")
"""
WORK = {
    "start of Python": "",
    "import numpy": "import numpy",
    "import muster": "import muster",
    "first LP, 5x10": SOLVE.format(method="lp", quad=False),
    "first QUAD, 5x10": SOLVE.format(method="quad", quad=True),
}
PORT = 18642


def run(rounds: int = 5, serve: bool = True) -> None:
    """Print seconds and memory of fresh processes.

    Args:
        rounds: how often each is started; the median counts.
        serve: also wait until `muster serve` answers (extra `serve`).

    """
    print("| fresh process | wall s | CPU s | memory, MB |")
    print("|---|---:|---:|---:|")
    for name, code in WORK.items():
        found = [measure([sys.executable, "-c", code]) for _ in range(rounds)]
        wall, cpu, memory = (statistics.median(values) for values in zip(*found, strict=True))
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {memory:.0f} |", flush=True)
    if serve:
        print(
            f"| `muster serve` until it answers | {statistics.median(until_ready() for _ in range(rounds)):.2f} | | |"
        )


def measure(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and the most megabytes of a process, from its start to its end."""
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def until_ready() -> float:
    """Wall seconds from the start of `muster serve` to its first answer."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "muster", "serve", "--port", str(PORT)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1).close()
                    return time.perf_counter() - began
                except (urllib.error.URLError, OSError):
                    time.sleep(0.01)
            raise SystemExit("muster serve ended by itself")
        finally:
            process.terminate()
