"""What the application refuses, and in which words."""

from __future__ import annotations

import json

import pytest

from muster.errors import InputError
from muster.service.act import example
from muster.service.settings import ServeSettings
from tests.service.clients import EXAMPLE, GOOD, PAIRS, RESCUE, client_of

SCORES = '{"scores": %s}'


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/solve", SCORES % "[[1, NaN]]", "scores[0][1]"),
        ("/solve", SCORES % "[[1, 2], [3, Infinity]]", "scores[1][1]"),
        ("/solve", SCORES % "[[1e400]]", "scores[0][0]"),
        ("/solve", SCORES % ("[[1%s]]" % ("0" * 400)), "scores[0][0]"),
        ("/solve", SCORES % '[[1, "3.5"]]', "scores[0][1]"),
        ("/solve", SCORES % "[[true]]", "scores[0][0]"),
        ("/solve", SCORES % "[[1, 2], [3]]", "scores[1]"),
        ("/solve", SCORES % "[1, 2]", "scores[0]"),
        ("/solve", SCORES % "[[1], 2]", "scores[1]"),
        ("/solve", SCORES % "[[1, [2]], [3, 4]]", "scores[0][1]"),
        ("/solve", SCORES % "[[1, 2, 3], [4]]", "scores[1]"),
        ("/solve", SCORES % "{}", "scores"),
        ("/solve", SCORES % "null", "scores"),
        ("/solve", "{}", "scores"),
        ("/solve", '{"scores": [[1]], "capacities": [-1]}', "capacities"),
        ("/solve", '{"scores": [[1]], "capacities": [1, 2]}', "capacities"),
        ("/solve", '{"scores": [[1]], "allowed": [[1]]}', "allowed[0][0]"),
        ("/solve", '{"scores": [[1]], "assign_all": 1}', "assign_all"),
        ("/solve", '{"scores": [[1]], "method": "LP"}', "method"),
        ("/solve", '{"scores": [[1]], "time_limit": "1"}', "time_limit"),
        ("/solve", '{"scores": [[1]], "time_limit": NaN}', "time_limit"),
        ("/solve", '{"scores": [[1]], "time_limit": 1000}', "time_limit"),
        ("/solve", '{"scores": [[1]], "skores": 1}', "skores"),
        ("/solve", '{"score": [[1]]}', "score"),
        ("/solve", '{"scores": [[1], [2]], "agents": ["a", "a"]}', "agents[1]"),
        ("/solve", '{"scores": [[1]], "agents": ["a", "b"]}', "agents"),
        ("/solve", '{"scores": [[1]], "previous": [1]}', "previous"),
        ("/solve", '{"scores": [[1]], "previous": [true]}', "previous[0]"),
        ("/solve", '{"scores": [[1]], "previous": [0], "switch_cost": -1}', "switch_cost"),
        ("/solve", '{"scores": [[1]], "switch_cost": 1}', "switch_cost"),
        ("/check", '{"scores": [[1]], "assignment": [0], "switch_cost": 1}', "switch_cost"),
        ("/solve", '{"scores": [[1]], "method": "routes", "routes": [[0.0]]}', "routes[0][0]"),
        ("/check", '{"scores": [[1]], "assignment": [0.5]}', "assignment[0]"),
        ("/solve", '{"scores": {"a": {"x": NaN}}}', "scores.a.x"),
        ("/solve", '{"scores": {"a": 3}}', "scores.a"),
        ("/solve", '{"scores": [{"agent": "a", "task": "x", "score": "3"}]}', "scores[0].score"),
        ("/solve", '{"scores": [{"agent": "a", "task": "x"}]}', "scores[0].score"),
        ("/solve", '{"scores": {"a": {"x": 1}}, "capacities": {"x": true}}', "capacities.x"),
        ("/solve", '{"scores": [[1]], "sense": "least"}', "sense"),
        ("/act", '{"policy": "rescue-2x4-quad-dm"}', "situation"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"agents": [{"x": 0}]}}, "situation.agents[0].y"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"agents": [{"x": 0, "z": 0}]}}, "situation.agents[0]"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"agents": [{"x": 0, "y": "1"}]}}, "situation.agents[0].y"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"agents": {"x": [0], "y": [0, 1]}}}, "situation.agents.y"),
        ("/act", {"policy": RESCUE, "situation": EXAMPLE}, "situation.pairs.dx"),
        (
            "/act",
            {"policy": RESCUE, "situation": GOOD | {"pairs": PAIRS | {"dx": [[1e99]]}}},
            "situation.pairs.dx[0][0]",
        ),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"previous": [1]}}, "situation.previous[0]"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"agent_names": ["a", "a"]}}, "situation.agent_names[1]"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"task_names": [3]}}, "situation.task_names[0]"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"previous": {"a": 0}}}, "situation.previous"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"switch_cost": 1}}, "situation.switch_cost"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"switch_cost": -1, "previous": [0]}}, "situation.switch_cost"),
        ("/act", {"policy": RESCUE, "situations": [GOOD, 3]}, "situations[1]"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"planes": 1}}, "situation.planes"),
    ],
)
def test_a_wrong_entry_is_refused_by_its_name(client, path, body, where):
    text = body if isinstance(body, str) else json.dumps(body)
    found = client.post(path, content=text, headers={"Content-Type": "application/json"})
    assert found.status_code == 400, found.text
    assert found.json().keys() == {"code", "error", "where"}
    assert (found.json()["code"], found.json()["where"]) == ("input", where), found.text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"scores": [[1]], "scores": [[2]]}', "uplicate key"),
        (b"[" * 100_000, "recursion limit"),
        (b'{"scores": ' + b"[" * 5000 + b"]" * 5000 + b"}", "recursion limit"),
        (b"[1]", "must be a JSON object, got a list"),
        (b"\xff", "not JSON"),
        (b"", "not JSON"),
        (b"{'scores': 1}", "not JSON"),
    ],
)
def test_bodies_that_are_no_json_objects_are_refused(client, body, words):
    found = client.post("/solve", content=body, headers={"Content-Type": "application/json"})
    assert (found.status_code, found.json()["code"]) == (400, "input")
    assert words in found.json()["error"]


def test_an_unknown_field_is_told_which_there_are(client):
    found = client.post("/solve", json={"scores": [[1]], "capacites": [1]}).json()
    assert found["error"] == "no field 'capacites'; did you mean 'capacities'?"
    found = client.post("/act", json={"policy": RESCUE, "situation": GOOD | {"globl": {}}}).json()
    assert (found["error"], found["where"]) == ("no field 'globl'; did you mean 'global'?", "situation.globl")


def test_a_prior_that_the_policy_reads_must_be_given():
    with client_of("rescue-2x4-routes-dm") as client:
        body = example(next(iter(client.app.service.policies.now.values())))
        assert client.post("/act", json=body).status_code == 200
        for key in ("prior", "task_prior"):
            left_out = {name: value for name, value in body["situation"].items() if name != key}
            for situation in (left_out, left_out | {key: None}):
                found = client.post("/act", json=body | {"situation": situation}).json()
                assert found == {"code": "input", "error": f"situation.{key} is missing", "where": f"situation.{key}"}


def test_unknown_policies_and_paths(client):
    found = client.post("/act", json={"policy": "rescue-2x4-quad-dn", "situation": GOOD})
    assert (found.status_code, found.json()["code"]) == (404, "not_found")
    assert f"did you mean {RESCUE!r}" in found.json()["error"]
    assert client.get("/nothing").json()["code"] == "not_found"
    wrong = client.get("/solve")
    assert (wrong.status_code, wrong.json()["code"], wrong.headers["allow"]) == (405, "method", "POST")
    assert wrong.json()["error"] == "GET is not known here; try POST"
    assert client.post("/solve", content="{}", headers={"Content-Type": "text/plain"}).json()["code"] == "media_type"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"scores": [[0] * 201] * 50}, "50 x 201 agents and tasks are 10,050 pairs"),
        ({"scores": [[0] * 1500]}, "1500 x 1500 tasks"),
    ],
)
def test_problems_that_are_too_large_are_refused(body, words):
    """The second would pair all tasks with all tasks."""
    with client_of(RESCUE, size_limit=10_000) as client:
        found = client.post("/solve", json=body)
        assert (found.status_code, found.json()["code"]) == (413, "too_large")
        assert words in found.json()["error"]
        assert client.post("/solve", json={"scores": [[0] * 1500], "method": "lp"}).status_code == 200
        long = client.post("/solve", json={"scores": [[0]] * 5001, "method": "lp"})
        assert "at most 5,000 of a kind" in long.json()["error"]
        many = client.post("/act", json={"policy": RESCUE, "situations": [GOOD] * 10_001})
        assert many.json()["code"] == "too_large"


def test_bodies_that_are_too_large_are_refused():
    with client_of(RESCUE, body_limit=1000) as client:
        found = client.post("/solve", content=b" " * 1001, headers={"Content-Type": "application/json"})
    assert (found.status_code, found.json()["code"]) == (413, "too_large")
    assert found.headers["connection"] == "close"


def test_a_token_guards_everything_but_health_and_the_page(tmp_path):
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    with client_of(RESCUE, token_file=secret) as client:
        for path in ("/policies", "/metrics", "/openapi.json", "/nothing.js"):
            assert client.get(path).status_code == 401, path
        assert client.post("/solve", json={"scores": [[1]]}).json()["code"] == "unauthorized"
        for wrong in ("Bearer wrong", "s3cret", "Basic s3cret", "Bearer s3cret2", "Bearer \xe9"):
            found = client.get("/policies", headers={"Authorization": wrong.encode("latin-1")})
            assert found.status_code == 401
        assert client.get("/policies", headers={"Authorization": "Bearer s3cret"}).status_code == 200
        assert client.get("/health").status_code == 200
        assert client.get("/").status_code == 200


def test_a_page_from_elsewhere_with_a_token_gets_through(tmp_path):
    """The browser asks first, without the token, whether it may ask at all."""
    secret = tmp_path / "token"
    secret.write_text("s3cret")
    origin = {"Origin": "https://example.org"}
    with client_of(RESCUE, token_file=secret, origins=("https://example.org",)) as client:
        preflight = client.options("/solve", headers=origin | {"Access-Control-Request-Method": "POST"})
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == "https://example.org"
        asked = client.post("/solve", json={"scores": [[1]]}, headers=origin | {"Authorization": "Bearer s3cret"})
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, "https://example.org")
        refused = client.post("/solve", json={"scores": [["x"]]}, headers=origin | {"Authorization": "Bearer s3cret"})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (400, "https://example.org")
        assert client.post("/solve", json={"scores": [[1]]}, headers=origin).status_code == 401


def test_no_page_from_elsewhere_frames_this_one(client):
    assert client.get("/").headers["content-security-policy"] == "frame-ancestors 'none'"


def test_a_service_that_others_reach_needs_a_token():
    with pytest.raises(InputError, match="--insecure"):
        ServeSettings(host="0.0.0.0")
    assert ServeSettings(host="0.0.0.0", insecure=True).insecure


def test_other_sites_are_kept_out(client):
    """A page from elsewhere may neither read answers (CORS) nor pose as this one by a name that leads here."""
    found = client.get("/health", headers={"Origin": "https://example.org"})
    assert "access-control-allow-origin" not in found.headers
    assert client.get("/health", headers={"Host": "evil.example"}).status_code == 403
    with client_of(RESCUE, origins=("https://example.org",)) as open_to_one:
        for origin, allowed in (("https://example.org", True), ("https://evil.example", False)):
            found = open_to_one.get("/health", headers={"Origin": origin})
            assert ("access-control-allow-origin" in found.headers) == allowed
