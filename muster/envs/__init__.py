"""Environments: search and rescue, battles, pursuit, fleets, logs, and the base classes of custom ones.

Importing `muster.envs` registers them with gymnasium, and so does `import muster` after gymnasium was imported: since
version 1.0 gymnasium loads no plug-ins.
"""

from __future__ import annotations

import gymnasium

IDS = {
    "muster/SearchRescue-v0": "rescue",
    "muster/Battle-v0": "battle",
    "muster/Pursuit-v0": "pursuit",
    "muster/Fleet-v0": "fleet",
    "muster/Assignment-v0": "",
}
"""{gymnasium id: family of environments}; an empty family stands for any environment."""

for _id, _family in IDS.items():
    if _id not in gymnasium.registry:
        gymnasium.register(
            id=_id,
            entry_point="muster.envs.gymnasium:single",
            vector_entry_point="muster.envs.gymnasium:vector",
            kwargs={"family": _family},
        )
