"""The environment checks: what everything that learns, evaluates or replays relies on."""

from muster.envs.checks.run import Finding, check_env

__all__ = ["Finding", "check_env"]
