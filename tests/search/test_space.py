"""What may be searched, and from where to where."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from muster.errors import InputError
from muster.learning.settings import TrainSettings
from muster.search.space import BUILT_IN, Choice, Range, StudySettings, load_space, read_space, setting_hints
from muster.settings import read_toml

RATE = {"low": 1e-4, "high": 1e-2, "log": True}


@pytest.mark.parametrize("env", ["rescue:2x4", "battle:m10v10"])
@pytest.mark.parametrize("name", BUILT_IN)
def test_the_spaces_that_come_with_muster_are_ones_that_runs_take(name, env):
    space = load_space(name, env)
    assert read_space(space.as_table(), "again") == space
    StudySettings(env=(env,), space_name=name, space=space.as_table())  # builds a run at both ends of every range


def test_the_papers_ranges_are_the_printed_ones():
    rescue, battle = load_space("paper", "rescue:2x4"), load_space("paper", "battle:w15v17")
    assert rescue.fixed == battle.fixed == {"learner": "a2c"}
    assert rescue.sampled == {
        "a2c.learning_rate": Range(1e-5, 1.0, log=True),
        "a2c.critic_learning_rate": Range(1e-5, 1.0, log=True),
        "a2c.rollout_length": Range(2, 5, integer=True),
        "a2c.optimiser": Choice(("adam", "sgd")),
        "a2c.sigma": Range(0.1, 2.0),
        "a2c.correlated_steps": Range(1, 10, integer=True),
    }
    assert battle.sampled == {
        "a2c.learning_rate": Range(1e-6, 1e-3, log=True),
        "a2c.policy_weight": Range(1e-3, 1e3, log=True),
        "a2c.rollout_length": Range(2, 10, integer=True),
        "a2c.sigma": Range(0.1, 3.0),
        "a2c.correlated_steps": Range(1, 10, integer=True),
    }
    assert battle.same == {"a2c.critic_learning_rate": "a2c.learning_rate"}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"a2c": {"lerning_rate": RATE}}, "did you mean 'a2c.learning_rate'"),
        ({"a2c": 3}, "must be a table of settings"),
        ({"a2c": {"learning_rate": {"low": -1.0, "high": 1.0}}}, "low of a2c.learning_rate in x must be positive"),
        ({"a2c": {"learning_rate": {"low": 2.0, "high": 1.0}}}, "low below high"),
        ({"a2c": {"learning_rate": {"low": 2.0}}}, "needs both low and high"),
        ({"a2c": {"learning_rate": {**RATE, "hihg": 1}}}, "did you mean 'high'"),
        ({"a2c": {"learning_rate": {**RATE, "log": 1}}}, "true or false"),
        ({"ppo": {"clip_range": {"low": 0.0, "high": 1.0, "log": True}}}, "must begin above 0"),
        ({"a2c": {"rollout_length": {"low": 1.5, "high": 4}}}, "whole number"),
        ({"a2c": {"optimiser": {"low": 1, "high": 2}}}, "list the values"),
        ({"a2c": {"optimiser": ["adam", "sdg"]}}, "did you mean 'sgd'"),
        ({"a2c": {"optimiser": ["adam", "adam"]}}, "different values"),
        ({"a2c": {"optimiser": []}}, "different values"),
        (
            {"a2c": {"learning_rate": RATE, "critic_learning_rate": {"same_as": "a2c.learningrate"}}},
            "did you mean 'a2c.learning_rate'",
        ),
        ({"seed": [1, 2]}, "cannot be searched"),
        ({"minutes": [1, 2]}, "cannot be searched"),
        ({"inference": "quad"}, "samples nothing"),
    ],
)
def test_what_no_run_would_take_is_refused(table, words):
    with pytest.raises(InputError, match=words):
        read_space(table, "x")


def test_settings_that_do_not_go_together_are_refused_before_any_trial():
    """Each list is fine by itself; routes are learned by es alone."""
    table = {"inference": ["routes", "lp"], "learner": ["ppo", "a2c"]}
    with pytest.raises(InputError, match="evolution strategies only"):
        StudySettings(env=("rescue:1x2",), space_name="x", space=table)


def test_what_is_given_is_not_sampled():
    space = load_space("paper", "battle:w15v17")
    assert "a2c.sigma" not in space.without(["a2c.sigma"]).sampled
    with pytest.raises(InputError, match="give both, or neither"):
        space.without(["a2c.learning_rate"])
    with pytest.raises(InputError, match="nothing is left"):
        space.without([*space.sampled, *space.same])


def test_a_trial_becomes_the_settings_of_a_run():
    space = load_space("paper", "battle:w15v17")
    values = {"a2c.learning_rate": 1e-4, "a2c.policy_weight": 2.0, "a2c.rollout_length": 7, "a2c.sigma": 0.3}
    study = StudySettings(env=("battle:w15v17",), space_name="paper", space=space.as_table(), run={"inference": "lp"})
    run = study.of_trial(space.settings(values | {"a2c.correlated_steps": 2}))
    assert isinstance(run, TrainSettings)
    assert (run.inference, run.learner, run.minutes, run.a2c.correlated_steps) == ("lp", "a2c", 1.0, 2)
    assert run.a2c.learning_rate == run.a2c.critic_learning_rate == 1e-4


def test_every_setting_of_a_run_has_a_dotted_name():
    names = setting_hints()
    assert {"env", "ppo.sigma", "es.pairs", "assign_all"} <= set(names)
    assert "ppo" not in names


def test_a_space_can_come_from_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('learner = "es"\n[es]\nsigma = {low = 0.01, high = 0.1, log = true}\n')
    assert load_space(str(path), "rescue:2x4") == read_space(read_toml(path), str(path))
    with pytest.raises(InputError, match="did you mean 'paper'"):
        load_space("papr", "rescue:2x4")


def test_the_space_in_the_documentation_is_one():
    page = Path(__file__).parents[2] / "docs" / "how-to" / "search.md"
    text = page.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    space = read_space(tomllib.loads(text), "the page")
    assert set(space.sampled) == {"form", "ppo.learning_rate", "ppo.rollout_length"}
    StudySettings(env=("rescue:2x4",), space_name="page", space=space.as_table())
