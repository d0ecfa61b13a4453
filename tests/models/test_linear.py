"""The linear model: the prior at the start, the same by any order, and a gradient that differences confirm."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from muster.assign.settings import InferenceSettings
from muster.data import BatchObservation
from muster.envs.registry import make
from muster.errors import InputError
from muster.learning.envs import prepare
from muster.learning.settings import ESSettings, TrainSettings
from muster.models.context_features import available, with_context
from muster.models.direct import init_parameters, unflatten
from muster.models.linear import LinearModel, linear_shapes
from muster.models.spec import ModelSpec, Statistics
from muster.policy.learned import LearnedPolicy, prior_policy
from muster.policy.settings import PAPER_NOISE
from tests.learning.toy import Sized

CONTEXT = ("agent_gap", "task_gap", "partner_wait")


def make_spec(task_scores: bool = True, **more: object) -> ModelSpec:
    widths = {"agent_width": 3, "task_width": 2, "pair_width": 2, "task_pair_width": 1, "global_width": 2}
    spec = ModelSpec("linear", task_scores, **widths, prior=True, products=True, context_features=CONTEXT, **more)
    rng = np.random.default_rng(1)

    def statistics(unit: float, columns: int) -> Statistics:
        return Statistics(unit, tuple(rng.normal(size=columns)), tuple(rng.uniform(0.5, 2.0, columns)))

    h, g = statistics(1.7, spec.h_columns), statistics(0.3, spec.g_columns)
    return dataclasses.replace(spec, h_statistics=h, g_statistics=g)


def observe(rng: np.random.Generator, batch: int, n: int, m: int) -> BatchObservation:
    return BatchObservation(
        agent_features=rng.normal(size=(batch, n, 3)).astype(np.float32),
        task_features=rng.normal(size=(batch, m, 2)).astype(np.float32),
        pair_features=rng.normal(size=(batch, n, m, 2)).astype(np.float32),
        task_pair_features=rng.normal(size=(batch, m, m, 1)).astype(np.float32),
        agent_alive=rng.random((batch, n)) < 0.8,
        task_alive=rng.random((batch, m)) < 0.8,
        contributions=np.ones((batch, n, m)),
        capacities=np.full((batch, m), 2.0),
        minimums=rng.integers(0, 3, (batch, m)).astype(np.float64),
        allowed=rng.random((batch, n, m)) < 0.9,
        prior=rng.normal(size=(batch, n, m)),
        global_features=rng.normal(size=(batch, 2)).astype(np.float32),
    )


def weights(spec: ModelSpec, rng: np.random.Generator, *models: int):
    shapes = linear_shapes(spec)
    return unflatten(rng.normal(size=(*models, sum(int(np.prod(shape)) for shape in shapes.values()))), shapes)


AXES = {
    "agent_features": "n", "task_features": "m", "pair_features": "nm", "task_pair_features": "mm", "agent_alive": "n",
    "task_alive": "m", "contributions": "nm", "capacities": "m", "minimums": "m", "allowed": "nm", "prior": "nm",
}  # fmt: skip


def chosen(seen: BatchObservation, agents, tasks) -> BatchObservation:
    """The observation of these agents and tasks, in this order."""
    found = {}
    for name, axes in AXES.items():
        array = getattr(seen, name)
        for axis, letter in enumerate(axes, start=1):
            array = np.take(array, agents if letter == "n" else tasks, axis=axis)
        found[name] = array
    return dataclasses.replace(seen, **found)


def test_weights_of_zero_decide_as_the_prior_at_every_size():
    for inference in ("lp", "quad"):
        settings = TrainSettings(
            "tests.learning.toy:Sized", "es", inference, model="linear", es=ESSettings(pairs=1, episodes=2)
        )
        setup = prepare(settings)
        policy = LearnedPolicy("new", setup.spec, init_parameters(setup.spec, None), setup.inference, PAPER_NOISE)
        for size in (2, 4, 10):
            env = make(Sized, 20, n_agents=size, n_tasks=size)
            env.show()
            env.reset(np.arange(20), np.arange(20, dtype=np.uint64))
            prior = prior_policy(env, setup.inference)
            assert np.array_equal(policy.act(env.observe()), prior.act(env.observe()))


def test_scores_follow_a_renumbering_and_do_not_see_who_is_masked():
    rng = np.random.default_rng(3)
    spec = make_spec()
    model = LinearModel(spec, weights(spec, rng), True)
    for size in ((5, 7), (1, 1), (2, 1), (1, 3)):
        seen = observe(rng, 1, *size)
        agents, tasks = rng.permutation(size[0]), rng.permutation(size[1])
        h, g = model(spec.read(seen))
        assert not h[~seen.pairs].any()
        turned = model(spec.read(chosen(seen, agents, tasks)))
        np.testing.assert_allclose(turned[0], h[:, agents][:, :, tasks], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(turned[1], g[:, tasks][:, :, tasks], rtol=1e-4, atol=1e-5)
        living = np.flatnonzero(seen.agent_alive[0]), np.flatnonzero(seen.task_alive[0])
        alone = model(spec.read(chosen(seen, *living)))
        np.testing.assert_allclose(alone[0], h[:, living[0]][:, :, living[1]], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(alone[1], g[:, living[1]][:, :, living[1]], rtol=1e-4, atol=1e-5)


def test_several_models_score_as_one_by_one():
    rng = np.random.default_rng(4)
    spec = make_spec()
    several = weights(spec, rng, 3)
    seen = spec.read(observe(rng, 12, 4, 5))
    h, g = LinearModel(spec, several, True)(seen)
    for k in range(3):
        rows = slice(4 * k, 4 * k + 4)
        share = BatchObservation(
            **{
                entry.name: None if (value := getattr(seen, entry.name)) is None else value[rows]
                for entry in dataclasses.fields(seen)
            }
        )
        one = LinearModel(spec, {name: array[k] for name, array in several.items()}, True)(share)
        assert np.array_equal(one[0], h[rows])
        assert np.array_equal(one[1], g[rows])


def test_the_gradient_is_what_differences_say():
    rng = np.random.default_rng(5)
    spec = make_spec()
    seen = spec.read(observe(rng, 3, 4, 5))
    at = weights(spec, rng)
    slopes = rng.normal(size=(3, 4, 5)).astype(np.float32), rng.normal(size=(3, 5, 5)).astype(np.float32)
    found = LinearModel(spec, at, True).gradient(seen, slopes)
    assert found.keys() == at.keys()
    for name, array in at.items():
        for index in np.ndindex(array.shape):
            moved = {key: value.copy() for key, value in at.items()}
            moved[name][index] += 1.0
            parts = zip(LinearModel(spec, moved, True)(seen), LinearModel(spec, at, True)(seen), slopes, strict=True)
            # Scores are linear in the weights: any step shows the slope.
            change = sum(float(((new - old).astype(np.float64) * slope).sum()) for new, old, slope in parts)
            assert found[name][index] == pytest.approx(change, rel=2e-3, abs=2e-3), (name, index)


def test_a_feature_that_did_not_vary_has_no_influence():
    rng = np.random.default_rng(6)
    spec = make_spec(task_scores=False)
    assert spec.h_statistics is not None
    deviations = (0.0, *spec.h_statistics.deviations[1:])
    spec = dataclasses.replace(spec, h_statistics=dataclasses.replace(spec.h_statistics, deviations=deviations))
    model, seen = LinearModel(spec, weights(spec, rng), False), observe(rng, 2, 3, 4)
    other = dataclasses.replace(seen, agent_features=seen.agent_features + np.float32([100.0, 0.0, 0.0]))
    assert np.array_equal(model(spec.read(seen))[0], model(spec.read(other))[0])


def test_context_features_by_hand():
    seen = BatchObservation(
        agent_features=np.zeros((1, 3, 0), np.float32),
        task_features=np.zeros((1, 2, 0), np.float32),
        pair_features=np.zeros((1, 3, 2, 0), np.float32),
        task_pair_features=np.zeros((1, 2, 2, 0), np.float32),
        agent_alive=np.array([[True, True, False]]),
        task_alive=np.array([[True, True]]),
        contributions=np.ones((1, 3, 2)),
        capacities=np.full((1, 2), 2.0),
        minimums=np.array([[2.0, 1.0]]),
        allowed=np.array([[[True, True], [True, False], [True, True]]]),
        prior=np.array([[[3.0, 1.0], [5.0, 9.0], [99.0, 99.0]]]),
    )
    assert set(available(seen, prior=True)) == set(CONTEXT)
    assert available(seen, prior=False) == ()
    found = dict(zip(CONTEXT, with_context(seen, CONTEXT, 2.0).pair_features[0].transpose(2, 0, 1), strict=True))
    # The third agent is dead, and the second may not take the second task.
    assert found["agent_gap"].tolist() == [[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]
    assert found["task_gap"].tolist() == [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    assert found["partner_wait"].tolist() == [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]


def test_statistics_must_fit():
    spec = make_spec()
    with pytest.raises(InputError, match="columns"):
        dataclasses.replace(spec, agent_width=4)
    bare = dataclasses.replace(spec, h_statistics=None)
    with pytest.raises(InputError, match="means and standard deviations"):
        LinearModel(bare, init_parameters(bare, np.random.default_rng(0)), True)


def test_a_policy_file_keeps_the_statistics(tmp_path):
    rng = np.random.default_rng(7)
    spec = make_spec()
    inference = InferenceSettings("quad", "fast", assign_all=False)
    policy = LearnedPolicy("linear", spec, weights(spec, rng), inference, PAPER_NOISE)
    policy.save(tmp_path / "linear.safetensors")
    again = LearnedPolicy.load(tmp_path / "linear.safetensors")
    seen = observe(rng, 4, 5, 6)
    assert again.spec == spec
    for one, other in zip(policy.scores(seen), again.scores(seen), strict=True):
        assert np.array_equal(one, other)
