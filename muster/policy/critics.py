"""The critic of a run, for look-ahead: what is still to be earned where a rollout is cut off."""

from __future__ import annotations

from pathlib import Path

from muster.errors import ModelFileError
from muster.models.values import NETS, EntityValues
from muster.policy.learned import Critic

PREFIX = "learner/critic/"
"""Of the critic's arrays in the checkpoint of a run."""


def run_critic(folder: str | Path) -> Critic | None:
    """The entity critic that the actor-critic left in the folder of a run; None where there is none."""
    from safetensors import SafetensorError, safe_open

    path = Path(folder) / "checkpoint.safetensors"
    if not path.exists():
        return None
    try:
        with safe_open(str(path), framework="numpy") as file:
            names = [name for name in file.keys() if name.startswith(PREFIX)]  # noqa: SIM118
            arrays = {name.removeprefix(PREFIX): file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged ({error})") from None
    return EntityValues(arrays) if all(f"{net}.0.weight" in arrays for net in NETS) else None
