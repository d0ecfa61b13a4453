"""What a run came to, beside the environment's own baselines and prior, and the prior where nothing is better."""

import json

import numpy as np
import pytest

import muster
from muster import InputError
from muster.assign.settings import InferenceSettings
from muster.evaluation.card import read_card
from muster.evaluation.episodes import run_episodes
from muster.learning import validation
from muster.learning.learner import REPORT, VALIDATION
from muster.learning.learners import make_learner
from muster.learning.settings import ESSettings, TrainSettings
from muster.learning.train import run_training
from muster.learning.validation import enlarged, validate
from muster.policy.learned import prior_policy
from muster.policy.names import resolve
from muster.rng import episode_seeds
from tests.learning.toy import Sized

TOY, SIZED = "tests.learning.toy:Rated", "tests.learning.toy:Sized"
SHORT = {
    "learner": "es",
    "inference": "lp",
    "steps": 100,
    "evaluate_episodes": 20,
    "es": ESSettings(pairs=1, episodes=2),
}


def summary_of(folder):
    return json.loads((folder / "summary.json").read_text())


def test_a_run_says_whether_it_beats_the_baselines(tmp_path):
    outcome = run_training(TrainSettings(TOY, **SHORT), tmp_path / "r")
    found = summary_of(tmp_path / "r")
    assert list(found["sizes"]) == [TOY]
    assert found["baselines"].keys() == {"right", "wrong"}
    assert found["baselines"]["right"].keys() == {"mean", "difference", "ci95"}
    assert found["baselines"]["wrong"]["mean"] == 0.0
    assert found["baselines"]["right"]["difference"] == found["sizes"][TOY]["mean"] - 1.0
    assert found["beats_baselines"] is False
    assert "the best baseline" in repr(outcome.validation)
    assert {"steps", "updates", "cpu_minutes", "command", "commit"} <= found.keys()
    assert read_card(str(tmp_path / "r"))["results"][0]["baselines"] == {"right": 1.0, "wrong": 0.0}


def test_the_prior_is_kept_where_nothing_is_better_than_it(tmp_path):
    """It is the optimum here, at every size."""
    settings = TrainSettings(SIZED, **SHORT)
    outcome = run_training(settings, tmp_path / "r")
    found = summary_of(tmp_path / "r")
    assert list(found["sizes"]) == [SIZED, f"{SIZED},n_agents=4,n_tasks=4", f"{SIZED},n_agents=10,n_tasks=10"]
    assert (found["kept"], found["beats_baselines"]) == ("prior", False)
    assert all(size["mean"] == 1.0 for size in found["sizes"].values())
    assert "the prior was kept" in repr(outcome.validation)
    assert muster.evaluate(tmp_path / "r", SIZED, 20).mean == 1.0
    assert "prior" in read_card(str(tmp_path / "r"))["about"]
    # What was kept can be gone on from.
    run_training(TrainSettings(SIZED, **SHORT, from_policy=str(tmp_path / "r")), tmp_path / "on")


def test_what_is_better_than_a_wrong_prior_is_kept(tmp_path):
    priced = "tests.learning.toy:Priced,wrong=true"
    settings = TrainSettings(
        priced, learner="es", inference="lp", steps=4000, evaluate_episodes=50, es=ESSettings(pairs=8, episodes=4)
    )
    run_training(settings, tmp_path / "r")
    found = summary_of(tmp_path / "r")
    assert (found["kept"], found["beats_baselines"]) == ("learned", True)
    assert found["baselines"]["prior"]["difference"] > 0


def test_other_sizes_can_be_named_and_what_fails_there_is_said(tmp_path):
    named = (f"{SIZED},n_agents=3,n_tasks=3", "nowhere:Nothing", "rescue:2x3")
    found = run_training(TrainSettings(SIZED, **SHORT, validate_on=named), tmp_path / "r").validation
    assert list(found.sizes) == [SIZED, named[0]]
    assert "not validated on nowhere:Nothing" in repr(found)
    assert "it cannot run on rescue:2x3" in repr(found)


def test_a_checkpoint_is_chosen_on_other_episodes_than_it_is_reported_on(tmp_path, monkeypatch):
    run: dict[str, set[int]] = {}

    def watched(policy, env, episodes, seed):
        found = muster.evaluate(policy, env, episodes, seed)
        run.setdefault(policy if isinstance(policy, str) else "learned", set()).update(found.records.seeds.tolist())
        seeds.setdefault(seed, set()).update(found.records.seeds.tolist())
        return found

    seeds: dict[int, set[int]] = {}
    monkeypatch.setattr(validation, "evaluate", watched)
    run_training(TrainSettings(TOY, **SHORT), tmp_path / "r")
    assert seeds.keys() == {VALIDATION, REPORT}
    assert not seeds[VALIDATION] & seeds[REPORT]
    assert run["right"] == run["wrong"] == seeds[REPORT]


def test_more_than_two_candidates_meet_the_prior_after_a_first_round(monkeypatch):
    """By time: with little of it every size has the timed episodes, and the best of all is found among them."""
    monkeypatch.setattr(validation, "LEAST_SECONDS", 0.01)
    settings = TrainSettings("tests.learning.toy:Priced,wrong=true", "es", "lp", model="dm", minutes=1.0)
    start = make_learner(settings).policy()
    turned = start.variant(parameters=start.parameters | {"h.scale": np.float32(-1.0).reshape(1)})
    found = validate(settings, {"last": start, "mean": start, "50 %": turned}, 0.0)
    assert found.kept == "50 %"
    assert found.last == {"validation": 0.0}
    (size,) = found.sizes.values()
    assert size.policy.mean == 1.0
    assert size.policy.episodes == validation.PILOT


def test_slow_larger_sizes_leave_half_of_the_time_to_the_training_environment(monkeypatch):
    clock = [0.0]
    run: dict[str, int] = {}
    cost = {SIZED: 0.01, "larger": 1.0}

    def fake(settings, name, policies, episodes, seed, baselines=False):
        clock[0] += episodes * cost[name]
        run[name] = episodes
        return ()

    monkeypatch.setattr(validation, "_run", fake)
    monkeypatch.setattr(validation.time, "process_time", lambda: clock[0])
    settings = TrainSettings(SIZED, minutes=1.0)
    for seconds, expected in ((8.0, (384, 16)), (20.0, (500, 16)), (100.0, (500, 78))):
        validation._on_sizes(settings, [SIZED, "larger"], [], 0, seconds)
        assert (run[SIZED], run["larger"]) == pytest.approx(expected, abs=1)


def test_the_prior_is_kept_where_the_report_shows_that_chance_had_chosen(monkeypatch):
    settings = TrainSettings(SIZED, **SHORT, model="dm")
    start = make_learner(settings).policy()
    turned = start.variant(parameters=start.parameters | {"h.scale": np.float32(-1.0).reshape(1)})
    monkeypatch.setattr(validation, "_choose", lambda *arguments: ("last", {}))
    found = validate(settings, {"last": turned}, 0.0)
    assert found.fell_back
    assert all(size.policy.mean == 1.0 for size in found.sizes.values())
    assert "which was kept in its place" in repr(found)


@pytest.mark.parametrize(
    ("env", "larger"),
    [
        ("rescue:2x4,grid=32", "rescue:10x20,grid=32"),
        ("battle:w15v17", "battle:w75v85"),
        ("rescue:20x40,grid=9", None),
        (f"{SIZED},n_agents=3", f"{SIZED},n_agents=15,n_tasks=10"),
        (TOY, None),
    ],
)
def test_larger_environments_are_found_by_name(env, larger):
    assert enlarged(env, 5) == larger


@pytest.mark.parametrize("size", [2, 7])
@pytest.mark.parametrize("inference", ["lp", "quad"])
def test_an_untrained_policy_decides_as_the_prior_does_at_every_size(size, inference):
    env = muster.make(Sized, 30, n_agents=size, n_tasks=size)
    untrained = make_learner(TrainSettings(SIZED, inference=inference)).policy()
    prior = prior_policy(env, InferenceSettings(inference, untrained.inference.effort, assign_all=False))
    seen = env.observe()
    np.testing.assert_array_equal(resolve(untrained, env).act(seen), prior.act(seen))
    assert run_episodes(env, resolve("prior", env), episode_seeds(5, np.arange(30))).reward.mean() == 1.0


def test_a_policy_named_prior_needs_one_and_has_no_noise():
    with pytest.raises(InputError, match="shows no prior"):
        muster.evaluate("prior", TOY, 5)
    with pytest.raises(InputError, match="learned nothing"):
        muster.evaluate("prior", SIZED, 5, noise=True)
    assert muster.compare(["prior", "prior"], SIZED, 5, noise=True).differences[0].mean == 0.0
