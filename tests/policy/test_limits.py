from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from muster.assign.settings import InferenceSettings
from muster.envs.env import Observation
from muster.envs.padding import observation_of
from muster.errors import InputError
from muster.models.direct import init_parameters
from muster.models.spec import ModelSpec
from muster.policy.decision import allowed_scores
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import NoiseSettings


def situation(rng: np.random.Generator, **fields: object) -> Observation:
    return Observation(rng.random((4, 2)), rng.random((6, 2)), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["amax", "lp", "quad"])
@pytest.mark.parametrize("assign_all", [False, True])
def test_a_forbidden_pair_is_never_assigned(method, assign_all):
    rng = np.random.default_rng(0)
    seen = observation_of([situation(rng, allowed=rng.random((4, 6)) < 0.3) for _ in range(50)])
    spec = ModelSpec.of(seen, "dm", task_scores=method == "quad")
    inference = InferenceSettings(method=method, assign_all=assign_all)
    policy = LearnedPolicy("x", spec, init_parameters(spec, rng), inference, NoiseSettings(sigma=5.0))
    for acting in (policy, policy.with_noise()):
        acting.reset(np.arange(50), np.arange(50).astype(np.uint64))
        chosen = acting.act(seen)
        assert (chosen >= 0).any()
        assert seen.allowed[(*np.nonzero(chosen >= 0), chosen[chosen >= 0])].all()


def test_all_idle_where_everything_is_forbidden():
    rng = np.random.default_rng(0)
    seen = observation_of([situation(rng, allowed=np.zeros((4, 6), bool))])
    spec = ModelSpec.of(seen, "dm", task_scores=False)
    inference = InferenceSettings(method="lp", assign_all=True)
    policy = LearnedPolicy("x", spec, init_parameters(spec, rng), inference, NoiseSettings())
    assert (policy.act(seen) == -1).all()


def test_acting_on_a_view_with_a_switch_cost_takes_the_plan_before():
    rng = np.random.default_rng(0)
    view = situation(rng)
    spec = ModelSpec.of(observation_of([view]), "dm", task_scores=False)
    policy = LearnedPolicy(
        "x", spec, init_parameters(spec, rng), InferenceSettings("lp", assign_all=True), NoiseSettings()
    )
    other = (policy.act(view) + 1) % 6
    assert policy.act(replace(view, previous=other, switch_cost=99.0)).tolist() == other.tolist()
    with pytest.raises(InputError, match="give previous too"):
        policy.act(replace(view, switch_cost=99.0))


def test_the_switch_cost_is_taken_from_other_tasks_while_the_old_one_is_there():
    rng = np.random.default_rng(0)
    alive = np.array([True, True, False, True, True, True])
    seen = observation_of([situation(rng, previous=[1, -1, 2, 5], switch_cost=0.5, task_alive=alive)])
    h = rng.normal(size=(1, 4, 6))
    taken = h - allowed_scores(seen, h)
    expected = np.zeros((4, 6))
    expected[0], expected[3] = 0.5, 0.5
    expected[0, 1] = expected[3, 5] = 0.0
    assert np.allclose(taken[0], expected)
