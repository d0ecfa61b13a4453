"""What the first call costs: CPU seconds of a fresh process with nothing compiled, for each method.

    python -m benchmarks.cold_start [--methods amax lp quad] [--functions]

Each method is called once (`muster.assign`, 3 agents and 4 tasks) in a process of its own whose NUMBA_CACHE_DIR is an
empty folder. `--functions` tells which kernels were compiled, and how long each took with all that it calls.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

FLOORS = {"amax": 5.0, "lp": 20.0, "quad": 45.0}
ONE_CALL = """
import resource, sys
import numpy as np
import muster
method, functions = sys.argv[1:]
told = []
if functions:
    from numba.core import event
    class Listener(event.Listener):
        def __init__(self):
            self.open = []
        def on_start(self, found):
            self.open.append((used(), str(found.data["dispatcher"].py_func.__qualname__)))
        def on_end(self, found):
            began, name = self.open.pop()
            told.append((used() - began, len(self.open), name))
    event.register("numba:compile", Listener())
def used():
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime
began = used()
rng = np.random.default_rng(0)
more = {"task_scores": rng.random((4, 4))} if method == "quad" else {}
muster.assign(rng.random((3, 4)), capacities=[1.0] * 4, method=method, **more)
print(f"{used():.1f} {used() - began:.1f}")
for seconds, depth, name in sorted(told, reverse=True)[:60]:
    print(f"    {seconds:6.2f} s  {'  ' * depth}{name}")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(FLOORS), choices=list(FLOORS))
    parser.add_argument("--functions", action="store_true", help="tell which kernels were compiled")
    asked = parser.parse_args()
    print("| method | CPU seconds of the process | of the call | wanted |\n|---|---|---|---|")
    for method in asked.methods:
        with tempfile.TemporaryDirectory() as empty:
            command = [sys.executable, "-c", ONE_CALL, method, "yes" if asked.functions else ""]
            found = subprocess.run(
                command, env=os.environ | {"NUMBA_CACHE_DIR": empty}, capture_output=True, text=True, check=False
            )
        if found.returncode:
            sys.exit(found.stderr)
        first, *functions = found.stdout.splitlines()
        process, call = first.split()
        print(f"| {method} | {process} | {call} | {FLOORS[method]:g} |", *functions, sep="\n", flush=True)


if __name__ == "__main__":
    main()
