"""Sizes of updates follow from measured speed, become plain settings, and setting up costs a run none of its time."""

import dataclasses
import time

import pytest

import muster
from muster.learning import loop, speed, train
from muster.learning.run import stored_settings
from muster.learning.settings import ESSettings, TrainSettings
from muster.learning.speed import FEW, Speed, choose_sizes, measure
from tests.learning.short_runs import assert_same_end
from tests.learning.test_train import MIXTURE, TOY

PYTHON = Speed(seconds=4 * 72 / 1500, steps=4 * 72, episodes=4, size=4)
"""One update of 4 episodes of 72 steps, at 1,500 steps a second."""
FAST = dataclasses.replace(PYTHON, seconds=4 * 72 / 1_000_000)


def sized(measured, monkeypatch, env=TOY, **settings):
    monkeypatch.setattr(speed, "measure", lambda settings: measured)
    return choose_sizes(TrainSettings(env, learner="es", **settings))[0]


@pytest.mark.parametrize(
    ("measured", "length", "expected"),
    [
        (PYTHON, {"minutes": 2.0}, (16, 1)),
        (PYTHON, {"minutes": 3.0}, (16, 1)),
        (PYTHON, {"minutes": 0.1}, (8, 1)),
        (FAST, {"minutes": 3.0}, (32, 16)),
        (PYTHON, {"steps": 270_000}, (16, 1)),
        (FAST, {"steps": 270_000}, (16, 1)),
        (PYTHON, {"minutes": 2.0, "es": ESSettings(pairs=32)}, (32, 1)),
        (PYTHON, {"minutes": 2.0, "es": ESSettings(pairs=64, episodes=8)}, (64, 8)),
        (PYTHON, {"minutes": 2.0, "env": MIXTURE}, (8, 3)),
    ],
)
def test_slow_environments_get_small_updates(measured, length, expected, monkeypatch):
    es = sized(measured, monkeypatch, **length).es
    assert (es.pairs, es.episodes) == expected


def test_a_linear_model_gets_more_and_smaller_updates(monkeypatch):
    found = [sized(PYTHON, monkeypatch, minutes=20.0, model=model) for model in ("dm", "linear")]
    assert [(one.es.pairs, one.es.episodes) for one in found] == [(32, 4), (16, 2)]


def test_ppo_too_and_rows_of_the_log_come_every_few_seconds(monkeypatch):
    monkeypatch.setattr(speed, "measure", lambda settings: Speed(seconds=0.1, steps=100, episodes=1, size=100))
    found, _ = choose_sizes(TrainSettings(TOY, minutes=3.0))
    assert found.num_envs == 64
    assert found.log_every == 4096
    assert choose_sizes(TrainSettings(TOY, minutes=0.5))[0].num_envs == 8
    assert choose_sizes(TrainSettings(TOY, steps=5000))[0].log_every == 50
    assert choose_sizes(TrainSettings(TOY, minutes=3.0, log_every=7))[0].log_every == 7


def test_too_few_updates_are_a_warning_with_what_to_change():
    short, long = (TrainSettings(TOY, minutes=minutes, learner="es", es=ESSettings(8, 1)) for minutes in (0.1, 3.0))
    assert PYTHON.updates(short) < FEW < PYTHON.updates(long)
    assert PYTHON.warning(long) is None
    assert "only about 8 updates" in PYTHON.warning(short)
    assert "--minutes, smaller --es.pairs" in PYTHON.warning(short)
    one = TrainSettings(TOY, minutes=0.013, learner="es", es=ESSettings(8, 1))
    assert "only about 1 update in a run" in PYTHON.warning(one)
    assert "1 update of 8 pairs" in PYTHON.describe(one)
    told = PYTHON.describe(long)
    assert told == (
        "about 1,500 environment steps per second, episodes of about 72 steps, "
        "230 updates of 8 pairs x 1 episodes to expect in 3 CPU minutes"
    )


def test_what_was_chosen_is_in_the_configuration_and_nothing_is_measured_again(tmp_path, monkeypatch, capsys):
    heard = []
    first = TrainSettings(TOY, learner="es", inference="lp", steps=64)
    train.run_training(first, tmp_path / "first", announce=heard.append)
    assert heard[0].endswith("updates of 8 pairs x 1 episodes to expect in 64 steps")
    assert "muster: only about 4 updates" in capsys.readouterr().err
    stored = stored_settings(tmp_path / "first")
    assert (stored.es.pairs, stored.es.episodes, stored.log_every) == (8, 1, 1)

    def refuse(settings):
        raise AssertionError("measured again")

    monkeypatch.setattr(speed, "measure", refuse)
    train.run_training(stored, tmp_path / "again")
    assert_same_end(tmp_path / "first", tmp_path / "again")
    muster.train(TOY, steps=96, out=tmp_path / "first", resume=True)


@pytest.mark.parametrize("learner", ["ppo", "a2c", "es", "srl"])
def test_speed_is_measured_by_updates_of_the_learner_itself(learner):
    found = measure(TrainSettings("rescue:1x2,grid=4", learner=learner, inference="lp"))
    assert found.seconds > 0
    assert found.steps >= found.size


def test_setting_up_takes_none_of_the_time_of_a_run(monkeypatch):
    made = loop.make_learner

    def slow(*arguments):
        until = time.process_time() + 0.5
        while time.process_time() < until:
            pass
        return made(*arguments)

    monkeypatch.setattr(loop, "make_learner", slow)
    settings = TrainSettings(TOY, learner="es", inference="lp", minutes=0.2 / 60, es=ESSettings(4, 4))
    outcome = train.run_training(settings)
    assert 0.2 <= 60 * outcome.cpu_minutes < 0.5
    assert outcome.steps > 1000
