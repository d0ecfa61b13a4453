"""Whether learned policies wait at the start: the share of living units without a target, decision by decision.

    python -m paper.battle.waiting 'battle-w15v17-*' [--battles 64] [--seed 777]

Every policy that matches is evaluated in the scenario that it was trained on; battles that are over are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from muster.data import Floats
from muster.envs.registry import make
from muster.policy.learned import LearnedPolicy
from muster.rng import episode_seeds
from paper.run_names import policy_files

HERE = Path(__file__).resolve().parent
DECISIONS = 24
EVERY = 4


def waiting(policy: LearnedPolicy, scenario: str, battles: int, seed: int) -> Floats:
    """[DECISIONS] share of the living that have no target."""
    env = make(f"battle:{scenario}", battles)
    env.reset(np.arange(battles), episode_seeds(seed, np.arange(battles)))
    going = np.ones(battles, np.bool_)
    found = np.zeros(DECISIONS)
    for t in range(DECISIONS):
        observation = env.observe()
        living = observation.agent_alive & going[:, None]
        assignment = policy.act(observation)
        found[t] = (living & (assignment < 0)).sum() / max(int(living.sum()), 1)
        step = env.step(assignment)
        going &= ~(step.terminated | step.truncated)
    return found


def main() -> None:
    """Print a line for every policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", help="names of policies, such as 'battle-w15v17-*'")
    parser.add_argument("--battles", type=int, default=64)
    parser.add_argument("--seed", type=int, default=777)
    asked = parser.parse_args()
    print(f"{'decision':45}", *(f"{t:4}" for t in range(0, DECISIONS, EVERY)))
    for path in policy_files(HERE / "policies", "battle", asked.only):
        policy = LearnedPolicy.load(path)
        scenario = path.stem.split("-")[1]
        shares = waiting(policy, scenario, asked.battles, asked.seed)
        print(f"{path.stem:45}", *(f"{share:4.2f}" for share in shares[::EVERY]), flush=True)


if __name__ == "__main__":
    main()
