"""Mixed-integer solvers on generalised assignment, each in a process of its own.

`python -m benchmarks.public_peers NAME INSTANCE.npz SECONDS` prints one JSON object: the value of the best
assignment of all agents, the bound, and processor seconds; or what is wrong under "skipped".
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from muster.data import Floats

Row = dict[str, Any]


def highs(h: Floats, mu: Floats, u: Floats, seconds: float) -> Row:
    """HiGHS's branch and cut, one thread."""
    highspy = import_module("highspy")
    n, m = h.shape
    pairs = n * m
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = pairs, n + m
    model.col_cost_, model.col_lower_, model.col_upper_ = h.ravel(), np.zeros(pairs), np.ones(pairs)
    model.row_lower_ = np.concatenate([np.ones(n), np.full(m, -np.inf)])
    model.row_upper_ = np.concatenate([np.ones(n), u])
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = 2 * np.arange(pairs + 1)
    agents, tasks = np.divmod(np.arange(pairs), m)
    model.a_matrix_.index_ = np.stack([agents, n + tasks], axis=1).ravel()
    model.a_matrix_.value_ = np.stack([np.ones(pairs), mu.ravel()], axis=1).ravel()
    model.integrality_ = [highspy.HighsVarType.kInteger] * pairs
    model.sense_ = highspy.ObjSense.kMaximize
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0), ("time_limit", seconds)):
        solver.setOptionValue(option, value)
    solver.passModel(model)
    solver.run()
    info = solver.getInfo()
    found = info.primal_solution_status == 2
    return {"value": info.objective_function_value if found else None, "bound": info.mip_dual_bound}


def cp_sat(h: Floats, mu: Floats, u: Floats, seconds: float) -> Row:
    """OR-Tools' CP-SAT, one worker; the numbers are whole."""
    cp_model = import_module("ortools.sat.python.cp_model")
    n, m = h.shape
    model = cp_model.CpModel()
    x = [[model.new_bool_var("") for _ in range(m)] for _ in range(n)]
    for i in range(n):
        model.add_exactly_one(x[i])
    for j in range(m):
        model.add(sum(int(mu[i, j]) * x[i][j] for i in range(n)) <= int(u[j]))
    model.maximize(sum(int(h[i, j]) * x[i][j] for i in range(n) for j in range(m)))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = seconds, 1
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return {"value": solver.objective_value if found else None, "bound": solver.best_objective_bound}


def scip(h: Floats, mu: Floats, u: Floats, seconds: float) -> Row:
    """SCIP by way of PySCIPOpt."""
    pyscipopt = import_module("pyscipopt")
    n, m = h.shape
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("limits/time", seconds)
    x = [[model.addVar(vtype="B", obj=float(h[i, j])) for j in range(m)] for i in range(n)]
    for i in range(n):
        model.addCons(pyscipopt.quicksum(x[i]) == 1)
    for j in range(m):
        model.addCons(pyscipopt.quicksum(float(mu[i, j]) * x[i][j] for i in range(n)) <= float(u[j]))
    model.setMaximize()
    model.optimize()
    return {"value": model.getObjVal() if model.getNSols() else None, "bound": model.getDualbound()}


PEERS: dict[str, Callable[[Floats, Floats, Floats, float], Row]] = {"HiGHS": highs, "CP-SAT": cp_sat, "SCIP": scip}


def main(name: str, file: str, seconds: str) -> None:
    """Solve the instance of the file and print what was found."""
    with np.load(file) as data:
        h, mu, u = data["h"], data["mu"], data["u"]
    began = time.process_time()
    try:
        found = PEERS[name](h, mu, u, float(seconds))
    except ImportError as error:
        print(json.dumps({"skipped": f"{name} is left out: {error}"}))
        return
    print(json.dumps({**found, "seconds": time.process_time() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
