"""Fleet: vehicles of a ride service take the requests of each minute, from recorded trips or a simulated city."""

from muster.envs.fleet.baselines import upper_bound
from muster.envs.fleet.env import FleetEnv, from_options
from muster.envs.fleet.settings import FleetSettings

__all__ = ["FleetEnv", "FleetSettings", "from_options", "upper_bound"]
