"""Learned capacities and contributions: positive, in agents, the same however slots are numbered; and they learn."""

import dataclasses

import numpy as np
import pytest

import muster
from muster import InputError
from muster.assign.settings import InferenceSettings
from muster.learning import es, ppo
from muster.learning.losses.clipped import ChoiceBatch
from muster.learning.settings import CORRELATED_STEPS, TrainSettings
from muster.learning.train import Loop, run_training
from muster.models.direct import DirectModel, init_parameters, parameter_shapes
from muster.models.limits import units, with_limits
from muster.models.spec import ModelSpec
from muster.policy.learned import LearnedPolicy
from muster.policy.noise import LIMIT_SIGMA
from muster.policy.settings import NoiseSettings

BATTLE, LIFTING = "battle:m5v5", "tests.learning.toy:Lifting"
BOTH = ("capacities", "contributions")


@pytest.fixture
def seen():
    env = muster.make("battle:zh10v10", 4, seed=3)
    for _ in range(20):
        env.step(np.tile(np.arange(env.n_agents) % env.n_tasks, (4, 1)))
    return env.observe()


@pytest.fixture
def policy(seen):
    """With heads that say something."""
    spec = ModelSpec.of(seen, "dm", task_scores=False, learned=BOTH)
    rng = np.random.default_rng(1)
    start = init_parameters(spec, rng)
    parameters = {name: array + 0.3 * rng.standard_normal(array.shape).astype("f") for name, array in start.items()}
    return LearnedPolicy("p", spec, parameters, InferenceSettings("lp"), NoiseSettings(), {"env": "battle:zh10v10"})


def test_limits_start_as_the_same_room_for_every_task_whatever_the_environment_gives(seen):
    spec = ModelSpec.of(seen, "dm", task_scores=False, learned=BOTH)
    assert {name.partition(".")[0] for name in parameter_shapes(spec)} == {"h", "capacity", "contribution"}
    model = DirectModel(init_parameters(spec, np.random.default_rng(0)), False)
    limited = model.limit(seen)
    np.testing.assert_allclose(limited.capacities[seen.task_alive], 2.5 * units(seen)[seen.task_alive], rtol=1e-6)
    pairs = seen.agent_alive[:, :, None] & seen.task_alive[:, None, :]
    same = np.broadcast_to(0.8 * units(seen)[:, None], pairs.shape)
    np.testing.assert_allclose(limited.contributions[pairs], same[pairs], rtol=1e-6)
    other = dataclasses.replace(seen, capacities=7 * seen.capacities)
    np.testing.assert_array_equal(model.limit(other).capacities, limited.capacities)


def test_limits_are_positive_and_in_the_units_of_the_environment(policy, seen):
    limited = policy.read(seen)
    assert (limited.capacities > 0).all()
    assert (limited.contributions > 0).all()
    larger = policy.read(dataclasses.replace(seen, contributions=10 * seen.contributions))
    np.testing.assert_allclose(larger.capacities[seen.task_alive], 10 * limited.capacities[seen.task_alive])
    extreme = with_limits(seen, {"capacity": np.full((4, 1, seen.capacities.shape[1]), -80, np.float32)})
    assert (extreme.capacities > 0).all()
    assert (extreme.contributions == seen.contributions).all()


def test_renumbering_agents_and_tasks_renumbers_limits(policy, seen):
    rng = np.random.default_rng(2)
    n, m = seen.contributions.shape[1:]
    agents, tasks = rng.permutation(n), rng.permutation(m)
    moved = dataclasses.replace(
        seen,
        agent_features=seen.agent_features[:, agents],
        task_features=seen.task_features[:, tasks],
        pair_features=seen.pair_features[:, agents][:, :, tasks],
        task_pair_features=seen.task_pair_features[:, tasks][:, :, tasks],
        # Masks must be contiguous.
        agent_alive=seen.agent_alive[:, agents].copy(),
        task_alive=seen.task_alive[:, tasks].copy(),
        contributions=seen.contributions[:, agents][:, :, tasks],
        capacities=seen.capacities[:, tasks],
    )
    one, other = policy.read(seen), policy.read(moved)
    np.testing.assert_allclose(other.capacities, one.capacities[:, tasks], rtol=1e-5)
    np.testing.assert_allclose(other.contributions, one.contributions[:, agents][:, :, tasks], rtol=1e-5)


def test_assignments_respect_what_was_learned_and_not_what_the_environment_gives(policy, seen):
    limited, assignment = policy.read(seen), policy.act(seen)
    for b in range(seen.batch):
        for j in range(seen.capacities.shape[1]):
            load = limited.contributions[b, assignment[b] == j, j].sum()
            assert load <= limited.capacities[b, j] * (1 + 1e-6)
    nothing = policy.parameters | {"capacity.bias3": np.full(1, -30, np.float32)}
    assert (policy.variant(parameters=nothing).act(seen) == -1).all()


def test_a_model_without_capacities_lets_all_take_one_task():
    seen = muster.make(LIFTING, 2).observe()
    spec = ModelSpec.of(seen, "dm", task_scores=False, unlimited=True)
    parameters = init_parameters(spec, np.random.default_rng(0))
    policy = LearnedPolicy("p", spec, parameters, InferenceSettings("lp", assign_all=True), NoiseSettings())
    assert all(len(set(row)) == 1 for row in policy.act(seen).tolist())
    assert "no capacities" in policy.facts()["model"]


def test_learned_limits_survive_their_file_and_are_told(policy, seen, tmp_path):
    policy.save(tmp_path / "p.safetensors")
    again = LearnedPolicy.load(tmp_path / "p.safetensors")
    assert again.spec == policy.spec
    assert (again.act(seen) == policy.act(seen)).all()
    assert "capacities and contributions learned" in again.facts()["model"]


@pytest.mark.parametrize(
    ("learn", "steps", "rate", "enough"), [("capacities", 12_000, 0.1, 0.95), ("contributions", 16_000, 0.03, 0.6)]
)
def test_evolution_learns_how_many_a_task_takes(learn, steps, rate, enough):
    """Without limits to learn the reward is 1/3: one agent a task."""
    own = {"pairs": 16, "episodes": 8, "sigma": 0.1, "learning_rate": rate}
    policy = muster.train(LIFTING, inference="lp", learner="es", learn=learn, steps=steps, seed=1, es=own)
    assert muster.evaluate(policy, LIFTING, episodes=60).mean > enough
    seen = muster.make(LIFTING, 5).observe()
    limited = policy.read(seen)
    room = limited.capacities / limited.contributions.mean(axis=1)
    assert (room.argmax(axis=1) == seen.task_features[..., 0].argmax(axis=1)).all()


def test_ppo_learns_how_many_a_task_takes():
    wanted = {"inference": "lp", "learn": "capacities", "log_every": 5000}
    policy = muster.train(LIFTING, **wanted, steps=20_000, num_envs=64, ppo={"rollout_length": 8})
    assert muster.evaluate(policy, LIFTING, episodes=60).mean > 0.95


def test_the_gradient_of_drawn_limits_is_that_of_their_loss():
    """Against finite differences; z adds its last bias, so that the slopes in z add up to that in the bias."""
    settings = TrainSettings(
        BATTLE, inference="lp", learn="capacities,contributions", num_envs=2, ppo={"rollout_length": 3}
    )
    learner = Loop(settings, None).learner
    batch = learner._batch(learner.collect()[0])
    rng = np.random.default_rng(0)
    # As far from what acted as some updates lead.
    z = {head: array + 0.1 * rng.standard_normal(array.shape) for head, array in batch.z.items()}
    slopes = batch.limit_slopes(z, 0.3, 0.2, 1.0)[1]
    for head in z:
        away = 1e-5 * rng.standard_normal(z[head].shape)
        up, down = (batch.limit_slopes({**z, head: z[head] + move}, 0.3, 0.2, 1.0)[0] for move in (away, -away))
        assert float((slopes[head] * away).sum()) == pytest.approx((up - down) / 2, rel=1e-3)
    model = learner.actor.model
    gradients = model.gradient(batch.observation, (None, None), slopes)
    for name in ("capacity.bias3", "contribution.bias3"):
        head = name.partition(".")[0]
        assert gradients[name][0] == pytest.approx(slopes[head].sum(), rel=1e-3)
    assert gradients["contribution.left"].shape == model.parameters["contribution.left"].shape


def test_limits_are_played_with_noise_that_the_rollout_tells_apart():
    settings = TrainSettings(BATTLE, inference="lp", learn="capacities", num_envs=8)
    learner = Loop(settings, None).learner
    rollout = learner.collect()[0]
    z, drawn = (part["capacity"] for part in rollout.limits)
    assert isinstance(learner._batch(rollout), ChoiceBatch)
    assert np.std(drawn - z) == pytest.approx(LIMIT_SIGMA / CORRELATED_STEPS, rel=0.1)
    explored = rollout.observation.capacities / units(rollout.observation)
    assert np.std(explored[rollout.observation.task_alive]) > 2 * np.std(drawn - z)


@pytest.mark.parametrize("learner", ["es", "ppo"])
def test_a_run_that_learns_limits_resumes_bit_for_bit(learner, tmp_path, monkeypatch):
    # The two runs are told different lengths, so nothing may depend on how far they have come.
    for module in (es, ppo):
        monkeypatch.setattr(module, "cosine_decay", lambda progress: 1.0)
    monkeypatch.setattr(ppo, "G_AFTER", 0.0)
    small = {"pairs": 2, "episodes": 2} if learner == "es" else {"rollout_length": 4}
    wanted = {"inference": "quad", "learner": learner, "learn": "capacities,contributions", learner: small}
    wanted |= {} if learner == "es" else {"num_envs": 8}
    muster.train(LIFTING, **wanted, steps=256, out=tmp_path / "whole")
    muster.train(LIFTING, **wanted, steps=128, out=tmp_path / "broken")
    muster.train(LIFTING, steps=256, out=tmp_path / "broken", resume=True)
    whole, broken = (
        LearnedPolicy.load(tmp_path / name / "last.safetensors").parameters for name in ("whole", "broken")
    )
    assert all((whole[name] == broken[name]).all() for name in whole)
    assert any("capacity" in name for name in whole)


def test_a_run_goes_on_from_learned_limits_and_adds_heads_to_a_policy_without(tmp_path):
    own = {"pairs": 2, "episodes": 2}
    lp = {"env": LIFTING, "inference": "lp"}
    first = run_training(TrainSettings(**lp, learner="es", learn="capacities", steps=40, es=own), tmp_path)
    again = TrainSettings(**lp, learn="capacities,contributions", from_policy=str(tmp_path))
    parameters = Loop(again, None).learner.parameters()
    assert all((parameters[name] == array).all() for name, array in first.policy.parameters.items())
    assert not parameters["contribution.weight3"].any()
    with pytest.raises(InputError, match="add --learn capacities"):
        Loop(TrainSettings(**lp, from_policy=str(tmp_path)), None)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"learn": "capacities", "inference": "amax"}, "which amax does not weigh; use lp or quad"),
        ({"learn": "capacities", "model": "pem"}, "needs the direct model"),
        ({"learn": "capacities", "learner": "a2c"}, "for the learners ppo and es"),
        ({"learn": "capacities", "model": "context"}, "needs the direct model"),
        ({"learn": "capacities", "learner": "imitation", "teacher": "x"}, "for the learners ppo and es"),
        ({"learn": "scores"}, "learn"),
    ],
)
def test_what_cannot_be_learned_is_refused(wanted, message):
    with pytest.raises(InputError, match=message):
        muster.train(LIFTING, steps=10, **wanted)
