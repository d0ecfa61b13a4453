"""Evaluate the policies of docs/results/ablations.md, and print its tables.

    python -m paper.context.table [rescue|others|speed]

Test episodes are those of seed 0; nothing was chosen on them. What is found is kept in paper/context/figures.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import muster
from muster.envs.registry import make
from muster.policy.learned import LearnedPolicy, adapt
from paper.run_names import of_today

HERE = Path(__file__).resolve().parent
RECORD = HERE / "figures.json"
RESCUE = {"rescue:2x4": 1000, "rescue:5x10": 1000, "rescue:8x15": 1000, "rescue:20x40,grid=32": 400}
BESIDE = ("rescue-5x10-lp-dm", "rescue-small-quad-dm", "routes-distance")
OTHERS = {
    "battle:m10v10": (400, "battle-m10v10-lp-dm"),
    "battle:m15v15": (200, "battle-m10v10-lp-dm"),
    "fleet:24,city=small": (100, "fleet-24-lp-dm"),
    "fleet:100,city=large": (20, "fleet-24-lp-dm"),
    "pursuit:4x2": (1000, "pursuit-4x2-quad-dm"),
    "pursuit:20x10,grid=16": (200, "pursuit-4x2-quad-dm"),
}
SIZES = ("rescue:2x4", "rescue:5x10", "rescue:8x15", "rescue:20x40,grid=32", "rescue:50x100,grid=64")


def ours(kind: str) -> list[str]:
    """The policies of a kind of environment that were trained for this."""
    return sorted(str(path) for path in (HERE / "policies").glob(f"{kind}-*.safetensors"))


def result_of(policy: str, env: str, episodes: int) -> dict[str, float]:
    """Mean outcome of the episodes that did not hit the limit, as in the paper, and half of its 95 % interval."""
    found = muster.evaluate(policy, env, episodes, seed=0)
    assert found.finished_mean is not None
    mean, (low, high) = found.finished_mean
    return {"mean": mean, "ci95": (high - low) / 2, "episodes": found.episodes, "failed": found.failed}


def rescue() -> Iterator[tuple[str, str, dict[str, float]]]:
    """Policies, the planner and the optimum on the same episodes."""
    for env, episodes in RESCUE.items():
        # The optimum beyond 16 victims is not known.
        for policy in (*ours("rescue"), *BESIDE, *(["topline"] if "20x40" not in env else [])):
            yield policy, env, result_of(policy, env, episodes)


def others() -> Iterator[tuple[str, str, dict[str, float]]]:
    """Other environments, where learned and larger, beside the teacher."""
    for env, (episodes, teacher) in OTHERS.items():
        for policy in (*ours(env.partition(":")[0]), teacher):
            yield policy, env, result_of(policy, env, episodes)


def speed() -> Iterator[tuple[str, str, dict[str, float]]]:
    """Milliseconds of CPU time that scores of one state take, alone and in a batch of 64."""
    for name in (ours("rescue")[0], "rescue-small-quad-dm"):
        policy = muster.load(name)
        assert isinstance(policy, LearnedPolicy)
        for env in SIZES:
            yield name, env, {f"ms, batch of {batch}": milliseconds(policy, env, batch) for batch in (1, 64)}


def milliseconds(policy: LearnedPolicy, env: str, batch: int) -> float:
    """Of CPU time a state; the best of five rounds, on a machine that may be busy."""
    observation = policy.spec.read(adapt(policy, make(env, batch)).observe())
    best = np.inf
    for _ in range(6):
        began, rounds = time.process_time(), 0
        while rounds < 3 or time.process_time() - began < 0.1:
            policy.scorer(observation)
            rounds += 1
        best = min(best, (time.process_time() - began) / rounds)
    return 1000 * best / batch


PARTS = {"rescue": rescue, "others": others, "speed": speed}


def main() -> None:
    """Evaluate what is asked for; keep the rest of the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", choices=tuple(PARTS), default=list(PARTS))
    record = json.loads(of_today(RECORD.read_text(encoding="utf-8"))) if RECORD.exists() else {}
    for part in parser.parse_args().part:
        for policy, env, result in PARTS[part]():
            record.setdefault(part, {}).setdefault(env, {})[Path(policy).stem] = result
            print(f"{env:24} {Path(policy).stem:40}", {k: round(v, 4) for k, v in result.items()}, flush=True)
            RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
