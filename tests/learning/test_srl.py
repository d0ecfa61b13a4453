"""Structured reinforcement learning: weights, values, that it learns and resumes bit for bit, and what it refuses."""

import signal

import numpy as np
import pytest

import muster
from muster import InputError
from muster.learning.critic import Critic
from muster.learning.learner import stream
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from muster.learning.srl import ALIKE, DISCOUNT, Experience, candidate_weights
from muster.learning.train import run_training
from muster.models.direct import DirectModel
from tests.learning.short_runs import assert_same_end, rows_without_times
from tests.learning.test_train import mean_reward
from tests.learning.toy import Pairing

TOY = "tests.learning.toy:Pairing"


def learner_of(env: str = "rescue:2x3,grid=5", **settings):
    return make_learner(TrainSettings(env=env, learner="srl", steps=1, **{"num_envs": 8} | settings))


def test_two_candidates_are_weighed_as_by_hand():
    """Values 1 and 3 deviate by 1 from their mean; the spread is sqrt((1 + 2²) / 2), and e^(-2 / (0.5 spread))."""
    other = np.exp(-2.0 / (0.5 * np.sqrt(2.5)))
    found = candidate_weights(np.array([[1.0], [3.0]]), 0.5, 2.0)
    np.testing.assert_allclose(found[:, 0], [other / (1 + other), 1 / (1 + other)])


def test_weights_do_not_depend_on_the_unit_of_rewards():
    worth = np.random.default_rng(0).standard_normal((5, 7))
    np.testing.assert_allclose(
        candidate_weights(worth, 1.0, 0.8), candidate_weights(1000.0 * worth - 7.0, 1.0, 800.0), rtol=1e-9
    )


def test_candidates_worth_the_same_weigh_the_same():
    np.testing.assert_array_equal(candidate_weights(np.full((4, 2), 3.0), 1.0, 0.0), np.full((4, 2), 0.25))


@pytest.mark.parametrize("inference", ["lp", "quad"])
def test_the_gradient_is_that_of_the_mean_answer_less_the_target(inference):
    """Against differences of sum over k of (1/K - weight) V(answer), which is linear in the scores."""
    learner = learner_of(inference=inference)
    observation = learner.spec.read(learner.envs[0].observe())
    rng = np.random.default_rng(1)
    answers = rng.integers(-1, 3, (2, 8, 2))
    weights = np.stack([np.full(8, 0.3), np.full(8, 0.7)])
    valued = Experience(observation, answers, weights, observation, np.zeros(0), {})
    learner.actor.backward(observation, learner.slopes(valued, weights, 1))
    ((_, optimiser),) = learner.actor.groups
    gradient = optimiser.gradient.copy()

    def loss(theta):
        optimiser.theta = theta
        h, g = DirectModel(learner.parameters(), learner.spec.task_scores)(observation)
        total = 0.0
        for share, answer in zip((0.5 - 0.3, 0.5 - 0.7), answers, strict=True):
            chosen = answer[:, :, None] == np.arange(3)
            count = chosen.sum(axis=1)
            total += share * (h * chosen).sum(dtype=np.float64)
            if g is not None:
                total += share * np.einsum("bj,bl,bjl->", count, count, g, dtype=np.float64)
        return float(total) / 8

    theta = optimiser.theta.copy()
    # Along the last layers, in which scores are linear.
    last = np.concatenate([np.full(int(np.prod(shape)), "3" in name) for name, shape in optimiser.shapes.items()])
    along = rng.standard_normal(len(theta)) * last
    assert (loss(theta + along) - loss(theta - along)) / 2 == pytest.approx(gradient @ along, rel=1e-4)


def test_candidates_without_noise_have_the_same_value_and_nothing_moves():
    """All candidates of a state have the same random numbers, so that they differ by what they do alone."""
    learner = learner_of("battle:m5v5", inference="lp")
    env = learner.envs[0]
    for _ in range(3):
        learner.collect(0)
    noise = np.zeros((8, env.n_envs, env.n_agents, env.n_tasks), np.float32)
    before = env.get_state()
    tried = learner.candidates[0].run(learner, noise, learner.rng)
    assert (tried.values == tried.values[0]).all()
    assert len(np.unique(tried.values[0])) > 1
    assert all(np.array_equal(array, env.get_state()[name]) for name, array in before.items()), (
        "the environment has moved"
    )
    parameters = learner.parameters()
    observation = learner.spec.read(env.observe())
    found = Experience(observation, tried.first, tried.values, tried.midway, tried.returns, {})
    assert learner.learn([found], 1.0) == 0.0
    assert all(np.array_equal(array, parameters[name]) for name, array in learner.parameters().items())


def test_a_candidate_adds_up_discounted_rewards_and_the_value_where_it_is_cut_off():
    learner = learner_of("rescue:2x9,grid=9", num_envs=4)
    learner.candidates[0].horizon = 3
    learner.critic = lambda observation: np.full(len(observation.agent_alive), 8.0)
    env = learner.envs[0]
    tried = learner.candidates[0].run(learner, np.zeros((8, 4, env.n_agents, env.n_tasks), np.float32), learner.rng)
    expected = [-0.01 * sum(DISCOUNT**t for t in range(left)) + 8.0 * DISCOUNT**left for left in (3, 2, 1)]
    np.testing.assert_allclose(tried.values, expected[0])
    assert any(np.allclose(tried.returns, value) for value in expected)
    assert tried.steps == 8 * 4 * 3


@pytest.mark.parametrize("inference", ["lp", "quad", "amax"])
def test_srl_learning_reaches_the_known_optimum(inference):
    policy = muster.train(TOY, learner="srl", steps=4_000, seed=1, inference=inference)
    assert mean_reward(policy) == 1.0


def test_a_run_that_stops_and_goes_on_equals_one_that_does_not(tmp_path):
    """Interrupted after two rows; and, without interruption, a run is the same each time."""
    heard: list[dict] = []
    settings = TrainSettings(
        env="rescue:2x3,grid=5", learner="srl", steps=2400, log_every=400, evaluate_episodes=4, num_envs=8
    )

    def stop(row, progress):
        heard.append(row)
        if len(heard) == 2:
            signal.raise_signal(signal.SIGINT)

    run_training(settings, tmp_path / "whole")
    assert not run_training(settings, tmp_path / "broken", report=stop).finished
    run_training(settings, tmp_path / "broken", resume=True)
    assert rows_without_times(tmp_path / "broken") == rows_without_times(tmp_path / "whole")
    assert_same_end(tmp_path / "whole", tmp_path / "broken")


def test_several_environments_are_learned_on_and_logged():
    learner = learner_of(["rescue:2x3,grid=5", "rescue:3x4,grid=5"], inference="quad")
    assert [env.n_envs for env in learner.envs] == [4, 4]
    found = learner.update()
    for _ in range(5):
        found |= learner.update()
    assert {"episodes/rescue:2x3,grid=5", "outcome/rescue:3x4,grid=5", "value_loss"} <= found.keys()


def test_noise_is_measured_by_the_scores_that_a_run_begins_with():
    learner = learner_of()
    assert learner.sigma == 0.5
    parameters = learner.actor.parameters()
    learner.start({name: 1000 * array if "weight3" in name else array for name, array in parameters.items()})
    seen = learner.spec.read(learner.envs[0].observe())
    spread = float(learner.actor.scores(seen)[0].std())
    assert spread > 1
    assert learner.sigma == pytest.approx(0.5 * spread, rel=1e-5)


def test_a_critic_learns_returns_of_any_size():
    env = muster.make("rescue:2x3,grid=5", 64)
    critic = Critic(learner_of().spec, stream(0, 1), 1.0)
    rng = np.random.default_rng(2)
    for round_ in range(200):
        env.reset(np.arange(64), rng.integers(2**40, size=64).astype(np.uint64))
        seen = env.observe()
        earned = 1000.0 + 200.0 * seen.agent_features[:, :, 0].sum(axis=1)
        if round_ < 199:
            critic.update_units(earned)
            critic.add_gradient(seen, earned)
            critic.step(1e-2)
    assert earned.std() > 20
    assert np.abs(critic(seen) - earned).mean() < 10


class Uncopied(Pairing):
    """Cannot be saved."""

    def get_state(self):
        raise muster.MusterError("it runs elsewhere")

    def set_state(self, state):
        raise muster.MusterError("it runs elsewhere")


def test_an_environment_that_cannot_be_copied_is_refused():
    with pytest.raises(InputError, match=r"cannot be copied so: it runs elsewhere.*--learner ppo or es"):
        muster.train("tests.learning.test_srl:Uncopied", learner="srl", inference="lp", steps=10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "pem"}, "srl trains direct and linear models"),
        ({"inference": "routes"}, "costs of routes are learned by evolution strategies only"),
        ({"num_envs": 1, "env": ["rescue:2x4", "rescue:3x6"]}, "num_envs are divided among the environments"),
    ],
)
def test_what_is_not_supported_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        muster.train(settings.pop("env", "rescue:2x4"), learner="srl", **settings)


def test_it_says_when_candidates_cannot_be_told_apart():
    learner = learner_of("tests.learning.toy:Same", inference="lp")
    for _ in range(ALIKE - 1):
        learner.update()
    assert learner.advice() is None
    learner.update()
    assert "rewards come later than 10 decisions" in learner.advice()
