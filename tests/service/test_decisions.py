"""What production asks of decisions: a log that can be learned from, versions, a shadow, a guard and a fallback."""

from __future__ import annotations

import gc
import json
import resource
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import muster
from examples.couriers import Couriers
from muster.cli.main import main
from muster.client import Client, ServiceError
from muster.data import BatchObservation
from muster.envs.env import Baseline
from muster.errors import InputError
from muster.evaluation.replay import Replay
from muster.policy.names import SHIPPED
from muster.service import decide as decider_module
from muster.service.act import as_situation, read_request
from muster.service.app import make_app
from muster.service.decide import DecisionLog
from muster.service.settings import ServeSettings
from tests.policy.policy_files import write_random_policy
from tests.service.clients import FLEET, GOOD, LOCAL, RESCUE, client_of
from tests.service.test_app import situation_of
from tests.service.test_server import NEEDS_PROC, Service

OTHER = "rescue-2x4-lp-dm"


class NumberedCouriers(Couriers):
    """With a baseline that reads ids, which /act is not given."""

    @classmethod
    def baselines(cls) -> dict[str, Baseline]:
        return super().baselines() | {"numbered": lambda observation: observation.agent_ids % 2}


def lines_of(folder: Path) -> list[dict]:
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]


def wait_for(folder: Path, count: int) -> list[dict]:
    end = time.monotonic() + 20
    while len(lines_of(folder)) < count:
        assert time.monotonic() < end
        time.sleep(0.05)
    return lines_of(folder)


def test_decisions_are_logged_and_can_be_replayed_evaluated_and_learned_from(tmp_path, capsys):
    folder = tmp_path / "decisions"
    with client_of(FLEET, decision_log=folder) as client:
        answers = []
        for seed in range(30):
            one, _ = situation_of(FLEET, "fleet:24,city=small", seed)
            answers.append(client.post("/act", json={"policy": FLEET, "situation": one}).json())
        lines = wait_for(folder, 30)
    version = answers[0]["policy"]
    assert version.startswith(f"{FLEET}@")
    assert {line["policy"] for line in lines} == {version}
    assert all(line["seconds"] > 0 and line["by"] == "policy" and len(line["id"]) == 32 for line in lines)
    for line, answer in zip(lines, answers, strict=True):
        assert line["assignment"] == [-1 if task is None else task for task in answer["assignment"]]
        assert line["reasons"] == answer["reasons"]
    main(["evaluate", FLEET, f"log:{folder}", "--episodes", "all", "--json"])
    assert json.loads(capsys.readouterr().out)["mean"] == 1.0
    replay = tmp_path / "one.json"
    main(["replay", "taken", f"log:{folder}", "--seed", "3", "--out", str(replay)])
    assert Replay.load(replay).outcome == 1.0
    run = tmp_path / "run"
    main(["train", "--from-log", str(folder), "--inference", "lp", "--steps", "200", "--out", str(run)])
    main(["evaluate", str(run), f"log:{folder}", "--episodes", "all", "--json"])
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1])["mean"] > 0.2


def test_files_of_the_log_are_of_limited_size(tmp_path):
    log = DecisionLog(tmp_path, file_bytes=1000)
    for k in range(100):
        log.write({"assignment": [k], "agent_features": np.ones((3, 2), np.float32)})
    assert len(list(tmp_path.iterdir())) > 3
    assert all(file.stat().st_size < 1200 for file in tmp_path.iterdir())
    assert len(lines_of(tmp_path)) == 100


@NEEDS_PROC
def test_a_full_disk_leaves_no_half_line(tmp_path):
    log = DecisionLog(tmp_path)
    log.write({"id": "first"})
    (file,) = tmp_path.iterdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 10, limits[1]))
    try:
        with pytest.raises(InputError, match="cannot write"):
            log.write({"id": "second, which is too long"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    log.write({"id": "third"})
    assert [line["id"] for line in lines_of(tmp_path)] == ["first", "third"]


@pytest.mark.parametrize("failing", ["DecisionLog.write", "Decider._compare"])
def test_what_fails_after_an_answer_is_logged_once_with_the_id_of_the_request(failing, tmp_path, monkeypatch, caplog):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with client_of(RESCUE, shadow=OTHER, decision_log=tmp_path) as client:
        body, headers = {"policy": RESCUE, "situations": [GOOD, GOOD]}, {"X-Request-ID": "mine.1"}
        usual = client.post("/act", json=body).json()
        wait_for(tmp_path, 2)
        monkeypatch.setattr(f"muster.service.decide.{failing}", fail)
        found = client.post("/act", json=body, headers=headers).json()
        assert found | {"seconds": 0} == usual | {"seconds": 0}
        end = time.monotonic() + 20
        while not caplog.records or client.app.service.decider._background:
            assert time.monotonic() < end
            time.sleep(0.05)
        gc.collect()
    (record,) = caplog.records
    assert record.getMessage().startswith("id=mine.1 was answered")
    assert "No space left on device" in record.getMessage()
    assert len(lines_of(tmp_path)) == (4 if failing.endswith("_compare") else 2)


def test_a_shadow_decides_beside_the_answer(tmp_path):
    with client_of(RESCUE, shadow=OTHER, decision_log=tmp_path) as client:
        for seed in range(5):
            one, expected = situation_of(RESCUE, "rescue:5x10", seed)
            found = client.post("/act", json={"policy": RESCUE, "situation": one}).json()
            assert found["assignment"] == expected.tolist()
        lines = wait_for(tmp_path, 5)
        text = client.get("/metrics").text
    for line in lines:
        assert line["shadow"]["policy"].startswith(f"{OTHER}@")
        assert line["shadow"]["agreement"] == np.mean(np.equal(line["shadow"]["assignment"], line["assignment"]))
    same, other = (
        float(text.partition(f'muster_shadow_agents_total{{policy="{OTHER}",same="{label}"}} ')[2].split()[0])
        for label in ("true", "false")
    )
    assert same + other == 25
    assert same == round(5 * sum(line["shadow"]["agreement"] for line in lines))
    assert f'muster_shadow_score_difference_count{{policy="{OTHER}"}} 5.0' in text


def test_features_beyond_training_are_counted_named_and_left_to_the_fallback():
    usual, _ = situation_of(RESCUE, "rescue:2x4")
    odd = usual | {"tasks": usual["tasks"] | {"x": [1.2, 0, 0, 0]}}
    with client_of(RESCUE) as client:
        assert "warnings" not in client.post("/act", json={"policy": RESCUE, "situation": usual}).json()
        found = client.post("/act", json={"policy": RESCUE, "situation": odd}).json()
        assert found["by"] == "policy"
        assert "task feature 'x' is 1.2; training saw" in found["warnings"][0]
        counted = f'muster_feature_out_of_range_total{{feature="task.x",policy="{RESCUE}"}} 1.0'
        assert counted in client.get("/metrics").text
    one, _ = situation_of(FLEET, "fleet:24,city=small")
    expected = muster.make("fleet:24,city=small")
    with client_of(FLEET, fallback="match") as client:
        assert client.post("/act", json={"policy": FLEET, "situation": one}).json()["by"] == "policy"
        name = next(iter(one["tasks"]))
        wild = one | {"tasks": one["tasks"] | {name: [1e6] * len(one["tasks"][name])}}
        found = client.post("/act", json={"policy": FLEET, "situation": wild}).json()
        assert found["by"] == "fallback"
        assert "far from what training saw" in found["warnings"][0]
        matched = expected.baselines()["match"](expected).act(expected.observe())[0]
        assert [-1 if task is None else task for task in found["assignment"]] == matched.tolist()
        assert 'by="fallback"' in client.get("/metrics").text


def test_the_fallback_answers_where_the_model_fails_or_is_late(monkeypatch):
    one, _ = situation_of(FLEET, "fleet:24,city=small")
    with client_of(FLEET, fallback="match", time_limit=0.5, threads=1) as client:
        monkeypatch.setattr("muster.service.decide.decide", lambda *_: 1 / 0)
        found = client.post("/act", json={"policy": FLEET, "situation": one}).json()
        assert (found["by"], found["warnings"]) == ("fallback", ["the policy failed"])
        released = threading.Event()
        monkeypatch.setattr("muster.service.decide.decide", lambda *_: released.wait(20))
        monkeypatch.setattr("muster.service.decide.MAX_QUICK", 0)
        found = client.post("/act", json={"policy": FLEET, "situation": one}).json()
        assert (found["by"], found["warnings"]) == ("fallback", ["the policy did not answer in time"])
        released.set()


def test_a_baseline_of_a_custom_environment_answers_where_envs_names_it(tmp_path, monkeypatch):
    couriers = "tests.service.test_decisions:NumberedCouriers"
    name = str(write_random_policy(tmp_path / "mine.safetensors", f"{couriers},n_agents=2"))
    with pytest.raises(InputError, match=f"--envs {couriers}"):
        client_of(name, fallback="nearest")
    with pytest.raises(InputError, match="has no baseline 'closest'"):
        client_of(name, fallback="closest", envs=(couriers,))
    with pytest.raises(InputError, match="reads more than /act is given"):
        client_of(name, fallback="numbered", envs=(couriers,))
    env = muster.make(couriers, n_agents=4, n_tasks=9)
    with client_of(name, fallback="nearest", envs=(f"{couriers},n_agents=3",)) as client:
        served = client.app.service.policies.now[name]
        monkeypatch.setattr(decider_module, "decide", lambda *_: 1 / 0)
        found = client.post("/act", json={"policy": name, "situation": as_situation(served, env.observe())}).json()
    nearest = env.baselines()["nearest"](env).act(env.observe())[0]
    assert (found["by"], found["status"], found["assignment"]) == ("fallback", "nearest", nearest.tolist())


def test_each_of_those_decided_together_has_its_own_outcome(monkeypatch):
    usual, _ = situation_of(FLEET, "fleet:24,city=small")
    sizes = len(usual["agents"]), len(usual["tasks"][next(iter(usual["tasks"]))])
    decider = make_app(ServeSettings(fallback="match"), (FLEET,)).service.decider

    def decided(*changes: dict[str, object]) -> list[object]:
        bodies = [{"policy": FLEET, "situation": usual | change} for change in changes]
        return decider.decide_all([read_request(body, decider.policies, 10_000) for body in bodies])

    capacities = {"capacities": [1.0] * sizes[1]}
    (first,), refused, (last,) = decided(capacities, {"capacities": [-1.0] * sizes[1]}, capacities)
    assert "capacit" in str(refused)
    assert first.answer == last.answer
    assert first.answer["by"] == "policy"
    decide = decider_module.decide

    def fail_on_a_mark(observation: BatchObservation, *others: object) -> object:
        return 1 / 0 if (observation.contributions == 0.5).any() else decide(observation, *others)

    monkeypatch.setattr(decider_module, "decide", fail_on_a_mark)
    marked, plain = ({"contributions": np.full(sizes, value).tolist()} for value in (0.5, 1.0))
    assert [one.answer["by"] for (one,) in decided(plain, marked, plain)] == ["policy", "fallback", "policy"]


@pytest.fixture
def reloadable(tmp_path) -> tuple[TestClient, Path]:
    file, secret = tmp_path / "mine.safetensors", tmp_path / "token"
    shutil.copy(SHIPPED / f"{RESCUE}.safetensors", file)
    secret.write_text("abc")
    app = make_app(ServeSettings(token_file=secret), (str(file),))
    return TestClient(app, base_url=LOCAL, headers={"Authorization": "Bearer abc"}), file


def test_policies_are_replaced_and_rolled_back_by_version(reloadable):
    client, file = reloadable

    def version() -> str:
        return client.post("/act", json={"policy": str(file), "situation": GOOD}).json()["policy"].partition("@")[2]

    first = version()
    shutil.copy(SHIPPED / f"{OTHER}.safetensors", file)
    assert version() == first
    assert client.post("/admin/reload", json={}).json()["policies"] == {str(file): version()}
    second = version()
    assert second != first
    pinned = client.post("/act", json={"policy": f"{file}@{first}", "situation": GOOD})
    assert (pinned.status_code, second in pinned.json()["error"]) == (404, True)
    file.write_bytes(b"damaged")
    assert client.post("/admin/reload", json={}).status_code == 400
    assert version() == second
    client.post("/admin/reload", json={"rollback": True})
    assert version() == first
    assert 'muster_reloads_total{outcome="failed"} 1.0' in client.get("/metrics").text


def test_reloading_needs_a_token(client):
    assert client.post("/admin/reload", json={}).status_code == 403


@NEEDS_PROC
@pytest.mark.parametrize("processes", ["1", "2"])
def test_reloading_under_load_loses_no_request(processes, tmp_path):
    file = tmp_path / "mine.safetensors"
    shutil.copy(SHIPPED / f"{RESCUE}.safetensors", file)
    service = Service("--processes", processes, policy=str(file))
    versions: list[str] = []
    failures: list[BaseException] = []
    enough = threading.Event()

    def ask() -> None:
        try:
            with Client(f"http://127.0.0.1:{service.port}", retries=0) as client:
                while not enough.is_set():
                    versions.append(client.act(str(file), GOOD).policy)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    shutil.copy(SHIPPED / f"{OTHER}.safetensors", tmp_path / "next")
    (tmp_path / "next").replace(file)
    end = time.monotonic() + 60
    while len(versions) < 20:
        assert time.monotonic() < end, failures
        time.sleep(0.05)
    service.process.send_signal(signal.SIGHUP)
    while len(set(versions[-50:])) != 1 or versions[-1] == versions[0]:
        assert time.monotonic() < end, failures
        time.sleep(0.1)
    enough.set()
    for thread in threads:
        thread.join()
    service.end()
    assert failures == []
    assert len(set(versions)) == 2


def test_a_client_with_typed_answers():
    with Service() as service, Client(f"http://127.0.0.1:{service.port}") as client:
        assert client.solve([[3, 2], [2.5, 0.5]], method="lp").assignment == [1, 0]
        assert client.check([[3, 2]], [0])["feasible"]
        decision = client.act(RESCUE, GOOD)
        assert (decision.assignment, decision.by) == ([0], "policy")
        assert [one.assignment for one in client.act_all(RESCUE, [GOOD, GOOD])] == [[0], [0]]
        assert client.policies()[0]["name"] == RESCUE
        job = client.submit([[1, 2]], method="lp")
        assert list(client.progress(job.id, every=0.05))[-1].answer["assignment"] == [1]
        with pytest.raises(ServiceError, match="must be a valid number") as error:
            client.solve([["x"]])
        assert (error.value.status, error.value.where) == (400, "scores[0][0]")
    with pytest.raises(ServiceError, match="does not answer"), Client("http://127.0.0.1:1", retries=1) as client:
        client.policies()
