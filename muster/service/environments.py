"""Which environments and policies the page may run.

An environment's name can hold a module to import or a file to read, and a policy's a path. So what a page asks for is
checked against what the service was started with: the environments that come with muster and read no files, within a
size, the custom ones that `--envs` names, the served policies, and the runs in the service's folder.
"""

from __future__ import annotations

import re
from typing import Any

from muster.envs.registry import BUILT_IN, EXAMPLES, kind_of, make
from muster.envs.size import Size, size_of
from muster.envs.vector import BatchEnv, Policy
from muster.errors import InputError, MusterError, UnknownNameError
from muster.evaluation.captions import caption, label
from muster.evaluation.runs import read_runs
from muster.policy.learned import LearnedPolicy
from muster.policy.names import resolve
from muster.service.policies import Policies, refuse_unnamed
from muster.service.settings import ServeSettings

MOST_PAIRS = 100_000
"""Agents x tasks of an environment that the page runs."""
MOST_CELLS = 250_000
MOST_STEPS = 20_000
MOST_ROLLOUTS = 32
MOST_FUTURES = 32
HORIZON = 25
"""Decisions for which candidates are run."""
LONGEST_NAME = 300
SIZES = {
    "rescue": (
        *("rescue:2x4", "rescue:5x10", "rescue:8x15", "rescue:20x40,grid=32"),
        *("rescue:100x200,grid=64", "rescue:200x400,grid=100"),
    ),
    "battle": ("battle:m10v10", "battle:w15v17", "battle:w30v34", "battle:zh10v10", "battle:w80v82"),
    "pursuit": ("pursuit:4x2", "pursuit:8x4", "pursuit:20x10", "pursuit:40x20"),
    "fleet": ("fleet:24,city=small", "fleet:60,city=small", "fleet:100,city=large"),
}
_LOOK_AHEAD = re.compile(r"(.+), (\d{1,6}) rollouts(?: x (\d{1,6}) futures)?")


class Environments:
    """What one service may run."""

    def __init__(self, settings: ServeSettings, policies: Policies) -> None:
        self.policies = policies
        self.runs = settings.runs
        self._known = list(dict.fromkeys([*SIZES, *map(kind_of, settings.envs)]))

    def listing(self) -> list[dict[str, Any]]:
        """Every kind of environment with examples of sizes and the policies for it."""
        runs = read_runs(self.runs)
        found: list[dict[str, Any]] = []
        for kind in self._known:
            examples = SIZES.get(kind, (kind,))
            try:
                env = make(examples[0])
            except MusterError as error:
                found.append({"kind": kind, "examples": examples, "policies": [], "error": str(error)})
                continue
            policies = [{"name": name, "label": label(name, kind), "kind": "baseline"} for name in env.baselines()]
            policies += [
                {"name": name, "label": label(name, kind), "kind": "learned"}
                for name, served in self.policies.now.items()
                if kind_of(str(served.policy.header.get("env", ""))) == kind
            ]
            policies += [
                {"name": run["name"], "label": label(run["name"], kind), "kind": "run"}
                for run in runs
                if run["policy"] and kind_of(run["env"]) == kind and run["name"] not in self.policies.now
            ]
            words = caption(kind)
            found.append(
                {
                    "kind": kind,
                    "title": words.title,
                    "about": words.about,
                    "arranges": env.renderer().can("arrange"),
                    "examples": examples,
                    "policies": policies,
                }
            )
        return found

    def make(self, text: str) -> BatchEnv:
        """The environment of that name; InputError for one that is not run here."""
        if not text or len(text) > LONGEST_NAME:
            raise InputError(f"env must name an environment such as {EXAMPLES[0]}, got {text!r:.80}")
        kind = kind_of(text)
        if kind not in self._known:
            raise UnknownNameError("environment that this service runs", kind[:80], self._known)
        options = text.partition(":")[2].split(",")
        if kind in BUILT_IN:
            if any(option.partition("=")[0].strip() == "trips" for option in options):
                raise InputError("env: recorded trips are files of this machine, which a page may not read")
            size = size_of(kind, ",".join(options))
            if size is not None:
                check_size(size)
        env = make(text)
        check_size(Size(env.n_agents, env.n_tasks, 0, env.max_steps))
        return env

    def find_policy(self, name: str, env: BatchEnv) -> Policy:
        """The policy of that name, ready for the environment; InputError for one that is not run here.

        "NAME, 8 rollouts" is a learned policy that looks ahead; so is "NAME, 8 rollouts x 16 futures".
        """
        if name in env.baselines():
            return resolve(name, env)
        if looks_ahead := _LOOK_AHEAD.fullmatch(name):
            rollouts, futures = int(looks_ahead[2]), int(looks_ahead[3] or 1)
            if not 2 <= rollouts <= MOST_ROLLOUTS:
                raise InputError(f"policy: look-ahead takes from 2 to {MOST_ROLLOUTS} rollouts here, got {rollouts}")
            if not 1 <= futures <= MOST_FUTURES:
                raise InputError(f"policy: look-ahead takes from 1 to {MOST_FUTURES} futures here, got {futures}")
            policy = self._learned(looks_ahead[1], env).variant(name=name)
            horizon = HORIZON if futures == 1 else None
            return resolve(policy.with_rollouts(rollouts, futures=futures, horizon=horizon), env)
        return resolve(self._learned(name, env), env)

    def _learned(self, name: str, env: BatchEnv) -> LearnedPolicy:
        """A served policy or a run's."""
        if name in self.policies.now:
            return self.policies.now[name].policy
        runs = {run["name"]: run["policy"] for run in read_runs(self.runs)}
        if runs.get(name):
            policy = LearnedPolicy.load(runs[name]).variant(name=name)
            refuse_unnamed(policy, self.policies.custom)
            return policy
        known = [*env.baselines(), *self.policies.now, *(run for run, file in runs.items() if file)]
        raise UnknownNameError(f"policy for {env.name}", name[:80], known)


def check_size(size: Size) -> None:
    """Refuse an environment that is too large to run for a page."""
    for what, found, most in (
        ("pairs of an agent and a task", size.agents * size.tasks, MOST_PAIRS),
        ("cells", size.cells, MOST_CELLS),
        ("steps", size.steps, MOST_STEPS),
    ):
        if found > most:
            raise InputError(f"env: the page runs up to {most:,} {what}, got {found:,}")
