"""A policy from past decisions alone: no simulator is asked what would have happened.

    python examples/past_decisions.py

Here the past is made up: a dispatcher who knew all requests of the hour (`hindsight`) decides on some days of a small
city, and every decision is written down with what could be seen (a file as in docs/how-to/logs.md). A policy then
learns from the file, and decides on other days beside the baselines. With recorded trips (docs/environments/fleet.md):

    python examples/past_decisions.py --past fleet:24,trips=FOLDER,set=training --future fleet:24,trips=FOLDER,set=test
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

import muster


@dataclass
class Options:
    """What to copy, from when, and how long to learn."""

    past: str = "fleet:24,city=small"
    """The environment of the past decisions."""
    future: str = "fleet:24,city=small"
    """The environment to evaluate in afterwards."""
    teacher: str = "hindsight"
    """Who decided."""
    days: int | Literal["all"] = 200
    """Days that were written down."""
    minutes: float = 0.5
    """CPU minutes to learn for."""
    test_days: int | Literal["all"] = 200
    """Days to evaluate on afterwards."""
    out: Path = Path("past")
    """Folder for the log and the run."""


def main(options: Options) -> dict[str, float]:
    """Write the log, learn from it, and compare; returns what each policy earns a day."""
    options.out.mkdir(parents=True, exist_ok=True)
    log = options.out / "decisions.jsonl.gz"
    # Days of another seed than those that are evaluated afterwards; recorded days are apart by their set.
    seed = 0 if options.days == "all" else 1
    muster.evaluate(options.teacher, options.past, options.days, seed=seed, log=log)
    learned = muster.train(options.past, from_log=str(log), inference="lp", minutes=options.minutes, seed=0)
    earned = {}
    for policy in ("greedy", "match", "worth", learned):
        found = muster.evaluate(policy, options.future, options.test_days)
        name = policy if isinstance(policy, str) else f"copy of {options.teacher}"
        earned[name] = float(found.mean or 0.0)
        print(f"{name:20} {earned[name]:8.2f}")
    return earned


if __name__ == "__main__":
    main(tyro.cli(Options))
