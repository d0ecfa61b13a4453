from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.service.clients import BATTLE, FADING, FLEET, RESCUE, SCALED, client_of


@pytest.fixture(scope="package")
def client() -> Iterator[TestClient]:
    with client_of(RESCUE, BATTLE, FLEET, FADING, SCALED) as found:
        yield found
