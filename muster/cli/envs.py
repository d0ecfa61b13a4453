"""`muster envs`: the environments by name, or the models, inference procedures and learners."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, get_args


@dataclass(frozen=True)
class Envs:
    """List the environments: built-in, custom, and of installed packages."""

    kind: Literal["environment", "model", "inference", "learner"] = "environment"
    """What to list in place of environments."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Print the usage and a line about each environment, or part of the other kind."""
        from muster.assign.settings import Method
        from muster.custom import entries
        from muster.envs.registry import BUILT_IN, OWN_ABOUT, OWN_USAGE
        from muster.learning.settings import LearnerName
        from muster.models import ModelKind

        names = {"model": ModelKind, "inference": Method, "learner": LearnerName}
        if self.kind == "environment":
            found = {entry.usage: entry.about for entry in BUILT_IN.values()} | {OWN_USAGE: OWN_ABOUT}
        else:
            found = dict.fromkeys(get_args(names[self.kind]), "comes with muster")
        found |= {name: f"{text}, of an installed package" for name, text in entries(self.kind).items()}
        if self.json:
            print(json.dumps(found))
            return
        for usage, about in found.items():
            print(f"{usage}\n    {about}")
