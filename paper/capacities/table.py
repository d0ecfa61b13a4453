"""The table of learned capacities: every policy in paper/capacities/policies on the same fresh battles.

    python -m paper.capacities.table [--battles 400]

Rows are where capacities come from, columns a scenario and a procedure: the median over seeds, and each seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

import muster
from paper.run_names import RunName, policy_files

HERE = Path(__file__).resolve().parent
ROWS = {
    "given": "given by the environment",
    "learned": "learned",
    "contributions": "given, contributions learned",
    "both": "learned, contributions too",
    "none": "none",
}
SEED = 0
"""Of the battles: test episodes, which no run has seen."""


def main() -> None:
    """Evaluate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--battles", type=int, default=400)
    battles = parser.parse_args().battles
    found: dict[tuple[str, str, str], list[float]] = {}
    for path, run in policy_files(HERE / "policies", "battle").items():
        rate = muster.evaluate(str(path), f"battle:{run.train}", episodes=battles, seed=SEED).mean
        found.setdefault(row_and_column(run), []).append(float(rate or 0.0))
    columns = sorted({(train, inference) for _, train, inference in found})
    print("| capacities |", " | ".join(f"{train}, {inference.upper()}" for train, inference in columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    for variant, words in ROWS.items():
        cells = [found.get((variant, *column), []) for column in columns]
        if any(cells):
            print(f"| {words} |", " | ".join(map(cell_of, cells)), "|")


def row_and_column(run: RunName) -> tuple[str, str, str]:
    """Row and column."""
    return run.variant, run.train, run.inference


def cell_of(rates: list[float]) -> str:
    """Median, and every seed's rate in brackets."""
    return f"{median(rates):.2f} ({', '.join(f'{rate:.2f}' for rate in rates)})" if rates else ""


if __name__ == "__main__":
    main()
