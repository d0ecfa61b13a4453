"""Tasks that need several agents: LP with minimums beside CP-SAT, and random small instances beside enumeration."""

from __future__ import annotations

import itertools
import json as json_format
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from muster.assign import Effort, Solver
from muster.data import Floats, Problem
from muster.errors import InputError

Instance = tuple[Floats, Floats, Floats, Floats]
"""Scores, contributions, capacities, minimums."""

EFFORTS: tuple[tuple[Effort, float | None], ...] = (("fast", None), ("best", 1.0), ("exact", 20.0))


def field_service(rng: np.random.Generator, n: int, m: int) -> Instance:
    """A fifth of the jobs needs exactly two technicians, whose skills allow half the pairs; profit less travel."""
    h = rng.uniform(1.0, 10.0, (1, m)) * rng.uniform(0.5, 1.0, (n, m)) - rng.uniform(0.0, 3.0, (n, m))
    h = np.where(rng.random((n, m)) < 0.5, h.round(3), -np.inf)
    needed = np.where(rng.random(m) < 0.2, 2.0, 1.0)
    return h, np.ones((n, m)), needed, np.where(needed == 2.0, 2.0, 0.0)


def foraging(rng: np.random.Generator, n: int, m: int) -> Instance:
    """Food needs the sum of the agents' levels, which are 1 to 3; what it gives less the way, on a grid of 10."""
    level = rng.integers(1, 4, n).astype(np.float64)
    most = int(np.sort(level)[-3:].sum())
    food = rng.integers(1, most + 1, m).astype(np.float64)
    way = np.abs(rng.integers(0, 10, (n, 1, 2)) - rng.integers(0, 10, (1, m, 2))).sum(axis=-1)
    h = (0.5 * level[:, None] * (1.0 + rng.random((1, m))) - 0.1 * way).round(3)
    return h, np.repeat(level[:, None], m, axis=1), np.full(m, np.inf), food


SETS: dict[str, Callable[[np.random.Generator], Instance]] = {
    "field service 12x18": lambda rng: field_service(rng, 12, 18),
    "field service 40x60": lambda rng: field_service(rng, 40, 60),
    "foraging 5x8": lambda rng: foraging(rng, 5, 8),
    "foraging 10x20": lambda rng: foraging(rng, 10, 20),
}


def run(
    instances: int = 20, small: int = 1000, seed: int = 0, python: str = sys.executable, json: bool = False
) -> None:
    """LP with minimums beside CP-SAT (extra `bench`), and small instances beside enumeration.

    Args:
        instances: of each set.
        small: random instances of up to 5 agents and 4 tasks that are compared with all their plans.
        seed: of the instances.
        python: an interpreter that has OR-Tools.
        json: print one JSON object.

    """
    if instances < 1 or small < 0:
        raise InputError(f"instances must be at least 1 and small not negative, got {instances} and {small}")
    rows = [row for name in SETS for row in compare(name, instances, seed, python)]
    wrong = count_wrong(small, seed)
    if json:
        print(json_format.dumps({"sets": rows, "small": wrong}))
        return
    print("| set | effort | mean gap | worst gap | proven | median ms | worst ms | CP-SAT proven | median ms |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['set']} | {row['effort']} | {row['gap']:.3%} | {row['worst_gap']:.3%} | {row['proven']} | "
            f"{row['ms']:.2f} | {row['worst_ms']:.1f} | {row['peer_proven']} | {row['peer_ms']:.0f} |"
        )
    print(f"small instances: {wrong}")


def compare(name: str, count: int, seed: int, python: str) -> list[dict[str, Any]]:
    """A row for each effort on a set."""
    rng = np.random.default_rng(seed)
    made = [SETS[name](rng) for _ in range(count)]
    peer = ask_peer(made, python)
    rows = []
    for effort, limit in EFFORTS:
        solver = Solver("lp", effort, time_limit=limit)
        gaps: list[float] = []
        times: list[float] = []
        proven = 0
        for instance, other in zip(made, peer, strict=True):
            problem = as_problem(instance)
            if not times:
                solver(problem)
            began = time.perf_counter()
            found = solver(problem)
            times.append(1e3 * (time.perf_counter() - began))
            gaps.append((other["objective"] - float(found.objective[0])) / abs(other["objective"]))
            proven += found.status[0] == "optimal"
            if found.status[0] == "optimal" and gaps[-1] > 1e-6:
                raise AssertionError(f"{name}: an answer that is called optimal is {gaps[-1]:.2%} below CP-SAT's")
        rows.append(
            {
                "set": name,
                "effort": effort,
                "gap": float(np.mean(gaps)),
                "worst_gap": max(gaps),
                "proven": f"{proven} of {count}",
                "ms": float(np.median(times)),
                "worst_ms": max(times),
                "peer_proven": f"{sum(other['optimal'] for other in peer)} of {count}",
                "peer_ms": 1e3 * float(np.median([other["seconds"] for other in peer])),
            }
        )
    return rows


def as_problem(instance: Instance) -> Problem:
    """A batch of one."""
    h, use, capacity, minimums = instance
    return Problem(h[None], contributions=use[None], capacities=capacity[None], minimums=minimums[None])


def ask_peer(made: list[Instance], python: str) -> list[dict[str, Any]]:
    """What CP-SAT finds in 20 s each."""
    names = ("h", "use", "capacity", "minimums")
    blocks = {f"{name}{k}": array for k, one in enumerate(made) for name, array in zip(names, one, strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "instances.npz"
        np.savez(file, **blocks)  # type: ignore[arg-type]
        peer = Path(__file__).with_name("minimums_peer.py")
        found = subprocess.run([python, str(peer), str(file), "20"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise InputError(f"CP-SAT cannot be asked ({python}): {found.stderr.strip().splitlines()[-1]}; give --python")
    return [json_format.loads(line) for line in found.stdout.splitlines()]


def count_wrong(count: int, seed: int) -> dict[str, int]:
    """Of random small instances: how many, and how many answers are infeasible, wrongly called optimal, or worse."""
    rng = np.random.default_rng(seed)
    report = {"instances": count, "infeasible": 0, "wrongly_optimal": 0, "below_the_best": 0, "unproven": 0}
    for k in range(count):
        n, m = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        h = rng.normal(1.0, 2.0, (n, m)).round(2)
        h[rng.random((n, m)) < 0.3] = -np.inf
        use = np.ones((n, m)) if k % 2 else rng.integers(1, 4, (n, m)).astype(np.float64)
        minimums = rng.integers(0, 4, m).astype(np.float64)
        capacity = np.maximum(minimums, rng.integers(1, 5, m))
        g = rng.normal(0.0, 1.0, (m, m)).round(2) if k % 3 == 0 else None
        effort: Effort = ("fast", "best", "exact")[k % 5 % 3]
        problem = as_problem((h, use, capacity, minimums))
        if g is not None:
            problem = Problem(h[None], g[None], use[None], capacity[None], minimums=minimums[None])
        found = Solver("quad", effort)(problem)
        value = worth(h, use, capacity, minimums, g, found.assignment[0])
        best = max(worth(h, use, capacity, minimums, g, np.array(plan)) for plan in plans(h))
        proven = found.status[0] == "optimal"
        report["infeasible"] += value == -np.inf or abs(value - float(found.objective[0])) > 1e-9
        report["wrongly_optimal"] += bool(proven and value < best - 1e-7)
        report["below_the_best"] += value < best - 1e-7
        report["unproven"] += not proven
    return {name: int(number) for name, number in report.items()}


def plans(h: Floats) -> Any:
    """All plans of allowed pairs."""
    return itertools.product(*([-1, *np.flatnonzero(row > -np.inf).tolist()] for row in h))


def worth(h: Floats, use: Floats, capacity: Floats, minimums: Floats, g: Floats | None, plan: Any) -> float:
    """What a plan is worth; -inf for one that violates a constraint."""
    placed = np.flatnonzero(plan >= 0)
    m = len(minimums)
    count = np.bincount(plan[placed], minlength=m)
    load = np.bincount(plan[placed], use[placed, plan[placed]], minlength=m)
    if (load > capacity + 1e-9).any() or ((count > 0) & (load < minimums - 1e-9)).any():
        return -np.inf
    return float(h[placed, plan[placed]].sum() + (0.0 if g is None else count @ g @ count))


if __name__ == "__main__":
    run()
