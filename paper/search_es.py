"""Settings of evolution for battles, judged on held-out validation battles of the scenario that is trained on.

    python paper/search_es.py [--env battle:w15v17] [--inference quad]

Writes paper/search/es-ENV-INFERENCE.json, best first. Runs that are already in runs/search are not made again.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Antithetic pairs, battles a candidate, sigma, learning rate. The first is the default.
TRIED = ((32, 16, 0.07, 0.03), (16, 8, 0.07, 0.03), (32, 4, 0.07, 0.03), (32, 4, 0.07, 0.05), (16, 4, 0.07, 0.03))
MINUTES, SEED, BATTLES = 2, 50, 1000


def train(env: str, inference: str, tried: tuple[int, int, float, float], folder: Path) -> dict[str, Any]:
    """One run; its last row."""
    names = ("pairs", "episodes", "sigma", "rate")
    flags = [part for name, value in zip(names, tried, strict=True) for part in (f"--es.{name}", str(value))]
    if not (folder / "summary.json").exists():
        command = ["train", env, "--inference", inference, "--learner", "es", "--minutes", str(MINUTES)]
        command += ["--seed", str(SEED), "--evaluate-every", "1000000000", "--evaluate-episodes", str(BATTLES)]
        subprocess.run([sys.executable, "-m", "muster", *command, *flags, "--out", str(folder)], check=True)
    with (folder / "metrics.csv").open(newline="") as lines:
        last = list(csv.DictReader(lines))[-1]
    return {
        **dict(zip(names, tried, strict=True)),
        "validation": float(last["validation"]),
        "updates": int(last["updates"]),
        "steps": int(last["steps"]),
    }


def main() -> None:
    """Train with each and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="battle:w15v17")
    parser.add_argument("--inference", default="quad")
    asked = parser.parse_args()
    name = f"es-{asked.env.replace(':', '-')}-{asked.inference}"
    found = []
    for tried in TRIED:
        folder = Path("runs") / "search" / name / "-".join(map(str, tried))
        found.append(train(asked.env, asked.inference, tried, folder))
        print(json.dumps(found[-1]), flush=True)
    found.sort(key=lambda entry: -float(entry["validation"]))
    (HERE / "search").mkdir(exist_ok=True)
    (HERE / "search" / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
