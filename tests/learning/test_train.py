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
from muster.learning.a2c import explored_slopes
from muster.learning.learner import SlotEpisodes, training_seeds
from muster.learning.learners import make_learner
from muster.learning.optimiser import Optimiser, cosine_decay
from muster.learning.settings import A2CSettings, ESSettings, PPOSettings, TrainSettings
from muster.rng import episode_seeds
from muster.settings import from_toml, to_toml
from tests.learning.short_runs import rows_without_times, small
from tests.learning.toy import Broken

TOY = "tests.learning.toy:Pairing"


def mean_reward(policy) -> float:
    env = muster.make(TOY, 50)
    return float(run_episodes(env, policy, episode_seeds(99, np.arange(200))).reward.mean())


A2C = {"rollout_length": 2, "learning_rate": 1e-2}
ES = {"pairs": 8, "episodes": 4}


@pytest.mark.parametrize(
    "settings",
    [
        {"learner": "a2c", "inference": "amax", "a2c": A2C},
        {"learner": "a2c", "inference": "lp", "a2c": A2CSettings(**A2C)},
        {"learner": "a2c", "inference": "quad", "a2c": A2C},
        {"learner": "es", "inference": "lp", "es": ESSettings(**ES)},
        {"learner": "es", "inference": "quad", "es": ES},
    ],
    ids=["a2c-amax", "a2c-lp", "a2c-quad", "es-lp", "es-quad"],
)
def test_learners_reach_the_known_optimum(settings):
    size = {} if settings["learner"] == "es" else {"num_envs": 64}
    policy = muster.train(TOY, steps=4_000, log_every=2_000, seed=1, **size, **settings)
    assert mean_reward(policy) == 1.0


def test_an_untrained_policy_does_not():
    """Otherwise the test above could not fail."""
    policy = muster.train(TOY, steps=1, learner="es", inference="lp", seed=1, es=ESSettings(pairs=1, episodes=1))
    assert mean_reward(policy) < 0.9


def test_a_run_too_short_for_one_episode_still_leaves_its_policy(tmp_path):
    out = tmp_path / "run"
    muster.train("rescue:2x4", steps=1, evaluate_episodes=5, num_envs=2, ppo=PPOSettings(rollout_length=1), out=out)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["best_training_reward"] is None
    assert summary.get("commit") == muster.load(out).header.get("commit") == code_commit()
    assert (
        muster.load(out / "best.safetensors").parameters.keys()
        == muster.load(out / "last.safetensors").parameters.keys()
    )


def test_weight_decay_alone_shrinks_the_parameters():
    optimiser = Optimiser({"x": np.ones(3, np.float32)}, weight_decay=0.5)
    optimiser.add({"x": np.zeros(3, np.float32)})
    optimiser.step(0.1)
    np.testing.assert_allclose(optimiser.theta, 0.95)


def test_long_gradients_are_scaled_down_and_missing_ones_move_nothing():
    optimiser = Optimiser({"x": np.zeros(2, np.float32)}, max_grad_norm=1.0, method="sgd")
    optimiser.step(1.0)
    assert optimiser.parameters()["x"].tolist() == [0.0, 0.0]
    optimiser.add({"x": np.array([1.5, 2.0], np.float32)}, weight=2.0)
    optimiser.step(1.0)
    assert optimiser.theta.tolist() == pytest.approx([-0.6, -0.8])


def test_evolution_keeps_the_last_policy(tmp_path):
    out = tmp_path / "run"
    muster.train(TOY, steps=3000, log_every=300, learner="es", inference="lp", es=ESSettings(pairs=4), out=out)
    best, last = (muster.load(out / f"{name}.safetensors").parameters for name in ("best", "last"))
    assert all(np.array_equal(best[name], last[name]) for name in best)


@pytest.mark.parametrize("learner", ["ppo", "es"])
def test_a_reward_that_is_not_a_number_stops_the_run_and_is_named(learner):
    Broken.rounds = 0
    own = {"num_envs": 16} if learner == "ppo" else {"es": ESSettings(pairs=2, episodes=4)}
    with pytest.raises(MusterError, match="a reward is not finite"):
        muster.train("tests.learning.toy:Broken", learner=learner, inference="lp", steps=100_000, **own)


def test_a_gradient_that_explodes_is_named():
    with pytest.raises(MusterError, match=r"not finite|became"):
        muster.train(
            "rescue:2x3,grid=5",
            steps=100_000,
            learner="a2c",
            num_envs=16,
            a2c=A2CSettings(optimiser="sgd", learning_rate=1e30, critic_learning_rate=1e30),
        )


def test_settings_survive_a_round_trip_through_toml(tmp_path):
    settings = small("a2c", 5)
    (tmp_path / "c.toml").write_text(to_toml(settings))
    assert from_toml(TrainSettings, tmp_path / "c.toml") == settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('env = "rescue:2x4"\nlerner = "es"', "no setting 'lerner' in .*; did you mean 'learner'"),
        ('env = "rescue:2x4"\nnum_envs = "many"', "num_envs in .* must be a whole number, got 'many'"),
        ('env = "rescue:2x4"\n[ppo]\nsigma = -1.0', "ppo.sigma in .* must be positive"),
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
        ({"learner": "pp"}, "no learner 'pp'"),
        ({"learner": "es", "model": "pem"}, "es trains direct and linear models"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        TrainSettings(env="rescue:2x4", **settings)


def test_training_is_the_same_each_time():
    first, second = (muster.train("rescue:2x3,grid=5", steps=2000, num_envs=16) for _ in range(2))
    for name, array in first.parameters.items():
        assert np.array_equal(array, second.parameters[name])


def test_convolutions_train_and_generalise_to_larger_grids(tmp_path):
    settings = {"model": "pem", "learner": "a2c", "num_envs": 8, "steps": 300, "log_every": 100}
    muster.train("rescue:2x3,grid=6", out=tmp_path / "r", **settings)
    policy, start = muster.load(tmp_path / "r"), make_learner(TrainSettings(env="rescue:2x3,grid=6", **settings))
    assert policy.spec.kind == "pem"
    before = start.parameters()
    weights = [name for name, array in before.items() if array.dtype == np.float32 and array.size > 1]
    assert all(not np.array_equal(policy.parameters[name], before[name]) for name in weights if "pair" not in name)
    found = muster.evaluate(policy, "rescue:3x5,grid=8", episodes=5)
    assert (found.records.outcome == muster.evaluate(str(tmp_path / "r"), "rescue:3x5,grid=8", 5).records.outcome).all()


def test_convolutions_learn_from_battles():
    ppo = PPOSettings(rollout_length=2)
    learner = make_learner(TrainSettings(env="battle:m2v2", model="pem", inference="lp", steps=1, num_envs=2, ppo=ppo))
    before = learner.parameters()
    metrics = learner.update()
    assert all(np.isfinite(metrics[name]) for name in ("value_loss", "policy_loss"))
    after = learner.parameters()
    weights = [name for name in before if name.startswith("grid.") and name.endswith("weight")]
    assert len(weights) > 6
    assert all(not np.array_equal(before[name], after[name]) for name in weights)


@pytest.mark.parametrize("learner", ["ppo", "es"])
def test_a_cosine_ends_with_updates_of_nothing(learner):
    ppo, es = PPOSettings(rollout_length=4), ESSettings(pairs=2, episodes=2)
    made = make_learner(TrainSettings(env=TOY, learner=learner, inference="lp", steps=1, num_envs=16, ppo=ppo, es=es))
    moved = []
    for progress in (0.0, 0.5, 1.0):
        before = made.parameters()
        made.update(progress)
        after = made.parameters()
        moved.append(max(float(np.abs(after[name] - before[name]).max(initial=0)) for name in before))
    assert moved[0] > 0
    assert moved[2] == pytest.approx(0, abs=1e-12)
    assert [cosine_decay(p) for p in (0.0, 0.5, 1.0, 2.0)] == pytest.approx([1.0, 0.5, 0.0, 0.0])


def test_nested_settings_may_be_dictionaries():
    made = make_learner(TrainSettings(env=TOY, learner="es", es={"sigma": 0.1, "pairs": 3, "episodes": 2}))
    assert made.settings == ESSettings(sigma=0.1, learning_rate=0.03, pairs=3, episodes=2)
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


def test_evolution_says_when_its_candidates_cannot_be_told_apart(tmp_path, capsys):
    out = tmp_path / "r"
    muster.train("tests.learning.toy:Same", learner="es", steps=1600, log_every=40, es={"pairs": 2}, out=out)
    said = capsys.readouterr().err
    assert said.count("all 4 candidates did exactly equally well in 20 updates in a row") == 1
    assert "--assign-all True" in said
    remarks = [row["remark"] for row in rows_without_times(out) if "remark" in row]
    assert len(remarks) == 1
    assert remarks[0] in said
    assert remarks[0] in (out / "metrics.csv").read_text().replace('""', '"')
    muster.train(TOY, learner="es", inference="lp", steps=400, es={"pairs": 2, "episodes": 16})
    assert "candidates" not in capsys.readouterr().err


def test_an_update_scores_states_as_they_were_when_they_acted():
    """Else the importance ratio is not 1 and the gradient pulls towards the difference: BatchNorm must stay still."""
    a2c = {"rollout_length": 2}
    learner = make_learner(
        TrainSettings(env="rescue:2x4", model="pem", inference="quad", learner="a2c", steps=1, num_envs=4, a2c=a2c)
    )
    for _ in range(3):
        learner.update()
    (rollout,) = learner.collect()
    for now, then in zip(learner.actor.forward(rollout.observation), rollout.scores, strict=True):
        assert now == pytest.approx(then, abs=1e-5)


def test_the_slopes_of_explored_scores_are_finite_differences_of_their_loss():
    """At the scores that acted, where the ratio, through which no gradient runs, is 1 and stays near it."""
    rng = np.random.default_rng(0)
    old = rng.standard_normal((3, 2, 4)).astype(np.float32)
    explored = old + 0.3 * rng.standard_normal(old.shape).astype(np.float32)
    alive, advantage = rng.random(old.shape) < 0.8, rng.standard_normal(3).astype(np.float32)
    _, slopes = explored_slopes(old, old, explored, alive, advantage, 0.5)
    for where in np.ndindex(old.shape):
        moved = [old.copy(), old.copy()]
        moved[0][where] += 1e-3
        moved[1][where] -= 1e-3
        # The ratio held at 1: both are the old scores.
        up, down = (explored_slopes(one, one, explored, alive, advantage, 0.5)[0] for one in moved)
        assert slopes[where] == pytest.approx((up - down) / 2e-3, abs=1e-2)
    assert not slopes[~alive].any()


PRICED = "tests.learning.toy:Priced"


@pytest.mark.parametrize("learner", ["ppo", "es"])
@pytest.mark.parametrize("inference", ["lp", "quad"])
def test_training_starts_at_the_users_own_prior(learner, inference):
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
        {"learner": "a2c", "a2c": A2C | {"learning_rate": 2e-2}},
        {"learner": "es", "model": "dm", "es": {"pairs": 8, "episodes": 4}},
    ],
    ids=["a2c", "es"],
)
def test_a_wrong_prior_is_corrected_and_the_policy_survives_its_file(settings, tmp_path):
    env, out = f"{PRICED},wrong=true", tmp_path / "r"
    muster.train(env, inference="lp", steps=4_000, log_every=2000, out=out, **settings)
    policy = muster.load(out)
    assert policy.spec.prior
    assert policy.spec.global_width == 1
    assert policy.parameters["h.scale"] != 1.0
    assert muster.evaluate(policy, env, 100).mean == 1.0


@pytest.mark.parametrize("learner", ["a2c", "es"])
def test_returns_and_metrics_are_logged_as_they_are(learner, tmp_path):
    out = tmp_path / "r"
    small = {"num_envs": 8} if learner == "a2c" else {"es": {"pairs": 2, "episodes": 2}}
    muster.train(PRICED, learner=learner, inference="lp", steps=300, log_every=50, out=out, **small)
    rows = rows_without_times(out)
    assert len(rows) > 3
    for row in rows:
        assert row["outcome"] == pytest.approx(row["reward"])
        assert row["served"] == pytest.approx(2 * row["reward"])
        if learner == "es":
            assert row["fitness"] == pytest.approx(row["reward"])
    assert "served" in (out / "metrics.csv").read_text().splitlines()[0].split(",")


MIXTURE = ("rescue:2x3,grid=5", "rescue:3x5,grid=6", "rescue:1x2,grid=4")


def test_environments_of_a_mixture_share_the_work():
    ppo = make_learner(TrainSettings(env=MIXTURE, num_envs=8))
    assert [env.n_envs for env in ppo.envs] == [3, 3, 2]
    before = ppo.steps
    ppo.update()
    assert ppo.steps - before == 8 * ppo.settings.rollout_length
    es = make_learner(TrainSettings(env=MIXTURE, learner="es", es={"pairs": 2, "episodes": 4}))
    assert [env.n_envs for env in es.envs] == [8, 4, 4]
    seeds = [training_seeds(0, k, np.arange(2)).tolist() for k in range(3)]
    assert len({seed for taken in seeds for seed in taken}) == 6


def test_a_mixture_teaches_more_than_one_size():
    """Environments of two and of four tasks, in which the prior is wrong: both are learned."""
    envs = [f"{PRICED},wrong=true", f"{PRICED},wrong=true,more_tasks=2"]
    policy = muster.train(envs, learner="es", inference="lp", steps=4_000, es={"pairs": 8, "episodes": 4})
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
def test_environments_that_one_policy_cannot_read_are_refused(envs, message):
    with pytest.raises(InputError, match=message):
        muster.train(envs, steps=1, learner="es")


def test_more_environments_than_episodes_to_share_are_refused():
    with pytest.raises(InputError, match=r"es\.episodes are divided among the environments: 2 are too few for 3"):
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


def test_episodes_of_a_slot_do_not_depend_on_how_the_slots_are_divided():
    whole, blocks = SlotEpisodes(5, 3), [SlotEpisodes(5, 3, 0, block) for block in ((0, 2), (2, 5))]
    taken: list[int] = []
    for slots in ([0, 1, 2, 3, 4], [1, 4], [4]):
        found = whole.take(np.array(slots))
        parts = [np.array([slot - block.slots[0] for slot in slots if slot in block.slots], int) for block in blocks]
        assert [*blocks[0].take(parts[0]), *blocks[1].take(parts[1])] == list(found)
        taken += list(found)
    assert len(set(taken)) == len(taken)
