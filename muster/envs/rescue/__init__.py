"""Search and rescue: ambulances on a grid pick up victims (the paper's first experiment)."""

from muster.envs.rescue.env import RescueEnv, from_options
from muster.envs.rescue.settings import RescueSettings

__all__ = ["RescueEnv", "RescueSettings", "from_options"]
