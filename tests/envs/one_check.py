"""One environment check by itself: what fails it need not be run through all the others."""

from __future__ import annotations

from typing import Any

import pytest

from muster.envs.checks import run
from muster.envs.checks.contract import CHECKS


def run_check(env: Any, name: str) -> run.Finding:
    """What `check_env` finds by one check."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "CHECKS", {name: CHECKS[name]})
        return run.check_env(env)[0]
