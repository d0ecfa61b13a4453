"""Other solvers on the same instances, each in a process of its own: OR-Tools and highspy cannot share one.

`python -m benchmarks.inference_peers NAME INSTANCES.npz` prints a JSON list with a row for each instance:
objective and processor seconds. The file holds h0, mu0, u0 (and g0) of the first instance, h1 … of the next.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from muster.data import Floats

Row = dict[str, Any]

# The limits at which the original stops Frank-Wolfe, as in core/assign/quad/frank_wolfe.cpp.
STEPS = 600
GAP_TOLERANCE = 1e-5
STEP_TOLERANCE = 1e-4
# Seconds that HiGHS gets for one linear programme.
HIGHS_LIMIT = 40.0
# Costs change by this share of their spread before a warm start.
CHANGE = 0.01


def sparse_rows(mu: Floats) -> Any:
    """The constraint matrix over b_00, b_01, …: a row per agent, then a row per task."""
    csr_matrix = package("scipy.sparse").csr_matrix
    n, m = mu.shape
    columns = np.arange(n * m)
    agents, tasks = np.divmod(columns, m)
    return csr_matrix(
        (
            np.concatenate([np.ones(n * m), mu.ravel()]),
            (np.concatenate([agents, n + tasks]), np.concatenate([columns, columns])),
        ),
        shape=(n + m, n * m),
    )


def package(name: str) -> Any:
    """A peer's module: their type stubs are none, or wrong."""
    return import_module(name)


def build_glop(h: Floats, matrix: Any, limits: Floats) -> Any:
    """The linear programme in OR-Tools' model builder, by its fastest interface."""
    model_builder = package("ortools.linear_solver.python.model_builder")
    model = model_builder.Model()
    model.helper.fill_model_from_sparse_data(
        np.zeros(h.size), np.ones(h.size), h.ravel(), np.full(limits.size, -np.inf), limits, matrix
    )
    model.helper.set_maximize(True)
    return model


def glop(h: Floats, mu: Floats, u: Floats, g: Floats | None = None) -> Row:
    """OR-Tools' GLOP: the solve call alone, and with building the model."""
    del g
    model_builder = package("ortools.linear_solver.python.model_builder")
    began = time.process_time()
    model = build_glop(h, sparse_rows(mu), np.concatenate([np.ones(h.shape[0]), u]))
    solver = model_builder.Solver("glop")
    built = time.process_time()
    status = solver.solve(model)
    done = time.process_time()
    if status != model_builder.SolveStatus.OPTIMAL:
        return {"failed": str(status)}
    return {"objective": solver.objective_value, "solve": done - built, "total": done - began}


def highs(h: Floats, mu: Floats, u: Floats, g: Floats | None = None) -> Row:
    """HiGHS as it comes, one thread: cold, with and without building, and warm after a small change of the costs."""
    highspy = package("highspy")
    del g
    n, m = h.shape
    began = time.process_time()
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n * m, n + m
    lp.col_cost_ = h.ravel()
    lp.col_lower_, lp.col_upper_ = np.zeros(n * m), np.ones(n * m)
    lp.row_lower_, lp.row_upper_ = np.full(n + m, -np.inf), np.concatenate([np.ones(n), u])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = 2 * np.arange(n * m + 1)
    agents, tasks = np.divmod(np.arange(n * m), m)
    lp.a_matrix_.index_ = np.stack([agents, n + tasks], axis=1).ravel()
    lp.a_matrix_.value_ = np.stack([np.ones(n * m), mu.ravel()], axis=1).ravel()
    lp.sense_ = highspy.ObjSense.kMaximize
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("time_limit", HIGHS_LIMIT)):
        solver.setOptionValue(option, value)
    solver.passModel(lp)
    built = time.process_time()
    solver.run()
    done = time.process_time()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return {"failed": f"no answer in {HIGHS_LIMIT:.0f} s", "solve": done - built, "total": done - began}
    row = {"objective": solver.getObjectiveValue(), "solve": done - built, "total": done - began}
    if n * m <= 100_000:
        changed = h.ravel() + CHANGE * h.std() * np.random.default_rng(0).normal(size=h.size)
        solver.changeColsCost(h.size, np.arange(h.size, dtype=np.int32), changed)
        warm = time.process_time()
        solver.run()
        row["warm"] = time.process_time() - warm
    return row


def scipy(h: Floats, mu: Floats, u: Floats, g: Floats | None = None) -> Row:
    """SciPy's linear_sum_assignment; only for contribution 1 and capacity 1, and no more agents than tasks."""
    linear_sum_assignment = package("scipy.optimize").linear_sum_assignment
    del mu, u, g
    # A pair that is worth less than nothing stands for an agent left out.
    worth = np.maximum(h, 0.0)
    began = time.process_time()
    agents, tasks = linear_sum_assignment(worth, maximize=True)
    done = time.process_time() - began
    return {"objective": float(worth[agents, tasks].sum()), "solve": done, "total": done}


def lap(h: Floats, mu: Floats, u: Floats, g: Floats | None = None) -> Row:
    """Jonker and Volgenant's algorithm in lap; only for contribution 1 and capacity 1."""
    lapjv = package("lap").lapjv
    del mu, u, g
    cost = -np.maximum(h, 0.0)
    began = time.process_time()
    value = lapjv(cost, extend_cost=True)[0]
    done = time.process_time() - began
    return {"objective": -float(value), "solve": done, "total": done}


def python_quad(h: Floats, mu: Floats, u: Floats, g: Floats | None = None) -> Row:
    """Pairwise Frank-Wolfe for h·b + c'gc in numpy, GLOP for the vertices, then the rounding: a plain version."""
    model_builder = package("ortools.linear_solver.python.model_builder")
    assert g is not None
    began, inside = time.process_time(), 0.0
    n, m = h.shape
    model = build_glop(h, sparse_rows(mu), np.concatenate([np.ones(n), u]))
    variables = model.get_variables()
    scale = max(np.abs(h).max(), np.abs(g).max())

    def best_vertex(scores: Floats) -> Floats:
        nonlocal inside
        model.helper.set_objective_coefficients(np.arange(n * m, dtype=np.int32), scores.ravel())
        solver = model_builder.Solver("glop")
        start = time.process_time()
        solver.solve(model)
        inside += time.process_time() - start
        return np.asarray(solver.values(variables)).reshape(n, m)

    point = best_vertex(h)
    vertices, weights = [point], [1.0]
    steps = 0
    for steps in range(STEPS + 1):
        gradient = h + (g + g.T) @ point.sum(0)
        vertex = best_vertex(gradient)
        gap = (gradient * (vertex - point)).sum()
        if gap <= GAP_TOLERANCE * scale or steps == STEPS:
            break
        towards = next((k for k, v in enumerate(vertices) if np.array_equal(v, vertex)), len(vertices))
        if towards == len(vertices):
            vertices.append(vertex)
            weights.append(0.0)
        away = min((k for k in range(len(vertices)) if weights[k] > 0), key=lambda k: (gradient * vertices[k]).sum())
        direction = vertex - vertices[away]
        change = direction.sum(0)
        bend = change @ g @ change
        step = weights[away]
        if bend < 0:
            step = min(step, -(gradient * direction).sum() / (2 * bend))
        point = point + step * direction
        weights[towards] += step
        weights[away] -= step
        if step < STEP_TOLERANCE:
            break
    crowd = point.sum(0)
    relaxed = float((h * point).sum() + crowd @ g @ crowd)
    assignment = round_greedily(point, mu, u)
    placed = assignment >= 0
    crowd = np.bincount(assignment[placed], minlength=m).astype(float)
    objective = float(h[placed, assignment[placed]].sum() + crowd @ g @ crowd)
    done = time.process_time()
    return {"objective": relaxed, "rounded": objective, "steps": steps, "solve": inside, "total": done - began}


def round_greedily(point: Floats, mu: Floats, u: Floats) -> Any:
    """Agents by decreasing largest relaxed value take their largest task that has capacity left."""
    assignment, left = np.full(len(point), -1), u * (1 + 1e-11)
    for i in np.argsort(-point.max(1), kind="stable"):
        for j in np.argsort(-point[i], kind="stable"):
            if point[i, j] <= 1e-9:
                break
            if mu[i, j] <= left[j]:
                assignment[i] = j
                left[j] -= mu[i, j]
                break
    return assignment


PEERS: dict[str, Callable[..., Row]] = {
    "glop": glop,
    "highs": highs,
    "scipy": scipy,
    "lap": lap,
    "python-quad": python_quad,
}


def read_instances(file: str) -> Iterator[tuple[Floats, Floats, Floats, Floats | None]]:
    """The instances of a file, one by one."""
    with np.load(file) as data:
        for k in range(sum(name.startswith("h") for name in data)):
            yield data[f"h{k}"], data[f"mu{k}"], data[f"u{k}"], data.get(f"g{k}")


def main(name: str, file: str) -> None:
    """Solve every instance of the file and print what was found."""
    solve = PEERS[name]
    # The first call of anything is slow; it is not counted.
    try:
        solve(np.eye(2), np.ones((2, 2)), np.ones(2), np.zeros((2, 2)))
    except ImportError as error:
        print(json.dumps({"skipped": f"{name} skipped: {error}"}))
        return
    print(json.dumps([solve(h, mu, u, g) for h, mu, u, g in read_instances(file)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
