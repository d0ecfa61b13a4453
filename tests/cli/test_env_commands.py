from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.cli.main import main


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(arguments)
    return capsys.readouterr().out


def test_evaluate_prints_t_and_t_minus_one(capsys):
    text = say(capsys, "evaluate", "closest", "rescue:2x4", "--episodes", "50")
    assert "closest on rescue:2x4: 50 episodes of seed 0" in text
    assert "steps to the last task, T " in text
    assert "T - 1, as the paper prints " in text
    assert "hit the step limit           0 (0.0 %)" in text
    assert "ms a decision" in text
    # The paper has no pursuit.
    assert "the paper" not in say(capsys, "evaluate", "closest", "pursuit:4x2", "--episodes", "5")


def test_evaluate_json_has_the_fields_of_the_contract(capsys):
    found = json.loads(say(capsys, "evaluate", "closest", "rescue:2x4", "--episodes", "50", "--seed", "3", "--json"))
    assert list(found) == [
        "policy",
        "env",
        "episodes",
        "seed",
        "noise",
        "metric",
        "mean",
        "ci95",
        "failed",
        "steps_minus_one",
        "decisions_per_second",
        "ms_per_decision",
        "changes_per_decision",
        "inference",
        "effort",
        "look_ahead",
        "metrics",
    ]
    assert found["metric"] == "steps"
    assert found["steps_minus_one"] == found["mean"] - 1
    assert len(found["ci95"]) == 2


def test_evaluate_counts_failed_episodes_at_the_limit(capsys):
    found = json.loads(say(capsys, "evaluate", "closest", "rescue:2x4,max_steps=1", "--episodes", "5", "--json"))
    assert found["mean"] == 1
    assert found["failed"] == 5


def test_compare_prints_paired_differences(capsys):
    text = say(capsys, "compare", "topline", "closest", "closest-manhattan", "rescue:2x4", "--episodes", "60")
    assert "closest - topline: +" in text
    assert "closest-manhattan - topline: +" in text
    assert "closest-manhattan - closest: " in text
    found = json.loads(say(capsys, "compare", "topline", "closest", "rescue:2x4", "--episodes", "60", "--json"))
    assert [one["policy"] for one in found["policies"]] == ["topline", "closest"]
    assert found["differences"][0]["lower"] == 0


def test_envs_and_policies_list_what_there_is(capsys):
    assert "rescue:AGENTSxTASKS" in say(capsys, "envs")
    kinds = {"model": "linear", "inference": "routes", "learner": "imitation"}
    assert all(name in json.loads(say(capsys, "envs", "--kind", kind, "--json")) for kind, name in kinds.items())
    assert "topline" in say(capsys, "policies")
    assert "nothing learned" in say(capsys, "policies", "examples.couriers:Couriers")
    assert "not here: rescue:2x4 shows no prior" in say(capsys, "policies", "rescue:2x4")
    assert "nearest parcel" in say(capsys, "policies", "examples.delivery:Delivery")
    assert "closest" in json.loads(say(capsys, "policies", "--json"))["rescue"]
    assert "not here: the exact topline goes up to 16 victims" in say(capsys, "policies", "rescue:2x40")


def test_replay_writes_a_replay(capsys, tmp_path: Path):
    path = tmp_path / "replay.gif"
    assert "done in" in say(capsys, "replay", "topline", "rescue:2x3,grid=6", "--out", str(path))
    assert path.stat().st_size > 1000


def test_replay_writes_a_page_unless_told_otherwise(capsys, tmp_path: Path, monkeypatch):
    monkeypatch.syspath_prepend(Path.cwd())
    monkeypatch.chdir(tmp_path)
    assert "written to replay.html" in say(capsys, "replay", "nearest", "examples.couriers:Couriers")
    with pytest.raises(SystemExit):
        main(["replay", "nearest", "examples.couriers:Couriers", "--out", "replay.gif"])
    assert "it must define draw() (a page, such as replay.html, needs none)" in capsys.readouterr().err


def test_replay_puts_two_policies_on_one_page(capsys, tmp_path: Path):
    path = tmp_path / "replay.html"
    said = say(capsys, "replay", "topline", "rescue:2x3,grid=6", "--beside", "closest", "--out", str(path))
    assert said.index("topline on rescue:2x3,grid=6: done in") < said.index("closest on rescue:2x3,grid=6: done in")
    assert '"policy": "closest"' in path.read_text()


def test_check_env_says_which_checks_pass(capsys):
    said = say(capsys, "check-env", "rescue:2x4")
    assert "passed    the seed determines the episode" in said
    assert "passed    masked agents change no decision" in said
    assert json.loads(say(capsys, "check-env", "examples.delivery:Delivery", "--json"))["ok"] is True


def test_one_mistake_is_told_once(capsys):
    with pytest.raises(SystemExit):
        main(["check-env", "tests.envs.custom_envs:Raises"])
    lines = capsys.readouterr().out.splitlines()
    assert sum("KeyError: 'boom'" in line for line in lines) == 1
    assert sum(line.endswith(": the same") for line in lines) > 5


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("evaluate", "clossest", "rescue:2x4"), "no policy 'clossest' for rescue:2x4; did you mean 'closest'?"),
        (
            ("evaluate", "x", "pursuit:4x2"),
            "there is closest, closest-pairs, lp-distance, prior, pursuit-4x2-amax-dm, pursuit-4x2-lp-dm",
        ),
        (
            ("evaluate", "x", "examples.couriers:Couriers"),
            "no policy 'x' for examples.couriers:Couriers; there is nearest, prior, the path",
        ),
        (("evaluate", "closest", "resque:2x4"), "no environment 'resque'; did you mean 'rescue'?"),
        (("evaluate", "closest", "rescue:2x4", "--noise"), "noise is for learned policies"),
        (("evaluate", "topline", "rescue:2x17"), "up to 16 victims, got 17"),
        (("compare", "closest", "rescue:2x4"), "two or more policies and then the environment"),
        (("replay", "closest", "rescue:2x4", "--out", "x.mp4"), "no replay format '.mp4'"),
        (
            ("replay", "closest", "rescue:2x4", "--beside", "topline", "--out", "x.gif"),
            "two policies side by side need a page",
        ),
        (("check-env", "rescue:300x4"), "304 distinct start cells do not fit"),
    ],
)
def test_a_mistake_gets_one_sentence_and_status_2(capsys, arguments, complaint):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1


def test_look_ahead_and_inference_are_flags_wherever_a_policy_plays(capsys, tmp_path):
    policy = "rescue-2x4-quad-dm"
    ahead = ("--rollouts", "2", "--horizon", "3", "--candidates", "scores")
    found = json.loads(say(capsys, "evaluate", policy, "rescue:2x4", "--episodes", "5", *ahead, "--json"))
    assert found["look_ahead"] == {
        "rollouts": 2,
        "until": None,
        "futures": 1,
        "standard_errors": 1.5,
        "horizon": 3,
        "candidates": "scores",
        "size": None,
    }
    ahead = ("--rollouts", "2", "--futures", "2")
    found = json.loads(say(capsys, "evaluate", "prior", "fleet:3,city=small", "--episodes", "2", *ahead, "--json"))
    assert (found["policy"], found["look_ahead"]["futures"]) == ("prior", 2)
    other = ("--inference", "lp")
    found = json.loads(say(capsys, "evaluate", policy, "rescue:2x4", "--episodes", "5", *other, "--json"))
    assert (found["policy"], found["inference"], found["look_ahead"]) == (policy, "lp", None)
    text = say(capsys, "compare", policy, "lp-distance", "rescue:2x4", "--episodes", "5", *ahead)
    assert "rollouts" in text
    found = json.loads(
        say(capsys, "scale", policy, "--env", "rescue", "--sizes", "2", "--episodes", "3", *ahead, "--json")
    )
    assert found["points"][0]["policy"]["look_ahead"]["rollouts"] == 2
    assert found["points"][0]["baselines"][0]["look_ahead"] is None
    say(capsys, "replay", policy, "rescue:2x4", "--effort", "best", "--out", str(tmp_path / "a.json"))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("closest", "rescue:2x4", "--rollouts", "3"), "'closest' is a baseline"),
        (("rescue-2x4-lp-dm", "rescue:2x4", "--inference", "routes"), "no costs of going from task"),
        (("rescue-2x4-lp-dm", "rescue:2x4", "--inference", "quad"), "no scores for pairs of tasks"),
        (("rescue-2x4-lp-dm", "rescue:2x4", "--effort", "best"), "--effort is for quad and routes"),
        (("rescue-2x4-lp-dm", "rescue:2x4", "--horizon", "3"), "add --rollouts"),
        (("rescue-2x4-lp-dm", "rescue:2x4", "--futures", "3"), "add --rollouts"),
        (("rescue-2x4-lp-dm", "rescue:2x4", "--rollouts", "3", "--noise"), "exploration noise"),
        (("rescue-2x4-lp-dn", "rescue:2x4", "--rollouts", "3"), "did you mean 'rescue-2x4-lp-dm'"),
    ],
)
def test_flags_that_mean_nothing_are_refused(capsys, arguments, reason):
    with pytest.raises(SystemExit):
        main(("evaluate", *arguments))
    assert reason in capsys.readouterr().err


def test_a_baseline_without_docstring_is_told_nothing_about(capsys, monkeypatch):
    monkeypatch.setattr("examples.couriers.nearest.__doc__", None)
    lines = say(capsys, "policies", "examples.couriers:Couriers").splitlines()
    assert lines[1].split() == ["nearest"]
