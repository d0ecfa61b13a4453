"""The loop: it learns what can be learned, and stops with a sentence when it must."""

import csv
import dataclasses
import inspect
import json

import numpy as np
import pytest

import muster
from muster import InputError, MusterError
from muster.checkout import code_commit
from muster.evaluation.episodes import run_episodes
from muster.learning.learner_settings import ESSettings
from muster.learning.learners import make_learner, usual_episodes
from muster.learning.optimiser import rate_factor
from muster.learning.settings import A2CSettings, TrainSettings
from muster.learning.worlds import prepare_env
from muster.rng import episode_seeds
from muster.settings import from_toml, to_toml
from tests.learning.short_runs import rows_without_times, small
from tests.learning.toy import Broken

TOY = "tests.learning.toy:Pairing"


def mean_reward(policy) -> float:
    env = muster.make(TOY, 50)
    return float(run_episodes(env, policy, episode_seeds(99, np.arange(200))).reward.mean())


@pytest.mark.parametrize(
    "settings",
    [
        {
            "learner": "a2c",
            "inference": "amax",
            "a2c": A2CSettings("played", envs=64, return_steps=2, policy_rate=1e-2),
        },
        {"learner": "a2c", "inference": "lp", "a2c": A2CSettings("played", envs=64, return_steps=2, policy_rate=1e-2)},
        {
            "learner": "a2c",
            "inference": "quad",
            "a2c": {"likelihood": "played", "envs": 64, "return_steps": 2, "policy_rate": 1e-2},
        },
        {
            "learner": "a2c",
            "inference": "lp",
            "a2c": {"likelihood": "played", "envs": 64, "return_steps": 2, "policy_rate": 2e-2, "schedule": "cosine"},
        },
        {"learner": "es", "inference": "lp", "es": ESSettings(pairs=8, episodes=4)},
        {"learner": "es", "inference": "quad", "es": ESSettings(pairs=8, episodes=4)},
    ],
    ids=["a2c-amax", "a2c-lp", "a2c-quad", "a2c-cosine", "es-lp", "es-quad"],
)
def test_both_learners_reach_the_known_optimum(settings):
    policy = muster.train(TOY, steps=4_000, log_every=2_000, evaluate_every=10**9, seed=1, **settings)
    assert mean_reward(policy) == 1.0


def test_an_untrained_policy_does_not():
    """Otherwise the test above could not fail."""
    policy = muster.train(TOY, steps=1, learner="es", inference="lp", seed=1, es=ESSettings(pairs=1, episodes=1))
    assert mean_reward(policy) < 0.9


def test_a_run_too_short_for_one_episode_still_leaves_its_policy(tmp_path):
    out = tmp_path / "run"
    muster.train("rescue:2x4", steps=1, a2c=A2CSettings(envs=2, return_steps=1), out=out)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["best_training_reward"] is None
    assert summary.get("commit") == muster.load(out).header.get("commit") == code_commit()
    assert (
        muster.load(out / "best.safetensors").parameters.keys()
        == muster.load(out / "last.safetensors").parameters.keys()
    )


def test_weight_decay_alone_shrinks_the_parameters():
    es = ESSettings(pairs=2, episodes=2, rate=0.1, weight_decay=0.5, schedule="constant")
    learner = make_learner(TrainSettings(env="tests.learning.toy:Same", learner="es", inference="lp", steps=1, es=es))
    before = learner.theta
    learner.update()
    np.testing.assert_allclose(learner.theta, 0.95 * before)


def test_evolution_keeps_the_last_policy(tmp_path):
    out = tmp_path / "run"
    muster.train(TOY, steps=3000, log_every=300, learner="es", inference="lp", es=ESSettings(pairs=4), out=out)
    best, last = (muster.load(out / f"{name}.safetensors").parameters for name in ("best", "last"))
    assert all(np.array_equal(best[name], last[name]) for name in best)


@pytest.mark.parametrize("learner", ["a2c", "es"])
def test_a_reward_that_is_not_a_number_stops_the_run_and_is_named(learner):
    Broken.rounds = 0
    own = {"a2c": A2CSettings(envs=16), "es": ESSettings(pairs=2, episodes=4)}[learner]
    with pytest.raises(MusterError, match="a reward is not finite"):
        muster.train("tests.learning.toy:Broken", learner=learner, inference="lp", steps=100_000, **{learner: own})


def test_a_gradient_that_explodes_is_named():
    with pytest.raises(MusterError, match=r"not finite|became"):
        muster.train(
            "rescue:2x3,grid=5",
            steps=100_000,
            a2c=A2CSettings("played", envs=16, optimiser="sgd", policy_rate=1e30, value_rate=1e30),
        )


def test_settings_survive_a_round_trip_through_toml(tmp_path):
    settings = small("a2c", 5)
    (tmp_path / "c.toml").write_text(to_toml(settings))
    assert from_toml(TrainSettings, tmp_path / "c.toml") == settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('env = "rescue:2x4"\nlerner = "es"', "no setting in .* 'lerner'; did you mean 'learner'"),
        ('env = "rescue:2x4"\n[a2c]\nenvs = "many"', "a2c.envs in .* must be a whole number or none, got 'many'"),
        ('env = "rescue:2x4"\n[a2c.noise]\nsigma = -1.0', "a2c.noise.sigma in .* must be positive"),
        ('env = "rescue:2x4"\nseed = true', "seed in .* must be a whole number"),
        ("seed = 3", "lacks env"),
        ("env = ", "is not TOML"),
    ],
)
def test_a_bad_settings_file_is_named(text, message, tmp_path):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        from_toml(TrainSettings, tmp_path / "c.toml")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"minutes": 1.0, "steps": 5}, "minutes or as steps, not both"),
        ({"minutes": -1.0}, "minutes must be positive"),
        ({"learner": "ppo"}, "no learner 'ppo'"),
        ({"learner": "es", "model": "pem"}, "evolution tunes the direct model only"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        TrainSettings(env="rescue:2x4", **settings)


def test_training_is_the_same_each_time():
    first, second = (muster.train("rescue:2x3,grid=5", steps=2000, a2c=A2CSettings(envs=16)) for _ in range(2))
    for name, array in first.parameters.items():
        assert np.array_equal(array, second.parameters[name])


@pytest.mark.parametrize(
    ("model", "a2c"),
    [
        ("pem", {"likelihood": "played", "envs": 8, "low_precision": False}),
        ("pem", {"likelihood": "played", "envs": 8, "low_precision": True}),
        ("dm", {"likelihood": "played", "envs": 8, "critic": "conv"}),
    ],
    ids=["pem", "pem-low-precision", "conv-critic"],
)
def test_convolutions_train_and_what_they_learn_plays_larger_grids(model, a2c, tmp_path):
    settings = {"model": model, "steps": 300, "log_every": 100, "a2c": a2c}
    muster.train("rescue:2x3,grid=6", out=tmp_path / "r", **settings)
    policy, start = muster.load(tmp_path / "r"), make_learner(TrainSettings(env="rescue:2x3,grid=6", **settings))
    assert policy.spec.kind == model
    before = start.policy().parameters
    weights = [name for name, array in before.items() if array.dtype == np.float32 and array.size > 1]
    assert all(not np.array_equal(policy.parameters[name], before[name]) for name in weights if "pair" not in name)
    found = muster.evaluate(policy, "rescue:3x5,grid=8", episodes=5)
    assert (found.records.outcome == muster.evaluate(str(tmp_path / "r"), "rescue:3x5,grid=8", 5).records.outcome).all()


@pytest.mark.parametrize(
    ("model", "critic", "learns"), [("pem", "entity", "model/grid."), ("dm", "conv", "critic/grid.")]
)
def test_convolutions_learn_from_battles(model, critic, learns):
    a2c = A2CSettings(envs=2, return_steps=2, critic=critic)
    settings = TrainSettings(env="battle:m2v2", model=model, inference="lp", steps=1, a2c=a2c)
    learner = make_learner(settings)
    before = learner.get_state()[0]
    figures = learner.update()
    assert all(np.isfinite(figures[name]) for name in ("value_loss", "policy_loss"))
    after = learner.get_state()[0]
    weights = [name for name in before if name.startswith(learns) and name.endswith("weight")]
    assert len(weights) > 6
    assert all(not np.array_equal(before[name], after[name]) for name in weights)
    assert prepare_env(settings, "battle:m2v2", 1, critic=False).observe().planes is None or model == "pem"


def test_a_positional_model_is_validated_on_few_battles():
    def asked(model, env):
        return usual_episodes(TrainSettings(env=env, model=model), env)

    assert asked("pem", "battle:m2v2") == 20
    assert asked("dm", "battle:m2v2") == asked("pem", "rescue:2x4") == 500


@pytest.mark.parametrize("learner", ["a2c", "es"])
def test_a_cosine_ends_with_updates_of_nothing(learner):
    a2c, es = A2CSettings("played", envs=16, schedule="cosine"), ESSettings(pairs=2, episodes=2, schedule="cosine")
    made = make_learner(TrainSettings(env=TOY, learner=learner, inference="lp", steps=1, a2c=a2c, es=es))
    moved = []
    for progress in (0.0, 0.5, 1.0):
        before = made.policy().parameters
        made.update(progress)
        after = made.policy().parameters
        moved.append(max(float(np.abs(after[name] - before[name]).max(initial=0)) for name in before))
    assert moved[0] > 0
    assert moved[2] == pytest.approx(0, abs=1e-12)
    assert [rate_factor("cosine", p) for p in (0.0, 0.5, 1.0, 2.0)] == pytest.approx([1.0, 0.5, 0.0, 0.0])
    assert rate_factor("constant", 0.7) == 1.0


def test_nested_settings_may_be_dictionaries():
    made = make_learner(TrainSettings(env=TOY, learner="es", es={"sigma": 0.1, "pairs": 3}))
    assert made.settings == ESSettings(sigma=0.1, pairs=3)
    with pytest.raises(InputError, match=r"no setting 'es\.sigm'; did you mean 'es\.sigma'"):
        muster.train(TOY, es={"sigm": 0.1})
    with pytest.raises(InputError, match="no setting 'lerner'; did you mean 'learner'"):
        muster.train(TOY, lerner="es")


def test_train_shows_its_arguments():
    shown = inspect.signature(muster.train).parameters
    assert list(shown)[:4] == ["env", "out", "resume", "report"]
    fields = {field.name for field in dataclasses.fields(TrainSettings)}
    assert fields - {"env"} == set(list(shown)[4:])
    assert all(one.kind is one.KEYWORD_ONLY for name, one in shown.items() if name != "env")


def test_the_first_row_counts_only_steps_whose_time_counts(tmp_path):
    out = tmp_path / "r"
    muster.train(TOY, learner="es", inference="lp", steps=400, log_every=1, es={"pairs": 4, "episodes": 4}, out=out)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert "steps_per_second" not in rows[0]
    assert all(row["steps_per_second"] <= row["steps"] / row["cpu_seconds"] for row in rows[1:])


def test_evolution_says_when_its_candidates_cannot_be_told_apart(tmp_path, capsys):
    out = tmp_path / "r"
    muster.train("tests.learning.toy:Same", learner="es", steps=400, log_every=40, es={"pairs": 2}, out=out)
    said = capsys.readouterr().err
    assert said.count("all 4 candidates did exactly equally well in 5 updates running") == 1
    assert "--assign-all True" in said
    remarks = [row["remark"] for row in rows_without_times(out) if "remark" in row]
    assert len(remarks) == 1
    assert remarks[0] in said
    assert remarks[0] in (out / "metrics.csv").read_text().replace('""', '"')
    muster.train(TOY, learner="es", inference="lp", steps=400, es={"pairs": 2})
    assert "candidates" not in capsys.readouterr().err


def test_an_update_scores_states_as_they_were_played():
    """Else the importance ratio is not 1 and the gradient pulls towards the difference: BatchNorm must stay still."""
    settings = A2CSettings("played", envs=4, return_steps=2)
    learner = make_learner(TrainSettings(env="rescue:2x4", model="pem", inference="quad", steps=1, a2c=settings))
    for _ in range(3):
        learner.update()
    rollouts = learner.play()
    seen_by_update = []
    forward = learner.model.forward

    def spy(observation):
        seen_by_update.append(forward(observation))
        return seen_by_update[-1]

    learner.model.forward = spy
    learner.learn(rollouts)
    for now, then in zip(seen_by_update[0], rollouts[0].scores, strict=True):
        assert now.detach().numpy() == pytest.approx(then, abs=1e-5)


PRICED = "tests.learning.toy:Priced"


@pytest.mark.parametrize("learner", ["a2c", "es"])
@pytest.mark.parametrize("inference", ["lp", "quad"])
def test_training_starts_at_the_users_own_rule(learner, inference):
    right, wrong = (
        make_learner(TrainSettings(env=env, learner=learner, inference=inference)).policy()
        for env in (PRICED, f"{PRICED},wrong=true")
    )
    assert muster.evaluate(right, PRICED, 40).mean == 1.0
    assert muster.evaluate(wrong, f"{PRICED},wrong=true", 40).mean == 0.0
    without = make_learner(TrainSettings(env=PRICED, learner=learner, inference=inference, prior=False)).policy()
    assert without.spec.prior is False
    assert muster.evaluate(without, PRICED, 40).mean < 1.0


@pytest.mark.parametrize(
    "settings",
    [
        {"learner": "a2c", "a2c": {"likelihood": "played", "envs": 64, "return_steps": 2, "policy_rate": 2e-2}},
        {"learner": "es", "es": {"pairs": 8, "episodes": 4}},
    ],
    ids=["a2c", "es"],
)
def test_a_wrong_prior_is_corrected_and_the_policy_survives_its_file(settings, tmp_path):
    env, out = f"{PRICED},wrong=true", tmp_path / "r"
    muster.train(env, inference="lp", steps=4_000, log_every=2000, evaluate_every=10**9, out=out, **settings)
    policy = muster.load(out)
    assert policy.spec.prior
    assert policy.spec.global_width == 1
    assert policy.parameters["h.scale"] != 1.0
    assert muster.evaluate(policy, env, 100).mean == 1.0


@pytest.mark.parametrize("learner", ["a2c", "es"])
def test_returns_and_figures_are_logged_as_they_are(learner, tmp_path):
    out = tmp_path / "r"
    small = {"a2c": {"likelihood": "played", "envs": 8}, "es": {"pairs": 2, "episodes": 2}}[learner]
    muster.train(PRICED, learner=learner, inference="lp", steps=300, log_every=50, out=out, **{learner: small})
    rows = rows_without_times(out)
    assert len(rows) > 3
    for row in rows:
        assert row["outcome"] == pytest.approx(row["reward"])
        assert row["served"] == pytest.approx(2 * row["reward"])
        if learner == "es":
            assert row["fitness"] == pytest.approx(row["reward"])
    assert "served" in (out / "metrics.csv").read_text().splitlines()[0].split(",")


MIXTURE = ("rescue:2x3,grid=5", "rescue:3x5,grid=6", "rescue:1x2,grid=4")


def test_worlds_of_a_mixture_share_the_work():
    a2c = make_learner(TrainSettings(env=MIXTURE, a2c={"envs": 8}))
    assert [world.env.n_envs for world in a2c.worlds] == [3, 3, 2]
    before = a2c.steps
    a2c.update()
    assert a2c.steps - before == 8 * a2c.settings.return_steps
    es = make_learner(TrainSettings(env=MIXTURE, learner="es", es={"pairs": 2, "episodes": 4}))
    assert [world.env.n_envs for world in es.worlds] == [8, 4, 4]
    seeds = [world.take(2).tolist() for world in es.worlds]
    assert len({seed for taken in seeds for seed in taken}) == 6


def test_a_mixture_teaches_more_than_one_size():
    """Environments of two and of four tasks, in which the prior is wrong: both are learned."""
    envs = [f"{PRICED},wrong=true", f"{PRICED},wrong=true,more_tasks=2"]
    policy = muster.train(
        envs, learner="es", inference="lp", steps=4_000, evaluate_every=10**9, es={"pairs": 8, "episodes": 4}
    )
    assert [muster.evaluate(policy, env, 50).mean for env in envs] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("envs", "message"),
    [
        (["rescue:2x4", "tests.learning.toy:Pairing"], "environments of one kind; rescue:2x4 and tests"),
        (["tests.learning.toy:Pairing", PRICED], "environments of one kind; tests.learning.toy:Pairing and tests"),
        (["battle:m5v5", "battle:zh10v10"], "one model cannot read both battle:m5v5 and battle:zh10v10: agent_width"),
        (["rescue:2x4", "rescue:2x4"], "several different ones"),
        ([], "name one environment to learn on"),
    ],
)
def test_worlds_that_one_policy_cannot_play_are_refused(envs, message):
    with pytest.raises(InputError, match=message):
        muster.train(envs, steps=1, learner="es")


def test_more_worlds_than_episodes_to_share_are_refused():
    with pytest.raises(InputError, match=r"es\.episodes are shared out among the environments: 2 are too few for 3"):
        TrainSettings(env=MIXTURE, learner="es", es={"episodes": 2})


@pytest.mark.parametrize("ended", ["by its length", "by report"])
def test_the_last_row_of_a_finished_run_tells_the_validation(ended, tmp_path):
    """Where the last update was one to log, the run ended without a look at held-out episodes."""
    end = (lambda row, progress: True) if ended == "by report" else None
    length = {"steps": 10**6} if end else {"steps": 64}
    small = {"learner": "es", "es": {"pairs": 1, "episodes": 1}, "evaluate_episodes": 4, "log_every": 1}
    muster.train("rescue:1x2,grid=4", inference="lp", out=tmp_path, report=end, **length, **small)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert "validation" in rows[-1]
    assert "reward" in rows[-1]
    assert not any("validation" in row for row in rows[:-1])
    with (tmp_path / "metrics.csv").open(newline="") as lines:
        assert float(list(csv.DictReader(lines))[-1]["validation"]) == rows[-1]["validation"]
