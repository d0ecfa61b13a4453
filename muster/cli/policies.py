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
    """The policies there are: fixed rules of each environment, and learned ones that come with muster."""

    env: Positional[str] = ""
    """Only the rules of this environment, such as rescue:2x4 or your own package.module:Class."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """List them."""
        from muster.envs.registry import EXAMPLES, make
        from muster.policy.names import shipped

        found: dict[str, dict[str, str]] = {}
        for env in [self.env] if self.env else EXAMPLES:
            try:
                world = make(env)
            except MusterError:
                if self.env:
                    raise
                continue
            family = env if self.env else env.partition(":")[0]
            found[family] = {name: _about(name, world) for name in world.baselines()}
        if not self.env:
            found["learned"] = shipped()
        if self.json:
            print(json.dumps(found))
            return
        for family, policies in found.items():
            print(family)
            for name, about in policies.items():
                print(f"    {name:24}{about}")


def _about(name: str, world: BatchEnv) -> str:
    """A line of the policy's own, if it has one, or the first of its documentation, or why it cannot be had."""
    try:
        policy = world.baselines()[name](world)
    except MusterError as refusal:
        return f"not here: {refusal}"
    return getattr(policy, "about", None) or (policy.__doc__ or "").strip().partition("\n")[0]
