"""A linear model learns a correction that is known, by every learner that can, and transfers to larger sizes."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import muster
from muster import InputError, Observation
from muster.envs.padding import observation_of
from muster.learning.envs import prepare
from muster.learning.learner import VALIDATION
from muster.learning.settings import ESSettings, TrainSettings

ENV = "tests.learning.toy:Corrected"
LARGE = f"{ENV},n_agents=15,n_tasks=30"


def gains(policy, env: str) -> tuple[float, float]:
    """What the policy, and who knows the optimum, earn more than the prior."""
    found = muster.compare([policy, "knowing", "prior"], env, 200, VALIDATION).evaluations
    return found[0].mean - found[2].mean, found[1].mean - found[2].mean


def test_es_finds_the_known_correction_and_transfers_to_five_times_the_size():
    policy = muster.train(
        ENV, model="linear", learner="es", inference="lp", steps=12_000, es={"pairs": 16, "episodes": 4}
    )
    for env in (ENV, LARGE):
        gain, best = gains(policy, env)
        assert gain > 0.95 * best, env
    names = ["bias", "price", "bonus", "noise"]
    effects = dict(zip(names, policy.parameters["h.weight"].tolist(), strict=False))
    # In units of the prior's standard deviation, 1: twice the bonus, and 0.2 of a price whose deviation is 5.
    assert effects["bonus"] / -effects["price"] == pytest.approx(2.0, rel=0.25)
    assert abs(effects["noise"]) < 0.15 * effects["bonus"]


@pytest.mark.parametrize(
    "settings",
    [
        {"learner": "ppo", "ppo": {"rollout_length": 8, "learning_rate": 0.03}},
        {"learner": "srl"},
        {"learner": "imitation", "teacher": "knowing", "imitation": {"learning_rate": 0.03}},
    ],
    ids=["ppo", "srl", "imitation"],
)
def test_other_learners_improve_it_too(settings):
    steps = 40_000 if settings["learner"] == "srl" else 6_000
    policy = muster.train(ENV, model="linear", inference="lp", steps=steps, num_envs=16, **settings)
    gain, best = gains(policy, ENV)
    assert gain > 0.5 * best


def test_statistics_are_those_of_what_the_model_reads():
    spec = prepare(TrainSettings(ENV, "es", "quad", model="linear", es=ESSettings(pairs=1, episodes=1))).spec
    assert spec.h_statistics is not None
    assert spec.g_statistics is not None
    assert spec.prior_unit == pytest.approx(1.0, abs=0.3)
    means, deviations = np.array(spec.h_statistics.means), np.array(spec.h_statistics.deviations)
    # Price, two features of the pair, context features, prior, and a feature that never changes.
    assert means[0] == pytest.approx(50.0, abs=3.0)
    assert deviations[0] == pytest.approx(5.0, abs=2.0)
    np.testing.assert_allclose(deviations[1:3], 1.0, atol=0.3)
    assert deviations[-1] == 0.0
    # g reads the sum of both tasks' prices.
    assert spec.g_statistics.means[0] == pytest.approx(100.0, abs=6.0)
    assert "partner_wait" not in spec.context_features


def test_a_run_goes_on_from_a_linear_policy_as_it_was(tmp_path):
    options = {"model": "linear", "learner": "es", "inference": "lp", "es": {"pairs": 4, "episodes": 2}}
    first = muster.train(ENV, steps=400, **options)
    first.save(tmp_path / "first.safetensors")
    settings = TrainSettings(LARGE, from_policy=str(tmp_path / "first.safetensors"), **options)
    from muster.learning.train import Loop

    policy = Loop(settings, None).learner.policy()
    assert policy.spec == dataclasses.replace(first.spec, trained_agents=policy.spec.trained_agents)
    assert all(np.array_equal(array, first.parameters[name]) for name, array in policy.parameters.items())
    for more, told in (({"model": "dm"}, "is a linear model"), ({"inference": "quad"}, "with --inference lp")):
        with pytest.raises(InputError, match=told):
            Loop(TrainSettings(LARGE, from_policy=str(tmp_path / "first.safetensors"), **options | more), None)


def test_a_linear_model_learns_no_limits():
    with pytest.raises(InputError, match="--model dm"):
        TrainSettings(ENV, "es", "lp", model="linear", learn="capacities")


def test_a_card_names_every_weight_by_its_effect(tmp_path, capsys):
    from muster.cli.main import main

    options = {"model": "linear", "learner": "es", "inference": "quad", "es": {"pairs": 8, "episodes": 4}}
    policy = muster.train(ENV, steps=3_000, out=tmp_path / "run", **options)
    main(["card", str(tmp_path / "run"), "--no-latency", "--json"])
    card = json.loads(capsys.readouterr().out)
    assert len(card["weights"]) == sum(array.size for array in policy.parameters.values())
    effects = [abs(one["effect"]) for one in card["weights"]]
    assert effects == sorted(effects, reverse=True)
    bonus = next(one for one in card["weights"] if one["feature"] == "bonus")
    assert bonus["effect"] == card["weights"][0]["effect"] > 0
    # Per unit of the feature, in the prior's own: h = prior + weight·bonus.
    seen = Observation(np.zeros((1, 0)), [[50.0]], [[[0.0, 0.0]]], prior=[[0.0]], global_features=[3.0])
    more = dataclasses.replace(seen, pair_features=[[[1.0, 0.0]]])
    one, other = (policy.scores(observation_of([given]))[0][0, 0, 0] for given in (seen, more))
    assert other - one == pytest.approx(bonus["weight"], rel=1e-4)
    main(["card", str(tmp_path / "run"), "--no-latency"])
    shown = capsys.readouterr().out
    assert "a high bonus" in shown
    below = shown.partition("Effect:")[2]
    assert "agent_gap is how much better by the prior than the agent's best other task; task_gap is" in below
    assert "partner_wait" not in below
    assert "the same for all tasks of an agent (global, constant) cannot change which task it takes" in below


@pytest.mark.parametrize(
    ("env", "given", "chosen"),
    [
        (ENV, {}, ("linear", "es", "lp")),
        (ENV, {"inference": "quad"}, ("linear", "es", "quad")),
        (ENV, {"learner": "ppo"}, ("dm", "ppo", "quad")),
        (ENV, {"model": "dm"}, ("dm", "ppo", "quad")),
        (ENV, {"prior": False}, ("dm", "ppo", "quad")),
        (ENV, {"teacher": "knowing"}, ("dm", "imitation", "quad")),
        ("tests.learning.toy:Sized", {}, ("linear", "es", "quad")),
        ("tests.learning.toy:Rated", {}, ("dm", "ppo", "quad")),
        ("rescue:2x4", {}, ("dm", "ppo", "quad")),
        ("rescue:2x4", {"inference": "routes"}, ("dm", "es", "routes")),
        ("nowhere:Nothing", {}, ("dm", "ppo", "quad")),
    ],
)
def test_what_is_left_open_follows_from_what_the_environment_shows(env, given, chosen):
    made = TrainSettings(env, **given)
    assert (made.model, made.learner, made.inference) == chosen
