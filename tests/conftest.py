from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.envs.checks import run


@pytest.fixture(scope="session", autouse=True)
def speed_is_measured_briefly() -> Iterator[None]:
    """Environments are checked some hundred times here, and no test wants a figure of speed to rely on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "SPEED_SECONDS", 0.01)
        yield
