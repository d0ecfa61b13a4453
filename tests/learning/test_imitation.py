"""Imitation: it learns what the teacher does, labels what the student visits, and goes on bit for bit."""

from __future__ import annotations

import json
import signal

import numpy as np
import pytest

import muster
from muster import InputError
from muster.evaluation.episodes import run_episodes
from muster.learning import imitation
from muster.learning.imitation import LabelledEnv, Roles, cross_entropy, regrets
from muster.learning.learners import make_learner
from muster.learning.settings import ImitationSettings, TrainSettings
from muster.learning.train import run_training
from muster.policy.names import resolve
from muster.rng import episode_seeds
from muster.rollout import reset
from tests.learning.short_runs import assert_same_end, rows_without_times
from tests.learning.test_fenchel_young import scores_for, states

TOY = "tests.learning.toy:Taught"
QUICK = {"steps": 3_000, "log_every": 1_000}


def mean_reward(policy, env=TOY):
    made = muster.make(env, 50)
    return float(run_episodes(made, resolve(policy, made), episode_seeds(99, np.arange(200))).reward.mean())


@pytest.mark.parametrize("loss", ["fenchel-young", "cross-entropy"])
@pytest.mark.parametrize("inference", ["amax", "lp", "quad"])
def test_the_student_does_as_the_teacher_does(inference, loss):
    own = {"loss": loss, "learning_rate": 0.02}
    policy = muster.train(
        TOY, learner="imitation", teacher="right", inference=inference, num_envs=32, imitation=own, **QUICK
    )
    assert mean_reward(policy) == 1.0
    assert policy.header["teacher"] == "right"


def test_rewards_have_no_say():
    policy = muster.train(
        TOY, learner="imitation", teacher="wrong", num_envs=32, imitation={"learning_rate": 0.02}, **QUICK
    )
    assert mean_reward(policy) == 0.0


def test_the_log_says_how_far_teacher_and_student_agree(tmp_path):
    own = {"learning_rate": 0.02}
    muster.train(TOY, learner="imitation", teacher="right", num_envs=32, imitation=own, out=tmp_path / "run", **QUICK)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["agreement"] > 0.99 > rows[0]["agreement"]
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert rows[-1]["reward"] == pytest.approx(1.0, abs=0.01)


def small(teacher, model="dm", env="rescue:2x3,grid=5", **more):
    return TrainSettings(
        env=env,
        learner="imitation",
        teacher=teacher,
        model=model,
        steps=600,
        log_every=150,
        evaluate_episodes=4,
        num_envs=16,
        imitation=ImitationSettings(**more),
    )


@pytest.mark.parametrize(
    "settings",
    [
        small("topline"),
        small("routes-distance", loss="cross-entropy"),
        small("closest", env=("rescue:2x3,grid=5", "rescue:3x4,grid=6")),
        small("lp-distance", model="pem"),
        small("hindsight", env="fleet:2,city=small"),
        small("topline", states="regret", env=("rescue:2x3,grid=5", "rescue:3x4,grid=6")),
        small("routes-distance", states="regret", model="context"),
    ],
    ids=["topline", "routes", "two environments", "pem", "hindsight", "regret", "regret in context"],
)
def test_an_interrupted_run_goes_on_bit_for_bit(settings, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_training(settings, whole)
    heard = []

    def interrupt(row, progress):
        heard.append(row)
        if len(heard) == 2:
            signal.raise_signal(signal.SIGINT)

    assert not run_training(settings, broken, report=interrupt).finished
    assert run_training(settings, broken, resume=True).finished
    assert_same_end(whole, broken)
    assert rows_without_times(broken) == rows_without_times(whole)


def test_labels_of_a_planner_are_plans_from_where_the_student_went():
    env = muster.make("rescue:2x4", 8)
    labelled = LabelledEnv(env, resolve("topline", env), Roles.of(8, mixed=True), seed=0)
    for _ in range(5):
        asked = labelled.labels(env.observe())
        # The student sends all agents to the last victim that waits, the teacher is followed in two slots.
        last = 3 - np.argmax(env.observe().task_alive[:, ::-1], axis=1)
        action = labelled.executed(np.repeat(last[:, None], 2, axis=1))
        labelled.finish(action, env.step(action))
        fresh = resolve("topline", env)
        fresh.reset(np.arange(8), np.zeros(8, np.uint64))
        strayed = (asked != last[:, None]).any(axis=1) & ~labelled.roles.teacher
        assert strayed.sum() >= 4
        assert np.array_equal(labelled.labels(env.observe())[strayed], fresh.act(env.observe())[strayed])


@pytest.mark.parametrize(
    ("env", "policy"),
    [
        ("rescue:2x4", "closest"),
        ("rescue:2x4", "routes-distance"),
        ("rescue:2x4", "topline"),
        ("rescue:2x4", "rescue-2x4-routes-dm"),
        ("pursuit:4x2", "closest"),
        ("battle:m3v3", "rand-nc"),
        ("fleet:4,city=small", "hindsight"),
    ],
)
def test_what_a_policy_remembers_is_enough_to_go_on(env, policy):
    made = muster.make(env, 4)
    one = resolve(policy, made)
    reset(made, one, np.arange(4), episode_seeds(3, np.arange(4)))
    for _ in range(4):
        made.step(one.act(made.observe()))
    state, memory = made.get_state(), one.get_memory()
    decisions = []
    for other in (one, resolve(policy, made)):
        made.set_state(state)
        other.set_memory(memory)
        decisions.append([])
        for _ in range(4):
            decisions[-1].append(other.act(made.observe()))
            made.step(decisions[-1][-1])
    assert np.array_equal(*decisions)


def test_hindsight_plans_anew_where_it_was_not_followed():
    made = muster.make("fleet:3,city=small", 2)
    teacher = resolve("hindsight", made)
    reset(made, teacher, np.arange(2), episode_seeds(5, np.arange(2)))
    for _ in range(30):
        teacher.act(made.observe())
        made.step(np.full((2, 3), -1))
        teacher.replan(np.arange(2))
    fresh = resolve("hindsight", made)
    fresh.reset(np.arange(2), np.zeros(2, np.uint64))
    assert np.array_equal(teacher.act(made.observe()), fresh.act(made.observe()))


@pytest.mark.parametrize("acting", ["closest", "lp-distance", "topline"])
def test_regrets_add_up_to_the_steps_above_the_optimum(acting):
    """Whatever policy acts: what a decision costs by the optimum from there on is a step, or several, or nothing."""
    env = muster.make("rescue:3x5,grid=8", 40)
    student = resolve(acting, env)
    labelled = LabelledEnv(env, resolve("topline", env), Roles.of(40, mixed=False), seed=3)
    # It begins a new episode where one ends: these slots are counted no further.
    student.reset(np.arange(40), np.zeros(40, np.uint64))
    optimum = labelled.expected_return(env.observe()) / -0.01
    steps, lost, running = np.zeros(40), np.zeros(40), np.ones(40, np.bool_)
    while running.any():
        expected = labelled.expected_return(env.observe())
        action = student.act(env.observe())
        step = env.step(action)
        labelled.finish(action, step)
        regret = regrets(expected, step, labelled.expected_return(env.observe()))
        assert (np.abs(regret / 0.01 - np.rint(regret / 0.01)) < 1e-6).all()
        steps[running] += 1
        lost[running] += regret[running] / 0.01
        ended = step.terminated | step.truncated
        running &= ~ended
        student.reset(np.flatnonzero(ended), np.zeros(int(ended.sum()), np.uint64))
    np.testing.assert_allclose(steps - optimum, lost, atol=1e-6)
    assert lost.any() == (acting != "topline")


def test_nothing_is_learned_where_nothing_was_lost(monkeypatch):
    """A student that decides as the teacher stays as it is, although perturbed answers differ from the labels."""
    monkeypatch.setattr(imitation, "WEIGHT_DECAY", 0.0)
    learner = make_learner(small("topline", states="regret", env="rescue:1x1,grid=5"))
    before = learner.parameters()
    found = [learner.update() for _ in range(10)]
    assert all(row["regret"] == row["loss"] == 0.0 for row in found)
    assert all(np.array_equal(array, before[name]) for name, array in learner.parameters().items())
    learner = make_learner(small("topline", states="regret"))
    assert max(learner.update()["regret"] for _ in range(10)) > 0
    assert any((array != before[name]).any() for name, array in learner.parameters().items())


@pytest.mark.parametrize("model", ["dm", "context"])
def test_a_gradient_of_some_states_is_that_of_all_with_no_slope_elsewhere(model):
    learner = make_learner(small("topline", model=model))
    seen = learner.spec.read(learner.envs[0].observe())
    states, rng = np.array([1, 4, 5]), np.random.default_rng(0)
    slopes = tuple(np.zeros_like(array) for array in learner.student.scores(seen))
    for slope in slopes:
        slope[states] = rng.standard_normal(slope[states].shape)
    after = []
    for some in (None, states):
        student = make_learner(small("topline", model=model)).student
        student.forward(seen)
        student.backward(seen, slopes if some is None else tuple(slope[some] for slope in slopes), states=some)
        student.step(0.01)
        after.append(student.parameters())
    for name, array in after[0].items():
        np.testing.assert_allclose(after[1][name], array, rtol=1e-4, atol=1e-6)


def test_some_slots_follow_the_teacher_and_some_have_noise():
    roles = Roles.of(128, mixed=True)
    assert roles.teacher.sum() == roles.noisy.sum() == 32
    assert not (roles.teacher & roles.noisy).any()
    learner = make_learner(small("lp-distance"))
    (labelled,) = learner.labelled
    labelled.roles = Roles(np.ones(16, np.bool_), np.zeros(16, np.bool_))
    found = [learner.update() for _ in range(40)]
    steps = np.average(
        [row["outcome"] for row in found if row["episodes"]],
        weights=[row["episodes"] for row in found if row["episodes"]],
    )
    assert steps == pytest.approx(muster.evaluate("lp-distance", "rescue:2x3,grid=5", 500).mean, abs=0.6)


@pytest.mark.parametrize(("quad", "idling"), [(False, False), (True, False), (True, True)])
def test_slopes_of_the_cross_entropy_are_finite_differences(quad, idling):
    seen = states(2)
    scores = scores_for(2, seen, quad)
    labels = np.where(np.random.default_rng(0).random((4, 3)) < 0.2, -1, np.tile([0, 1, 3], (4, 1)))
    _, slopes = cross_entropy(seen, scores, labels, idling)
    step = np.float32(1e-2)
    for part, slope in enumerate(slopes):
        for where in [] if slope is None else list(np.ndindex(slope.shape))[::2]:
            losses = []
            for sign in (1, -1):
                moved = [None if array is None else array.copy() for array in scores]
                moved[part][where] += sign * step
                losses.append(cross_entropy(seen, tuple(moved), labels, idling)[0])
            assert slope[where] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=2e-3)
    assert not slopes[0][~seen.pairs].any()


def test_a_run_can_go_on_from_a_policy(tmp_path):
    policy = muster.train(
        "rescue:2x4", learner="imitation", teacher="topline", steps=256, from_policy="rescue-2x4-lp-dm",
        inference="lp", imitation={"learning_rate": 1e-9},
    )  # fmt: skip
    before = muster.load("rescue-2x4-lp-dm").parameters
    assert all(np.allclose(policy.parameters[name], before[name], atol=1e-5) for name in before)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner": "imitation"}, "imitation needs a teacher"),
        ({"learner": "es", "teacher": "topline"}, "a teacher or a log is for --learner imitation"),
        ({"learner": "imitation", "teacher": "toplin"}, "did you mean 'topline'"),
        ({"learner": "imitation", "teacher": "battle-m10v10-lp-dm"}, "trained on battle:m10v10"),
        ({"learner": "imitation", "teacher": "topline", "inference": "routes"}, "evolution strategies only"),
        (
            {"learner": "imitation", "teacher": "closest", "imitation": {"states": "regret"}},
            "closest cannot say what its plan",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        muster.train("rescue:2x4", steps=1, **settings)
