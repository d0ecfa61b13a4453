"""Whether a g that is scaled by the number of agents generalises further in battles: the same policy with and without.

python -m benchmarks.scaled_pairs        # a few CPU minutes
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np

import muster
from muster.evaluation.statistics import bootstrap_interval

POLICIES = {"battle-w15v17-quad-dm": (15, ("battle:w30v34", "battle:w60v68"))}
"""Agents at which it was trained, and where it is evaluated; it knows neither."""


def main() -> None:
    """Print a row for each battle."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--battles", type=int, default=200)
    given = asked.parse_args()
    print("| | battles | won, g as it is | won, g scaled by size | difference |\n|---|---:|---:|---:|---:|")
    for name, (agents, envs) in POLICIES.items():
        policy = muster.load(name)
        for env in envs:
            won = []
            for scale in ("none", "size"):
                spec = dataclasses.replace(policy.spec, pair_scale=scale, trained_agents=agents)
                variant = policy.variant(spec=spec)
                won.append(muster.evaluate(variant, env, episodes=given.battles, seed=15001).records.outcome)
            difference = won[1] - won[0]
            low, high = bootstrap_interval(difference)
            print(
                f"| `{name}` on `{env}` | {given.battles} | {won[0].mean():.3f} | {won[1].mean():.3f} | "
                f"{np.mean(difference):+.3f} ({low:+.3f} to {high:+.3f}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
