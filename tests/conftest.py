from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

# Before numpy is imported. Tests already run on every core: more threads would burn time waiting for each other.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from muster.envs.checks import run
from muster.learning import validation

LONG = ("tests/browser/", "tests/test_docs.py", "tests/test_notebooks.py", "tests/learning/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, so that no core waits at the end for another's."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture(scope="session", autouse=True)
def speed_and_runs_are_measured_briefly() -> Iterator[None]:
    """Some hundred environments are checked and runs validated here; tests that rely on a figure ask for more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "SPEED_SECONDS", 0.01)
        patch.setattr(validation, "EPISODES", 10)
        patch.setattr(validation, "LEAST_SECONDS", 0.5)
        yield
