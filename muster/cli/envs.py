from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Envs:
    """The environments there are."""

    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """List them."""
        from muster.custom import entries
        from muster.envs.registry import BUILT_IN, OWN_ABOUT, OWN_USAGE

        found = {entry.usage: entry.about for entry in BUILT_IN.values()} | {OWN_USAGE: OWN_ABOUT}
        found |= {name: f"{text}, of an installed package" for name, text in entries("environment").items()}
        if self.json:
            print(json.dumps(found))
            return
        for usage, about in found.items():
            print(f"{usage}\n    {about}")
