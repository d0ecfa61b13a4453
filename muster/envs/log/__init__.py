"""Logs of decisions: the file format, and an environment that has one decision of a log per episode."""

from muster.envs.log.env import LogEnv, from_options

__all__ = ["LogEnv", "from_options"]
