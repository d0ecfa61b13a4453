"""How far QUAD's bounds are from the best known, and how long a proof takes: python -m benchmarks.pair_bounds.

Random instances (h uniform in [0, 1], g normal): with a proof at 8x8, by how strong g is, then without one at 80x82.
Each row is the range over instances. `gap` is bound / value - 1, of each effort's own answer.
"""

from __future__ import annotations

import argparse

import numpy as np

import muster


def instance(rng: np.random.Generator, n: int, m: int, strength: float, capacity: float) -> dict[str, object]:
    """An instance as `muster.assign` takes it."""
    task_scores = strength * rng.standard_normal((m, m))
    return {"scores": rng.random((n, m)), "task_scores": task_scores, "capacities": [capacity] * m}


def spread(values: list[float], factor: float, digits: int) -> str:
    """The smallest and the largest."""
    return f"{factor * min(values):.{digits}f} to {factor * max(values):.{digits}f}"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=5)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of a proof")
    asked = parser.parse_args()
    muster.assign(**instance(np.random.default_rng(1), 8, 8, 0.1, 2.0), method="quad", effort="exact")
    print("| 8x8, capacity | strength of g | ms of a proof | proven |\n|---|---|---|---|")
    for capacity in (1.0, 3.0):
        for strength in (0.05, 0.2, 1.0):
            rng = np.random.default_rng(0)
            found = [
                muster.assign(
                    **instance(rng, 8, 8, strength, capacity), method="quad", effort="exact", time_limit=asked.limit
                )
                for _ in range(asked.instances)
            ]
            proven = sum(one.status == "optimal" for one in found)
            seconds = spread([one.seconds for one in found], 1000.0, 1)
            print(f"| {capacity:g} | {strength} | {seconds} | {proven} of {len(found)} |", flush=True)
    print("\n| 80x82, capacity | strength of g | % gap of fast | % gap of best |\n|---|---|---|---|")
    for capacity in (1.0, 3.0):
        for strength in (0.002, 0.01, 0.05):
            rng = np.random.default_rng(0)
            gaps: dict[str, list[float]] = {"fast": [], "best": []}
            for _ in range(asked.instances):
                problem = instance(rng, 80, 82, strength, capacity)
                for effort, of in gaps.items():
                    one = muster.assign(**problem, method="quad", effort=effort)
                    of.append(one.bound / one.objective - 1.0)
            row = " | ".join(spread(of, 100.0, 1) for of in gaps.values())
            print(f"| {capacity:g} | {strength} | {row} |", flush=True)


if __name__ == "__main__":
    main()
