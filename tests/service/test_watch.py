"""What the page asks for: episodes, reasons, situations of its own, runs; and what it may not ask for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import muster
from muster.evaluation.replay import record
from muster.service.act import example
from muster.service.app import make_app
from muster.service.settings import ServeSettings
from tests.evaluation.test_film import fields_of
from tests.evaluation.test_runs import write_run

POLICY = "rescue-2x4-quad-dm"
EPISODE = {"env": "rescue:3x5", "seed": 4}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    shipped = Path(muster.__file__).parent / "policy" / "shipped"
    run = write_run(folder, "mine", 5)
    (run / "best.safetensors").write_bytes((shipped / "rescue-2x4-lp-dm.safetensors").read_bytes())
    app = make_app(ServeSettings(runs=folder), (POLICY, "battle-w15v17-quad-dm", "pursuit-4x2-quad-dm"))
    return TestClient(app, base_url="http://localhost")


def post(client: TestClient, path: str, **body: object) -> dict:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refusal(client: TestClient, path: str, **body: object) -> str:
    answer = client.post(path, json=body)
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]


def test_an_episode_is_the_one_that_a_replay_holds(client):
    found = post(client, "/watch/episode", **EPISODE, policies=[POLICY, "closest"])
    for k, policy in enumerate((POLICY, "closest")):
        kept = record(policy, "rescue:3x5", seed=4)
        assert fields_of(found, k)["assignment"][:-1].tolist() == kept.assignments.tolist()
        assert found["films"][k]["policy"] == policy
    # From memory it is the same.
    assert post(client, "/watch/episode", **EPISODE, policies=[POLICY, "closest"]) == found


def test_a_policy_that_looks_ahead_can_be_watched_and_understood(client):
    name = f"{POLICY}, 4 rollouts"
    found = post(client, "/watch/episode", **EPISODE, policies=[name, POLICY])
    wanted = record(muster.load(POLICY).with_rollouts(4, horizon=25), "rescue:3x5", seed=4)
    scored = post(client, "/watch/understand", **EPISODE, policy=name, step=0, agent=0)
    assert scored["played"] == [None if j < 0 else j for j in wanted.assignments[0].tolist()]
    assert "candidate rollouts" in scored["source"]
    assert [shown["policy"] for shown in found["films"]] == [name, POLICY]
    several = f"{POLICY}, 3 rollouts x 2 futures"
    found = post(client, "/watch/episode", **EPISODE, policies=[several])
    wanted = record(muster.load(POLICY).with_rollouts(3, futures=2), "rescue:3x5", seed=4)
    assert fields_of(found, 0)["assignment"][:-1].tolist() == wanted.assignments.tolist()
    for asked, refused in (("33 rollouts", "2 to 32 rollouts"), ("2 rollouts x 33 futures", "1 to 32 futures")):
        assert refused in refusal(client, "/watch/episode", **EPISODE, policies=[f"{POLICY}, {asked}"])


def test_a_run_in_the_folder_runs_under_its_name(client):
    environments = client.get("/watch/environments").json()["environments"]
    rescue = next(env for env in environments if env["kind"] == "rescue")
    assert {"name": "mine", "label": "run mine", "kind": "run"} in rescue["policies"]
    mine = post(client, "/watch/episode", **EPISODE, policies=["mine"])
    kept = record("rescue-2x4-lp-dm", "rescue:3x5", seed=4)
    assert fields_of(mine)["assignment"][:-1].tolist() == kept.assignments.tolist()


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        ("os:system", "no environment that this service runs 'os:system'"),
        ("examples.delivery:Delivery", "no environment that this service runs"),
        ("fleet:24,trips=/etc", "which a page may not read"),
        ("log:/etc/passwd", "no environment that this service runs 'log'"),
        ("rescue:400x400,grid=100", "up to 100,000 pairs"),
        ("rescue:2x4,grid=40_000", "up to 250,000 cells"),
        ("rescue:2x4,grid=5000", "up to 250,000 cells"),
        ("rescue:2x4,grid=999999999999", "cells"),
        ("rescue:2x4,max_steps=1000000", "up to 20,000 steps"),
        ("fleet:24, trips =/etc", "which a page may not read"),
        ("rescue:2", "rescue takes"),
        ("", "must name an environment"),
        (7, "env must be a valid string"),
    ],
)
def test_a_page_may_not_run_just_anything(client, env: object, complaint: str):
    assert complaint in refusal(client, "/watch/episode", env=env, seed=0, policies=["closest"])


@pytest.mark.parametrize("policy", ["/etc/passwd", "../x.safetensors", "rescue-5x10-lp-dm", "clossest", 3, ""])
def test_policies_are_those_that_are_served(client, policy: object):
    """A path is never opened, whatever it is."""
    assert "polic" in refusal(client, "/watch/episode", **EPISODE, policies=[policy])


@pytest.mark.parametrize("body", [{"seed": -1}, {"seed": 1.5}, {"seed": True}, {"policies": []}, {"polices": ["x"]}])
def test_what_does_not_fit_gets_a_sentence(client, body: dict):
    assert len(refusal(client, "/watch/episode", **{**EPISODE, "policies": ["closest"], **body})) > 20


@pytest.mark.parametrize("step", [0, 2, 1])
def test_reasons_are_those_of_the_step(client, step: int):
    """Forwards and backwards: what the policy itself decides there is what was recorded."""
    found = post(client, "/watch/understand", **EPISODE, policy=POLICY, step=step)
    kept = record(POLICY, "rescue:3x5", seed=4)
    played = [None if task < 0 else task for task in kept.assignments[step].tolist()]
    assert found["assignment"] == found["played"] == played
    assert found["own_method"] == "quad"
    env = muster.make("rescue:3x5", 1, seed=4)
    for assignment in kept.assignments[:step]:
        env.step(assignment[None])
    seen = env.observe()
    scores = np.where(seen.task_alive[0], muster.load(POLICY).scores(seen)[0][0], np.nan)
    assert np.array(found["scores"], float) == pytest.approx(scores, abs=1e-5, nan_ok=True)


def test_the_scores_stay_when_the_procedure_changes(client):
    found = {m: post(client, "/watch/understand", **EPISODE, policy=POLICY, step=0, method=m) for m in ("amax", "lp")}
    assert found["amax"]["scores"] == found["lp"]["scores"]
    best = [int(np.argmax([-np.inf if x is None else x for x in row])) for row in found["amax"]["scores"]]
    assert found["amax"]["assignment"] == best
    assert max(found["lp"]["loads"]) <= 1


def test_no_routes_are_made_of_scores_that_are_no_costs(client):
    assert "routes are made of" in refusal(
        client, "/watch/understand", **EPISODE, policy=POLICY, step=0, method="routes"
    )
    routes = post(client, "/watch/understand", **EPISODE, policy="closest", step=0, method="routes")["routes"]
    assert sorted(task for route in routes for task in route) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("env", "policy"),
    [("rescue:5x10", POLICY), ("battle:w15v17", "battle-w15v17-quad-dm"), ("pursuit:8x4", "pursuit-4x2-quad-dm")],
)
def test_a_situation_is_decided_as_act_decides_it(client, env: str, policy: str):
    begun = post(client, "/watch/begin", env=env, seed=1)
    agents, tasks = begun["agents"][:-2], begun["tasks"][:-1]
    capacities = [2.0, *begun["capacities"][1:-1]]
    found = post(client, "/watch/situation", env=env, policy=policy, agents=agents, tasks=tasks, capacities=capacities)
    assert np.abs(np.array(found["agents"]) - agents).max() <= 0.5
    acted = client.post("/act", json=found["act"]).json()
    assert acted["assignment"] == found["assignment"]
    assert acted["objective"] == pytest.approx(found["objective"])


def test_the_start_of_an_episode_is_decided_as_the_episode_was(client):
    begun = post(client, "/watch/begin", env="rescue:5x10", seed=7)
    where = {name: begun[name] for name in ("env", "agents", "tasks", "capacities")}
    found = post(client, "/watch/situation", policy=POLICY, **where)
    assert found["assignment"] == record(POLICY, "rescue:5x10", seed=7).assignments[0].tolist()


def test_a_fleet_can_be_arranged_too(client):
    begun = post(client, "/watch/begin", env="fleet:24,city=small", seed=0)
    found = post(
        client, "/watch/situation", env=begun["env"], policy="match", agents=begun["agents"][:5], tasks=begun["tasks"]
    )
    assert len(found["assignment"]) == 5


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"agents": []}, "at least one agent"),
        ({"agents": None}, "agents must be a valid list, got null"),
        ({"agents": [[1, 2, 3]]}, "agents must have x and y each"),
        ({"agents": [[1, "2"]]}, "agents[0][1] must be a valid number"),
        ({"tasks": [[1, 1e400]]}, "tasks[0]"),
        ({"capacities": [1]}, "capacities must have 2 entries"),
        ({"capacities": [1, -1]}, "must not be negative"),
        ({"agent": 5}, "agent must be from 0 to 0"),
        ({"method": "best"}, "method must be 'amax', 'lp', 'quad' or 'routes'"),
        ({"agents": [[0, 0]] * 401}, "at most 400"),
    ],
)
def test_a_bad_situation_gets_a_sentence(client, changes: dict, complaint: str):
    good = {"env": "rescue:2x4", "policy": POLICY, "agents": [[1, 1]], "tasks": [[2, 2], [3, 3]]}
    body = json.dumps({**good, **changes}).replace("Infinity", "1e400")
    answer = client.post("/watch/situation", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert complaint in answer.json()["error"]


def test_one_malformed_run_does_not_break_the_listing(tmp_path: Path):
    for k, config in enumerate(("seed = nan", "on = 5", "env = [1]\nseed = inf", "x" * 2**21, "\xff = [", "[" * 9999)):
        run = write_run(tmp_path, f"odd-{k}", 1)
        (run / "config.toml").write_text(config)
        (run / "metrics.jsonl").write_text('{"steps": NaN, "reward": 1e999, "validation": 2}\n[1]\n{"steps"\n3\n')
    write_run(tmp_path, "good", 2)
    with TestClient(make_app(ServeSettings(runs=tmp_path), (POLICY,)), base_url="http://localhost") as client:
        runs = client.get("/watch/runs").json()["runs"]
        assert len(runs) == 7
        assert client.get("/watch/environments").status_code == 200
        assert post(client, "/watch/curve", run="odd-0")["rows"] == [{"validation": 2}]


def test_listing_runs_imports_nothing(tmp_path: Path, monkeypatch):
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    write_run(tmp_path / "runs", "one", 1, env="planted:Env")
    with TestClient(make_app(ServeSettings(runs=tmp_path / "runs"), (POLICY,)), base_url="http://localhost") as client:
        assert client.get("/watch/runs").json()["runs"][0]["env"] == "planted:Env"
        kinds = [env["kind"] for env in client.get("/watch/environments").json()["environments"]]
        assert "planted:Env" not in kinds
        assert "runs 'planted:Env'" in refusal(
            client, "/watch/episode", env="planted:Env", seed=0, policies=["closest"]
        )


def test_serving_a_policy_imports_nothing_of_its_header(tmp_path: Path, monkeypatch):
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    policy, file = muster.load(POLICY), tmp_path / "odd.safetensors"
    policy.variant(header={**policy.header, "env": "planted:Env"}).save(file)
    with TestClient(make_app(ServeSettings(runs=tmp_path), (str(file),)), base_url="http://localhost") as client:
        assert client.get("/policies").json()["policies"][0]["env"] == "planted:Env"
        assert client.get("/watch/environments").status_code == 200
        assert client.get("/openapi.json").status_code == 200
        (served,) = client.app.service.policies.now.values()
        assert post(client, "/act", **example(served))["by"] == "policy"


def test_what_takes_too_long_is_told_what_to_do(tmp_path: Path):
    settings = ServeSettings(runs=tmp_path, time_limit=1.0)
    with TestClient(make_app(settings, (POLICY,)), base_url="http://localhost") as client:
        body = {"env": "rescue:20x40,grid=200", "seed": 0, "policies": [f"{POLICY}, 32 rollouts"]}
        answer = client.post("/watch/episode", json=body)
        assert (answer.status_code, answer.json()["code"]) == (503, "time_limit")
        assert "choose a smaller environment, or fewer rollouts" in answer.json()["error"]


def test_runs_do_not_say_where_they_are(client):
    (run,) = client.get("/watch/runs").json()["runs"]
    assert run["policy"] is True
    assert len(post(client, "/watch/curve", run="mine")["rows"]) == 5
    for name in ("../mine", "nobody", ""):
        assert "no run" in refusal(client, "/watch/curve", run=name)


def test_the_page_and_the_viewer_are_served(client):
    assert "app.js" in client.get("/").text
    assert client.get("/viewer/player.js").headers["content-type"].startswith("text/javascript")
    for name in ("secret.js", "__init__.py", "..%2Fpacking.py", "player.py"):
        assert client.get(f"/viewer/{name}").status_code == 404


def test_with_a_token_the_page_opens_and_its_questions_do_not(tmp_path: Path):
    secret = tmp_path / "token"
    secret.write_text("abc")
    guarded = TestClient(make_app(ServeSettings(token_file=secret), (POLICY,)), base_url="http://localhost")
    assert guarded.get("/").status_code == guarded.get("/viewer/viewer.css").status_code == 200
    assert guarded.get("/watch/environments").status_code == 401
    assert guarded.get("/watch/environments", headers={"Authorization": "Bearer abc"}).status_code == 200
