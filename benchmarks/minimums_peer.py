"""CP-SAT on instances of `python -m benchmarks minimums`, in its own process (not HiGHS's).

`python minimums_peer.py FILE SECONDS` reads an npz of instances and prints a line of JSON for each; it needs OR-Tools
and numpy only, so that it can run in an environment of its own.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

# CP-SAT works on integers: scores have this many parts.
UNITS = 1000


def solve(h: Any, use: Any, capacity: Any, minimums: Any, seconds: float) -> dict[str, Any]:
    """The objective, bound, status and wall time of one worker."""
    from ortools.sat.python import cp_model

    n, m = h.shape
    model = cp_model.CpModel()
    takes = {(i, j): model.new_bool_var("") for i in range(n) for j in range(m) if h[i, j] > -np.inf}
    for i in range(n):
        model.add_at_most_one(takes[i, j] for j in range(m) if (i, j) in takes)
    for j in range(m):
        load = [int(use[i, j]) * takes[i, j] for i in range(n) if (i, j) in takes]
        if minimums[j] > 0:
            opened = model.new_bool_var("")
            model.add(sum(load) >= int(minimums[j]) * opened)
            for i in range(n):
                if (i, j) in takes:
                    model.add_implication(takes[i, j], opened)
        if np.isfinite(capacity[j]):
            model.add(sum(load) <= int(capacity[j]))
    model.maximize(sum(round(UNITS * h[pair]) * variable for pair, variable in takes.items()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    began = time.perf_counter()
    status = solver.solve(model)
    took = time.perf_counter() - began
    objective = solver.objective_value / UNITS
    return {"objective": objective, "optimal": solver.status_name(status) == "OPTIMAL", "seconds": took}


def main() -> None:
    """Solve all instances of the file."""
    with np.load(sys.argv[1]) as arrays:
        for k in range(len([name for name in arrays if name.startswith("h")])):
            h, use, capacity, minimums = (arrays[f"{name}{k}"] for name in ("h", "use", "capacity", "minimums"))
            print(json.dumps(solve(h, use, capacity, minimums, float(sys.argv[2]))), flush=True)


if __name__ == "__main__":
    main()
