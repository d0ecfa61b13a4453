"""`muster policies`: baselines and shipped policies by name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tyro.conf import Positional

from muster.errors import MusterError

if TYPE_CHECKING:
    from muster.envs.vector import BatchEnv


@dataclass(frozen=True)
class Policies:
    """List the policies: the baselines of each environment, and the learned ones that ship with muster."""

    env: Positional[str] = ""
    """Only the baselines of this environment, such as rescue:2x4 or your own package.module:Class."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Print a line about each policy, by environment."""
        from muster.envs.registry import EXAMPLES, make
        from muster.policy.names import shipped

        policies: dict[str, dict[str, str]] = {}
        for env in [self.env] if self.env else EXAMPLES:
            try:
                batch_env = make(env)
            except MusterError:
                if self.env:
                    raise
                continue
            family = env if self.env else env.partition(":")[0]
            policies[family] = {name: _about(name, batch_env) for name in batch_env.baselines()}
            policies[family] |= _prior(batch_env, named=bool(self.env))
        if not self.env:
            policies["learned"] = shipped()
        if self.json:
            print(json.dumps(policies))
            return
        for family, abouts in policies.items():
            print(family)
            for name, about in abouts.items():
                print(f"    {name:24}{about}")


def _prior(batch_env: BatchEnv, named: bool) -> dict[str, str]:
    """A line about the policy `prior`; of an environment without a prior, only if the user named it."""
    from muster.policy.learned import PRIOR, prior_policy

    try:
        prior_policy(batch_env)
    except MusterError as refusal:
        return {PRIOR: f"not here: {refusal}"} if named else {}
    return {PRIOR: "The inference on the environment's own prior, nothing learned."}


def _about(name: str, batch_env: BatchEnv) -> str:
    """The baseline's `about`, else the first line of its docstring, else why this environment does not have it."""
    try:
        policy = batch_env.baselines()[name](batch_env)
    except MusterError as refusal:
        return f"not here: {refusal}"
    text = policy.about if hasattr(policy, "about") else policy.__doc__
    return (text or "").strip().partition("\n")[0]
