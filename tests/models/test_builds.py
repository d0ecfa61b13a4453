"""The portable build of the core and the one for newer processors give the same bits."""

import importlib

import numpy as np
import pytest

from muster import _core


@pytest.fixture(scope="module")
def builds():
    if not _core.supports_v3:
        pytest.skip("this processor runs the portable build only")
    return _core, importlib.import_module("muster._core_v3")


def same(builds, compute) -> bool:
    """Whether both compute the same arrays, bit for bit."""
    one, other = (compute(core, np.random.default_rng(0)) for core in builds)
    assert any(np.asarray(array).any() for array in one)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(one, other, strict=True))


def floats(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def masks(rng, *shape):
    return rng.random(shape) < 0.8


@pytest.mark.parametrize("hidden", [5, 32, 40])
def test_of_the_pair_networks(builds, hidden):
    def compute(core, rng):
        batch, n, m, size = 20, 5, 7, (4 + 3 + 2 + hidden + 3) * hidden + 2
        network = core.models.PairNetwork(floats(rng, 1, size), 4, 3, 2, hidden, True)
        features = floats(rng, batch, n, 3), floats(rng, batch, m, 3), floats(rng, batch, n, m, 2)
        alive = masks(rng, batch, n), masks(rng, batch, m)
        rest = masks(rng, batch, n, m), rng.normal(size=(batch, n, m)), floats(rng, batch, 1)
        pairs = core.models.Pairs(*features, *alive, *rest)
        scores, gradient = np.empty((batch, n, m), np.float32), np.zeros(size)
        gates = np.zeros((batch, n, m, network.words), np.uint32)
        network.score(pairs, scores, gates)
        network.add_gradient(pairs, floats(rng, batch, n, m), gates, gradient)
        return scores, gates, gradient

    assert same(builds, compute)


def test_of_the_critic(builds):
    def compute(core, rng):
        batch, n, m, width = 70, 5, 7, 32
        size = width * (3 + 4 + 4 * width + 2 + 1 + 2 * width + 6) + 1
        critic = core.models.EntityCritic(floats(rng, size), 3, 4, 1, width)
        state = floats(rng, batch, n, 3), floats(rng, batch, m, 4), masks(rng, batch, n), masks(rng, batch, m)
        values, gradient = np.empty(batch, np.float32), np.zeros(size)
        loss = critic.add_gradient(*state, floats(rng, batch, 1), floats(rng, batch), values, gradient)
        return values, gradient, loss

    assert same(builds, compute)


def test_of_the_choices(builds):
    def compute(core, rng):
        states, n, m = 30, 5, 7
        arrays = floats(rng, states, n, m), rng.random((states, n, m)), 2 * rng.random((states, m))
        assignment = rng.integers(-1, m, (states, n))
        choices = core.learning.Decisions(
            assignment, *arrays, masks(rng, states, n), masks(rng, states, n, m), True, True, rng.random((states, m))
        )
        h, g, likelihood = floats(rng, states, n, m), floats(rng, states, m, m), np.zeros((states, n))
        core.learning.fill_likelihood(choices, h, g, 0.3, likelihood)
        before, slopes = likelihood + 0.1 * rng.normal(size=(states, n)), (np.empty_like(h), np.empty_like(g))
        loss = core.learning.fill_slopes(choices, h, g, 0.3, before, rng.normal(size=states), 0.2, 0.01, 1.0, *slopes)
        return likelihood, *slopes, loss

    assert same(builds, compute)


def test_of_the_rounds_of_the_context_model(builds):
    def compute(core, rng):
        batch, n, m, width, heads = 4, 5, 7, 12, 3
        heard, layer = np.empty((batch, n, width), np.float32), np.empty((batch, n, width), np.float32)
        x, y = floats(rng, batch, n, width), floats(rng, batch, m, width)
        edge = floats(rng, 2, width), floats(rng, heads, width), floats(rng, heads)
        relation = floats(rng, batch, n, m, 2), np.abs(floats(rng, batch, n, m)), masks(rng, batch, n, m)
        core.models.listen(*edge, x, y, *relation, heard)
        core.models.fill_layer(x, floats(rng, width, width), floats(rng, width), True, layer)
        return heard, layer

    assert same(builds, compute)


def test_of_adam_and_of_noise(builds):
    def compute(core, rng):
        theta, mean, variance, gradient = rng.normal(size=(4, 37))
        core.learning.climb(gradient, 0.01, 0.1, 0.5, 0.25, mean, np.abs(variance), theta)
        states, normals, exponentials = np.arange(5, dtype=np.uint64), np.empty((5, 9), np.float32), floats(rng, 300)
        core.learning.draw_normals(states, normals)
        core.models.exp(exponentials)
        return theta, mean, core.learning.sum_squares(gradient), normals, exponentials, states

    assert same(builds, compute)


def test_arrays_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match="another number of parameters"):
        _core.models.PairNetwork(np.zeros((1, 7), np.float32), 1, 1, 0, 4, False)
    with pytest.raises(ValueError, match="do not agree"):
        _core.models.Pairs(
            *(np.zeros((2, 3, 1), np.float32), np.zeros((2, 4, 1), np.float32), np.zeros((2, 3, 3, 0), np.float32)),
            *(np.ones((2, 3), np.bool_), np.ones((2, 4), np.bool_)),
            *(np.zeros((0, 0, 0), np.bool_), np.zeros((0, 0, 0)), np.zeros((0, 0), np.float32)),
        )
