"""A little of what benchmarks/service.py does at length: requests made from the OpenAPI document, good and bad."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from muster.service.app import make_app
from muster.service.settings import ServeSettings


@pytest.fixture(scope="module")
def client():
    with TestClient(
        make_app(ServeSettings(time_limit=600.0), ("rescue-2x4-quad-dm",)), base_url="http://localhost"
    ) as c:
        yield c


@pytest.mark.filterwarnings("ignore:no agent is assigned")
@pytest.mark.parametrize("path", ["/solve", "/check", "/act"])
def test_what_the_document_allows_and_forbids_is_answered_in_its_words(client, path):
    """Never a 5xx, never a status or a shape that the document does not have."""
    # Seconds that only who runs this should wait.
    import schemathesis
    from hypothesis import HealthCheck, given, settings

    document = client.get("/openapi.json").json()
    described = document["paths"][path]["post"]["responses"]
    operation = schemathesis.openapi.from_dict(document)[path]["POST"]
    seen = set()

    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE) | operation.as_strategy())
    @settings(max_examples=40, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def ask(case):
        body = case.body if isinstance(case.body, (dict, list, str, int, float, bool)) else None
        found = client.post(path, json=body)
        seen.add(found.status_code)
        assert found.status_code < 500
        assert str(found.status_code) in described
        if found.status_code != 200:
            assert found.json().keys() == {"code", "error", "where"}

    ask()
    assert seen >= {200 if path != "/act" else 404, 400}
