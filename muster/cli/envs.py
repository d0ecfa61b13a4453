"""`muster envs`: the environments by name."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Envs:
    """List the environments: built-in, custom, and of installed packages."""

    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Print the usage and a line about each environment."""
        from muster.custom import entries
        from muster.envs.registry import BUILT_IN, OWN_ABOUT, OWN_USAGE

        environments = {entry.usage: entry.about for entry in BUILT_IN.values()} | {OWN_USAGE: OWN_ABOUT}
        environments |= {name: f"{text}, of an installed package" for name, text in entries("environment").items()}
        if self.json:
            print(json.dumps(environments))
            return
        for usage, about in environments.items():
            print(f"{usage}\n    {about}")
