"""muster train and muster plot, as a user calls them."""

import json
import re
import sys
import tomllib
from typing import get_args

import pytest

from muster.cli.main import main
from muster.cli.plot import draw_curves
from muster.errors import InputError
from muster.learning import loop
from muster.learning.settings import LearnerName
from muster.learning.train import train
from muster.policy.learned import LearnedPolicy

SHORT = ["--steps", "600", "--log-every", "200", "--learner", "es", "--es.pairs", "2", "--es.episodes", "4"]


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    main(["train", "rescue:2x3,grid=6", *SHORT, "--out", str(folder)])
    return folder


def refused(capsys, arguments) -> str:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert "Traceback" not in said
    return said


def test_a_trained_policy_can_be_evaluated_by_its_folder(run, capsys):
    main(["evaluate", str(run), "rescue:3x5,grid=7", "--episodes", "5", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["metric"] == "steps"
    assert found["noise"] is False
    main(["evaluate", str(run), "rescue:3x5,grid=7", "--episodes", "5", "--noise", "--json"])
    assert json.loads(capsys.readouterr().out)["noise"] is True


def test_interrupting_the_validation_names_the_command_that_goes_on(tmp_path, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    folder = tmp_path / "a run"
    with monkeypatch.context() as patch:
        patch.setattr(loop, "validate", interrupt)
        with pytest.raises(SystemExit) as left:
            main(["train", "rescue:2x3,grid=6", *SHORT, "--out", str(folder)])
    assert left.value.code == 130
    said = capsys.readouterr().err
    assert "validation on rescue:2x3,grid=6, " in said
    assert f"go on with: muster train --out '{folder}' --resume" in said
    assert not (folder / "summary.json").exists()
    main(["train", "--out", str(folder), "--resume", "--steps", "600"])
    assert json.loads((folder / "summary.json").read_text())["steps"] >= 600


def test_flags_win_over_the_settings_file(tmp_path):
    (tmp_path / "c.toml").write_text(
        'env = "rescue:2x3,grid=6"\nlearner = "es"\nminutes = 9\nseed = 3\n[es]\npairs = 2\nepisodes = 4\n'
    )
    main(["train", "--config", str(tmp_path / "c.toml"), "--steps", "200", "--seed", "5", "--out", str(tmp_path / "r")])
    assert LearnedPolicy.load(tmp_path / "r").header["seed"] == 5
    stored = tomllib.loads((tmp_path / "r" / "config.toml").read_text())
    assert stored["steps"] == 200
    assert "minutes" not in stored


def test_the_settings_file_is_seen_however_it_is_written(tmp_path):
    (tmp_path / "c.toml").write_text('learner = "es"\nseed = 3\n[es]\npairs = 2\nepisodes = 4\n')
    config = f"--config={tmp_path / 'c.toml'}"
    main(["train", "--steps", "200", config, "--out", str(tmp_path / "r"), "rescue:2x3,grid=6"])
    assert LearnedPolicy.load(tmp_path / "r").header["seed"] == 3
    assert LearnedPolicy.load(tmp_path / "r").header["learner"] == "es"


def test_a_run_is_resumed_as_it_was_begun(run, capsys):
    main(["train", "rescue:2x3,grid=6", "--resume", "--out", str(run), "--steps", "900"])
    assert LearnedPolicy.load(run / "last.safetensors").header["env"] == "rescue:2x3,grid=6"
    assert json.loads((run / "summary.json").read_text())["steps"] >= 900
    main(["train", "--resume", "--out", str(run), "--seed", "0", "--steps", "1000"])
    said = refused(capsys, ["train", "rescue:2x3,grid=6", "--resume", "--out", str(run), "--es.pairs", "3"])
    assert "es.pairs is 2 there, not 3" in said
    said = refused(capsys, ["train", "rescue:2x4", "--resume", "--out", str(run), "--form", "paper"])
    assert "env is 'rescue:2x3,grid=6' there, not 'rescue:2x4'; form is None there, not 'paper'" in said


def test_a_run_knows_its_environment_when_it_is_resumed(run, tmp_path, capsys):
    main(["train", "--resume", "--out", str(run), "--steps", "900"])
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["env"], summary["steps"] >= 900) == ("rescue:2x3,grid=6", True)
    assert "holds no run to resume" in refused(capsys, ["train", "--resume", "--out", str(tmp_path / "none")])


def test_a_run_that_could_not_begin_leaves_its_folder_to_the_next(run, tmp_path, capsys):
    out = tmp_path / "second"
    begin = ["train", "rescue:2x3,grid=6", *SHORT, "--out", str(out)]
    for wrong in (
        ["--from", "nowhere"],
        ["--inference", "quad", "--from", "battle-m10v10-lp-dm"],
        ["rescue:9x9,grid=2"],
    ):
        refused(capsys, [*begin, *wrong])
    assert not (out / "config.toml").exists()
    main(begin)
    refused(capsys, [*begin, "--from", "nowhere"])
    assert (out / "summary.json").exists()


def test_the_default_learner_needs_no_torch_and_other_models_say_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "muster.learning.torch_actor", raising=False)
    short = ["rescue:2x3,grid=6", "--steps", "10", "--evaluate-episodes", "2", "--out"]
    main(["train", *short, str(tmp_path / "r")])
    said = refused(capsys, ["train", *short, str(tmp_path / "s"), "--model", "pem"])
    assert "use --model dm" in said
    assert not (tmp_path / "s" / "config.toml").exists()


def test_help_shows_what_matters_first_and_at_most_45_flags_over_all_learners(capsys):
    found = {"--help"}
    for learner in get_args(LearnerName):
        with pytest.raises(SystemExit):
            main(["train", "--learner", learner, "--help"])
        flags = re.findall(r"^[│|]? *(--[a-z][a-z0-9.-]+)", capsys.readouterr().out, re.MULTILINE)
        assert flags[:6] == ["--learner", "--inference", "--minutes", "--steps", "--seed", "--out"]
        assert f"--{learner}.learning-rate" in flags or learner == "srl"
        found.update(flags)
    assert len(found) <= 45


@pytest.mark.parametrize("command", ["train", "search"])
def test_help_shows_each_choice_once_and_no_none(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = capsys.readouterr().out
    for choices in ("--learn capacities|contributions|capacities,contributions ", "--workers INT|auto "):
        assert choices in said
    assert "{None" not in said.partition("--learn ")[2].partition("--workers ")[0]


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        (["--learner", "es", "--ppo.sigma", "0.3"], "--ppo.sigma is for the learner ppo"),
        (["--inference", "routes", "--a2c.sigma=0.3"], "--a2c.sigma is for the learner a2c"),
        (["--es.pairs", "3"], "--es.pairs is for the learner es, but this run learns by ppo"),
    ],
)
def test_settings_of_another_learner_are_refused(given, flag, tmp_path, capsys):
    assert flag in refused(capsys, ["train", "rescue:2x3,grid=6", "--out", str(tmp_path / "r"), *given])
    assert not (tmp_path / "r").exists()
    with pytest.raises(InputError, match="ppo is for the learner ppo"):
        train("rescue:2x3,grid=6", learner="es", steps=1, ppo={"sigma": 0.3})


def test_settings_of_the_learner_that_the_environment_decides_are_taken(tmp_path, capsys):
    couriers = ["train", "examples.couriers:Couriers", "--steps", "10", "--evaluate-episodes", "2"]
    file = tmp_path / "es.toml"
    file.write_text("[es]\npairs = 3\nepisodes = 1\n[ppo]\nsigma = 0.3\n")
    for k, given in enumerate((["--es.pairs", "3", "--es.episodes=1"], ["--config", str(file)])):
        main([*couriers, "--out", str(tmp_path / str(k)), *given])
        config = tomllib.loads((tmp_path / str(k) / "config.toml").read_text())
        assert config["es"]["pairs"] == 3
    said = refused(capsys, [*couriers, "--out", str(tmp_path / "r"), "--ppo.sigma", "0.3"])
    assert "--ppo.sigma is for the learner ppo, but this run learns by es" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "rescue:2x4", "--out", "afile/run"], "cannot write afile/run: Not a directory"),
        (["train", "rescue:2x4", "--out", "/proc/foo"], "cannot write /proc/foo"),
        (["train"], "name the environment to learn on"),
        (["train", "rescue:2x4", "rescue:2x4"], "several different ones"),
        (["train", "rescue:2x4", "--config"], "--config needs a value"),
        (["train", "rescue:2x"], "rescue takes agents x tasks"),
        (["train", "rescu:2x4"], "did you mean 'rescue'"),
        (["train", "rescue:2x4", "--minutes", "1", "--steps", "5"], "not both"),
        (["train", "rescue:2x4", "--minutes", "inf"], "--minutes must be positive and finite, got inf"),
        (["evaluate", "closest", "rescue:2x4", "--episodes", "2", "--log", "/dev/full"], "No space left on device"),
        (["train", "rescue:2x4", "--config", "nowhere.toml"], "cannot read nowhere.toml"),
        (["train", "rescue:2x4", "--resume", "--out", "nowhere"], "holds no run to resume"),
        (["train", "rescue:2x4", "--learner", "es", "--model", "pem"], "es trains direct and linear models"),
        (["plot", "curves", "nowhere"], "no log nowhere"),
        (["plot", "scores", "nowhere.safetensors"], "no policy file"),
        (["evaluate", "runs/nothing", "rescue:2x4"], "no policy file"),
        (["evaluate", "rescue-2x4-quad-dn", "rescue:2x4"], "no policy 'rescue-2x4-quad-dn' for rescue:2x4"),
    ],
)
def test_mistakes_get_one_sentence(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "afile").write_text("")
    assert message in refused(capsys, arguments)


def test_plots_are_written(run, tmp_path, capsys):
    for what in ("curves", "scores"):
        main(
            [
                "plot",
                what,
                str(run),
                "--out",
                str(tmp_path / f"{what}.png"),
                *(["--grid", "6"] if what == "scores" else []),
            ]
        )
        assert (tmp_path / f"{what}.png").stat().st_size > 5000
    assert "cannot write" in refused(capsys, ["plot", "curves", str(run), "--out", str(tmp_path / "x.nonsense")])


class Axes:
    """Remembers what is drawn on it."""

    def __init__(self):
        self.lines, self.limits = {}, None

    def plot(self, x, y, label, **rest):
        self.lines[label] = list(y)

    def set_ylim(self, low, high):
        self.limits = (low, high)

    def __getattr__(self, name):
        return lambda *rest, **more: None


@pytest.mark.parametrize(
    ("outcome", "cut"),
    [
        ([90.0, 12.0, 9.0], (0.97 * 9.0, 1.35 * 9.0)),  # steps: fewer are better, and the first are far off
        ([10.0, 60.0, 90.0], None),  # a return that grows
        ([-90.0, -20.0, -5.0], None),
        ([0.9, 0.5, 0.1], None),  # a share
    ],
)
def test_curves_show_what_was_learned_whatever_is_measured(outcome, cut, tmp_path):
    rows = "".join(f"{k},{value}\n" for k, value in enumerate(outcome))
    (tmp_path / "metrics.csv").write_text("steps,outcome\n" + rows)
    axes = Axes()
    draw_curves(axes, (str(tmp_path),))
    assert axes.lines == {tmp_path.name: outcome}
    assert axes.limits == cut


def test_curves_of_several_environments_are_drawn_apart(tmp_path):
    (tmp_path / "metrics.csv").write_text("steps,outcome,outcome/a:1,outcome/b:2\n1,2,3,1\n2,4,6,\n")
    axes = Axes()
    draw_curves(axes, (str(tmp_path),))
    assert axes.lines == {f"{tmp_path.name} a:1": [3.0, 6.0], f"{tmp_path.name} b:2": [1.0]}
