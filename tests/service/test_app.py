"""The application in process: what is answered, what is refused and in which words."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from starlette.testclient import TestClient

import muster
from muster.envs.registry import make
from muster.policy.names import load, resolve
from muster.service import acting
from muster.service.app import make_app
from muster.service.served import serve_policies
from muster.service.settings import ServeSettings

LOCAL = "http://localhost"
RESCUE, BATTLE, FLEET = "rescue-2x4-quad-dm", "battle-w15v17-quad-dm", "fleet-24-lp-dm"
FADING, SCALED = "rescue-small-quad-dm", "rescue-5x10-quad-dm"


def client_of(*policies: str, **settings: object) -> TestClient:
    # Kernels may have to be compiled first.
    return TestClient(make_app(ServeSettings(**{"time_limit": 600.0} | settings), policies), base_url=LOCAL)


@pytest.fixture(scope="module")
def client():
    with client_of(RESCUE, BATTLE, FLEET, FADING, SCALED) as found:
        yield found


def situation_of(policy: str, env: str, seed: int = 0) -> tuple[dict[str, object], np.ndarray]:
    """A state of a world in the policy's own feature names, and what the policy does there."""
    world = make(env, seed=seed)
    player = resolve(policy, world)
    seen = player.spec.view(world.observe()) if not player.spec.centred else world.observe()
    features = serve_policies((policy,))[policy].features
    whole = {
        "agents": [dict(zip(features.agent, row, strict=True)) for row in seen.agent_features[0].tolist()],
        "tasks": {name: seen.task_features[0, :, k].tolist() for k, name in enumerate(features.task)},
        "pairs": {name: seen.pair_features[0, :, :, k].tolist() for k, name in enumerate(features.pair)},
        "task_pairs": {name: seen.task_pair_features[0, :, :, k].tolist() for k, name in enumerate(features.task_pair)},
        "contributions": seen.contributions[0].tolist(),
        "capacities": seen.capacities[0].tolist(),
        "world": None
        if seen.global_features is None
        else dict(zip(features.world, seen.global_features[0].tolist(), strict=True)),
        "prior": seen.prior[0].tolist() if player.spec.reads_prior else None,
        "allowed": None if seen.allowed is None else seen.allowed[0].tolist(),
    }
    return {name: value for name, value in whole.items() if value}, player.act(seen)[0]


def test_solving_answers_as_assign_does(client):
    rng = np.random.default_rng(0)
    scores, g = rng.normal(size=(4, 5)), rng.normal(size=(5, 5))
    found = client.post("/solve", json={"scores": scores.tolist(), "task_scores": g.tolist()}).json()
    expected = muster.assign(scores, g)
    assert found["assignment"] == [None if j < 0 else j for j in expected.assignment.tolist()]
    assert found["objective"] == expected.objective


def test_names_forbidden_pairs_and_a_previous_plan(client):
    body = {
        "scores": [[3, 2.9, None], [2.5, 0.5, 1]],
        "capacities": [1, None, 2],
        "agents": ["van", "bus"],
        "tasks": ["a", "b", "c"],
        "method": "lp",
    }
    free = client.post("/solve", json=body).json()
    assert free["assignment"] == ["b", "a"]
    assert free["changes"] is None
    held = client.post("/solve", json=body | {"previous": {"bus": "c"}, "switch_cost": 10}).json()
    assert held["assignment"] == ["a", "c"]
    assert held["changes"] == 0


def test_checking_a_plan(client):
    body = {"scores": [[3, 2], [2.5, 0.5]], "method": "lp"}
    worse = client.post("/check", json=body | {"assignment": [0, 1]}).json()
    assert (worse["feasible"], worse["value"], worse["better"]["assignment"]) == (True, 3.5, [1, 0])
    assert not client.post("/check", json=body | {"assignment": [0, 0]}).json()["feasible"]


def test_task_scores_act_on_loads_if_asked(client):
    body = {"scores": [[1.0], [1.0]], "task_scores": [[-0.2]], "contributions": [[0.5], [1.0]], "capacities": [9]}
    assert client.post("/solve", json=body).json()["objective"] == pytest.approx(2 - 0.2 * 4)
    by_load = client.post("/solve", json=body | {"crowd": "load", "effort": "exact"}).json()
    assert by_load["objective"] == pytest.approx(2 - 0.2 * 2.25)
    assert by_load["status"] == "optimal"
    checked = client.post("/check", json=body | {"crowd": "load", "assignment": [0, 0]}).json()
    assert checked["value"] == pytest.approx(by_load["objective"])
    refused = client.post("/solve", json=body | {"crowd": "load", "method": "lp"})
    assert refused.status_code == 422 or refused.status_code == 400
    assert "crowd 'load' is for method 'quad'" in refused.json()["error"]


@pytest.mark.parametrize(
    ("policy", "env"),
    [(RESCUE, "rescue:8x15"), (BATTLE, "battle:w15v17"), (FADING, "rescue:16x32"), (SCALED, "rescue:10x20")],
)
def test_acting_is_what_the_policy_does(client, policy, env):
    """Agents as objects, tasks as columns; one situation, and several of different sizes."""
    one, expected = situation_of(policy, env)
    found = client.post("/act", json={"policy": policy, "situation": one, "scores": True}).json()
    assert [-1 if j is None else j for j in found["assignment"]] == expected.tolist()
    assert np.shape(found["scores"]) == (len(expected), len(one["capacities"]))
    assert set(found["reasons"]) == {str(agent) for agent, j in enumerate(found["assignment"]) if j is None}
    other, second = situation_of(policy, env, seed=5)
    several = client.post("/act", json={"policy": policy, "situations": [one, other, one]}).json()["answers"]
    for answer, wanted in zip(several, (expected, second, expected), strict=True):
        assert [-1 if j is None else j for j in answer["assignment"]] == wanted.tolist()


def without_time(answer: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in answer.items() if name != "seconds"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/act", {"policy": RESCUE, "situation": situation_of(RESCUE, "rescue:8x15")[0], "scores": True}),
        (
            "/solve",
            {
                "scores": [[3, 2], [2.5, 1]],
                "contributions": [1, 1],
                "capacities": [1, 2],
                "previous": [1, 0],
                "switch_cost": [1, 0],
            },
        ),
        (
            "/solve",
            {
                "scores": [[3, 2]],
                "contributions": [[1, 0.5]],
                "capacities": [1, 1],
                "previous": [1],
                "switch_cost": [[1, 1]],
            },
        ),
        ("/check", {"scores": [[3, 2], [2.5, 1]], "assignment": [0, 1]}),
    ],
)
def test_both_readers_come_to_the_same_answer(client, path, body, monkeypatch):
    found = client.post(path, json=body)
    assert found.status_code == 200
    monkeypatch.setattr("muster.service.state.scanned", lambda body: None)
    assert without_time(client.post(path, json=body).json()) == without_time(found.json())


def test_small_decisions_are_made_on_the_spot_unless_there_are_many(client, monkeypatch):
    state = client.app.state.service
    body = {"policy": RESCUE, "situation": situation_of(RESCUE, "rescue:8x15")[0]}
    handed_over = []
    run = state.pool.run
    monkeypatch.setattr(state.pool, "run", lambda *given: handed_over.append(given) or run(*given))
    wanted = without_time(client.post("/act", json=body).json())
    assert (state.quick, len(handed_over)) == (0, 0)
    monkeypatch.setattr("muster.service.state.MOST_QUICK", 0)
    assert without_time(client.post("/act", json=body).json()) == wanted
    assert len(handed_over) == 1
    monkeypatch.undo()
    large = {"policy": RESCUE, "situation": situation_of(RESCUE, "rescue:20x40")[0]}
    monkeypatch.setattr(state.pool, "run", lambda *given: handed_over.append(given) or run(*given))
    client.post("/act", json=large)
    assert len(handed_over) == 2


def test_acting_with_a_prior_and_features_of_the_world(client):
    one, expected = situation_of(FLEET, "fleet:24,city=small")
    found = client.post("/act", json={"policy": FLEET, "situation": one}).json()
    assert [-1 if j is None else j for j in found["assignment"]] == expected.tolist()


def test_a_prior_that_would_be_ignored_is_refused(client):
    for policy, world, name in ((RESCUE, "rescue:2x4", "prior"), (FLEET, "fleet:24,city=small", "task_prior")):
        one, _ = situation_of(policy, world)
        m = len(one["capacities"])
        n = m if name == "task_prior" else len(one["agents"])
        more = {name: np.zeros((n, m)).tolist()}
        refused = client.post("/act", json={"policy": policy, "situation": one | more})
        assert refused.status_code == 400
        assert f"situation.{name} would be ignored" in refused.json()["error"]


def test_the_same_scores_under_another_procedure(client):
    one, _ = situation_of(RESCUE, "rescue:8x15")
    found = client.post("/act", json={"policy": RESCUE, "situation": one, "method": "amax", "scores": True}).json()
    assert found["assignment"] == np.argmax(found["scores"], axis=1).tolist()
    refused = client.post("/act", json={"policy": RESCUE, "situation": one, "method": "plan"})
    assert refused.status_code == 400
    assert "no routes" in refused.json()["error"]


EXAMPLE = {"agents": [{"x": 0, "y": 0}], "tasks": {"x": [0], "y": [0], "picked up": [0]}}
PAIRS = {"dx": [[0]], "dy": [[0]], "|dx|": [[0]], "|dy|": [[0]], "king moves": [[0]]}
GOOD = {**EXAMPLE, "pairs": PAIRS, "task_pairs": PAIRS}
FAR = {"dx": [[1e99]]}
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
        ("/solve", SCORES % "{}", "scores"),
        ("/solve", "{}", "scores"),
        ("/solve", '{"scores": [[1]], "capacities": [-1]}', "capacities"),
        ("/solve", '{"scores": [[1]], "capacities": [1, 2]}', "capacities"),
        ("/solve", '{"scores": [[1]], "allowed": [[1]]}', "allowed[0][0]"),
        ("/solve", '{"scores": [[1]], "forced": 1}', "forced"),
        ("/solve", '{"scores": [[1]], "method": "LP"}', "method"),
        ("/solve", '{"scores": [[1]], "time_limit": "1"}', "time_limit"),
        ("/solve", '{"scores": [[1]], "time_limit": NaN}', "time_limit"),
        ("/solve", '{"scores": [[1]], "time_limit": 1000}', "time_limit"),
        ("/solve", '{"scores": [[1]], "skores": 1}', "skores"),
        ("/solve", '{"score": [[1]]}', "score"),
        ("/solve", '{"scores": [[1], [2]], "agents": ["a", "a"]}', "agents[1]"),
        ("/solve", '{"scores": [[1]], "agents": ["a", "b"]}', "agents"),
        ("/solve", '{"scores": [[1]], "previous": [1]}', "previous[0]"),
        ("/solve", '{"scores": [[1]], "previous": [true]}', "previous[0]"),
        ("/solve", '{"scores": [[1]], "previous": [0], "switch_cost": -1}', "switch_cost"),
        ("/solve", '{"scores": [[1]], "switch_cost": 1}', "switch_cost"),
        ("/check", '{"scores": [[1]], "assignment": [0], "switch_cost": 1}', "switch_cost"),
        ("/solve", '{"scores": [[1]], "method": "plan", "routes": [[0.0]]}', "routes[0][0]"),
        ("/check", '{"scores": [[1]], "assignment": [0.5]}', "assignment[0]"),
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
        ("/act", {"policy": RESCUE, "situation": GOOD | {"switch_cost": 1}}, "situation.switch_cost"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"switch_cost": -1, "previous": [0]}}, "situation.switch_cost"),
        ("/act", {"policy": RESCUE, "situations": [GOOD, 3]}, "situations[1]"),
        ("/act", {"policy": RESCUE, "situation": GOOD | {"planes": 1}}, "situation"),
    ],
)
def test_what_is_not_as_it_should_be_is_refused_with_its_place(client, path, body, where):
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


def test_unknown_policies_and_addresses(client):
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


def test_other_sites_are_kept_out(client):
    """A page from elsewhere may neither read answers (CORS) nor pose as this one by a name that leads here."""
    found = client.get("/health", headers={"Origin": "https://example.org"})
    assert "access-control-allow-origin" not in found.headers
    assert client.get("/health", headers={"Host": "evil.example"}).status_code == 403
    with client_of(RESCUE, origins=("https://example.org",)) as open_to_one:
        for origin, allowed in (("https://example.org", True), ("https://evil.example", False)):
            found = open_to_one.get("/health", headers={"Origin": origin})
            assert ("access-control-allow-origin" in found.headers) == allowed


def test_every_answer_has_an_id_and_every_request_a_line(client, caplog):
    with caplog.at_level("INFO", logger="muster.service"):
        mine = client.post("/solve", json={"scores": [[123.25]]}, headers={"X-Request-ID": "mine-1"})
        odd = client.post("/solve", json={"scores": [["secret"]]}, headers={"X-Request-ID": "two words"})
    assert mine.headers["x-request-id"] == "mine-1"
    assert re.fullmatch("[0-9a-f]{32}", odd.headers["x-request-id"])
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert lines[0].startswith("id=mine-1 method=POST path=/solve status=200 ms=")
    assert "status=400" in lines[1]
    assert not any("123.25" in line or "secret" in line for line in lines)


def test_metrics_count_requests_and_have_no_labels_of_a_clients_making(client):
    client.get("/some/address/of/mine")
    client.request("BREW", "/health")
    text = client.get("/metrics").text
    assert 'muster_requests_total{method="GET",path="/metrics",status="200"}' in client.get("/metrics").text
    assert "muster_work_held" in text
    assert "address" not in text
    assert "BREW" not in text


def test_the_openapi_document_has_examples_that_are_answered(client):
    document = client.get("/openapi.json").json()
    asked = 0
    for path, methods in document["paths"].items():
        if "post" in methods and path in ("/solve", "/check", "/act"):
            schema = methods["post"]["requestBody"]["content"]["application/json"]["schema"]
            for example in schema["examples"]:
                asked += 1
                assert client.post(path, json=example).status_code == 200, path
    assert asked == 3


def test_a_mistake_of_ours_is_told_without_its_insides(monkeypatch):
    with client_of(RESCUE) as client:
        monkeypatch.setattr("muster.service.solving.assign", lambda **_: 1 / 0)
        found = client.post("/solve", json={"scores": [[1]]}, headers={"X-Request-ID": "abc"})
    assert (found.status_code, found.json()["code"]) == (500, "internal")
    assert "abc" in found.json()["error"]
    assert "division" not in found.text


def test_policies_that_read_planes_are_not_served():
    with pytest.raises(muster.InputError, match="reads planes"):
        make_app(ServeSettings(), ("rescue-2x4-quad-pem",))


def test_an_example_of_what_a_policy_reads_is_one():
    served = serve_policies(())
    for name in served:
        assert load(name).spec.kind in ("dm", "context")
        assert acting.act(acting.example(served[name]), served, 100)["assignment"]


def test_explanations_on_request(client):
    body = {"scores": [[3, 2], [2.5, 0.5]], "method": "lp", "agents": ["a", "b"], "explain": True}
    found = client.post("/solve", json=body).json()["explanation"]
    assert [row["agent"] for row in found["agents"]] == ["a", "b"]


def test_bodies_answered_together_get_the_answers_they_get_alone():
    names = ("rescue-2x4-quad-dm", "battle-w15v17-quad-dm")
    served = serve_policies(names)
    bodies = [
        {"policy": policy, "situation": situation_of(policy, env, seed)[0]}
        for seed in range(3)
        for policy, env in zip(names, ("rescue:2x4", "battle:w15v17"), strict=True)
    ]
    bodies.append({"policy": names[0], "situations": [situation_of(names[0], "rescue:3x5")[0], bodies[0]["situation"]]})
    bodies.append(bodies[0] | {"scores": True})
    bodies.append(bodies[0] | {"method": "lp"})
    asked = [acting.read_asked(body, served, 250_000) for body in bodies]
    together = acting.answer_together(asked)
    assert [without_time(answer) for answer in together] == [without_time(one.answer()) for one in asked]
