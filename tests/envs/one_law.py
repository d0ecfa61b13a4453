"""One law of the checker by itself: what breaks it need not be tried on all the others."""

from __future__ import annotations

from typing import Any

import pytest

from muster.envs import checker
from muster.envs.laws import LAWS


def try_law(env: Any, law: str) -> checker.Finding:
    """What `check` finds out about one law."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checker, "LAWS", {law: LAWS[law]})
        return checker.check(env)[0]
