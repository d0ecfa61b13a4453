"""Logs of decisions: the file format, and an environment that has one decision of a log per episode."""

from muster.envs.log.env import LogEnv, from_options
from muster.envs.log.file import line_of, open_log, read_log

__all__ = ["LogEnv", "from_options", "line_of", "open_log", "read_log"]
