"""The environment checks, on which learning, evaluation and replays rely."""

from muster.envs.checks.run import Finding, check_env

__all__ = ["Finding", "check_env"]
