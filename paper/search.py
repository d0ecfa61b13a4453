"""Random search of A2C's settings over the paper's ranges, judged by training reward alone.

    python paper/search.py rescue:2x4 [--inference quad] [--draws 24] [--seed 1000] [--minutes 0.2]

Every draw trains for a short while; the better quarter goes on four times as long. The best row of the training log
counts (mean reward of the episodes that ended between two rows, exploration noise included), nothing else is looked at.
Runs that are already in runs/search are not made again.
Results: paper/search/ENV-INFERENCE.json, best first.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
# Chosen by hand before the search (sigma by world); it goes straight to the second round.
HAND_SIGMA = {"rescue": 0.3, "battle": 0.5}
HAND = {
    "policy-rate": 1e-3,
    "value-rate": 1e-3,
    "noise.correlated-steps": 5,
    "return-steps": 5,
    "optimiser": "adam",
}
LONGER = 4  # how many times as long the better quarter trains


def draw(rng: np.random.Generator) -> dict[str, Any]:
    """One point of the paper's ranges."""
    return {
        "policy-rate": float(10 ** -rng.uniform(0, 5)),
        "value-rate": float(10 ** -rng.uniform(0, 5)),
        "noise.sigma": float(rng.uniform(0.1, 2.0)),
        "noise.correlated-steps": int(rng.integers(1, 11)),
        "return-steps": int(rng.integers(2, 6)),
        "optimiser": str(rng.choice(["adam", "sgd"])),
    }


def train(env: str, inference: str, settings: dict[str, Any], folder: Path, minutes: float) -> float:
    """Best training reward of a run of that length; worse than any if it stopped on a value that is not finite."""
    done = folder / "summary.json"
    if done.exists() and json.loads(done.read_text())["cpu_minutes"] >= minutes:
        return best_reward(folder)
    flags = [part for name, value in settings.items() for part in (f"--a2c.{name}", str(value))]
    resume = ["--resume"] if (folder / "config.toml").exists() else []
    command = ["train", env, "--inference", inference, "--minutes", str(minutes), "--out", str(folder), *resume]
    command += ["--log-every", "50000", "--evaluate-every", "1000000000"]
    subprocess.run([sys.executable, "-m", "muster", *command, *flags], stderr=subprocess.DEVNULL, check=False)
    return best_reward(folder)


def best_reward(folder: Path) -> float:
    """Best row of a finished run's log by reward."""
    if not (folder / "summary.json").exists():
        return float("-inf")
    with (folder / "metrics.csv").open(newline="") as lines:
        rewards = [float(row["reward"]) for row in csv.DictReader(lines) if row.get("reward")]
    return max((reward for reward in rewards if np.isfinite(reward)), default=float("-inf"))


def main() -> None:
    """Draw, train, go on with the better ones, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env")
    parser.add_argument("--inference", default="quad")
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=0.2, help="CPU minutes of a draw")
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    name = f"{asked.env.replace(':', '-')}-{asked.inference}"
    runs = Path("runs") / "search" / name
    found = []
    for index in range(asked.draws):
        settings = draw(rng)
        reward = train(asked.env, asked.inference, settings, runs / str(index), asked.minutes)
        found.append({"draw": index, "reward": reward, "minutes": asked.minutes, "settings": settings})
        print(json.dumps(found[-1]), flush=True)
    found.sort(key=lambda entry: -entry["reward"])
    hand = {
        "draw": "hand",
        "reward": float("-inf"),
        "minutes": asked.minutes,
        "settings": HAND | {"noise.sigma": HAND_SIGMA[asked.env.partition(":")[0]]},
    }
    found.insert(0, hand)
    for entry in found[: 1 + asked.draws // 4]:
        folder = runs / str(entry["draw"])
        entry["reward"] = train(asked.env, asked.inference, entry["settings"], folder, LONGER * asked.minutes)
        entry["minutes"] = LONGER * asked.minutes
        print(json.dumps(entry), flush=True)
    found.sort(key=lambda entry: (-entry["minutes"], -entry["reward"]))
    (HERE / "search").mkdir(exist_ok=True)
    document = {"command": f"python paper/search.py {' '.join(sys.argv[1:])}", "found": found}
    text = json.dumps(document, indent=1).replace("-Infinity", "null")
    (HERE / "search" / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
