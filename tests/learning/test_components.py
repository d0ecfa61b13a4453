"""Noise, returns and ranks, each against a hand calculation."""

import numpy as np
import pytest

from muster.learning.a2c import returns_of
from muster.learning.envs import prepare
from muster.learning.es import centred_ranks, flatten, orthogonal, restore
from muster.learning.learner import TRAINING
from muster.learning.optimiser import Adam, Optimiser
from muster.learning.ppo import PPO
from muster.learning.settings import PPOSettings, TrainSettings
from muster.models.spec import ModelSpec
from muster.policy.noise import CorrelatedNoise, draw_normals
from muster.rng import episode_seeds


@pytest.mark.parametrize("p", [1, 3, 5])
def test_noise_has_the_autocovariance_of_a_sliding_window(p):
    """noisy = sum of p + 1 innovations of variance (sigma/p)², so cov(lag) = (p + 1 - lag)(sigma/p)² up to lag p."""
    sigma, batch, steps = 1.7, 4000, p + 25
    noise = CorrelatedNoise(batch, (2,), sigma, p)
    rng = np.random.default_rng(0)
    noisy = np.stack([noise.add(rng.standard_normal((batch, 2), np.float32)) for _ in range(steps)])[p:]
    for lag in range(p + 3):
        measured = np.mean(noisy[: len(noisy) - lag] * noisy[lag:])
        expected = max(0, p + 1 - lag) * (sigma / p) ** 2
        assert measured == pytest.approx(expected, abs=0.02 * (p + 1) * (sigma / p) ** 2)


def test_noise_starts_from_nothing_in_the_slots_that_are_reset():
    noise = CorrelatedNoise(3, (2,), 1.0, 4)
    for _ in range(6):
        noise.add(np.ones((3, 2), np.float32))
    noise.reset(np.array([1]))
    noisy = noise.add(np.zeros((3, 2), np.float32))
    assert noisy[1].tolist() == [0.0, 0.0]
    assert noisy[0] == pytest.approx([1.0, 1.0])  # four remembered innovations of 1/4


def test_slot_noise_depends_on_the_slot_alone():
    seeds = episode_seeds(0, np.arange(5))
    together, alone = seeds.copy(), seeds[3:4].copy()
    assert (draw_normals(together, 7)[3] == draw_normals(alone, 7)[0]).all()
    sample = draw_normals(episode_seeds(1, np.arange(2000)), 10)
    assert sample.mean() == pytest.approx(0, abs=0.03)
    assert sample.std() == pytest.approx(1, abs=0.03)


def test_returns_match_a_hand_calculation():
    rewards = np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    ended = np.array([[False, False], [False, True], [False, False]])
    returns = returns_of(rewards, ended, np.array([10.0, 20.0]), 0.5)
    assert returns[:, 0].tolist() == [1 + 0.5 * (2 + 0.5 * (4 + 0.5 * 10)), 2 + 0.5 * (4 + 0.5 * 10), 4 + 0.5 * 10]
    assert returns[:, 1].tolist() == [1 + 0.5 * 2, 2, 4 + 0.5 * 20]


def test_adam_is_the_formula_to_the_last_bit():
    rng, adam, theta = np.random.default_rng(0), Adam(37), np.zeros(37)
    mean, variance, expected = np.zeros(37), np.zeros(37), np.zeros(37)
    for update in range(1, 6):
        gradient = rng.normal(size=37)
        theta = adam.step(theta, gradient, 0.01, 0.1)
        mean = 0.9 * mean + (1 - 0.9) * gradient
        variance = 0.999 * variance + (1 - 0.999) * gradient**2
        moved = 0.01 * (mean / (1 - 0.9**update)) / (np.sqrt(variance / (1 - 0.999**update)) + 1e-8)
        expected = (1 - 0.01 * 0.1) * expected + moved
        assert np.array_equal(theta, expected)


def test_a_gradient_longer_than_the_longest_norm_is_scaled_down():
    optimiser = Optimiser({"a": np.zeros(3, np.float32), "b": np.zeros((2, 2), np.float32)}, 1.0, method="sgd")
    optimiser.add({"a": np.array([3, 0, 0], np.float32), "b": np.array([[0, 4], [0, 0]], np.float32)})
    assert optimiser.norm() == 5.0
    optimiser.step(1.0)
    assert optimiser.parameters()["a"].tolist() == pytest.approx([-0.6, 0, 0])
    assert optimiser.parameters()["b"].ravel().tolist() == pytest.approx([0, -0.8, 0, 0])


def test_ranks_are_centred_and_share_ties():
    assert centred_ranks(np.array([5.0, 1.0, 3.0])).tolist() == [0.5, -0.5, 0.0]
    assert centred_ranks(np.array([2.0, 2.0, 0.0, 9.0])).tolist() == pytest.approx([0.0, 0.0, -0.5, 0.5])


def test_directions_of_es_are_at_right_angles_and_as_long_as_drawn():
    drawn = np.random.default_rng(0).standard_normal((10, 4))
    found = orthogonal(drawn)
    for block in (found[:4], found[4:8], found[8:]):
        lengths = (block**2).sum(axis=1)
        np.testing.assert_allclose(block @ block.T, np.diag(lengths), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.linalg.norm(drawn, axis=1))


def test_es_takes_smaller_steps_in_products_and_starts_where_it_is_told():
    spec = ModelSpec("linear", False, 2, 1, 1, 0, global_width=2, products=True)
    moved = restore(np.ones(1 + spec.h_columns + 8), spec)
    assert (moved["h.weight"] == 1.0).all()
    assert moved["h.products"] == pytest.approx(np.full((4, 2), 0.3))
    np.testing.assert_allclose(flatten(moved, spec), 1.0, rtol=1e-6)


@pytest.mark.parametrize("model", ["dm", "context"])
def test_an_actor_goes_down_the_derivatives_that_it_is_given(model):
    """In double precision too, and without any in g: the loss is minus the sum of h over the possible pairs."""
    if model == "context":
        pytest.importorskip("torch")
    setup = prepare(TrainSettings("rescue:2x4", learner="ppo", model=model, inference="quad", num_envs=4))
    actor, read = setup.make_actor(), setup.spec.read(setup.envs[0].observe())
    values = []
    for _ in range(5):
        h, _ = actor.forward(read)
        values.append(float((h * read.pairs).sum()))
        actor.backward(read, (-read.pairs.astype(np.float64), None))
        actor.step(0.01)
    assert values == sorted(values)
    assert values[0] < values[-1]


def test_the_seeds_that_a_learner_draws_are_those_of_training_episodes():
    setup = prepare(TrainSettings("rescue:2x4", learner="ppo", num_envs=4, seed=3))
    learner = PPO(setup, PPOSettings())
    assert learner.seeds(5, 2).tolist() == episode_seeds(TRAINING + 3, np.array([5, 6])).tolist()
    assert not set(learner.seeds(0, 9).tolist()) & set(learner.seeds(0, 9, env=1).tolist())
