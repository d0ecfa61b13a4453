"""Decisions that somebody took, from a file: situations without a simulator."""

from muster.envs.log.env import LogEnv, from_options

__all__ = ["LogEnv", "from_options"]
