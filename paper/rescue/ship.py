"""Ship the best policy of each kind: from paper/rescue/policies to muster/shipped.

    python paper/rescue/ship.py

Best is the fewest steps, without noise, on held-out validation episodes of the size that was trained on. No test
episode has a say, nor has a larger size.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from muster.checkpoint import load_policy
from muster.envs.registry import make
from muster.evaluation.rollout import run_episodes
from muster.learning.episodes import VALIDATION
from muster.policies import SHIPPED, adapt
from muster.rng import episode_seeds

HERE = Path(__file__).resolve().parent
EPISODES = 5000


def main() -> None:
    """Copy, and write the index with a line on each."""
    best: dict[str, tuple[float, Path, str]] = {}
    for path in sorted((HERE / "policies").glob("*.safetensors")):
        policy = load_policy(path)
        header = policy.header
        env = make(str(header["env"]), 256)
        adapt(policy, env)
        steps = run_episodes(env, policy, episode_seeds(VALIDATION, np.arange(EPISODES))).outcome.mean()
        name = "-".join(path.stem.split("-")[:4])
        line = (
            f"trained on {header['env']} by {header['learner']}, seed {header['seed']}, "
            f"{header['cpu_minutes']:.1f} CPU minutes; {steps:.2f} steps on validation episodes"
        )
        print(path.stem, f"{steps:.3f}", flush=True)
        if name not in best or steps < best[name][0]:
            best[name] = (float(steps), path, line)
    SHIPPED.mkdir(exist_ok=True)
    for name, (_, path, _) in best.items():
        shutil.copy(path, SHIPPED / f"{name}.safetensors")
    index = {name: line for name, (_, _, line) in sorted(best.items())}
    (SHIPPED / "index.json").write_text(json.dumps(index, indent=1) + "\n")


if __name__ == "__main__":
    main()
