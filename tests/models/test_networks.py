"""The scoring models against torch, against hand calculations and in odd observations."""

import dataclasses

import numpy as np
import pytest
import torch

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.data import Problem
from muster.envs.registry import make
from muster.errors import InputError
from muster.models.direct import DirectModel, init_parameters, parameter_shapes
from muster.models.spec import ModelSpec
from muster.models.torch_networks import ScoringModel, at_cells, network_from, parameters_of
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import NoiseSettings
from muster.rng import episode_seeds


def with_planes(env):
    env.show(planes=True)
    return env


def enriched(observation, seed=7):
    """The observation with priors, features of the environment, and one pair in five forbidden."""
    rng = np.random.default_rng(seed)
    (batch, n), m = observation.agent_alive.shape, observation.task_alive.shape[1]
    return dataclasses.replace(
        observation,
        prior=rng.normal(size=(batch, n, m)),
        task_prior=rng.normal(size=(batch, m, m)),
        global_features=rng.normal(size=(batch, 3)).astype(np.float32),
        allowed=rng.random((batch, n, m)) < 0.8,
    )


def disturbed_parameters(spec, seed):
    """Random numbers everywhere: a model that corrects a prior would begin with zeros."""
    rng = np.random.default_rng(seed)
    start = init_parameters(spec, rng)
    return {name: array + rng.normal(0, 0.1, array.shape).astype(np.float32) for name, array in start.items()}


@pytest.mark.parametrize("features", ["raw", "pair", "everything"])
@pytest.mark.parametrize("quad", [False, True])
def test_the_direct_model_without_torch_equals_torch(features, quad):
    env = make("rescue:5x9", 16)
    env.show(pair_features=features != "raw")
    observation = enriched(env.observe()) if features == "everything" else env.observe()
    spec = ModelSpec.of(observation, "dm", quad)
    parameters = disturbed_parameters(spec, 3)
    with torch.no_grad():
        expected = network_from(spec, parameters)(observation)
    found = DirectModel(parameters, quad)(observation)
    assert found[0] == pytest.approx(expected[0].numpy() * observation.pairs, abs=1e-5)
    assert (found[1] is None) == (not quad)
    if quad:
        assert found[1] == pytest.approx(expected[1].numpy(), abs=1e-5)


def test_the_first_layer_equals_one_on_concatenated_features():
    observation = make("rescue:3x4", 2).observe()
    spec = ModelSpec.of(observation, "dm", False)
    p = init_parameters(spec, np.random.default_rng(0))
    n, m = 3, 4
    whole = np.concatenate([p["h.left"], p["h.right"], p["h.pair"]])
    inputs = np.concatenate(
        [
            np.broadcast_to(observation.agent_features[:, :, None], (2, n, m, spec.agent_width)),
            np.broadcast_to(observation.task_features[:, None], (2, n, m, spec.task_width)),
            observation.pair_features,
        ],
        axis=-1,
    )
    hidden = np.maximum(inputs @ whole + p["h.bias1"], 0)
    hidden = np.maximum(hidden @ p["h.weight2"] + p["h.bias2"], 0)
    expected = (hidden @ p["h.weight3"] + p["h.bias3"])[..., 0]
    assert DirectModel(p, False)(observation)[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("everything", [False, True])
def test_many_models_at_once_equal_one_at_a_time(everything):
    env = make("rescue:2x4", 12)
    observation = enriched(env.observe()) if everything else env.observe()
    spec = ModelSpec.of(observation, "dm", True)
    models = [disturbed_parameters(spec, k) for k in range(3)]
    stacked = {name: np.stack([model[name] for model in models]) for name in parameter_shapes(spec)}
    h, g = DirectModel(stacked, True)(observation)
    for k, model in enumerate(models):
        own_h, own_g = DirectModel(model, True)(observation)
        assert h[4 * k : 4 * k + 4] == pytest.approx(own_h[4 * k : 4 * k + 4], abs=1e-6)
        assert g[4 * k : 4 * k + 4] == pytest.approx(own_g[4 * k : 4 * k + 4], abs=1e-6)


@pytest.mark.parametrize("inference", ["amax", "lp", "quad"])
def test_the_positional_model_scores_any_size_with_every_procedure(inference):
    observation = with_planes(make("rescue:2x4", 3)).observe()
    spec = ModelSpec.of(observation, "pem", inference == "quad")
    model = ScoringModel(spec, np.random.default_rng(0)).eval()
    larger = with_planes(make("rescue:5x10", 3)).observe()
    with torch.no_grad():
        h, g = model(larger)
    assert h.shape == (3, 5, 10)
    assert (g is None) == (inference != "quad")
    policy = LearnedPolicy("p", spec, parameters_of(model), InferenceSettings(inference), NoiseSettings())
    assert policy.act(larger).shape == (3, 5)


def test_the_positional_model_reads_the_cell_of_each_object():
    planes = torch.arange(2 * 3 * 4 * 5, dtype=torch.float32).view(2, 3, 4, 5)
    cells = np.array([[[0, 0], [3, 4]], [[1, 2], [2, 0]]])
    values = at_cells(planes, cells)
    for b in range(2):
        for k in range(2):
            row, column = cells[b, k]
            assert values[b, k].tolist() == planes[b, :, row, column].tolist()


@pytest.mark.parametrize("features", ["raw", "pair", "everything"])
@pytest.mark.parametrize(("quad", "hidden"), [(False, 32), (True, 32), (True, 7), (True, 40)])
def test_the_gradient_equals_torchs(features, quad, hidden):
    env = make("rescue:5x9", 40)
    env.show(pair_features=features != "raw")
    env.reset(np.arange(40), episode_seeds(3, np.arange(40)))
    for _ in range(6):  # some tasks are done by then: dead pairs take part
        env.step(np.argmax(np.where(env.observe().task_alive, 1.0, 0.0), 1)[:, None].repeat(5, 1))
    observation = enriched(env.observe()) if features == "everything" else env.observe()
    assert not observation.task_alive.all()
    spec = ModelSpec.of(observation, "dm", quad, hidden=hidden)
    parameters = disturbed_parameters(spec, 3)
    model, network, rng = DirectModel(parameters, quad), network_from(spec, parameters), np.random.default_rng(4)
    ends = [end for end in network(observation) if end is not None]
    # Slopes of dead and of forbidden pairs do not count.
    slopes = [rng.standard_normal(tuple(end.shape), np.float32) for end in ends]
    counted = [
        torch.from_numpy(slope * there)
        for slope, there in zip(slopes, (observation.pairs, observation.task_pairs), strict=False)
    ]  # fmt: skip
    torch.autograd.backward(ends, counted)
    given = slopes[0], slopes[1] if quad else None
    scores, gates = model.forward(observation)
    assert all(np.array_equal(one, other) for one, other in zip(scores, model(observation), strict=True))
    gradients = model.gradient(observation, given)
    assert list(gradients) == list(parameter_shapes(spec))
    assert ("h.scale" in gradients) == (features == "everything")
    for name, parameter in network.pairs.items():
        torchs = parameter.grad.numpy() if parameter.grad is not None else np.zeros(parameter.shape)
        size = max(float(np.abs(torchs).max(initial=0)), 1.0)
        assert gradients[name.replace("_", ".", 1)] == pytest.approx(torchs, rel=1e-4, abs=1e-5 * size), name
    # What the forward pass kept saves time and changes no bit.
    for name, gradient in model.gradient(observation, given, gates=gates).items():
        assert np.array_equal(gradient, gradients[name]), name


def test_slopes_far_below_their_mean_are_passed_over():
    observation = make("rescue:3x5", 6).observe()
    spec = ModelSpec.of(observation, "dm", False)
    model = DirectModel(disturbed_parameters(spec, 0), False)
    slope = np.zeros((6, 3, 5), np.float32)
    slope[2, 1, 3] = 1.0
    alone = model.gradient(observation, (slope, None))
    slope[slope == 0] = 1e-9
    for name, gradient in model.gradient(observation, (slope, None)).items():
        assert np.array_equal(gradient, alone[name]), name
    assert not any(array.any() for array in model.gradient(observation, (0 * slope, None)).values())


def test_a_pair_scores_the_same_in_any_batch():
    env = make("rescue:5x10", 300)
    observation = env.observe()
    spec = ModelSpec.of(observation, "dm", True)
    parameters = init_parameters(spec, np.random.default_rng(0))
    together = DirectModel(parameters, True)(observation)
    for slot in (0, 17, 299):
        alone = DirectModel(parameters, True)(one_state(observation, slot))
        assert (together[0][slot] == alone[0][0]).all()
        assert (together[1][slot] == alone[1][0]).all()


def one_state(observation, slot):
    """The observation of one slot alone."""
    parts = {field.name: getattr(observation, field.name) for field in dataclasses.fields(observation)}
    return type(observation)(**{name: None if a is None else a[slot : slot + 1] for name, a in parts.items()})


def test_a_quad_policy_without_its_g_is_lp_on_the_same_h():
    observation = make("rescue:3x5", 6).observe()
    spec = ModelSpec.of(observation, "dm", True)
    parameters = init_parameters(spec, np.random.default_rng(1))
    policy = LearnedPolicy("p", spec, parameters, InferenceSettings("quad"), NoiseSettings())
    plain = policy.without_task_scores()
    assert plain.inference.method == "lp"
    h, g = plain.scores(observation)
    assert g is None
    assert (h == policy.scores(observation)[0]).all()
    assert plain.act(observation).shape == (6, 3)


@pytest.mark.parametrize("quad", [False, True])
def test_forbidden_pairs_are_neither_scored_nor_learned_from(quad):
    env = make("rescue:3x5", 6)
    seen = env.observe()
    allowed = np.random.default_rng(0).random((6, 3, 5)) < 0.5
    limited = dataclasses.replace(seen, allowed=allowed)
    spec = ModelSpec.of(seen, "dm", task_scores=quad)
    model = DirectModel(init_parameters(spec, np.random.default_rng(1)), quad)
    (h, g), (all_h, all_g) = model(limited), model(seen)
    assert np.array_equal(h != 0, allowed)
    assert h[allowed] == pytest.approx(all_h[allowed], rel=1e-5)
    if quad:
        assert g == pytest.approx(all_g, rel=1e-5)
    # Slopes in the scores of forbidden pairs change nothing in the gradient.
    slope = np.random.default_rng(2).normal(size=h.shape).astype(np.float32)
    found = model.gradient(limited, (slope, None))
    for name, gradient in model.gradient(limited, (np.where(allowed, slope, 0).astype(np.float32), None)).items():
        assert found[name] == pytest.approx(gradient, abs=1e-6), name
    assert any(np.abs(gradient).max() > 1e-3 for gradient in found.values())


def policy_for(observation, method, seed=0):
    spec = ModelSpec.of(observation, "dm", method == "quad")
    return LearnedPolicy(
        "p", spec, disturbed_parameters(spec, seed), InferenceSettings(method, assign_all=True), NoiseSettings()
    )


@pytest.mark.parametrize("method", ["amax", "lp", "quad"])
@pytest.mark.parametrize("noisy", [False, True])
def test_a_forbidden_pair_is_never_assigned_whatever_its_features(method, noisy):
    observation = enriched(make("rescue:4x5", 60).observe())
    policy = policy_for(observation, method).variant(noisy=noisy)
    assignment = policy.act(observation)
    chosen = np.take_along_axis(observation.allowed, np.maximum(assignment, 0)[:, :, None], axis=2)[:, :, 0]
    assert chosen[assignment >= 0].all()
    assert (assignment >= 0).any(axis=1).all()
    free = policy.act(dataclasses.replace(observation, allowed=None))
    assert not np.array_equal(free, assignment)
    strange = observation.pair_features.copy()
    strange[~observation.allowed] = 1e9
    prior = np.where(observation.allowed, observation.prior, 1e9)
    again = policy_for(observation, method).variant(noisy=noisy)
    assert np.array_equal(again.act(dataclasses.replace(observation, pair_features=strange, prior=prior)), assignment)


@pytest.mark.parametrize("method", ["amax", "lp", "quad"])
def test_a_model_that_corrects_a_prior_begins_as_the_prior(method):
    observation = enriched(make("rescue:4x5", 30).observe())
    spec = ModelSpec.of(observation, "dm", method == "quad")
    parameters = init_parameters(spec, np.random.default_rng(0))
    policy = LearnedPolicy("p", spec, parameters, InferenceSettings(method), NoiseSettings())
    h, g = policy.scores(observation)
    assert np.array_equal(h, np.where(observation.allowed, observation.prior, 0).astype(np.float32))
    baseline = Solver(method, certify=False)(
        Problem(
            observation.prior.astype(np.float32).astype(np.float64),
            observation.task_prior.astype(np.float32).astype(np.float64) if method == "quad" else None,
            observation.contributions,
            observation.capacities,
            allowed=observation.allowed,
        )
    )
    assert np.array_equal(policy.act(observation), baseline.assignment)
    if g is not None:
        assert np.array_equal(g, observation.task_prior.astype(np.float32))


def test_without_wanting_it_a_prior_changes_nothing():
    observation = enriched(make("rescue:4x5", 3).observe())
    spec = ModelSpec.of(observation, "dm", True, prior=False)
    assert not spec.corrects
    parameters = init_parameters(spec, np.random.default_rng(0))
    assert "h.scale" not in parameters
    other = dataclasses.replace(observation, prior=None, task_prior=None)
    for one, same in zip(*(DirectModel(parameters, True)(seen) for seen in (observation, other)), strict=True):
        assert np.array_equal(one, same)


def test_what_the_model_reads_must_be_shown():
    observation = enriched(make("rescue:4x5", 3).observe())
    spec = ModelSpec.of(observation, "dm", True)
    with pytest.raises(InputError, match="corrects a prior score, which what is observed does not show"):
        spec.read(dataclasses.replace(observation, prior=None))
    with pytest.raises(InputError, match="reads 3 global features but what is observed has 0"):
        spec.read(dataclasses.replace(observation, global_features=None))
    # What a model does not read may be there all the same.
    plain = ModelSpec.of(make("rescue:4x5", 3).observe(), "dm", True)
    assert plain.read(observation).global_features is None
