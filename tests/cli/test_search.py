"""muster search and muster plot search, as a user calls them."""

import json
import tomllib

import pytest

pytest.importorskip("optuna")

from muster.cli.main import main
from muster.cli.search import settings_in
from muster.search.space import setting_hints

SPACE = 'learner = "es"\n[es]\npairs = [1, 2]\nsigma = {low = 0.01, high = 0.5, log = true}\n'
SHORT = ["--steps", "200", "--log-every", "50", "--es.episodes", "2"]


@pytest.fixture
def space(tmp_path):
    (tmp_path / "space.toml").write_text(SPACE)
    return str(tmp_path / "space.toml")


def refused(capsys, *arguments) -> str:
    with pytest.raises(SystemExit) as left:
        main(["search", *arguments])
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert "Traceback" not in said
    return said


def test_a_search_ends_in_settings_that_train_takes(tmp_path, space, capsys):
    study, best = str(tmp_path / "study"), tmp_path / "best.toml"
    flags = ["--trials", "2", "--space", space, "--study", study, "--best", str(best), *SHORT]
    main(["search", "rescue:1x2", *flags, "--json"])
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["done"], found["trials"], found["env"]) == (2, 2, ["rescue:1x2"])
    assert found["best"] == found["results"][0]
    assert "no test episode is looked at" in said.err
    written = tomllib.loads(best.read_text())
    assert written["es"]["sigma"] == found["best"]["settings"]["es.sigma"]
    assert written["es"]["episodes"] == 2
    assert not {"steps", "seed", "minutes", "log_every"} & set(written)
    main(["train", "--config", str(best), "--steps", "100", "--out", str(tmp_path / "run")])
    # More trials on the same study: its settings need not be said again.
    main(["search", "--study", study, "--trials", "3"])
    assert "3 of 3 trials" in capsys.readouterr().out
    main(["search", "--study", study, "--show", "--json"])
    assert len(json.loads(capsys.readouterr().out)["results"]) == 3
    main(["plot", "search", study, "--out", str(tmp_path / "study.png")])
    assert (tmp_path / "study.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name the environment to search on"),
        (["--study", "nowhere"], "holds no study"),
        (["--study", "nowhere", "--sampler", "tpe"], "--sampler says what a new study is"),
        (["--study", "nowhere", "--ppo.discount", "0.9"], "--ppo.discount says what a new study is"),
        (["rescue:2x4", "--space", "papr"], "did you mean 'paper'"),
        (["rescue:2x4", "--space", "none.toml"], "cannot read none.toml"),
        (["rescue:2x4", "--learner", "es", "--space", "paper"], "use another --space"),
        (["rescue:2x4", "--trials", "0"], "trials must be at least 1"),
        (["rescue:2x4", "--minutes", "1", "--steps", "9"], "not both"),
        (["rescue:2x4", "--inference", "quda"], "did you mean 'quad'"),
        (["rescu:2x4", "--trials", "1"], "did you mean 'rescue'"),
    ],
)
def test_mistakes_get_a_sentence(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refused(capsys, *arguments)


def test_a_picture_needs_trials(tmp_path, capsys, space):
    with pytest.raises(SystemExit):
        main(["plot", "search", str(tmp_path), "--out", str(tmp_path / "x.png")])
    assert "holds no study" in capsys.readouterr().err
    assert not (tmp_path / "x.png").exists()


def test_what_flags_name_is_known_however_they_are_written():
    said = [
        "rescue:2x4",
        "--ppo.sigma=0.3",
        "--no-prior",
        "--ppo.learning_rate",
        "1e-3",
        "--from",
        "x",
        "--trials",
        "3",
    ]
    assert settings_in(said) == {"ppo.sigma", "prior", "ppo.learning_rate", "from_policy"}
    for name in setting_hints():
        assert settings_in([f"--{name.replace('_', '-')}"]) == {name}
