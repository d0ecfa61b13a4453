"""The ids under which gymnasium knows muster's environments.

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
"""Each with its family; empty for any environment."""


def register() -> None:
    """Tell gymnasium of every id; again does no harm. The environments themselves are imported when one is made."""
    for env_id, family in IDS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                id=env_id,
                entry_point="muster.envs.adapters.gymnasium:single",
                vector_entry_point="muster.envs.adapters.gymnasium:vector",
                kwargs={"family": family},
            )
