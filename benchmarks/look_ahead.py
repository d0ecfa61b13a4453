"""What time is worth to look-ahead: win rate by milliseconds a decision, in lost battles.

    taskset -c 0 python -m benchmarks.look_ahead            # about seven minutes; needs an idle core

Every round runs the same fresh battles with each of the times; as many rounds as fit. Time is the clock's, as
`--until` means it: on a busy machine fewer candidates fit into it, and the win rates are too low. `ms` is what a
decision took in fact: at least four candidates are tried whatever the time.
"""

from __future__ import annotations

import argparse
import time

import muster
from muster.evaluation.statistics import wilson_interval

FIRST_SEED = 15001
"""Battles that nothing was chosen on."""


def main() -> None:
    """Print the table after each round."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--policy", default="battle-m10v10-lp-dm")
    asked.add_argument("--env", default="battle:m10v12")
    asked.add_argument("--horizon", type=int, default=25)
    asked.add_argument("--milliseconds", type=float, nargs="+", default=[3, 6, 12, 24])
    asked.add_argument("--battles", type=int, default=25, help="of a round")
    asked.add_argument("--rounds", type=int, default=16)
    asked.add_argument("--minutes", type=float, default=7.0)
    given = asked.parse_args()
    policy = muster.load(given.policy)
    policies = {0.0: policy} | {
        one: policy.with_rollouts(until=one / 1000, horizon=given.horizon) for one in given.milliseconds
    }
    won, spent = dict.fromkeys(policies, 0.0), dict.fromkeys(policies, 0.0)
    fought, decisions = 0, dict.fromkeys(policies, 0)
    for policy in policies.values():
        muster.evaluate(policy, given.env, episodes=1, seed=0)  # loads the kernels
    began = time.monotonic()
    for number in range(given.rounds):
        for limit, policy in policies.items():
            found = muster.evaluate(policy, given.env, episodes=given.battles, seed=FIRST_SEED + number)
            count = int(found.records.steps.sum())
            won[limit] += found.records.outcome.sum()
            spent[limit] += found.records.policy_seconds
            decisions[limit] += count
        fought += given.battles
        print(
            f"{given.policy} on {given.env}, {fought} battles, seeds {FIRST_SEED} to {FIRST_SEED + number}", flush=True
        )
        print("| --until | ms a decision | won |\n|---:|---:|---:|")
        for limit in policies:
            low, high = wilson_interval(int(won[limit]), fought)
            name = f"{limit / 1000:g}" if limit else "no look-ahead"
            milliseconds = 1000 * spent[limit] / max(decisions[limit], 1)
            print(f"| {name} | {milliseconds:.2f} | {won[limit] / fought:.3f} [{low:.3f} {high:.3f}] |", flush=True)
        taken = time.monotonic() - began
        if taken + taken / (number + 1) > 60 * given.minutes:
            break


if __name__ == "__main__":
    main()
