"""Train the policies of Table 1: each run is one `muster train`, kept in runs/table1 and resumed if it was cut short.

    python paper/rescue/train.py [--only PATTERN] [--list]

What a finished run leaves for the record: its best policy, settings and log, under paper/rescue.
"""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNS = Path("runs") / "table1"

# Minutes of CPU time: evolution and the linear procedures learn sooner.
MINUTES = {
    ("2x4", "quad", "a2c"): 2.5,
    ("2x4", "lp", "a2c"): 1.0,
    ("2x4", "amax", "a2c"): 1.0,
    ("5x10", "quad", "a2c"): 4.0,
    ("5x10", "lp", "a2c"): 1.5,
    ("5x10", "amax", "a2c"): 1.5,
    ("2x4", "quad", "es"): 2.0,
    ("2x4", "lp", "es"): 1.0,
    ("2x4", "amax", "es"): 1.0,
    ("5x10", "quad", "es"): 5.0,
    ("5x10", "lp", "es"): 1.5,
    ("5x10", "amax", "es"): 1.5,
}
A2C = ["--a2c.noise.sigma", "0.3"]


def runs() -> dict[str, list[str]]:
    """Name and arguments of every run."""
    found = {}
    for (size, inference, learner), minutes in MINUTES.items():
        for seed in range(3 if learner == "a2c" else 1):
            extra = A2C if learner == "a2c" else []
            found[f"rescue-{size}-{inference}-dm-{learner}-s{seed}"] = [
                f"rescue:{size}",
                *("--inference", inference, "--model", "dm", "--learner", learner),
                *("--minutes", str(minutes), "--seed", str(seed)),
                *extra,
            ]
    return found


def main() -> None:
    """Run what is asked for and not yet done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="names to run, such as 'rescue-2x4-quad-*'")
    parser.add_argument("--list", action="store_true", help="print the commands and stop")
    asked = parser.parse_args()
    for name, arguments in runs().items():
        if not fnmatch.fnmatch(name, asked.only):
            continue
        if asked.list:
            print("muster train", *arguments)
            continue
        folder = RUNS / name
        if not (folder / "summary.json").exists():
            resume = ["--resume"] if (folder / "config.toml").exists() else []
            subprocess.run(
                [sys.executable, "-m", "muster", "train", *arguments, "--out", str(folder), *resume], check=True
            )
        keep = HERE / "runs" / name
        keep.mkdir(parents=True, exist_ok=True)
        for file in ("config.toml", "metrics.csv", "summary.json"):
            shutil.copy(folder / file, keep / file)
        (HERE / "policies").mkdir(exist_ok=True)
        shutil.copy(folder / "best.safetensors", HERE / "policies" / f"{name}.safetensors")


if __name__ == "__main__":
    main()
