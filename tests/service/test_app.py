from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from muster.service.app import make_app
from muster.service.settings import ServeSettings

LOCAL = "http://localhost"


@pytest.fixture(scope="module")
def client():
    app = make_app(ServeSettings(), ("rescue-2x4-quad-dm",))
    return TestClient(app, base_url=LOCAL)


def test_health_and_policies(client):
    assert client.get("/health").json()["status"] == "alive"
    (card,) = client.get("/policies").json()["policies"]
    assert card["feature_names"]["agent"] == ["x", "y"]


def test_solving(client):
    found = client.post("/solve", json={"scores": [[3, 2], [2.5, 0.5]], "method": "lp"})
    assert found.json()["assignment"] == [1, 0]
