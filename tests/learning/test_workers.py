"""Many processes, one result: the same bits for any number of workers, whatever becomes of them."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from muster.errors import EnvError, MusterError, UnknownNameError
from muster.learning import es, ppo
from muster.learning.es import assign_candidates, columns_of
from muster.learning.learners import make_learner, make_pool
from muster.learning.optimiser import TrainingError
from muster.learning.run import stored_settings
from muster.learning.settings import TrainSettings
from muster.learning.train import run_training
from muster.learning.workers import ATTEMPTS, WorkerLostError, WorkerPool, as_sent, closing, shares
from tests.learning.pools import Reused, run_with

OWN = "tests.learning.toy:Priced"
PPO = {"num_envs": 7, "ppo": {"rollout_length": 5, "minibatches": 2}}
LEARNERS: dict[str, dict[str, Any]] = {
    "ppo": {"learner": "ppo", "inference": "lp", "steps": 150, **PPO},
    "ppo-rescue": {"inference": "quad", "steps": 400, **PPO, "num_envs": 9},
    "ppo-waiting": {"inference": "quad", "steps": 200, **PPO},
    "ppo-wages": {"inference": "lp", "steps": 400, **PPO},
    "a2c": {"learner": "a2c", "inference": "quad", "steps": 150, "num_envs": 7},
    "es": {"learner": "es", "model": "dm", "inference": "lp", "steps": 60, "es": {"pairs": 3, "episodes": 2}},
    "es-linear": {"learner": "es", "model": "linear", "steps": 60, "es": {"pairs": 3, "episodes": 2}},
    "es-rescue": {"learner": "es", "inference": "quad", "steps": 600, "es": {"pairs": 3, "episodes": 2}},
}
ENVS: dict[str, Any] = {"es": OWN, "ppo": OWN, "a2c": "tests.learning.toy:Errands", "ppo-waiting": "rescue:6x7"}
ENVS["es-linear"] = "tests.learning.toy:Corrected"
ENVS["ppo-wages"] = "tests.learning.toy:Wages,ends=false"
SIZES = ("rescue:2x4", "rescue:3x5,max_steps=12")


def settings_of(name: str, **more: Any) -> TrainSettings:
    usual: dict[str, Any] = {"env": ENVS.get(name, SIZES), "evaluate_episodes": 2, "log_every": 40}
    return TrainSettings(**usual | LEARNERS[name] | more)


@pytest.fixture(scope="module")
def executor():
    executor = Reused()
    yield executor
    executor.end()


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def state(folder: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(folder / "checkpoint.safetensors")


def rows(folder: Path) -> list[dict[str, Any]]:
    """The log without what depends on the workers."""
    changing = ("cpu_seconds", "steps_per_second", "update_seconds", "idle", "messages", "message_bytes")
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name not in changing} for row in found]


@pytest.mark.parametrize("name", LEARNERS)
def test_any_number_of_workers_gives_the_same_bits(name, executor, tmp_path):
    settings = settings_of(name)
    folders = [tmp_path / str(workers) for workers in (0, 1, 2, 3)]
    for workers, folder in enumerate(folders):
        run_with(executor, settings, workers, folder)
    for folder in folders[1:]:
        assert same(state(folders[0]), state(folder))
        assert rows(folders[0]) == rows(folder)
    logged = json.loads((folders[2] / "metrics.jsonl").read_text().splitlines()[-1])
    assert 0 <= logged["idle"] <= 1
    assert logged["messages"] >= 4
    assert logged["message_bytes"] > 100
    assert logged["update_seconds"] > 0


def test_workers_share_episodes_before_candidates():
    assert [columns_of(workers, [16]) for workers in range(1, 9)] == [1, 2, 1, 4, 1, 2, 1, 8]
    assert columns_of(4, [6, 5, 5]) == 1
    settings = TrainSettings(env=SIZES, learner="es", es={"pairs": 2, "episodes": 8})
    pool = WorkerPool(Silent(), 6)  # type: ignore[arg-type]
    assign_candidates(pool, settings, None, None, [4, 4])  # type: ignore[arg-type]
    run = [
        (who, env, which)
        for job in pool.jobs
        for who in range(*job.candidates)
        for env, (first, last) in enumerate(job.episodes)
        for which in range(first, last)
    ]
    assert sorted(run) == [(who, env, which) for who in range(4) for env in range(2) for which in range(4)]


# Step size and mean of a linear model by es depend on the length of the run; test_resume.py goes on with one.
@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in ("ppo-waiting", "es-linear")])
def test_a_run_goes_on_with_another_number_of_workers(name, executor, tmp_path, monkeypatch):
    """In parts, so that nothing may depend on how long the run is to be."""
    for module in (es, ppo):
        monkeypatch.setattr(module, "cosine_decay", lambda progress: 1.0)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    steps = LEARNERS[name]["steps"]
    run_with(executor, settings_of(name), 0, whole)
    for workers, length in ((2, steps // 3), (0, 2 * steps // 3), (3, steps)):
        run_with(executor, settings_of(name, steps=length), workers, parts)
    # What is kept of the second half of a run does depend on its length.
    ends = [{k: v for k, v in state(one).items() if not k.startswith(("mean/", "quarter"))} for one in (whole, parts)]
    assert same(*ends)


@pytest.mark.parametrize("name", ["es", "ppo-rescue"])
def test_a_worker_that_dies_or_hangs_is_replaced_and_changes_nothing(name, executor):
    plain = make_learner(settings_of(name))
    with closing(WorkerPool(executor, 2)) as pool:
        disturbed = make_learner(settings_of(name), pool)
        call, calls = pool.call, 0

        def strike(*arguments):
            """Between two updates, and in the second environment of one, if there is such."""
            nonlocal calls
            calls += 1
            if calls == 2:
                os.kill(pool.workers[1].child.pid, signal.SIGKILL)
            if calls == 3:
                pool.patience = 0.3
                os.kill(pool.workers[0].child.pid, signal.SIGSTOP)
            if calls == 6:
                os.kill(pool.workers[1].child.pid, signal.SIGKILL)
            found = call(*arguments)
            pool.patience = 60.0
            return found

        pool.call = strike
        for _ in range(3):
            plain.update()
            disturbed.update()
        assert pool.replaced == (2 if name == "es" else 3)
    assert same(plain.get_state()[0], disturbed.get_state()[0])


class Silent:
    """An executor whose workers always fail."""

    started = 0

    def start(self):
        self.started += 1
        return self

    def send(self, data):
        raise WorkerLostError("it fell")

    def receive(self):
        raise WorkerLostError("it fell")

    def wait(self, workers, seconds):
        return list(workers)

    def end(self):
        pass

    close = end


def test_a_share_that_costs_worker_after_worker_is_given_up_with_a_sentence():
    executor = Silent()
    pool = WorkerPool(executor, 1)  # type: ignore[arg-type]
    pool.assign([None])  # type: ignore[list-item]
    with pytest.raises(TrainingError, match=r"lost 3 times over the same share of an update \(it fell\)"):
        pool.call(["hello"])
    assert executor.started == ATTEMPTS


def test_errors_of_an_environment_arrive_as_what_they_are():
    error = pickle.loads(pickle.dumps(as_sent(EnvError("step() of Falls failed"))))
    assert isinstance(error, EnvError)
    assert str(error) == "step() of Falls failed"
    try:
        raise KeyError("nothing")
    except KeyError as unexpected:
        told = pickle.loads(pickle.dumps(as_sent(unexpected)))
    assert str(told).startswith("a worker failed: KeyError")
    assert "Traceback" in told.__notes__[0]
    unknown = as_sent(UnknownNameError("policy", "clsest", ["closest"]))
    assert "did you mean 'closest'" in str(pickle.loads(pickle.dumps(unknown)))


def test_an_environment_that_fails_in_a_worker_ends_the_run_with_its_sentence(executor, tmp_path):
    settings = TrainSettings(
        env="tests.learning.toy:Sealed", learner="es", inference="lp", steps=200, es={"pairs": 2, "episodes": 2}
    )
    with pytest.raises(EnvError, match=r"step\(\) of .*Sealed failed at .*ValueError: sealed.*--resume goes on"):
        run_with(executor, settings, 2, tmp_path / "run")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"workers": "many"}, "workers must be a whole number or auto or none, got 'many'"),
        ({"learner": "ppo", "workers": 65}, r"there are 64 slots .* too few for 65 workers"),
        (
            {"learner": "ppo", "model": "pem", "workers": 2},
            "models of torch run in one process; leave out --workers",
        ),
        pytest.param(
            {"cluster": "local"},
            r"--cluster needs",
            marks=pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed"),
        ),
        ({"learner": "imitation", "teacher": "x", "workers": 2}, "the learner imitation runs in one process"),
        ({"workers": 7}, r"there are 6 candidates .* too few for 7 workers; use at most 6"),
    ],
)
def test_numbers_of_workers_that_make_no_sense_are_refused(more, message):
    with pytest.raises(MusterError, match=message):
        make_pool(settings_of("es", **more))


def test_one_worker_is_the_run_itself():
    assert make_pool(settings_of("es", workers=1)) is None
    pool = make_pool(settings_of("es", workers="auto"))
    assert pool is None or 1 <= pool.size <= 6


def test_shares_cover_everything_once():
    for size in (1, 5, 64):
        for parts in range(1, size + 1):
            found = shares(size, parts)
            assert [k for begin, end in found for k in range(begin, end)] == list(range(size))
            lengths = [end - begin for begin, end in found]
            assert max(lengths) - min(lengths) <= 1


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_until(true, seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes where Linux lists them")
def test_a_killed_run_leaves_no_worker_behind_and_goes_on(tmp_path):
    """The command itself: a worker is killed, then the run; resumed without workers, it ends as if nothing had been."""
    settings = settings_of("es", steps=1500, log_every=100)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_training(settings, whole)
    command = [sys.executable, "-m", "muster", "train", "--config", str(whole / "config.toml"), "--out", str(broken)]
    run = subprocess.Popen([*command, "--workers", "2"], stderr=subprocess.DEVNULL)
    wait_until((broken / "checkpoint.safetensors").exists)
    workers = children(run.pid)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    before = (broken / "metrics.csv").stat().st_size
    wait_until(lambda: run.poll() is not None or (broken / "metrics.csv").stat().st_size > before)
    workers = children(run.pid) or workers
    run.kill()
    run.wait()
    wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    assert stored_settings(broken).workers == 2
    assert subprocess.run([*command, "--resume", "--workers", "1"], stderr=subprocess.DEVNULL).returncode == 0
    assert same(state(whole), state(broken))
    assert rows(whole) == rows(broken)
