"""`python -m paper ship`: the best policy of each kind, from paper/ENV to muster/policy/shipped, with its card.

Best is the fewest steps, the most battles won or the largest return, without noise, on held-out validation episodes of
the environment that was trained on. No test episode has a say, nor has a larger size. Of variants two
are shipped: distilled ones of positional models, where imitation does better than PPO in the time there is, and runs
made again with faster code.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from muster.envs.registry import EXAMPLES, kind_of, make
from muster.evaluation.card import BOUNDS, make_card, measure_ranges, write_card
from muster.evaluation.episodes import run_episodes
from muster.learning.learner import VALIDATION
from muster.policy.learned import LearnedPolicy, adapt
from muster.policy.names import SHIPPED, shipped
from muster.rng import episode_seeds
from paper.results import results_of
from paper.run_names import PAPER, RunName

SCALED = ("rescue-5x10-quad-dm",)
"""Trained before g was scaled by size, and shipped with it: it generalises further so (docs/how-to/scale.md)."""
FOLDERS = ("rescue", "battle", "pursuit", "fleet", "routes")
ENVS = {"routes": "rescue"}
"""Policies of routes are of search and rescue, but are no row of its table."""
VARIANTS = ("", "distilled", "again")
AGAIN = ("fleet-24-lp-dm",)
"""Shipped from runs that were made again when the same minutes had become more updates."""
POSITIONAL = 500
"""Episodes for positional models, whose states cost a hundred times as much; those of a run's own validation."""
EPISODES = {"rescue": 2000, "battle": 400, "pursuit": 4000, "fleet": 400}
COMMANDS = {
    "rescue-small-quad-dm": "muster train rescue:2x4 rescue:3x6 rescue:4x8 rescue:5x10 --learner es --form local "
    "--es.episodes 32 --minutes 1.5 --seed 1"
}
"""Of runs that paper/train.py does not have."""
FAILURES = {
    "rescue-2x4-quad-dm": [
        "rescue:16x32 and larger: worse than the baseline lp-distance (muster scale rescue-2x4-quad-dm --env rescue)"
    ]
}
"""At sizes that no table has, measured once and written down in docs/how-to/scale.md."""


@dataclass(frozen=True)
class Ship:
    """Ship the best policy of each kind, by validation episodes, and write the cards of all shipped policies."""

    env: Annotated[Literal["rescue", "battle", "pursuit", "fleet", "routes", "all"], tyro.conf.Positional] = "all"
    """Whose policies to choose among."""
    only: str = "*"
    """Names of policies to choose among, such as '*-pem-*'."""
    cards: bool = False
    """Choose nothing: write the cards of what is shipped, from the records."""

    def run(self) -> None:
        """Copy the best, write the index with a line on each, then the cards."""
        if not self.cards:
            best = choose(FOLDERS if self.env == "all" else (self.env,), self.only)
            for name, (_, path, _) in best.items():
                if name in SCALED:
                    scaled(LearnedPolicy.load(path)).save(SHIPPED / f"{name}.safetensors")
                else:
                    shutil.copy(path, SHIPPED / f"{name}.safetensors")
            index = shipped() | {name: line for name, (_, _, line) in best.items()}
            text = json.dumps(dict(sorted(index.items())), indent=1) + "\n"
            (SHIPPED / "index.json").write_text(text, encoding="utf-8")
            shipped.cache_clear()
        for name in shipped():
            write_card(SHIPPED / f"{name}.json", card_of(name))


def choose(folders: tuple[str, ...], only: str) -> dict[str, tuple[float, Path, str]]:
    """By the name to ship under: how good, which file, and a line on it."""
    best: dict[str, tuple[float, Path, str]] = {}
    for path in sorted(path for folder in folders for path in PAPER.glob(f"{folder}/policies/*.safetensors")):
        run = RunName.parse(path.stem, ENVS.get(path.parts[-3], path.parts[-3]))
        if run.variant not in VARIANTS or not fnmatch.fnmatch(path.stem, only):
            continue
        policy = LearnedPolicy.load(path)
        header, env = policy.header, make(str(policy.header["env"]), 256)
        seeds = episode_seeds(VALIDATION, np.arange(POSITIONAL if run.model == "pem" else EPISODES[run.env]))
        adapt(policy, env)
        outcome = float(run_episodes(env, policy, seeds).outcome.mean())
        result = {
            "win_rate": f"wins {outcome:.3f} of validation battles",
            "steps": f"{outcome:.2f} steps on validation episodes",
            "return": f"earns {outcome:.2f} in validation episodes",
        }[env.metric]
        # The learner, or the policy that was imitated.
        taught = f"imitation of {header['teacher']}" if "teacher" in header else run.learner
        line = f"trained on {header['env']} by {taught}, seed {header['seed']}, {header['cpu_minutes']:.1f} CPU minutes"
        print(path.stem, f"{outcome:.3f}", flush=True)
        worth = -outcome if env.metric == "steps" else outcome
        name = f"{run.env}-{run.train}-{run.inference}-{run.model}"
        if name not in best or worth > best[name][0]:
            best[name] = (worth, path, f"{line}; {result}")
    return best


def scaled(policy: LearnedPolicy) -> LearnedPolicy:
    """The policy with a g that follows the number of agents; where it was trained it stays the same."""
    size = make(str(policy.header["env"])).n_agents
    spec = dataclasses.replace(policy.spec, pair_scale="size", trained_agents=size, fewest_agents=size)
    return policy.variant(spec=spec)


def card_of(name: str) -> dict[str, Any]:
    """The card of a shipped policy, from its file and the records."""
    policy = LearnedPolicy.load(SHIPPED / f"{name}.safetensors")
    learner = learner_of(policy)
    # Positional models are taught by a direct policy and not by the optimum.
    distilled = learner == "imitation" and policy.spec.kind == "pem"
    variant = "-distilled" if distilled else "-again" if name in AGAIN else ""
    run = f"{name}{variant}-{learner}-s{policy.header.get('seed')}"
    folder = name.partition("-")[0]
    command, results = results_of(folder, run)
    folder = "context" if policy.spec.kind == "context" else "routes" if policy.inference.method == "routes" else folder
    facts = {
        "about": shipped()[name],
        "learner": learner,
        "command": COMMANDS.get(name, f"python -m paper train {folder} --only {run}"),
        "results_from": command,
        "feature_ranges": measure_ranges(policy),
        "not_compared": not_compared(name, {baseline for result in results for baseline in result.baselines}),
    }
    if "commit" not in policy.header:
        # Older files do not say; their cards have the commit that put them there.
        facts["commit"] = json.loads((SHIPPED / f"{name}.json").read_text(encoding="utf-8"))["commit"]
    return make_card(name, policy, results, FAILURES.get(name, ()), **facts)


def learner_of(policy: LearnedPolicy) -> str:
    """What the learner of a policy is called today; a2c with Gumbel noise, in files from before 0.2.0, was ppo."""
    learner = str(policy.header["learner"])
    if learner == "a2c" and policy.noise.distribution == "gumbel":
        return "ppo"
    return {"imitate": "imitation"}.get(learner, learner)


def not_compared(name: str, known: set[str]) -> list[str]:
    """Baselines of the environment that no result compares the policy with; none where there are no results."""
    example = next(env for env in EXAMPLES if kind_of(env) == name.partition("-")[0])
    baselines = make(example).baselines() if known else ()
    return [baseline for baseline in baselines if baseline not in known and baseline not in BOUNDS]
