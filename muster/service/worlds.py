"""Which environments and policies the page may play.

An env's name can hold a module to import or a folder to read, and a policy's a path. So what a page asks for is
checked against what the service was started with: the envs that come with muster, within a size, those that its
policies were trained on, and the runs in its folder.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from muster.envs.pursuit.settings import PursuitSettings
from muster.envs.registry import BUILT_IN, EXAMPLES, kind_of, make
from muster.envs.vector import BatchEnv, Policy
from muster.errors import InputError, MusterError, UnknownNameError
from muster.policy.learned import LearnedPolicy
from muster.policy.names import resolve
from muster.service.runs import runs_in
from muster.service.served import Served

MOST_PAIRS = 10_000
"""Agents x tasks of an environment that the page plays."""
MOST_NUMBER = 5000
MOST_ROLLOUTS = 32
HORIZON = 25
"""Decisions for which candidates are played."""
LONGEST_NAME = 300
SIZES = {
    "rescue": ("rescue:2x4", "rescue:5x10", "rescue:8x15", "rescue:20x40,grid=32"),
    "battle": ("battle:m10v10", "battle:w15v17", "battle:w30v34", "battle:zh10v10", "battle:w80v82"),
    "pursuit": ("pursuit:4x2", "pursuit:8x4", "pursuit:20x10", "pursuit:40x20"),
    "fleet": ("fleet:24,city=small", "fleet:60,city=small", "fleet:100,city=large"),
}
_LOOK_AHEAD = re.compile(r"(.+), (\d{1,6}) rollouts")
_COUNTS = re.compile(r"(?:rescue|pursuit):(\d+)x(\d+)|battle:[a-z]+(\d+)v(\d+)")


class Worlds:
    """What one service may play."""

    def __init__(self, policies: dict[str, Served], runs: Path) -> None:
        self.policies = policies
        self.runs = runs

    def kinds(self) -> list[str]:
        """The environments that come with muster, and own ones that served policies and runs were trained on."""
        trained = [str(served.policy.header.get("env", "")) for served in self.policies.values()]
        trained += [run["env"] for run in runs_in(self.runs)]
        return list(dict.fromkeys([*SIZES, *(kind_of(env) for env in trained if env)]))

    def listing(self) -> list[dict[str, Any]]:
        """Every kind of environment with examples of sizes and who can play it."""
        found: list[dict[str, Any]] = []
        for kind in self.kinds():
            examples = SIZES.get(kind, (kind,))
            try:
                rules = list(make(examples[0]).baselines())
            except MusterError as error:
                found.append({"kind": kind, "examples": examples, "policies": [], "error": str(error)})
                continue
            policies = [{"name": name, "kind": "rule"} for name in rules]
            policies += [
                {"name": name, "kind": "learned"}
                for name, served in self.policies.items()
                if kind_of(str(served.policy.header.get("env", ""))) == kind
            ]
            policies += [
                {"name": run["name"], "kind": "run"}
                for run in runs_in(self.runs)
                if run["policy"] and kind_of(run["env"]) == kind and run["name"] not in self.policies
            ]
            about = BUILT_IN[kind].about if kind in BUILT_IN else "an environment of your own"
            found.append({"kind": kind, "about": about, "examples": examples, "policies": policies})
        return found

    def make(self, text: Any) -> BatchEnv:
        """The environment of that name; InputError for one that is not played here."""
        if not isinstance(text, str) or not text or len(text) > LONGEST_NAME:
            raise InputError(f"env must name an environment such as {EXAMPLES[0]}, got {str(text)!r:.80}")
        if kind_of(text) not in self.kinds():
            raise UnknownNameError("environment that this service plays", kind_of(text)[:80], self.kinds())
        if re.search(r"\btrips\s*=", text):
            raise InputError("env: recorded trips are files of this machine, which a page may not read")
        numbers = [int(number[:12]) for number in re.findall(r"\d+", text)]
        if numbers and max(numbers) > MOST_NUMBER:
            raise InputError(
                f"env: the page plays environments with numbers up to {MOST_NUMBER:,}, got {max(numbers):,}"
            )
        if counts := _COUNTS.match(text):
            check_pairs(*(int(count) for count in counts.groups() if count))
        world = make(text)
        check_pairs(world.n_agents, world.n_tasks)
        return world

    def player(self, name: Any, env: BatchEnv) -> Policy:
        """The policy of that name, ready for the environment; InputError for one that is not played here.

        "NAME, 8 rollouts" is a learned policy that looks ahead.
        """
        if not isinstance(name, str):
            raise InputError(f"policy must be a name, got {name!r:.80}")
        if name in env.baselines():
            return resolve(name, env)
        if looks_ahead := _LOOK_AHEAD.fullmatch(name):
            rollouts = min(int(looks_ahead[2]), MOST_ROLLOUTS + 1)
            if not 2 <= rollouts <= MOST_ROLLOUTS:
                raise InputError(
                    f"policy: look-ahead takes from 2 to {MOST_ROLLOUTS} rollouts here, got {looks_ahead[2]}"
                )
            policy = self.learned(looks_ahead[1], env).variant(name=name)
            return resolve(policy.with_rollouts(rollouts, horizon=HORIZON), env)
        return resolve(self.learned(name, env), env)

    def learned(self, name: str, env: BatchEnv) -> LearnedPolicy:
        """A served policy or a run's."""
        if name in self.policies:
            return self.policies[name].policy
        runs = {run["name"]: run["policy"] for run in runs_in(self.runs)}
        if runs.get(name):
            return LearnedPolicy.load(Path(runs[name])).variant(name=name)
        known = [*env.baselines(), *self.policies, *(run for run, file in runs.items() if file)]
        raise UnknownNameError(f"policy for {env.name}", name[:80], known)


def check_pairs(n: int, m: int) -> None:
    """Refuse an environment that is too large to play for a page."""
    if n * m > MOST_PAIRS:
        raise InputError(f"env: the page plays up to {MOST_PAIRS:,} pairs of an agent and a task, got {n} x {m}")


def sized(env: str, n: int, m: int) -> str:
    """The same environment with so many agents and tasks."""
    if min(n, m) < 1:
        raise InputError(f"a situation needs at least one agent and one task, got {n} and {m}")
    check_pairs(n, m)
    family, _, rest = env.partition(":")
    first, *options = rest.split(",")
    if family == "pursuit" and not any(option.strip().startswith("grid=") for option in options):
        # Its grid grows with the numbers; here the ground stays and those on it change.
        options.append(f"grid={PursuitSettings.from_text(rest).height}")
    if family in ("rescue", "pursuit"):
        return ",".join([f"{family}:{n}x{m}", *options])
    if family == "battle":
        units = re.sub(r"\d+v\d+$", "", first)
        # Some families have so many of each of two kinds.
        per = 2 if units == "zh" else 1
        if n % per or m % per:
            raise InputError(f"{units} battles have as many of both kinds of unit: even numbers, got {n} and {m}")
        return ",".join([f"battle:{units}{n // per}v{m // per}", *options])
    kept = [option for option in options if option.partition("=")[0] not in ("limit", "n_agents", "n_tasks")]
    if family == "fleet":
        return ",".join([f"fleet:{n}", *kept, f"limit={m}"])
    return ",".join([f"{family}:{first}", *kept, f"n_agents={n}", f"n_tasks={m}"])
