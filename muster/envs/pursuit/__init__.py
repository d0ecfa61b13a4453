"""Pursuit: evaders on a grid flee, and are caught by several pursuers together."""

from muster.envs.pursuit.env import PursuitEnv, from_options
from muster.envs.pursuit.settings import PursuitSettings

__all__ = ["PursuitEnv", "PursuitSettings", "from_options"]
