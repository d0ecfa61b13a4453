from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

# Before numpy is imported. Tests already run on every core: more threads would burn time waiting for each other.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from muster.envs.checks import run

LONG = ("tests/browser/", "tests/test_docs.py", "tests/test_notebooks.py", "tests/learning/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, so that no core waits at the end for another's."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture(scope="session", autouse=True)
def speed_is_measured_briefly() -> Iterator[None]:
    """Environments are checked some hundred times here, and no test wants a figure of speed to rely on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "SPEED_SECONDS", 0.01)
        yield
