"""Single calls of plain assignment (one agent a task) beside scipy and lap: CPU time, in turn, the quickest round."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import muster

SIZES = {10: 200, 50: 100, 200: 20, 1000: 3}
"""Size -> tables of it."""
Call = Callable[[NDArray[np.float64]], object]


def run(rounds: int = 5) -> None:
    """Print microseconds a call, and how many times as fast as scipy and lap muster is (extra `bench`).

    Args:
        rounds: how often each does all tables; the quickest counts.

    """
    import lap
    from scipy.optimize import linear_sum_assignment

    calls: dict[str, Call] = {
        "muster": lambda scores: muster.assign(scores, method="lp", assign_all=True),
        "scipy": lambda scores: linear_sum_assignment(scores, maximize=True),
        "lap": lambda scores: lap.lapjv(-scores),
    }
    print("| size | scores | muster, µs | scipy, µs | lap, µs | beside scipy | beside lap |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for size, count in SIZES.items():
        rng = np.random.default_rng(0)
        agents, tasks = rng.random((2, count, size, 2))
        away = np.linalg.norm(agents[:, :, None] - tasks[:, None], axis=-1)
        for kind, tables in (("normal", rng.normal(size=away.shape)), ("minus distance in a square", -away)):
            took = dict.fromkeys(calls, np.inf)
            for _ in range(rounds):
                for name, call in calls.items():
                    took[name] = min(took[name], seconds(call, tables))
            figures = " | ".join(f"{1e6 * value / count:,.0f}" for value in took.values())
            ratios = " | ".join(f"{took[peer] / took['muster']:.2f}" for peer in ("scipy", "lap"))
            print(f"| {size}x{size} | {kind} | {figures} | {ratios} |", flush=True)


def seconds(call: Call, tables: NDArray[np.float64]) -> float:
    """CPU seconds that a call for every table takes."""
    began = time.process_time()
    for table in tables:
        call(table)
    return time.process_time() - began
