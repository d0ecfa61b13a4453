"""The actor-critic's likelihoods: what each was measured with, that choices are learned from, and collapses."""

import dataclasses

import numpy as np
import pytest
import torch

import muster
from muster import InputError
from muster.learning.collapse import LASTING, LONG, WINDOW, Watch
from muster.learning.learners import make_learner
from muster.learning.returns import n_step_returns, traced_returns
from muster.learning.settings import A2CSettings, TrainSettings
from muster.learning.train import run_training
from muster.models.gradient import score_gradient
from muster.policy.noise import standard_gumbels
from muster.settings import from_toml, to_toml
from tests.learning.test_train import TOY, mean_reward

ROOMY = "tests.learning.toy:Roomy"

# Episodes of one decision add up no noise over time, so each has to be larger than elsewhere.
CHOICES = {"likelihood": "choices", "envs": 32, "return_steps": 4, "policy_rate": 1e-2, "noise": {"sigma": 3.0}}


@pytest.mark.parametrize(
    ("env", "inference", "assign_all"),
    [
        (ROOMY, "amax", False),
        (ROOMY, "lp", True),
        (ROOMY, "quad", False),
        # Every task is full and nobody may idle: only who does what can be learned.
        (TOY, "lp", True),
        (TOY, "quad", True),
    ],
)
def test_choices_reach_the_known_optimum(env, inference, assign_all):
    settings = {"steps": 4_000, "log_every": 2_000, "evaluate_every": 10**9, "seed": 1, "inference": inference}
    policy = muster.train(env, learner="a2c", a2c=CHOICES, assign_all=assign_all, **settings)
    assert muster.evaluate(policy, env, 100).mean > 0.95


def test_a_world_without_any_choice_is_told_so(capsys):
    """One agent, one task."""
    muster.train("rescue:1x1,grid=5", learner="a2c", a2c=CHOICES, inference="lp", assign_all=True, steps=1000)
    assert capsys.readouterr().err.count("no agent had a choice") == 1


def test_noise_that_changes_no_choice_is_told_so(capsys):
    a2c = CHOICES | {"noise": {"sigma": 1e-3}}
    muster.train(TOY, learner="a2c", a2c=a2c, inference="amax", assign_all=True, steps=1000)
    assert capsys.readouterr().err.count("raise --a2c.noise.sigma (now 0.001)") == 1


def test_noise_on_h_is_not_drowned_by_the_pairs_that_a_run_begins_with():
    """With fifteen units a random g decides every choice, and nothing is ever tried: it begins at 0, and is learned."""
    begins = {}
    for likelihood in ("choices", "played"):
        a2c = dataclasses.replace(A2CSettings(likelihood), envs=2, return_steps=2)
        learner = make_learner(TrainSettings(env=ROOMY, inference="quad", learner="a2c", a2c=a2c))
        begins[likelihood] = learner.policy().parameters["g.weight3"].any()
    assert begins == {"choices": False, "played": True}
    policy = muster.train(ROOMY, learner="a2c", a2c=CHOICES, inference="quad", steps=512)
    assert policy.parameters["g.weight3"].any()


@pytest.mark.parametrize("model", ["dm", "context"])
def test_a_g_that_waits_is_neither_played_nor_learned_before_its_time(model):
    a2c = A2CSettings(envs=4, return_steps=4, pairs_from=0.5)
    learner = make_learner(TrainSettings(env="rescue:2x4", inference="quad", model=model, a2c=a2c))
    begun = learner.policy().parameters
    assert learner.play()[0].scores[1] is not None  # as long as nobody has said how far the run is
    learner.update(0.0)
    learner.update(0.49)
    waiting = learner.policy().parameters
    assert learner.play()[0].scores[1] is None
    assert all(np.array_equal(waiting[name], begun[name]) for name in begun if name.startswith("g."))
    assert not np.array_equal(waiting["h.weight3"], begun["h.weight3"])
    learner.update(0.5)
    assert learner.play()[0].scores[1] is not None
    assert learner.policy().parameters["g.weight3"].any()
    learner.update(0.1)  # a run that is resumed to last longer keeps what it has learned
    assert learner.play()[0].scores[1] is not None


def test_without_a_g_none_can_wait():
    a2c = A2CSettings(envs=2, return_steps=2, pairs_from=0.5)
    with pytest.raises(InputError, match="only QUAD has one"):
        make_learner(TrainSettings(env=ROOMY, inference="lp", learner="a2c", a2c=a2c))


@pytest.mark.parametrize(
    ("env", "inference", "counted"),
    [("5x10", "quad", False), ("6x12", "quad", True), ("5x10", "lp", True), ("6x12", "amax", False)],
)
def test_exchanges_are_learned_from_unless_a_g_would_be_left_behind(env, inference, counted):
    a2c = A2CSettings(envs=2, return_steps=2)
    learner = make_learner(TrainSettings(env=f"rescue:{env}", inference=inference, learner="a2c", a2c=a2c))
    assert learner._remember(learner.play()[0]).decisions.exchanging == counted


@pytest.mark.parametrize(("env", "waits"), [("5x10", False), ("6x12", True)])
def test_g_waits_for_half_of_a_run_of_many_agents(env, waits):
    a2c = A2CSettings(envs=2, return_steps=2)
    learner = make_learner(TrainSettings(env=f"rescue:{env}", inference="quad", learner="a2c", a2c=a2c))
    learner.update(0.49)
    assert (learner.play()[0].scores[1] is None) == waits
    learner.update(0.5)
    assert learner.play()[0].scores[1] is not None


def test_a_g_that_a_run_goes_on_from_does_not_wait():
    a2c = A2CSettings(envs=4, return_steps=4, pairs_from=0.5)
    learner = make_learner(TrainSettings(env="rescue:2x4", inference="quad", a2c=a2c))
    given = learner.policy().parameters
    learner.start(given | {"g.bias3": np.ones_like(given["g.bias3"])})
    learner.update(0.0)
    assert learner.play()[0].scores[1] is not None


@pytest.mark.parametrize(
    ("env", "inference", "shares"),
    [("5x10", "quad", [0.4, 1]), ("10x12", "quad", [0.2, 1]), ("2x4", "quad", [1]), ("5x10", "lp", [1])],
)
def test_a_g_that_many_agents_feel_is_learned_in_smaller_steps(env, inference, shares):
    a2c = A2CSettings(envs=2, return_steps=2, policy_rate=0.01, schedule="constant")
    learner = make_learner(TrainSettings(env=f"rescue:{env}", inference=inference, learner="a2c", a2c=a2c))
    learner.update()
    groups = learner.model_optimiser.param_groups
    assert [group["lr"] for group in groups] == pytest.approx([0.01 * share for share in shares])
    assert sum(len(group["params"]) for group in groups) == len(list(learner.model.parameters()))


def test_innovations_reach_the_known_optimum():
    a2c = {"likelihood": "innovations", "envs": 64, "return_steps": 2, "policy_rate": 1e-2}
    settings = {"steps": 4_000, "log_every": 2_000, "evaluate_every": 10**9, "seed": 1, "inference": "lp"}
    assert mean_reward(muster.train(TOY, learner="a2c", a2c=a2c, **settings)) == 1.0


def test_a_positional_model_learns_from_choices():
    settings = TrainSettings(env="rescue:2x3,grid=5", model="pem", steps=1, a2c=dict(CHOICES, envs=4))
    learner = make_learner(settings)
    before = learner.policy().parameters
    learner.update()
    after = learner.policy().parameters
    assert all(np.isfinite(array).all() for array in after.values())
    assert all(
        not np.array_equal(after[name], before[name]) for name in ("h.weight2", "g.weight2", "grid.outlet.weight")
    )


@pytest.mark.parametrize("inference", ["lp", "quad"])
def test_slopes_go_back_through_the_direct_model_as_through_torch(inference):
    learner = make_learner(TrainSettings(env="tests.learning.toy:Priced", inference=inference, steps=1))
    seen = learner.spec.view(learner.worlds[0].env.observe())
    with torch.no_grad():
        for parameter in learner.model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    learner._pack()
    ends = [end for end in learner.model(seen) if end is not None]
    rng = np.random.default_rng(0)
    slopes = [rng.standard_normal(end.shape).astype(np.float32) for end in ends]
    torch.autograd.backward(ends, [torch.from_numpy(slope) for slope in slopes])
    found = score_gradient(learner._direct, seen, (slopes[0], slopes[1] if inference == "quad" else None))
    for name, parameter in learner.model.pairs.items():
        # The toy has no features of pairs, so nothing flows into their weights.
        expected = np.zeros(parameter.shape) if parameter.grad is None else parameter.grad.numpy()
        assert found[name.replace("_", ".", 1)] == pytest.approx(expected, rel=1e-3, abs=1e-3), name


def test_a_run_writes_every_value_that_its_likelihood_uses(tmp_path):
    settings = TrainSettings(env=TOY, a2c={"likelihood": "choices", "noise": {"sigma": 0.3}})
    (tmp_path / "c.toml").write_text(to_toml(settings))
    text = (tmp_path / "c.toml").read_text()
    settled = ("envs = 64", "minibatches = 8", "trace = 0.95", "clip = 0.2", "sigma = 0.3", "correlated_steps = 10")
    for said in (*settled, "gumbel"):
        assert said in text
    assert from_toml(TrainSettings, tmp_path / "c.toml") == settings
    played = TrainSettings(env=TOY, a2c={"likelihood": "played"}).a2c
    assert (played.envs, played.return_steps, played.clip, played.noise.sigma) == (256, 5, None, 1.0)


@pytest.mark.parametrize(
    ("a2c", "message"),
    [
        ({"likelihood": "played", "clip": 0.2}, "clip belongs to the likelihood choices, not to played"),
        ({"likelihood": "played", "pairs_from": 0.5}, "pairs_from belongs to the likelihood choices, not to played"),
        ({"pairs_from": 1.5}, "pairs_from"),
        ({"likelihood": "choices", "noise": {"task_scores": True}}, "explains noise on h alone"),
        ({"likelihood": "played", "noise": {"together": 0.5}}, "together belongs to the likelihood choices"),
        ({"likelihood": "choice"}, "did you mean 'choices'"),
    ],
)
def test_what_a_likelihood_has_no_use_for_is_refused(a2c, message):
    with pytest.raises(InputError, match=message):
        TrainSettings(env=TOY, a2c=a2c)


def test_returns_with_a_trace_agree_with_their_definition():
    rng = np.random.default_rng(0)
    rewards, values, after = rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng.normal(size=3)
    ended = rng.random((6, 3)) < 0.2
    found = traced_returns(rewards, ended, values, after, 0.9, 1.0)
    np.testing.assert_array_equal(found, n_step_returns(rewards, ended, after, 0.9))
    # With trace 0 only the next value counts.
    following = np.vstack([values[1:], after])
    np.testing.assert_allclose(
        traced_returns(rewards, ended, values, after, 0.9, 0.0), rewards + 0.9 * np.where(ended, 0, following)
    )
    # The usual form: advantages are discounted sums of one-step errors.
    errors, sums = rewards + 0.9 * np.where(ended, 0, following) - values, np.zeros(3)
    for t in reversed(range(6)):
        sums = errors[t] + 0.9 * 0.7 * np.where(ended[t], 0, sums)
        np.testing.assert_allclose(traced_returns(rewards, ended, values, after, 0.9, 0.7)[t] - values[t], sums)


def test_gumbel_innovations_have_mean_0_and_deviation_1_and_make_a_softmax():
    draws = standard_gumbels(np.random.default_rng(0).standard_exponential((200_000, 3)))
    assert draws.mean(0) == pytest.approx(0, abs=0.01)
    assert draws.std(0) == pytest.approx(1, abs=0.01)
    scores, tau = np.array([0.3, 0.0, -0.5]), np.sqrt(6) / np.pi
    share = np.bincount((scores + draws).argmax(1), minlength=3) / len(draws)
    assert share == pytest.approx(np.exp(scores / tau) / np.exp(scores / tau).sum(), abs=0.005)


def test_a_fall_that_lasts_is_a_collapse_and_a_short_one_is_not():
    watch, rng = Watch(), np.random.default_rng(0)
    said = [watch.see(1 + 0.1 * rng.normal(), 0.5, 10, 0.1) for _ in range(200)]
    assert "collapsed" not in said
    assert said.count("best") >= 1
    said = [watch.see(-1.0, 0.5, 10, 0.1) for _ in range(WINDOW + LASTING)]
    assert said.count("collapsed") == 1
    assert watch.collapses == 1


def decline(by, episodes, updates=2 * LONG):
    """How often a run goes back that plays as well as ever for long, then worse by so many deviations."""
    watch, rng = Watch(), np.random.default_rng(1)
    level = [0.0] * (6 * LONG) + [-by] * updates
    noise = rng.normal(0, 1 / np.sqrt(episodes), len(level))
    said = [watch.see(mean + off, 1.0, episodes, 0.1) for mean, off in zip(level, noise, strict=True)]
    assert "collapsed" not in said[: 6 * LONG]
    return said.count("collapsed")


def test_a_slow_decline_is_noticed_where_there_are_episodes_enough_to_tell():
    assert decline(by=0.2, episodes=100, updates=LONG) == 1
    assert decline(by=0.05, episodes=100) == 0  # no matter how sure
    assert decline(by=0.2, episodes=4) == 0  # chance does as much
    assert decline(by=0.8, episodes=4, updates=LONG) == 1


def test_everybody_idle_is_a_collapse_sooner_unless_it_pays():
    worse, better = Watch(), Watch()
    for watch in (worse, better):
        for _ in range(2 * WINDOW):
            watch.see(1.0, 0.5, 10, 0.1)
    assert "collapsed" in [worse.see(0.0, 0.5, 10, 1.0) for _ in range(WINDOW)]
    assert "collapsed" not in [better.see(2.0, 0.5, 10, 1.0) for _ in range(WINDOW)]


def test_a_collapsed_run_goes_on_from_its_best_state_and_says_so_once(tmp_path, capsys, monkeypatch):
    best, seen = {}, []

    def see(self, reward, spread, episodes, idle):
        seen.append(reward)
        verdict = {3: "best", 5: "collapsed", 7: "collapsed"}.get(len(seen), "")
        self.collapses += verdict == "collapsed"
        return verdict

    monkeypatch.setattr(Watch, "see", see)
    settings = TrainSettings(env=ROOMY, inference="lp", steps=8 * 128, log_every=128, a2c=CHOICES)
    learner = make_learner(settings)
    for update in range(1, 6):
        learner.update()
        if update == 3:
            best = learner.policy().parameters
    assert all(np.array_equal(best[name], array) for name, array in learner.policy().parameters.items())
    rate = learner.model_optimiser.param_groups[0]["lr"]
    learner.update()
    assert learner.model_optimiser.param_groups[0]["lr"] == rate / 2
    seen.clear()
    run_training(settings, tmp_path / "r")
    assert capsys.readouterr().err.count("goes on from its best state") == 1
    assert [line for line in (tmp_path / "r" / "metrics.jsonl").read_text().splitlines() if '"collapses": 2' in line]


def test_each_likelihood_changes_what_is_learned():
    found = []
    for likelihood in ("played", "innovations", "choices"):
        a2c = dataclasses.replace(A2CSettings(likelihood), envs=16, return_steps=4)
        found.append(muster.train("rescue:2x3,grid=5", steps=256, a2c=a2c).parameters["h.weight2"])
    assert not np.array_equal(found[0], found[1])
    assert not np.array_equal(found[1], found[2])
