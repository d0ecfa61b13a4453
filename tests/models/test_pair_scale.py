from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import muster
from muster.data import BatchObservation
from muster.envs.env import Observation
from muster.envs.registry import make
from muster.envs.rescue import RescueEnv
from muster.errors import InputError
from muster.learning.envs import choose_pair_scale, local_form
from muster.learning.settings import TrainSettings
from muster.models.direct import DirectModel, init_parameters
from muster.models.pair_scale import exp, scale_pairs, spacing
from muster.models.spec import ModelSpec
from muster.policy.decision import decide
from muster.policy.learned import LearnedPolicy


def local_spec(env: RescueEnv) -> ModelSpec:
    env.show(pair_features=True, planes=False)
    return ModelSpec.of(env.observe(), "dm", True, pair_scale="fade", **local_form(env, env.observe()))


def test_g_of_two_tasks_shrinks_as_the_living_agents_grow_in_number():
    spec = dataclasses.replace(local_spec(make("rescue:2x4")), pair_scale="size", trained_agents=5, fewest_agents=3)
    for size, factor in (("5x10", 1.0), ("10x20", 0.5), ("3x6", 1.0), ("2x4", 1.5)):
        seen = make(f"rescue:{size}", 3).observe()
        m = seen.task_alive.shape[1]
        found = scale_pairs(spec, seen, np.ones((3, m, m), np.float32))
        assert found == pytest.approx(np.broadcast_to(np.where(np.eye(m), 1.0, factor), found.shape))
    assert scale_pairs(spec, seen, None) is None
    seen = make("rescue:10x20", 3).observe()
    seen.agent_alive[0, :2], seen.agent_alive[1, 2:] = False, False
    for fewest, factor in ((0, 1.0), (3, 1.5)):
        found = scale_pairs(dataclasses.replace(spec, fewest_agents=fewest), seen, np.ones((3, 20, 20), np.float32))
        assert found[:, 0, 1] == pytest.approx([5 / 8, factor, 0.5])


@pytest.mark.parametrize("scale", ["size", "fade"])
def test_the_task_prior_keeps_its_weight(scale):
    """g = prior + factor · (g - prior), to the last bit where nothing is learned or the factor is 1."""
    env, rng = make("rescue:10x20", 3), np.random.default_rng(0)
    spec = dataclasses.replace(local_spec(env), pair_scale=scale, trained_agents=5)
    prior = rng.normal(size=(3, 20, 20))
    seen = dataclasses.replace(env.observe(), task_prior=prior)
    learned = rng.normal(size=prior.shape).astype(np.float32)
    factor = scale_pairs(spec, seen, np.ones_like(learned))
    assert factor.min() < 0.7
    spec = dataclasses.replace(spec, task_prior=True)
    g = prior.astype(np.float32) + learned
    assert np.array_equal(scale_pairs(spec, seen, prior.astype(np.float32)), prior.astype(np.float32))
    assert scale_pairs(spec, seen, g) == pytest.approx(prior + factor * learned, abs=1e-5)
    assert np.array_equal(scale_pairs(spec, seen, g)[factor == 1], g[factor == 1])


def test_at_the_training_size_nothing_changes_to_the_last_bit():
    policy = muster.load("rescue-5x10-quad-dm")
    plain = policy.variant(spec=dataclasses.replace(policy.spec, pair_scale="none"))
    scaled = policy.variant(spec=dataclasses.replace(policy.spec, pair_scale="size", trained_agents=5))
    seen = make("rescue:5x10", 20).observe()
    assert np.array_equal(plain.scores(seen)[1], scaled.scores(seen)[1])
    larger = make("rescue:10x20", 5).observe()
    half = np.where(np.eye(20), 1.0, 0.5)
    assert scaled.scores(larger)[1] == pytest.approx(plain.scores(larger)[1] * half)
    assert np.array_equal(plain.scores(larger)[0], scaled.scores(larger)[0])


def test_views_of_several_sizes_are_each_scaled_by_their_own():
    policy = muster.load("rescue-5x10-quad-dm")
    policy = policy.variant(spec=dataclasses.replace(policy.spec, pair_scale="size", trained_agents=5))
    views = []
    for size in ("3x6", "12x24"):
        seen = policy.spec.read(make(f"rescue:{size}", 1, seed=4).observe())
        names = ("agent_features", "task_features", "pair_features", "task_pair_features")
        views.append(Observation(**{name: getattr(seen, name)[0] for name in names}))
    together = policy.act(views)
    assert [one.tolist() for one in together] == [policy.act(view).tolist() for view in views]


def test_the_range_is_the_mean_way_to_the_nearest_task_that_waits():
    env = make("rescue:2x3,grid=16", 1)
    env.show(pair_features=True, planes=False)
    env.agent_cells[0] = [[0, 0], [10, 10]]
    env.task_cells[0] = [[0, 3], [10, 15], [10, 11]]
    env.unsolved[0] = [True, True, False]
    spec = local_spec(env)
    assert spacing_of(spec, env) == pytest.approx([4 / 8])
    g = scale_pairs(spec, env.observe(), np.ones((1, 3, 3), np.float32))
    assert np.diag(g[0]) == pytest.approx(1)
    assert g[0, 0, 1] == pytest.approx(np.exp(-12 / (1.25 * 4)))
    env.unsolved[0] = False
    assert spacing_of(spec, env) == pytest.approx([1 / 8])


def spacing_of(spec: ModelSpec, env: RescueEnv) -> np.ndarray:
    seen = env.observe()
    there = seen.agent_alive[:, :, None] & seen.task_alive[:, None, :]
    return spacing(seen.pair_features[..., spec.distances[0]], there, spec.distance_unit)


def test_exponentials_are_those_of_double_precision_to_the_last_bit_or_two():
    x = np.concatenate([np.linspace(-87, 88, 100_001), [0.0, -200.0, -np.inf, np.inf]]).astype(np.float32)
    expected = np.exp(x.astype(np.float64))
    assert exp(x) == pytest.approx(np.where(x < -87.3, 0.0, expected), rel=2.0**-22)
    assert np.isnan(exp(np.array([np.nan])))


def test_a_local_model_sees_no_place_on_the_map_and_starts_from_distances():
    env = make("rescue:3x6,grid=40", 4)
    spec = local_spec(env)
    model = DirectModel(init_parameters(spec, np.random.default_rng(0)), True)

    def scores(seen: BatchObservation) -> np.ndarray:
        return decide(seen, spec, model, muster.load("rescue-2x4-quad-dm").solver).scores[0]

    first = env.observe()
    assert scores(first) == pytest.approx(-0.5 * 8 * first.pair_features[..., 4])
    model.parameters["h.weight3"][:] = 1.0
    model = DirectModel(model.parameters, True)
    env.agent_cells += 3
    env.task_cells += 3
    assert scores(env.observe()) == pytest.approx(scores(first))
    assert not np.allclose(scores(first), -0.5 * 8 * first.pair_features[..., 4])


def test_old_files_are_read_as_they_were(tmp_path):
    policy = muster.load("rescue-2x4-lp-dm")
    assert policy.spec.pair_scale == "none"
    spec = dataclasses.replace(muster.load("rescue-5x10-quad-dm").spec, pair_scale="size", trained_agents=5)
    muster.load("rescue-5x10-quad-dm").variant(spec=spec).save(tmp_path / "p.safetensors")
    assert LearnedPolicy.load(tmp_path / "p.safetensors").spec == spec
    # Whether agents may be missing is not in files of before; ambulances never are.
    old = muster.load("rescue-5x10-quad-pem")
    assert "fewest_agents" not in old.header["spec"]
    assert (old.spec.trained_agents, old.spec.fewest_agents) == (5, 5)


def test_runs_know_the_size_they_were_trained_at(tmp_path):
    policy = muster.train("rescue:3x6", learner="es", steps=2000, out=tmp_path / "one")
    assert (policy.spec.pair_scale, policy.spec.trained_agents, policy.spec.fewest_agents) == ("size", 3, 3)
    envs = ("rescue:2x4", "rescue:3x6")
    policy = muster.train(envs, learner="es", steps=2000, form="local", out=tmp_path / "two")
    assert (policy.spec.pair_scale, policy.spec.trained_agents, policy.spec.blind) == ("fade", 3, (0, 1))
    assert policy.spec.fewest_agents == 2
    assert muster.evaluate(policy, "rescue:20x40,grid=32", 3).failed == 0
    policy = muster.train("rescue:3x6", inference="lp", learner="es", steps=2000, out=tmp_path / "three")
    assert policy.spec.pair_scale == "none"


@pytest.mark.parametrize(
    ("settings", "envs", "scale"),
    [
        ({"form": "local", "learner": "es"}, ["rescue:2x4"], "fade"),
        ({"form": "local"}, ["rescue:2x4"], "size"),
        ({}, ["rescue:2x4", "rescue:3x6"], "size"),
        ({"learner": "srl"}, ["rescue:2x4", "rescue:3x6"], "size"),
        ({"inference": "routes"}, ["rescue:2x4"], "none"),
    ],
)
def test_g_is_scaled_as_the_learner_can_and_other_sizes_need(settings, envs, scale):
    assert choose_pair_scale(TrainSettings(envs, **settings), [make(env) for env in envs]) == scale


def test_an_environment_must_say_what_its_distances_are():
    with pytest.raises(InputError, match="does not say which of its pair features are distances"):
        local_form(make("battle:m3v3"), make("battle:m3v3").observe())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pair_scale": "size", "trained_agents": 0}, "size in training is known"),
        ({"distances": (9, 4)}, "distances of a model"),
        ({"distances": ()}, "goes by distances"),
        ({"blind": (7,)}, "blind of a model"),
    ],
)
def test_a_spec_that_cannot_be_is_refused(changes, reason):
    with pytest.raises(InputError, match=reason):
        dataclasses.replace(local_spec(make("rescue:2x4")), **changes)
