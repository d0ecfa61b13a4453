"""One environment check by itself: what fails it need not be run through all the others."""

from __future__ import annotations

from typing import Any

from muster.envs.checks import Finding, check_env
from muster.envs.checks.contract import CHECKS


def run_check(env: Any, name: str) -> Finding:
    """What `check_env` finds by one check."""
    return check_env(env, {name: CHECKS[name]})[0]
