"""What g, the size of training and the likelihood are worth in search and rescue and with marines.

    python -m paper.ablations [--markdown]

Transfer: shipped policies at sizes that they never saw, with their g and without it (LP on their h). Likelihoods: `ppo`
with nothing but its likelihood, beside `a2c` with the same number of environments, rollouts, noise and steps. Episodes
are those of the sealed set. Writes paper/ablations.json; `--markdown` prints the tables from there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import muster
from muster.policy.learned import LearnedPolicy
from muster.policy.names import resolve
from paper.tables.engine import clean_commit

RECORD, COMMAND = Path(__file__).with_suffix(".json"), "python -m paper.ablations"
SIZES = {"2x4": 1000, "5x10": 1000, "8x15": 500, "16x32": 200, "20x40,grid=32": 100}
"""Of search and rescue, and how many episodes."""
POLICIES = ("rescue-2x4-quad-dm", "rescue-5x10-quad-dm", "rescue-small-quad-dm")
LP_POLICIES = ("rescue-2x4-lp-dm", "rescue-5x10-lp-dm", "lp-distance")
SHARED = {"rollout_length": 8, "sigma": 0.5, "learning_rate": 1e-3}
LIKELIHOODS: dict[str, dict[str, Any]] = {
    "a2c": {"learner": "a2c", "a2c": SHARED | {"correlated_steps": 10}},
    "ppo": {
        "learner": "ppo",
        "ppo": SHARED | {"minibatches": 1, "clip_range": 0.0, "entropy_coef": 0.0, "gae_lambda": 1.0},
    },
}
"""What ppo has beside its likelihood all the same: rates that a cosine takes to 0, a gradient norm of 1 at most, the
critic's rate of 0.002 in place of 0.001, and Gumbel noise, on h alone."""
RUNS = {("rescue:2x4", "quad"): 400_000, ("battle:m10v10", "lp"): 400_000}
"""Environment and inference -> steps."""
SEEDS, RUN_EPISODES = 3, 500

Row = dict[str, Any]


def transfer() -> Iterator[Row]:
    """Steps of every policy at every size."""
    for size, episodes in SIZES.items():
        env = f"rescue:{size}"
        for name in (*POLICIES, *LP_POLICIES):
            policy = resolve(name, muster.make(env))
            ways = {"": policy}
            if name in POLICIES:
                assert isinstance(policy, LearnedPolicy)
                ways["without g"] = policy.without_task_scores()
            for way, one in ways.items():
                found = muster.evaluate(one, env, episodes, "sealed")
                yield {"policy": name, "way": way, "size": size, "mean": found.mean, "ci95": list(found.ci95)} | {
                    "failed": found.failed / found.episodes
                }


def likelihoods() -> Iterator[Row]:
    """Outcome of every run on the environment that it learned on."""
    for (env, inference), steps in RUNS.items():
        for name, settings in LIKELIHOODS.items():
            for seed in range(SEEDS):
                policy = muster.train(
                    env, inference=inference, steps=steps, seed=seed, model="dm", num_envs=64, **settings
                )
                found = muster.evaluate(policy, env, RUN_EPISODES, "sealed")
                row = {"env": env, "inference": inference, "likelihood": name, "seed": seed, "steps": steps}
                yield row | {"mean": found.mean, "failed": found.failed / found.episodes}


def tables(record: Row) -> Iterator[str]:
    """The record as Markdown."""
    cells = {(row["policy"], row["way"], row["size"]): row for row in record["transfer"]}
    yield f"| T | {' | '.join(SIZES)} |"
    yield "|---|" + "---|" * len(SIZES)
    for policy, way in dict.fromkeys((row["policy"], row["way"]) for row in record["transfer"]):
        shown = [_cell(cells[policy, way, size]) for size in SIZES]
        yield f"| {policy}{', ' + way if way else ''} | {' | '.join(shown)} |"
    yield from ("", "| | likelihood | seeds |", "|---|---|---|")
    runs = record["likelihoods"]
    for env, inference, name in dict.fromkeys((row["env"], row["inference"], row["likelihood"]) for row in runs):
        found = [_cell(row) for row in runs if (row["env"], row["likelihood"]) == (env, name)]
        yield f"| {env}, {inference.upper()} | {name} | {', '.join(found)} |"


def _cell(row: Row) -> str:
    digits = 2 if row["mean"] > 1 else 3
    return f"{row['mean']:.{digits}f}" + (f" ({row['failed']:.0%} fail)" if row["failed"] >= 0.005 else "")


def main() -> None:
    """Measure what the record lacks and write, or print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    record: Row = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for part, measure in (("transfer", transfer), ("likelihoods", likelihoods)):
        if part not in record and not given.markdown:
            record |= {"command": COMMAND, "commit": clean_commit(), part: list(measure())}
            RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(tables(record)))


if __name__ == "__main__":
    main()
