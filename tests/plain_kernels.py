"""Results of every family of kernels, a line each, for comparing compiled ones with plain Python."""

from __future__ import annotations

import hashlib

import numpy as np

import muster
from muster.envs.registry import make
from muster.evaluation.evaluate import evaluate
from muster.rng import episode_seeds


def infer() -> None:
    rng = np.random.default_rng(0)
    scores, task_scores = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    for kind, contributions in (("plain", None), ("mixed", rng.uniform(0.5, 1.5, (4, 3)))):
        for method in ("amax", "lp", "quad"):
            found = muster.assign(scores, task_scores, contributions, np.full(3, 2.0), method=method)
            print(f"{method}-{kind} {found.assignment.tolist()} {found.objective!r} {found.prices.tolist()}")


def rescue() -> None:
    for policy in ("topline", "closest", "rescue-2x4-quad-dm"):
        print(f"{policy} {evaluate(policy, 'rescue:2x4', episodes=2).mean}")


def plan() -> None:
    between = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    starts = np.array([[0.0, 1.0, 2.0, 3.0, 4.0], [3.0, 2.0, 1.0, 0.0, 1.0]])
    found = muster.assign(-starts, -between, method="routes")
    print(f"plan {found.assignment.tolist()} {found.objective!r}")


def play(name: str, policy_name: str, steps: int) -> None:
    one = np.arange(1)
    env = make(name, 1)
    env.reset(one, episode_seeds(0, one))
    policy = env.baselines()[policy_name](env)
    policy.reset(one, episode_seeds(0, one))
    for _ in range(steps):
        env.step(policy.act(env.observe()))
    digest = hashlib.sha256()
    for field, array in sorted(env.get_state().items()):
        digest.update(field.encode() + np.ascontiguousarray(array).tobytes())
    print(f"{name}/{policy_name}", digest.hexdigest())


def main() -> None:
    infer()
    plan()
    rescue()
    for scenario in ("m3v3", "w3v3", "zh2v2"):
        play(f"battle:{scenario}", "wcnoks", 12)
    for rule in ("closest", "closest-pairs", "lp-distance"):
        play("pursuit:4x2", rule, 8)
    for rule in ("greedy", "match", "worth"):
        play("fleet:4,city=small", rule, 10)


if __name__ == "__main__":
    main()
