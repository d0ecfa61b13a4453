"""Structured learning: what weighs, what is valued, that it learns and goes on bit for bit, and what it refuses."""

import signal

import numpy as np
import pytest

import muster
from muster import InputError
from muster.learning.critic import Critic, critic_shapes, init_critic, with_choices
from muster.learning.episodes import stream
from muster.learning.learner_settings import SRLSettings
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from muster.learning.structured import ALIKE, Valued, candidate_weights
from muster.learning.train import run_training
from muster.learning.trials import Player
from muster.models.direct import DirectModel
from tests.learning.short_runs import assert_same_end, rows_without_times
from tests.learning.test_train import mean_reward
from tests.learning.toy import Pairing

TOY = "tests.learning.toy:Pairing"
SMALL = {"states": 8, "candidates": 4}


def learner_of(env: str = "rescue:2x3,grid=5", **settings):
    return make_learner(TrainSettings(env=env, learner="srl", steps=1, **{"srl": SRLSettings(**SMALL)} | settings))


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
    place = learner.envs[0]
    seen = learner.spec.view(place.env.observe())
    rng = np.random.default_rng(1)
    answers = rng.integers(-1, 3, (2, 8, 2))
    weights = np.stack([np.full(8, 0.3), np.full(8, 0.7)])
    gradient = learner.actor.flatten(learner.gradient(seen, answers, weights))

    def loss(theta):
        learner.actor.theta = theta
        h, g = DirectModel(learner.actor.parameters(), learner.spec.task_scores)(seen)
        total = 0.0
        for share, answer in zip((0.5 - 0.3, 0.5 - 0.7), answers, strict=True):
            chosen = answer[:, :, None] == np.arange(3)
            crowd = chosen.sum(axis=1)
            total += share * (h * chosen).sum(dtype=np.float64)
            if g is not None:
                total += share * np.einsum("bj,bl,bjl->", crowd, crowd, g, dtype=np.float64)
        return float(total) / 8

    theta = learner.actor.theta.copy()
    # Along the last layers, in which scores are linear.
    shapes = {name: np.full(shape, "3" in name, np.float32) for name, shape in learner.actor.shapes.items()}
    along = rng.standard_normal(len(theta)) * learner.actor.flatten(shapes)
    assert (loss(theta + along) - loss(theta - along)) / 2 == pytest.approx(gradient @ along, rel=1e-4)


def test_candidates_without_noise_are_worth_the_same_and_nothing_moves():
    """All candidates of a state have the same luck, so that they differ by what they do alone."""
    learner = learner_of("battle:m5v5", inference="lp")
    place = learner.envs[0]
    env = place.env
    for _ in range(3):
        learner.play(place)
    noise = np.zeros((4, env.n_envs, env.n_agents, env.n_tasks), np.float32)
    before = env.get_state()
    player = Player(learner.spec, learner.scores, learner.solver, learner.critic)
    tried = place.trials.play(player, noise, learner.rng)
    assert (tried.worth == tried.worth[0]).all()
    assert len(np.unique(tried.worth[0])) > 1
    assert all(np.array_equal(array, env.get_state()[name]) for name, array in before.items()), (
        "the environment has moved"
    )
    theta = learner.actor.theta.copy()
    seen = learner.spec.view(env.observe())
    found = Valued(seen, tried.first, tried.worth, tried.midway, tried.returns, {})
    assert learner.learn([found], 1.0) == 0.0
    np.testing.assert_array_equal(learner.actor.theta, theta)


def test_a_trial_adds_up_discounted_rewards_and_the_value_where_it_is_cut():
    srl = SRLSettings(states=4, candidates=2, horizon=3, discount=0.5)
    learner = learner_of("rescue:2x9,grid=9", srl=srl)
    place = learner.envs[0]
    env = place.env
    player = Player(learner.spec, learner.scores, learner.solver, lambda seen: np.full(len(seen.agent_alive), 8.0))
    noise = np.zeros((2, 4, env.n_agents, env.n_tasks), np.float32)
    tried = place.trials.play(player, noise, learner.rng)
    np.testing.assert_allclose(tried.worth, -0.01 * (1 + 0.5 + 0.25) + 8.0 * 0.125)
    returns = [-0.01 * sum(0.5**t for t in range(left)) + 8.0 * 0.5**left for left in (3, 2, 1)]
    assert any(np.allclose(tried.returns, value) for value in returns)
    assert tried.steps == 2 * 4 * 3


@pytest.mark.parametrize(
    "settings",
    [
        {"inference": "lp"},
        {"inference": "quad"},
        {"inference": "amax"},
        {"inference": "lp", "srl": {"valuation": "critic", "rate": 1e-2, "value_rate": 1e-2}},
    ],
    ids=["lp", "quad", "amax", "critic"],
)
def test_structured_learning_reaches_the_known_optimum(settings):
    policy = muster.train(TOY, learner="srl", steps=4_000, evaluate_every=10**9, seed=1, **settings)
    assert mean_reward(policy) == 1.0


def small(valuation: str) -> TrainSettings:
    return TrainSettings(
        env="rescue:2x3,grid=5",
        learner="srl",
        steps=2400,
        log_every=400,
        checkpoint_every=700,
        evaluate_every=1000,
        evaluate_episodes=20,
        srl=SRLSettings(valuation, **SMALL),
    )


@pytest.mark.parametrize("valuation", ["rollouts", "critic"])
def test_a_run_that_stops_and_goes_on_equals_one_that_does_not(valuation, tmp_path):
    """Interrupted after two rows; and, without interruption, a run is the same each time."""
    settings, heard = small(valuation), []

    def stop(row, progress):
        heard.append(row)
        if len(heard) == 2:
            signal.raise_signal(signal.SIGINT)

    run_training(settings, tmp_path / "whole")
    assert not run_training(settings, tmp_path / "broken", report=stop).finished
    run_training(settings, tmp_path / "broken", resume=True)
    assert rows_without_times(tmp_path / "broken") == rows_without_times(tmp_path / "whole")
    assert_same_end(tmp_path / "whole", tmp_path / "broken")


def test_several_worlds_are_learned_on_and_logged():
    learner = learner_of(["rescue:2x3,grid=5", "rescue:3x4,grid=5"], inference="quad")
    assert [place.env.n_envs for place in learner.envs] == [4, 4]
    figures = learner.update()
    for _ in range(5):
        figures |= learner.update()
    assert {"episodes/rescue:2x3,grid=5", "outcome/rescue:3x4,grid=5", "value_loss"} <= figures.keys()


def test_noise_is_measured_by_the_scores_that_a_run_begins_with():
    learner = learner_of()
    assert learner.sigma == 0.5
    parameters = learner.actor.parameters()
    learner.start({name: 1000 * array if "weight3" in name else array for name, array in parameters.items()})
    seen = learner.spec.view(learner.envs[0].env.observe())
    spread = float(learner.scores(seen)[0].std())
    assert spread > 1
    assert learner.sigma == pytest.approx(0.5 * spread, rel=1e-5)


def test_a_critic_learns_returns_of_any_size_and_of_any_assignment():
    env = muster.make(TOY, 64)
    learner = learner_of(TOY, inference="lp")
    critic = Critic(learner.spec, stream(0, 1), 1.0, choices=True)
    rng = np.random.default_rng(2)
    for round_ in range(200):
        env.reset(np.arange(64), rng.integers(2**40, size=64).astype(np.uint64))
        seen = env.observe()
        right = (seen.agent_features[:, :, 0][:, :, None] == seen.task_features[:, None, :, 0]).argmax(axis=2)
        answer = np.where(rng.random((64, 2)) < 0.5, right, 1 - right)
        earned = 1000.0 + 50.0 * (answer == right).sum(axis=1)
        if round_ < 199:
            critic.learn(with_choices(seen, answer), earned, 1e-2)
    assert np.abs(critic(with_choices(seen, answer)) - earned).mean() < 10


def test_the_critic_has_the_shapes_of_the_networks_one():
    torch = pytest.importorskip("torch")
    from muster.models.networks import EntityCritic

    spec = learner_of().spec
    shapes = critic_shapes(spec.agent_width, spec.task_width, spec.global_width)
    network = EntityCritic(spec)
    assert shapes == {name: tuple(value.shape) for name, value in network.named_parameters()}
    arrays = init_critic(shapes, np.random.default_rng(0))
    network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})


class Uncopied(Pairing):
    """Cannot be saved."""

    def get_state(self):
        raise muster.MusterError("it runs elsewhere")

    def set_state(self, state):
        raise muster.MusterError("it runs elsewhere")


def test_a_world_that_cannot_be_copied_is_refused_but_for_a_critic_alone():
    world = "tests.learning.test_structured:Uncopied"
    with pytest.raises(InputError, match=r"cannot be copied so: it runs elsewhere.*--srl.valuation critic"):
        muster.train(world, learner="srl", inference="lp", steps=10)
    muster.train(world, learner="srl", inference="lp", steps=10, srl={"valuation": "critic"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "pem"}, "structured learning trains the direct model only"),
        ({"inference": "routes"}, "costs of routes are learned by evolution alone"),
        (
            {"srl": {"states": 1}, "env": ["rescue:2x4", "rescue:3x6"]},
            "srl.states are shared out among the environments",
        ),
        ({"srl": {"candidates": 1}}, "candidates must be at least 2"),
        ({"srl": {"valuation": "critic", "horizon": 3}}, "a critic alone plays no rollouts"),
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
    assert "raise --srl.sigma" in learner.advice()
