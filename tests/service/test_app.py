"""The application in process: what is answered."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time

import numpy as np
import pytest

import muster
from muster.envs.registry import make
from muster.policy.names import load, resolve
from muster.service.act import example, read_request
from muster.service.app import make_app
from muster.service.errors import encode
from muster.service.policies import Policies, serve_policies
from muster.service.settings import ServeSettings
from tests.service.clients import BATTLE, FADING, FLEET, RESCUE, SCALED, client_of
from tests.service.test_pool import finish


def situation_of(policy: str, env: str, seed: int = 0) -> tuple[dict[str, object], np.ndarray]:
    """A state of an environment in the policy's own feature names, and what the policy does there."""
    made = make(env, seed=seed)
    acting = resolve(policy, made)
    seen = acting.spec.read(made.observe()) if not acting.spec.centred else made.observe()
    features = serve_policies((policy,))[policy].features
    whole = {
        "agents": [dict(zip(features.agent, row, strict=True)) for row in seen.agent_features[0].tolist()],
        "tasks": {name: seen.task_features[0, :, k].tolist() for k, name in enumerate(features.task)},
        "pairs": {name: seen.pair_features[0, :, :, k].tolist() for k, name in enumerate(features.pair)},
        "task_pairs": {name: seen.task_pair_features[0, :, :, k].tolist() for k, name in enumerate(features.task_pair)},
        "contributions": seen.contributions[0].tolist(),
        "capacities": seen.capacities[0].tolist(),
        "global": None
        if seen.global_features is None
        else dict(zip(features.global_, seen.global_features[0].tolist(), strict=True)),
        "prior": seen.prior[0].tolist() if acting.spec.reads_prior else None,
        "allowed": None if seen.allowed is None else seen.allowed[0].tolist(),
    }
    return {name: value for name, value in whole.items() if value}, acting.act(seen)[0]


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
    by_load = client.post("/solve", json=body | {"task_scores_on": "load", "effort": "exact"}).json()
    assert by_load["objective"] == pytest.approx(2 - 0.2 * 2.25)
    assert by_load["status"] == "optimal"
    checked = client.post("/check", json=body | {"task_scores_on": "load", "assignment": [0, 0]}).json()
    assert checked["value"] == pytest.approx(by_load["objective"])
    refused = client.post("/solve", json=body | {"task_scores_on": "load", "method": "lp"})
    assert refused.status_code == 422 or refused.status_code == 400
    assert "task_scores_on 'load' is for method 'quad'" in refused.json()["error"]


def test_minimums_fixed_agents_and_costs(client):
    body = {"scores": {"ann": {"J1": 3, "J7": 5}, "bob": {"J1": 4, "J7": 4.5}, "cy": {"J7": 1}}}
    assert client.post("/solve", json=body | {"minimums": {"J7": 2}}).json()["assignment"] == ["J7", "J1", "J7"]
    held = client.post("/solve", json=body | {"minimums": {"J7": 2}, "fixed": {"bob": "J7"}}).json()
    assert held["assignment"] == ["J7", "J7", None]
    cheap = client.post("/solve", json=body | {"minimums": 1, "sense": "min", "explain": True}).json()
    assert (cheap["assignment"], cheap["objective"]) == (["J1", None, "J7"], 4.0)
    assert cheap["explanation"]["agents"][0]["score"] == 3.0
    refused = client.post("/solve", json=body | {"minimums": 2})
    assert refused.status_code == 400
    assert "task 'J1' needs 2 more" in refused.text


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


def test_small_decisions_are_made_on_the_event_loop_and_large_ones_on_a_thread(client, monkeypatch):
    pool = client.app.service.pool
    handed_over = []
    run = pool.run
    monkeypatch.setattr(pool, "run", lambda *given: handed_over.append(given) or run(*given))
    body = {"policy": RESCUE, "situation": situation_of(RESCUE, "rescue:8x15")[0]}
    expected = without_time(client.post("/act", json=body).json())
    assert len(handed_over) == 0
    assert without_time(client.post("/act", json=body | {"effort": "best"}).json())["by"] == "policy"
    assert len(handed_over) == 1
    large = {"policy": RESCUE, "situation": situation_of(RESCUE, "rescue:20x40")[0]}
    client.post("/act", json=large)
    assert len(handed_over) == 3
    monkeypatch.setattr("muster.service.decide.MAX_QUICK", 0)
    assert without_time(client.post("/act", json=body).json()) == expected


def test_acting_with_a_prior_and_global_features(client):
    one, expected = situation_of(FLEET, "fleet:24,city=small")
    found = client.post("/act", json={"policy": FLEET, "situation": one}).json()
    assert [-1 if j is None else j for j in found["assignment"]] == expected.tolist()


def test_a_prior_that_would_be_ignored_is_refused(client):
    for policy, env, name in ((RESCUE, "rescue:2x4", "prior"), (FLEET, "fleet:24,city=small", "task_prior")):
        one, _ = situation_of(policy, env)
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
    refused = client.post("/act", json={"policy": RESCUE, "situation": one, "method": "routes"})
    assert refused.status_code == 400
    assert "no routes" in refused.json()["error"]


def test_every_answer_has_an_id_and_every_request_a_line(client, capsys):
    capsys.readouterr()
    mine = client.post("/solve", json={"scores": [[123.25]]}, headers={"X-Request-ID": "mine-1"})
    odd = client.post("/solve", json={"scores": [["secret"]]}, headers={"X-Request-ID": "two words"})
    assert mine.headers["x-request-id"] == "mine-1"
    assert re.fullmatch("[0-9a-f]{32}", odd.headers["x-request-id"])
    lines = [line.partition(" id=")[2] for line in capsys.readouterr().err.splitlines()]
    assert len(lines) == 2
    assert lines[0].startswith("mine-1 method=POST path=/solve status=200 ms=")
    assert "status=400" in lines[1]
    assert not any("123.25" in line or "secret" in line for line in lines)


def test_metrics_have_no_labels_of_a_clients_making(client):
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
    assert asked == 4


def test_a_mistake_of_ours_is_told_without_its_insides(monkeypatch):
    with client_of(RESCUE) as client:
        monkeypatch.setattr("muster.service.solve.assign", lambda **_: 1 / 0)
        found = client.post("/solve", json={"scores": [[1]]}, headers={"X-Request-ID": "abc"})
    assert (found.status_code, found.json()["code"]) == (500, "internal")
    assert "abc" in found.json()["error"]
    assert "division" not in found.text


def test_policies_that_read_planes_are_not_served():
    with pytest.raises(muster.InputError, match="reads planes"):
        make_app(ServeSettings(), ("rescue-2x4-quad-pem",))


def test_an_example_of_what_a_policy_reads_is_one():
    policies = Policies(())
    for name, served in policies.now.items():
        assert load(name).spec.kind in ("dm", "context")
        assert len(read_request(example(served), policies, 100).situations) == 1


def test_explanations_on_request(client):
    body = {"scores": [[3, 2], [2.5, 0.5]], "method": "lp", "agents": ["a", "b"], "explain": True}
    found = client.post("/solve", json=body).json()["explanation"]
    assert [row["agent"] for row in found["agents"]] == ["a", "b"]


def test_requests_decided_together_get_the_answers_they_get_alone(client):
    names = (RESCUE, BATTLE)
    bodies = [
        {"policy": policy, "situation": situation_of(policy, env, seed)[0]}
        for seed in range(3)
        for policy, env in zip(names, ("rescue:2x4", "battle:w15v17"), strict=True)
    ]
    bodies.append({"policy": names[0], "situations": [situation_of(names[0], "rescue:3x5")[0], bodies[0]["situation"]]})
    bodies.append(bodies[0] | {"scores": True})
    bodies.append(bodies[0] | {"method": "lp"})
    decider = client.app.service.decider

    async def ask_all() -> list[dict[str, object]]:
        return await asyncio.gather(*(decider.act(json.dumps(body).encode(), "test") for body in bodies))

    together = finish(ask_all())
    alone = [client.post("/act", json=body).json() for body in bodies]
    for one, other in zip(together, alone, strict=True):
        assert json.loads(encode(without_time(one))) == without_time(other)


def test_agents_and_tasks_by_name(client):
    one, expected = situation_of(RESCUE, "rescue:3x5")
    names = {"agent_names": ["anna", "ben", "cleo"], "task_names": list("vwxyz")}
    found = client.post("/act", json={"policy": RESCUE, "situation": one | names}).json()
    assert found["assignment"] == ["vwxyz"[j] for j in expected]
    kept = names | {"previous": {"anna": "z"}, "switch_cost": 1000.0}
    assert client.post("/act", json={"policy": RESCUE, "situation": one | kept}).json()["assignment"][0] == "z"


def test_costs_are_minimised_by_name(client):
    costs = {"van": {"a": 3, "b": 1}, "bus": {"a": 2, "b": 5}}
    body = {"scores": costs, "sense": "min", "assign_all": True, "method": "lp"}
    found = client.post("/solve", json=body).json()
    assert dict(zip(found["agents"], found["assignment"], strict=True)) == {"van": "b", "bus": "a"}
    assert found["objective"] == 3.0
    records = [{"agent": i, "task": j, "score": c} for i, row in costs.items() for j, c in row.items()]
    assert client.post("/solve", json=body | {"scores": records}).json()["objective"] == 3.0
    table = {"scores": [[3, 1], [2, 5]], "sense": "min", "assign_all": True, "method": "lp"}
    assert client.post("/solve", json=table).json()["assignment"] == [1, 0]


def test_an_explanation_keeps_the_time_limit():
    """Two of these once took the solver down for good, while /ready said 200."""
    rng = np.random.default_rng(0)
    n = 300
    body = {
        "scores": rng.normal(size=(n, n)).round(3).tolist(),
        "contributions": rng.uniform(0.5, 1.5, (n, n)).round(3).tolist(),
        "capacities": [3] * n,
        "effort": "best",
        "explain": True,
    }
    with client_of(RESCUE, time_limit=1.0, threads=1) as client:
        began = time.monotonic()
        slow = client.post("/solve", json=body)
        assert (slow.status_code, slow.json()["code"]) == (503, "time_limit")
        assert time.monotonic() - began < 8.0
        assert client.post("/solve", json={"scores": [[1, 2], [3, 4]]}).status_code == 200
        assert client.get("/ready").status_code == 200


def test_readiness_ends_while_every_thread_is_overdue(monkeypatch):
    released = threading.Event()
    with client_of(RESCUE, time_limit=0.2, threads=1) as client:
        monkeypatch.setattr("muster.service.solve.assign", lambda **_: released.wait(20))
        assert client.post("/solve", json={"scores": [[1]]}).json()["code"] == "time_limit"
        assert client.get("/ready").status_code == 503
        assert "muster_work_overdue 1.0" in client.get("/metrics").text
        released.set()
        time.sleep(0.2)
        assert client.get("/ready").status_code == 200
        assert "muster_work_late 1.0" in client.get("/metrics").text


def test_long_solves_are_jobs(client):
    rng = np.random.default_rng(0)
    n = 60
    body = {"scores": rng.normal(size=(n, n)).tolist(), "task_scores": rng.normal(size=(n, n)).tolist()}
    job = client.post("/jobs", json=body | {"effort": "best", "time_limit": 60}).json()
    path = f"/jobs/{job['id']}"
    while client.get(path).json()["objective"] is None:
        time.sleep(0.1)
    shown = client.get(path).json()
    assert shown["status"] == "running"
    assert shown["bound"] >= shown["objective"]
    assert client.delete(path).json()["status"] == "cancelled"
    assert client.get(path).json()["answer"]["assignment"] == shown["answer"]["assignment"]
    quick = client.post("/jobs", json={"scores": [[1, 2]], "method": "lp"}).json()
    while (found := client.get(f"/jobs/{quick['id']}").json())["status"] != "done":
        time.sleep(0.05)
    assert (found["answer"]["assignment"], found["bound"]) == ([1], 2.0)
    assert client.get("/jobs/none").status_code == 404
    assert client.post("/jobs", json={"scores": [["x"]]}).json()["where"] == "scores[0][0]"
