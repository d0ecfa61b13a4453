"""A user's environment that raises while it is trained on: one sentence, and nothing lost of the run."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any, ClassVar

import numpy as np
import pytest

import muster
from muster.data import Ints
from muster.envs.env import Observation
from tests.envs.one_check import run_check
from tests.learning.toy import Pairing


class Falls(Pairing):
    left: ClassVar[int] = 0

    def step(self, assignment: Ints) -> tuple[float, bool]:
        Falls.left -= 1
        if Falls.left == 0:
            raise RuntimeError("the sky")
        return super().step(assignment)


ENV = "tests.learning.test_failing_env:Falls"
SETTINGS: dict[str, Any] = {"learner": "es", "inference": "lp", "es": {"pairs": 4, "episodes": 2}}


def test_an_environment_that_fails_at_once_leaves_the_folder_to_the_next_try(tmp_path):
    Falls.left = 1
    with pytest.raises(muster.EnvError, match="the sky") as caught:
        muster.train(ENV, steps=200, out=tmp_path / "run", **SETTINGS)
    assert "--resume" not in str(caught.value)
    Falls.left = 0
    assert muster.train(ENV, steps=200, out=tmp_path / "run", **SETTINGS).header["steps"] >= 200


def test_what_was_learned_is_kept_and_the_run_goes_on(tmp_path):
    Falls.left = 400
    with pytest.raises(muster.EnvError, match=r"step\(\) of .*Falls failed at .*Error: the sky") as caught:
        muster.train(ENV, steps=2000, out=tmp_path / "run", **SETTINGS)
    assert "--resume goes on from there" in str(caught.value)
    assert muster.load(str(tmp_path / "run" / "last.safetensors")).parameters
    Falls.left = 0
    policy = muster.train(ENV, steps=2000, out=tmp_path / "run", resume=True, **SETTINGS)
    assert policy.header["steps"] >= 2000


class LosesABaseline(Pairing):
    given: ClassVar[Any] = None

    @classmethod
    def baselines(cls) -> Any:
        return cls.given


def stumble(seen: Observation) -> Ints:
    raise RuntimeError("the root")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"broken": stumble}, "the baseline 'broken' of .*LosesABaseline failed: RuntimeError: the root"),
        ({"broken": lambda seen: [99]}, "the baseline 'broken' of .* must give a task from 0 to"),
        ({"broken": "nearest"}, r"must return \{name: function\}, .* got \{'broken': 'nearest'\}"),
        ([stumble], r"must return \{name: function\}"),
    ],
)
def test_a_baseline_that_cannot_decide_is_said_before_anything_is_learned(tmp_path, given, complaint):
    LosesABaseline.given, rows = given, []
    env = ENV.replace("Falls", "LosesABaseline")
    with pytest.raises(muster.MusterError, match=complaint):
        muster.train(env, steps=200, out=tmp_path / "run", report=lambda row, _: rows.append(row), **SETTINGS)
    assert not rows
    found = run_check(LosesABaseline, "baselines decide")
    assert (found.status, bool(re.search(complaint, found.detail))) == ("failed", True)


class OfOneSize(Pairing):
    """It shows two agents and tasks, in a prior for as many as its options say."""

    def __init__(self, n_agents: int = 2, n_tasks: int = 2) -> None:
        self.n_agents, self.n_tasks = n_agents, n_tasks

    def observe(self) -> Observation:
        return dataclasses.replace(super().observe(), prior=np.zeros((self.n_agents, self.n_tasks)))


def test_an_environment_that_fails_at_larger_sizes_costs_no_run(tmp_path):
    env = ENV.replace("Falls", "OfOneSize")
    muster.train(env, steps=200, out=tmp_path / "run", evaluate_episodes=4, **SETTINGS)
    sizes = json.loads((tmp_path / "run" / "summary.json").read_text())["sizes"]
    assert list(sizes) == [env]
