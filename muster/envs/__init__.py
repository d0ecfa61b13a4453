"""Environments: search and rescue, battles, and the base for a user's own.

Since version 1.0 gymnasium loads no plug-ins: a package registers its environments when it is imported. Importing
`muster.envs` does it, and so does `import muster` once gymnasium is there.
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
"""The ids under which gymnasium knows them, each with its family; empty for any environment."""

for _id, _family in IDS.items():
    if _id not in gymnasium.registry:
        gymnasium.register(
            id=_id,
            entry_point="muster.envs.gymnasium:single",
            vector_entry_point="muster.envs.gymnasium:vector",
            kwargs={"family": _family},
        )
