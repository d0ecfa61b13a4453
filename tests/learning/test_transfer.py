"""Going on from a trained policy: it decides as before until the first update, and what does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest

import muster
from muster import InputError
from muster.cli.train import Train
from muster.learning import ppo
from muster.learning.run import stored_settings
from muster.learning.settings import TrainSettings
from muster.learning.train import Loop, run_training
from muster.models.direct import init_parameters
from muster.models.spec import ModelSpec
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import PAPER_NOISE
from tests.learning.test_train import TOY


def first_policy(**settings) -> LearnedPolicy:
    """The policy of a run before its first update."""
    return Loop(TrainSettings(**settings), None).learner.policy()


def decisions(policy, env="rescue:3x6", states=20):
    made = muster.make(env, states, seed=5)
    made.show(pair_features=True, planes=True)
    return policy.act(made.observe())


@pytest.mark.parametrize("learner", ["ppo", "es"])
@pytest.mark.parametrize("name", ["rescue-2x4-quad-dm", "rescue-2x4-lp-dm", "rescue-2x4-amax-dm"])
def test_a_run_starts_with_the_decisions_of_the_policy_it_goes_on_from(name, learner):
    policy = muster.load(name)
    method = policy.inference.method
    new = first_policy(env="rescue:3x6", inference=method, learner=learner, from_policy=name, seed=7)
    np.testing.assert_array_equal(decisions(new), decisions(policy))
    assert not np.array_equal(decisions(first_policy(env="rescue:3x6", inference=method, seed=7)), decisions(policy))


def test_task_scores_start_at_zero_and_those_of_no_use_are_left_out():
    lp, quad = "rescue-2x4-lp-dm", "rescue-2x4-quad-dm"
    grown = first_policy(env="rescue:2x4", inference="quad", from_policy=lp)
    np.testing.assert_array_equal(decisions(grown), decisions(muster.load(lp)))
    assert not grown.scores(muster.make("rescue:2x4", 2).observe())[1].any()
    shrunk = first_policy(env="rescue:2x4", inference="lp", from_policy=quad)
    np.testing.assert_array_equal(decisions(shrunk), decisions(muster.load(quad).without_task_scores()))


def test_a_g_that_is_scaled_by_size_is_as_large_in_the_new_environment_as_it_was_there():
    old = muster.load("rescue-5x10-quad-dm")
    for size, env in ((2, "rescue:2x4"), (10, "rescue:10x20")):
        new = first_policy(env=env, from_policy=old.name)
        assert (old.spec.trained_agents, new.spec.trained_agents) == (5, size)
        seen = muster.make(env, 4).observe()
        # A task's own term is not scaled, but no weights can be without changing the others.
        others = ~np.eye(seen.task_alive.shape[1], dtype=bool)
        assert new.scores(seen)[1][:, others] == pytest.approx(old.scores(seen)[1][:, others], rel=1e-5)


def test_a_positional_model_goes_on_from_a_direct_one_with_its_new_inputs_at_zero():
    name = "rescue-2x4-quad-dm"
    new = first_policy(env="rescue:3x6", model="pem", from_policy=name)
    np.testing.assert_array_equal(decisions(new), decisions(muster.load(name)))
    again = Loop(TrainSettings("rescue:2x4", model="pem", from_policy=name, num_envs=4), None).learner
    again.update()
    assert again.policy().parameters["h.left"].any(axis=1).all()


def test_inputs_that_a_policy_did_without_start_at_zero(tmp_path):
    """One of raw coordinates goes on with features of pairs; one without a prior with a prior."""
    raw = muster.make("rescue:2x4", 4)
    raw.show(pair_features=False, planes=False)
    spec = ModelSpec.of(raw.observe(), "dm", task_scores=True)
    assert spec.pair_width == 0
    made = LearnedPolicy(
        "raw", spec, init_parameters(spec, np.random.default_rng(3)), muster.load("rescue-2x4-quad-dm").inference,
        PAPER_NOISE, {"env": "rescue:2x4"},
    )  # fmt: skip
    made.save(tmp_path / "raw.safetensors")
    new = first_policy(env="rescue:3x6", from_policy=str(tmp_path / "raw.safetensors"))
    assert new.spec.pair_width > 0
    np.testing.assert_array_equal(decisions(new), decisions(made))
    priced = "tests.learning.toy:Priced"
    run_training(TrainSettings(priced, inference="lp", prior=False, learner="es", steps=100), tmp_path / "plain")
    policy = muster.load(tmp_path / "plain")
    new = first_policy(env=priced, inference="lp", from_policy=str(tmp_path / "plain"))
    made = muster.make(priced, 8)
    assert new.spec.prior
    np.testing.assert_array_equal(new.scores(made.observe())[0], policy.scores(made.observe())[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"env": "battle:m10v10", "from_policy": "rescue-2x4-quad-dm"}, "was trained on rescue:2x4: a run on battle"),
        ({"env": "battle:m10v10", "from_policy": "battle-w15v17-quad-dm"}, "add --form centred"),
        ({"env": "rescue:2x4", "from_policy": "rescue-2x4-quad-pem"}, "use --model pem"),
        ({"env": "rescue:2x4", "from_policy": "rescue-2x4-quad-dm", "form": "paper"}, "features of a pair"),
        # Its prior is made of distances: what it lacks here is not the environment's.
        ({"env": "rescue:2x4", "from_policy": "rescue-small-quad-dm"}, "use --form local and --learner es"),
        ({"env": "rescue:2x4", "from_policy": "rescue-2x4-quad-dm", "form": "local", "learner": "es"}, "--form plain"),
        (
            {"env": "rescue:2x4", "from_policy": "rescue-2x4-quad-dm", "inference": "routes", "learner": "es"},
            "costs of routes are no scores",
        ),
        ({"env": "rescue:2x4", "from_policy": "rescue-2x4-quad"}, "did you mean"),
        ({"env": "rescue:2x4", "from_policy": "closest"}, "is a baseline"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(settings, message):
    with pytest.raises(InputError, match=message):
        first_policy(**settings)


def test_a_run_that_went_on_from_a_policy_resumes_bit_for_bit_without_it(tmp_path, monkeypatch):
    source = tmp_path / "source"
    run_training(TrainSettings(TOY, inference="lp", learner="es", steps=200), source)
    monkeypatch.setattr(ppo, "cosine_decay", lambda progress: 1.0)
    own = {"rollout_length": 4}
    settings = {"env": TOY, "inference": "lp", "from_policy": str(source), "num_envs": 16, "ppo": own, "log_every": 128}
    whole = run_training(TrainSettings(**settings, steps=512), tmp_path / "whole").policy
    run_training(TrainSettings(**settings, steps=256), tmp_path / "halves")
    (source / "best.safetensors").unlink()
    halves = run_training(TrainSettings(**settings, steps=512), tmp_path / "halves", resume=True).policy
    assert stored_settings(tmp_path / "halves").from_policy == str(source)
    for name, array in whole.parameters.items():
        np.testing.assert_array_equal(array, halves.parameters[name])


def test_the_command_line_says_from(tmp_path):
    """And what a run leaves says whence it came."""
    command = Train.from_arguments([TOY, "--inference", "lp", "--learner", "es", "--steps", "100"])
    run_training(command.training, tmp_path / "one")
    command = Train.from_arguments([TOY, "--inference", "lp", "--steps", "100", "--from", str(tmp_path / "one")])
    run_training(command.training, tmp_path / "two")
    assert muster.load(tmp_path / "two").header["from"] == str(tmp_path / "one")
