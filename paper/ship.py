"""Ship the best policy of each kind: from paper/WORLD to muster/policy/shipped.

    python paper/ship.py [rescue|battle|pursuit|fleet|routes] [--only PATTERN]

Best is the fewest steps, the most battles won or the largest return, without noise, on held-out validation episodes of
the env that was trained on. No test episode has a say, nor has a larger size. Of variants only distilled ones are
shipped: positional models, where imitation does better than A2C in the time there is.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from muster.evaluation.rollout import run_episodes

from muster.envs.registry import make
from muster.learning.episodes import VALIDATION
from muster.policy.learned import LearnedPolicy
from muster.policy.names import SHIPPED, adapt, shipped
from muster.rng import episode_seeds
from paper.tables.run_names import RunName

HERE = Path(__file__).resolve().parent
SCALED = ("rescue-5x10-quad-dm",)
"""Trained before g was scaled by size, and shipped with it: it carries further so (docs/how-to/scale.md)."""
FOLDERS = ("rescue", "battle", "pursuit", "fleet", "routes")
# Policies of routes play in search and rescue, but are no row of its table.
WORLDS = {"routes": "rescue"}
VARIANTS = ("", "distilled")
POSITIONAL = 500
"""Episodes for positional models, whose states cost a hundred times as much; those of a run's own validation."""
EPISODES = {"rescue": 2000, "battle": 400, "pursuit": 4000, "fleet": 400}


def scaled(policy: LearnedPolicy) -> LearnedPolicy:
    """The policy with a g that follows the number of agents; where it was trained it stays the same."""
    size = make(str(policy.header["env"])).n_agents
    return policy.variant(spec=dataclasses.replace(policy.spec, pair_scale="size", trained_agents=size))


def learner_of(header: dict[str, Any]) -> str:
    """Who taught it: a learner, or the policy that it imitates."""
    return f"imitation of {header['teacher']}" if "teacher" in header else str(header["learner"])


def main() -> None:
    """Copy, and write the index with a line on each; the other environments' policies stay as they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", nargs="?", choices=FOLDERS, default="*", help="all by default")
    parser.add_argument("--only", default="*", help="names of policies to choose among, such as '*-pem-*'")
    asked = parser.parse_args()
    best: dict[str, tuple[float, Path, str]] = {}
    for path in sorted(HERE.glob(f"{asked.world}/policies/*.safetensors")):
        if path.parts[-3] not in FOLDERS:  # short runs for a comparison
            continue
        run = RunName.parse(path.stem, WORLDS.get(path.parts[-3], path.parts[-3]))
        if run.variant not in VARIANTS or not fnmatch.fnmatch(path.stem, asked.only):
            continue
        policy = LearnedPolicy.load(path)
        header = policy.header
        env = make(str(header["env"]), 256)
        adapt(policy, env)
        episodes = POSITIONAL if run.model == "pem" else EPISODES[run.world]
        seeds = episode_seeds(VALIDATION, np.arange(episodes))
        outcome = float(run_episodes(env, policy, seeds).outcome.mean())
        figure = {
            "win_rate": f"wins {outcome:.3f} of validation battles",
            "steps": f"{outcome:.2f} steps on validation episodes",
            "return": f"earns {outcome:.2f} in validation episodes",
        }[env.metric]
        name = f"{run.world}-{run.train}-{run.inference}-{run.model}"
        line = (
            f"trained on {header['env']} by {learner_of(header)}, seed {header['seed']}, "
            f"{header['cpu_minutes']:.1f} CPU minutes; {figure}"
        )
        print(path.stem, f"{outcome:.3f}", flush=True)
        worth = -outcome if env.metric == "steps" else outcome
        if name not in best or worth > best[name][0]:
            best[name] = (worth, path, line)
    SHIPPED.mkdir(exist_ok=True)
    for name, (_, path, _) in best.items():
        if name in SCALED:
            scaled(LearnedPolicy.load(path)).save(SHIPPED / f"{name}.safetensors")
        else:
            shutil.copy(path, SHIPPED / f"{name}.safetensors")
    index = shipped() | {name: line for name, (_, _, line) in best.items()}
    (SHIPPED / "index.json").write_text(json.dumps(dict(sorted(index.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
