"""PPO: choices reach the known optimum, g waits where agents are many, and a collapsed run rolls back."""

import numpy as np
import pytest
import torch

import muster
from muster import InputError
from muster.learning.a2c import returns_of
from muster.learning.actor import DirectActor
from muster.learning.learners import make_learner
from muster.learning.ppo import COLLAPSE_UPDATES, DECLINE_WINDOW, WINDOW, Rollback
from muster.learning.settings import PPOSettings, TrainSettings
from muster.learning.train import run_training
from muster.models.torch_networks import network_from
from muster.policy.noise import standard_gumbels
from muster.settings import from_toml, to_toml
from tests.learning.test_train import TOY

ROOMY = "tests.learning.toy:Roomy"
MANY, FEW = "rescue:6x12", "rescue:5x10"

# Episodes of one decision add up no noise over time, so each has to be larger than elsewhere.
PPO = {"rollout_length": 4, "learning_rate": 1e-2, "sigma": 3.0}
TINY = {"num_envs": 2, "ppo": PPOSettings(rollout_length=2)}


@pytest.mark.parametrize(
    ("env", "inference", "assign_all"),
    [
        (ROOMY, "amax", False),
        (ROOMY, "lp", True),
        (ROOMY, "quad", False),
        # Every task is full and no agent may idle: only who does what can be learned.
        (TOY, "lp", True),
        (TOY, "quad", True),
    ],
)
def test_choices_reach_the_known_optimum(env, inference, assign_all):
    settings = {"steps": 4_000, "log_every": 2_000, "seed": 1, "inference": inference}
    policy = muster.train(env, num_envs=32, ppo=PPO, assign_all=assign_all, **settings)
    assert muster.evaluate(policy, env, 100).mean > 0.95


def test_an_environment_without_any_choice_is_told_so(capsys):
    """One agent, one task."""
    muster.train("rescue:1x1,grid=5", num_envs=32, ppo=PPO, inference="lp", assign_all=True, steps=1000)
    assert capsys.readouterr().err.count("no agent had a choice") == 1


def test_noise_that_changes_no_choice_is_told_so(capsys):
    ppo = PPO | {"sigma": 1e-3}
    muster.train(TOY, num_envs=32, ppo=ppo, inference="amax", assign_all=True, steps=1000)
    assert capsys.readouterr().err.count("raise --ppo.sigma (now 0.001)") == 1


def test_returns_with_a_trace_agree_with_their_definition():
    rng = np.random.default_rng(0)
    rewards, values, after = rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng.normal(size=3)
    ended = rng.random((6, 3)) < 0.2
    found = returns_of(rewards, ended, after, 0.9, values, 1.0)
    np.testing.assert_array_equal(found, returns_of(rewards, ended, after, 0.9))
    # With trace 0 only the next value counts.
    following = np.vstack([values[1:], after])
    np.testing.assert_allclose(
        returns_of(rewards, ended, after, 0.9, values, 0.0), rewards + 0.9 * np.where(ended, 0, following)
    )
    # The usual form: advantages are discounted sums of one-step errors.
    errors, sums = rewards + 0.9 * np.where(ended, 0, following) - values, np.zeros(3)
    for t in reversed(range(6)):
        sums = errors[t] + 0.9 * 0.7 * np.where(ended[t], 0, sums)
        np.testing.assert_allclose(returns_of(rewards, ended, after, 0.9, values, 0.7)[t] - values[t], sums)


def test_gumbel_innovations_have_mean_0_and_deviation_1_and_make_a_softmax():
    draws = standard_gumbels(np.random.default_rng(0).standard_exponential((200_000, 3)))
    assert draws.mean(0) == pytest.approx(0, abs=0.01)
    assert draws.std(0) == pytest.approx(1, abs=0.01)
    scores, tau = np.array([0.3, 0.0, -0.5]), np.sqrt(6) / np.pi
    share = np.bincount((scores + draws).argmax(1), minlength=3) / len(draws)
    assert share == pytest.approx(np.exp(scores / tau) / np.exp(scores / tau).sum(), abs=0.005)


def test_a_fall_that_lasts_is_a_collapse_and_a_short_one_is_not():
    watch, rng = Rollback(), np.random.default_rng(0)
    said = [watch.update(1 + 0.1 * rng.normal(), 0.5, 10, 0.1) for _ in range(200)]
    assert "collapsed" not in said
    assert said.count("best") >= 1
    said = [watch.update(-1.0, 0.5, 10, 0.1) for _ in range(WINDOW + COLLAPSE_UPDATES)]
    assert said.count("collapsed") == 1
    assert watch.rollbacks == 1


def decline(by, episodes, updates=2 * DECLINE_WINDOW):
    """How often a run goes back that is as good as ever for long, then worse by so many standard deviations."""
    watch, rng = Rollback(), np.random.default_rng(1)
    level = [0.0] * (6 * DECLINE_WINDOW) + [-by] * updates
    noise = rng.normal(0, 1 / np.sqrt(episodes), len(level))
    said = [watch.update(mean + off, 1.0, episodes, 0.1) for mean, off in zip(level, noise, strict=True)]
    assert "collapsed" not in said[: 6 * DECLINE_WINDOW]
    return said.count("collapsed")


def test_a_slow_decline_is_noticed_where_there_are_episodes_enough_to_tell():
    assert decline(by=0.2, episodes=100, updates=DECLINE_WINDOW) == 1
    assert decline(by=0.05, episodes=100) == 0  # no matter how sure
    assert decline(by=0.2, episodes=4) == 0  # chance does as much
    assert decline(by=0.8, episodes=4, updates=DECLINE_WINDOW) == 1


def test_all_agents_idle_is_a_collapse_sooner_unless_it_pays():
    worse, better = Rollback(), Rollback()
    for watch in (worse, better):
        for _ in range(2 * WINDOW):
            watch.update(1.0, 0.5, 10, 0.1)
    assert "collapsed" in [worse.update(0.0, 0.5, 10, 1.0) for _ in range(WINDOW)]
    assert "collapsed" not in [better.update(2.0, 0.5, 10, 1.0) for _ in range(WINDOW)]


@pytest.mark.parametrize(("learner", "at_zero"), [("ppo", True), ("a2c", False)])
def test_noise_on_h_is_not_drowned_by_a_random_g(learner, at_zero):
    """With fifteen units a random g decides every choice, and nothing is ever tried: ppo starts it at 0."""
    made = make_learner(TrainSettings(env=ROOMY, learner=learner, **TINY))
    assert made.parameters()["g.weight3"].any() != at_zero
    made.update()
    assert made.parameters()["g.weight3"].any()


@pytest.mark.parametrize("model", ["dm", "context"])
def test_a_g_that_waits_neither_acts_nor_learns_before_half_of_the_run(model):
    ppo = PPOSettings(rollout_length=4)
    learner = make_learner(TrainSettings(env=MANY, inference="quad", model=model, num_envs=4, ppo=ppo))
    begun = learner.parameters()
    learner.update(0.0)
    learner.update(0.49)
    waiting = learner.parameters()
    assert learner.collect()[0].scores[1] is None
    assert all(np.array_equal(waiting[name], begun[name]) for name in begun if name.startswith("g."))
    assert not np.array_equal(waiting["h.weight3"], begun["h.weight3"])
    learner.update(0.5)
    assert learner.collect()[0].scores[1] is not None
    assert learner.parameters()["g.weight3"].any()
    learner.update(0.1)  # a run that is resumed to last longer keeps what it has learned
    assert learner.collect()[0].scores[1] is not None


def test_a_g_that_is_not_zero_or_of_few_agents_does_not_wait():
    learner = make_learner(TrainSettings(env=MANY, inference="quad", **TINY))
    given = learner.parameters()
    learner.start(given | {"g.bias3": np.ones_like(given["g.bias3"])})
    learner.update(0.0)
    assert learner.collect()[0].scores[1] is not None
    few = make_learner(TrainSettings(env=FEW, inference="quad", **TINY))
    few.update(0.0)
    assert few.collect()[0].scores[1] is not None


@pytest.mark.parametrize(
    ("env", "inference", "counted"),
    [(FEW, "quad", False), (MANY, "quad", True), (FEW, "lp", True), (MANY, "amax", False)],
)
def test_exchanges_are_learned_from_unless_a_g_would_be_left_behind(env, inference, counted):
    learner = make_learner(TrainSettings(env=env, inference=inference, **TINY))
    assert learner._batch(learner.collect()[0]).choices.exchanging == counted


@pytest.mark.parametrize(
    ("env", "inference", "shares"),
    [(FEW, "quad", [0.4, 1]), ("rescue:10x12", "quad", [0.2, 1]), ("rescue:2x4", "quad", [1]), (FEW, "lp", [1])],
)
def test_a_g_that_many_agents_feel_is_learned_in_smaller_steps(env, inference, shares):
    learner = make_learner(TrainSettings(env=env, inference=inference, **TINY))
    groups = learner.actor.groups
    assert [share for share, _ in groups] == pytest.approx(shares)
    assert {name for _, group in groups for name in group.shapes} == set(learner.parameters())


def test_a_positional_model_learns_from_choices():
    settings = TrainSettings(env="rescue:2x3,grid=5", model="pem", steps=1, num_envs=4, ppo=PPO)
    learner = make_learner(settings)
    before = learner.parameters()
    learner.update()
    after = learner.parameters()
    assert all(np.isfinite(array).all() for array in after.values())
    assert all(
        not np.array_equal(after[name], before[name]) for name in ("h.weight2", "g.weight2", "grid.outlet.weight")
    )


@pytest.mark.parametrize("inference", ["lp", "quad"])
def test_slopes_go_back_through_the_direct_model_as_through_torch(inference):
    learner = make_learner(TrainSettings(env="tests.learning.toy:Priced", learner="ppo", inference=inference, steps=1))
    assert isinstance(learner.actor, DirectActor)
    observation = learner.spec.read(learner.envs[0].observe())
    rng = np.random.default_rng(1)
    moved = {
        name: array + 0.1 * rng.standard_normal(array.shape, np.float32) for name, array in learner.parameters().items()
    }
    learner.start(moved)
    network = network_from(learner.spec, moved)
    ends = [end for end in network(observation) if end is not None]
    slopes = [rng.standard_normal(end.shape).astype(np.float32) for end in ends]
    torch.autograd.backward(ends, [torch.from_numpy(slope) for slope in slopes])
    found = learner.actor.model.gradient(observation, (slopes[0], slopes[1] if inference == "quad" else None))
    for name, parameter in network.pairs.items():
        # The toy has no features of pairs, so nothing flows into their weights.
        expected = np.zeros(parameter.shape) if parameter.grad is None else parameter.grad.numpy()
        assert found[name.replace("_", ".", 1)] == pytest.approx(expected, rel=1e-3, abs=1e-3), name


def test_a_run_writes_every_value_of_its_settings(tmp_path):
    settings = TrainSettings(env=TOY, num_envs=64, ppo={"sigma": 0.3})
    (tmp_path / "c.toml").write_text(to_toml(settings))
    text = (tmp_path / "c.toml").read_text()
    for said in ("num_envs = 64", "minibatches = 8", "gae_lambda = 0.95", "clip_range = 0.2", "sigma = 0.3"):
        assert said in text
    assert from_toml(TrainSettings, tmp_path / "c.toml") == settings


@pytest.mark.parametrize(
    ("ppo", "message"),
    [
        ({"clip_range": -0.1}, "clip_range must be at least 0"),
        ({"gae_lambda": 1.5}, "gae_lambda must be between 0 and 1"),
        ({"clip": 0.2}, "did you mean 'ppo.clip_range'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(ppo, message):
    with pytest.raises(InputError, match=message):
        TrainSettings(env=TOY, ppo=ppo)


def test_a_collapsed_run_goes_on_from_its_best_state_and_says_so_once(tmp_path, capsys, monkeypatch):
    best, seen, rates = {}, [], []

    def see(self, reward, std, episodes, idle):
        seen.append(reward)
        verdict = {3: "best", 5: "collapsed", 7: "collapsed"}.get(len(seen), "")
        self.rollbacks += verdict == "collapsed"
        return verdict

    monkeypatch.setattr(Rollback, "update", see)
    settings = TrainSettings(env=ROOMY, inference="lp", steps=8 * 128, log_every=128, num_envs=32, ppo=PPO)
    learner = make_learner(settings)
    step = learner.actor.step
    monkeypatch.setattr(learner.actor, "step", lambda rate: rates.append(rate) or step(rate))
    for update in range(1, 6):
        learner.update()
        if update == 3:
            best = learner.parameters()
    assert all(np.array_equal(best[name], array) for name, array in learner.parameters().items())
    learner.update()
    assert rates[-1] == rates[0] / 2
    seen.clear()
    run_training(settings, tmp_path / "r")
    assert capsys.readouterr().err.count("goes on from its best state") == 1
    assert [line for line in (tmp_path / "r" / "metrics.jsonl").read_text().splitlines() if '"rollbacks": 2' in line]
