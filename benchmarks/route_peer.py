"""OR-Tools' routing on instances of `python -m benchmarks routes`, in its own process (not HiGHS's).

`python -m benchmarks.route_peer FILE SECONDS` reads an npz of costs and prints a line of JSON for each instance.
Seconds are those of the processor, so that other work on the machine takes nothing from it.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from muster.data import Floats

# Routing works on integers; the longest arc becomes about this.
UNITS = 100_000
# What a unit of the longest route counts for beside a unit of the total. This and the first solution are what found
# most on the first instances of 50 and 200 cities: of 10 to 10,000, and of cheapest arc, insertions and savings.
SPAN = 10_000


def solve(first: Floats, follow: Floats, last: Floats | None, seconds: float) -> dict[str, Any]:
    """The longest route of the plan that guided local search finds in so many seconds of the processor."""
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    n, m = first.shape
    # Nodes: tasks, then where each agent starts, then where each ends.
    cost = np.zeros((m + 2 * n, m + 2 * n))
    cost[:m, :m] = follow
    cost[m : m + n, :m] = first
    if last is not None:
        cost[:m, m + n :] = last.T
    whole = np.rint(cost * (UNITS / cost.max())).astype(np.int64).tolist()
    manager = pywrapcp.RoutingIndexManager(m + 2 * n, n, list(range(m, m + n)), list(range(m + n, m + 2 * n)))
    routing = pywrapcp.RoutingModel(manager)
    arcs = routing.RegisterTransitMatrix(whole)
    routing.SetArcCostEvaluatorOfAllVehicles(arcs)
    routing.AddDimension(arcs, 0, UNITS * (m + 1), True, "length")
    routing.GetDimensionOrDie("length").SetGlobalSpanCostCoefficient(SPAN)
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.LOCAL_CHEAPEST_INSERTION
    parameters.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    # Its own limit is one of wall time, and it wants one; the custom limit comes first.
    parameters.time_limit.FromSeconds(max(1, round(100 * seconds)))
    began = time.process_time()
    routing.AddSearchMonitor(routing.solver().CustomLimit(lambda: time.process_time() - began > seconds))
    found = routing.SolveWithParameters(parameters)
    spent = time.process_time() - began
    if found is None:
        return {"makespan": None, "seconds": spent}
    lengths = []
    for i in range(n):
        at, length = routing.Start(i), 0.0
        while not routing.IsEnd(at):
            to = found.Value(routing.NextVar(at))
            length += cost[manager.IndexToNode(at), manager.IndexToNode(to)]
            at = to
        lengths.append(length)
    return {"makespan": float(max(lengths)), "seconds": spent}


def main(file: str, seconds: str) -> None:
    """Solve the instances of the file one by one."""
    try:
        import ortools
    except ImportError as error:
        print(json.dumps({"skipped": f"OR-Tools skipped: {error}"}))
        return
    with np.load(file) as data:
        for k in range(sum(name.startswith("first") for name in data)):
            answer = solve(data[f"first{k}"], data[f"follow{k}"], data.get(f"last{k}"), float(seconds))
            print(json.dumps(answer | {"version": ortools.__version__}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
