"""Environments: search and rescue, battles, pursuit, fleets, logs, and the base classes of custom ones.

Importing `muster.envs` registers them with gymnasium, and so does `import muster` after gymnasium was imported: since
version 1.0 gymnasium loads no plug-ins.
"""

from __future__ import annotations

import gymnasium as gym  # the submodule muster.envs.gymnasium takes the other name

IDS = {
    "muster/SearchRescue-v0": "rescue",
    "muster/Battle-v0": "battle",
    "muster/Pursuit-v0": "pursuit",
    "muster/Fleet-v0": "fleet",
    "muster/Assignment-v0": "",
}
"""{gymnasium id: family of environments}; an empty family stands for any environment."""


def register() -> None:
    """Register the environments with gymnasium, unless they are registered already."""
    for name, family in IDS.items():
        if name not in gym.registry:
            gym.register(
                id=name,
                entry_point="muster.envs.gymnasium:single",
                vector_entry_point="muster.envs.gymnasium:vector",
                kwargs={"family": family},
            )


register()
