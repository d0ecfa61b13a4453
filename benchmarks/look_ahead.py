"""What look-ahead gains for the time that it takes, on the same episodes as the policy alone.

    python -m benchmarks.look_ahead fleet-24-lp-dm fleet:24,city=small 8x8 8x32 --episodes 20
    python -m benchmarks.look_ahead battle-m10v10-lp-dm battle:m10v12 3ms 6ms 12ms 24ms --horizon 25 --episodes 125

A point is a number of candidates (8), candidates in futures (8x32), or as many candidates as fit into a time (12ms, or
12msx32). Milliseconds are CPU time of policy and environment together, which a busy machine changes little; a limit
such as 12ms is the clock's, so that those points need an idle core.
"""

from __future__ import annotations

import argparse
import re
import time
from typing import Any

import muster
from muster.envs.registry import make
from muster.evaluation.compare import differences
from muster.evaluation.text import in_brackets
from muster.policy.learned import PRIOR, LearnedPolicy, prior_policy

SEED = 15001
"""Of episodes that nothing was chosen on."""
_POINT = re.compile(r"(?:(\d+)|([\d.]+)ms)(?:x(\d+))?")


def settings_of(point: str) -> dict[str, Any]:
    """Arguments of `with_rollouts` for a point such as 8, 8x32, 12ms or 12msx32."""
    found = _POINT.fullmatch(point)
    if found is None:
        raise SystemExit(f"a point is such as 8, 8x32, 12ms or 12msx32, got {point}")
    rollouts, milliseconds, futures = found.groups()
    limit = {"rollouts": int(rollouts)} if rollouts else {"until": float(milliseconds) / 1000}
    return limit | {"futures": int(futures or 1)}


def main() -> None:
    """Print a row for each point as soon as it is known."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("policy")
    asked.add_argument("env")
    asked.add_argument("points", nargs="+", metavar="point")
    asked.add_argument("--horizon", type=int)
    asked.add_argument("--standard-errors", type=float, default=1.5)
    asked.add_argument("--episodes", default="20", help="a number, or all")
    asked.add_argument("--seed", type=int, default=SEED)
    given = asked.parse_args()
    policy = prior_policy(make(given.env)) if given.policy == PRIOR else muster.load(given.policy)
    every = given.episodes == "all"
    chosen = {"episodes": "all"} if every else {"episodes": int(given.episodes), "seed": given.seed}
    print(f"{given.policy} on {given.env}, {'all' if every else given.episodes} episodes")
    print("| | ms a decision | mean [95 %] | gain [95 %] |\n|---|---:|---:|---:|", flush=True)
    policies: dict[str, LearnedPolicy] = {"alone": policy} | {
        point: policy.with_rollouts(**settings_of(point), horizon=given.horizon, standard_errors=given.standard_errors)
        for point in given.points
    }
    alone = None
    for point, acting in policies.items():
        began = time.process_time()
        found = muster.evaluate(acting, given.env, **chosen)
        milliseconds = 1000 * (time.process_time() - began) / found.records.decisions
        alone = alone or found
        gain = in_brackets(differences([alone, found])[0], found.metric, "+") if found is not alone else ""
        print(f"| {point} | {milliseconds:.2f} | {in_brackets(found, found.metric)} | {gain} |", flush=True)


if __name__ == "__main__":
    main()
