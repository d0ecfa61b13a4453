"""Learn a policy from past decisions alone, without a simulator.

    python examples/past_decisions.py

Here the past is simulated: a dispatcher who knows all requests of the hour (`hindsight`) decides on some days of a
small city, and every decision is logged with its observation (docs/how-to/logs.md). A policy learns from the log, and
is compared with the baselines on other days. With recorded trips (docs/environments/fleet.md):

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
    """Environments, teacher and lengths of the demonstration."""

    past: str = "fleet:24,city=small"
    """The environment of the past decisions."""
    future: str = "fleet:24,city=small"
    """The environment of the evaluation."""
    teacher: str = "hindsight"
    """Policy that takes the past decisions."""
    days: int | Literal["all"] = 200
    """Days in the log."""
    minutes: float = 0.5
    """CPU minutes of learning."""
    test_days: int | Literal["all"] = 200
    """Days of the evaluation."""
    out: Path = Path("past")
    """Folder for the log and the run."""


def main(options: Options) -> dict[str, float]:
    """Write the log, learn from it, and compare; returns the mean return of each policy."""
    options.out.mkdir(parents=True, exist_ok=True)
    log = options.out / "decisions.jsonl.gz"
    # Another seed than in the evaluation, so that the days differ; recorded days differ by their set.
    seed = 0 if options.days == "all" else 1
    muster.evaluate(options.teacher, options.past, options.days, seed=seed, log=log)
    learned = muster.train(options.past, from_log=str(log), inference="lp", minutes=options.minutes, seed=0)
    returns = {}
    for policy in ("greedy", "match", "worth", learned):
        name = policy if isinstance(policy, str) else f"copy of {options.teacher}"
        returns[name] = muster.evaluate(policy, options.future, options.test_days).mean
        print(f"{name:20} {returns[name]:8.2f}")
    return returns


if __name__ == "__main__":
    main(tyro.cli(Options))
