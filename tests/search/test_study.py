"""Studies: shared by processes, killed at any moment, and the same draws all the same."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

optuna = pytest.importorskip("optuna")

from muster.errors import InputError  # noqa: E402
from muster.learning.run import stored_settings  # noqa: E402
from muster.search.drawing import RUNGS  # noqa: E402
from muster.search.journal import JOURNAL  # noqa: E402
from muster.search.playing import play_draws  # noqa: E402
from muster.search.results import best_of, folder_of, importances, ranked  # noqa: E402
from muster.search.settings import StudySettings  # noqa: E402
from muster.search.study import Study  # noqa: E402

SPACE = {
    "learner": "es",
    "es": {"pairs": [1, 2], "sigma": {"low": 0.01, "high": 0.5, "log": True}, "rate": {"low": 0.01, "high": 0.2}},
}


def tiny(**more):
    run = {"log_every": 50, "es": {"episodes": 2}}
    settings = {"steps": 300, "draws": 3, "run": run} | more
    return StudySettings(env=("rescue:1x2",), space_name="tiny", space=SPACE, **settings)


def played(folder, **more):
    study = Study.open(folder, tiny(**more))
    assert play_draws(study)
    return study


def test_every_draw_is_a_run_and_is_judged_by_its_training_reward(tmp_path):
    study = played(tmp_path)
    draws = study.draws()
    assert [draw.state for draw in draws] == ["done"] * 3
    for draw in draws:
        folder = tmp_path / draw.folder
        summary = json.loads((folder / "summary.json").read_text())
        assert draw.value == summary["best_training_reward"]
        run = stored_settings(folder)
        assert (run.es.sigma, run.es.pairs) == (draw.settings["es.sigma"], draw.settings["es.pairs"])
        assert (run.seed, run.steps, run.es.episodes) == (0, 300, 2)
    best = best_of(draws, 1)
    assert best is not None
    assert best.value == max(draw.value for draw in draws)
    assert Study.open(tmp_path, None).claim() is None


def test_random_draws_depend_on_seed_and_number_alone(tmp_path):
    """Not on who draws, nor on what else was drawn."""
    one = Study.open(tmp_path / "one", tiny(draws=4))
    held = [one.claim() for _ in range(4)]
    drawn = [claim.values for claim in held]
    two = [Study.open(tmp_path / "two", tiny(draws=4)) for _ in range(2)]
    claims = [two[k % 2].claim() for k in range(4)]
    assert [claim.values for claim in claims] == drawn
    assert len({values["es.sigma"] for values in drawn}) == 4
    other = Study.open(tmp_path / "three", tiny(seed=1))
    held += [*claims, other.claim()]
    assert held[-1].values != drawn[0]
    for claim in held:
        claim.let_go()


def test_what_is_left_is_taken_up_and_what_is_held_is_not(tmp_path):
    study = Study.open(tmp_path, tiny(draws=2))
    first, second = study.claim(), study.claim()
    other = Study.open(tmp_path, None)
    assert other.claim() is None
    first.let_go()
    again = other.claim()
    assert (again.number, again.taken_up, again.values) == (first.number, True, first.values)
    assert other.claim() is None
    second.let_go()
    again.let_go()
    assert play_draws(other)
    assert [draw.state for draw in other.draws()] == ["done", "done"]


def test_a_process_that_is_killed_loses_nothing(tmp_path):
    """Its draw goes on from the last checkpoint, and ends as one that nobody disturbed."""
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.search.test_study import tiny\n"
        "from muster.search.study import Study; from muster.search.playing import play_draws\n"
        "run = {'log_every': 50, 'checkpoint_every': 50, 'es': {'episodes': 2}}\n"
        "play_draws(Study.open(Path(sys.argv[1]), tiny(draws=2, steps=200_000, run=run)), print)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    checkpoint = tmp_path / folder_of(0) / "checkpoint.safetensors"
    until = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert checkpoint.exists()
    with (tmp_path / JOURNAL).open("ab") as journal:
        journal.write(b'{"op_code":')  # a line that the system never finished
    study = Study.open(tmp_path, None)
    claim = study.claim()
    assert (claim.number, claim.taken_up) == (0, True)
    claim.let_go()
    assert study.draws()[0].state == "running"
    assert optuna.load_study(study_name="muster", storage=study.optuna._storage).trials[0].params == claim.values


def test_another_study_in_the_same_folder_is_refused(tmp_path):
    Study.open(tmp_path, tiny())
    with pytest.raises(InputError, match="another sampler: 'random', not 'tpe'"):
        Study.open(tmp_path, tiny(sampler="tpe"))
    assert Study.open(tmp_path, tiny(draws=9)).settings.draws == 3
    assert Study.open(tmp_path, None, draws=9).settings.draws == 9
    assert Study.open(tmp_path, None).settings.draws == 9
    with pytest.raises(InputError, match="holds no study"):
        Study.open(tmp_path / "none", None)


def test_points_to_try_first_are_tried_first_and_once(tmp_path):
    study = Study.open(tmp_path, tiny())
    for _ in range(2):
        study.enqueue({"es.sigma": 0.07, "es.rate": 0.03})
    held = [study.claim(), study.claim()]
    assert [claim.values["es.sigma"] == 0.07 for claim in held] == [True, False]
    for claim in held:
        claim.let_go()
    with pytest.raises(InputError, match=r"from 0\.01 to 0\.5"):
        study.enqueue({"es.sigma": 0.9})


def test_a_draw_that_falls_behind_is_ended_and_still_a_run(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        optuna.trial.Trial, "should_prune", lambda trial: asked.append(trial.number) or trial.number == 1
    )
    study = played(tmp_path, pruner="median", steps=2000)
    states = [draw.state for draw in study.draws()]
    assert states == ["done", "pruned", "done"]
    assert asked.count(0) <= RUNGS
    ended = study.draws()[1]
    assert ended.steps < 2000
    assert (tmp_path / ended.folder / "summary.json").exists()
    assert (tmp_path / ended.folder / "best.safetensors").exists()
    assert ranked(study.draws(), 1)[-1].number == 1


@pytest.mark.parametrize("sampler", ["random", "tpe"])
@pytest.mark.parametrize("pruner", ["none", "median", "hyperband"])
def test_every_sampler_works_with_every_pruner(sampler, pruner, tmp_path):
    study = Study.open(tmp_path, tiny(sampler=sampler, pruner=pruner, draws=13))
    for number in range(13):
        claim = study.claim()
        claim.trial.report(claim.values["es.sigma"], 1)
        claim.trial.should_prune()
        study.optuna.tell(claim.trial, claim.values["es.sigma"])
        claim.let_go()
        assert claim.number == number
    found = importances(study.optuna)
    assert set(found) == {"es.pairs", "es.sigma", "es.rate"}
    assert max(found, key=found.get) == "es.sigma"


def test_a_draw_whose_numbers_run_away_is_noted_and_the_search_goes_on(tmp_path, monkeypatch):
    from muster.learning.rollouts import TrainingError
    from muster.search import playing

    def fail(settings, folder, resume, report):
        raise TrainingError("a score is not finite")

    monkeypatch.setattr(playing, "run_training", fail)
    study = played(tmp_path)
    assert [(draw.state, draw.why) for draw in study.draws()] == [("failed", "a score is not finite")] * 3
    assert best_of(study.draws(), 1) is None


def test_a_draw_that_its_world_refuses_is_noted_and_the_search_goes_on(tmp_path):
    """Of settings that are right one by one, and that no model can be made with."""
    space = SPACE | {"pair_scale": ["fade", "none"]}
    study = Study.open(tmp_path, replace(tiny(draws=6), space=space))
    assert play_draws(study)
    found = {draw.settings["pair_scale"]: (draw.state, draw.why) for draw in study.draws()}
    assert found["none"] == ("done", "")
    assert found["fade"] == ("failed", "a g that fades goes by the environment's distances: add --form local")


def test_a_study_of_which_no_draw_can_be_made_is_refused_before_anything_is_drawn(tmp_path):
    run = {"es": {"episodes": 2}, "pair_scale": "fade"}
    with pytest.raises(InputError, match="add --form local"):
        Study.open(tmp_path / "study", tiny(run=run))
    assert not (tmp_path / "study").exists()


def test_a_disk_that_cannot_be_written_ends_the_search_and_no_draw(tmp_path, monkeypatch):
    from muster.search import playing

    def fail(settings, folder, resume, report):
        raise InputError("cannot write there: no space left on device")

    monkeypatch.setattr(playing, "run_training", fail)
    study = Study.open(tmp_path, tiny())
    with pytest.raises(InputError, match="no space left"):
        play_draws(study)
    assert [draw.state for draw in study.draws()] == ["running"]


@pytest.mark.parametrize("log_every", [50, 50_000])
def test_draws_can_be_judged_by_validation_episodes(log_every, tmp_path):
    """Of which fewer steps are better in search and rescue. The last update may be one to log anyway, or not."""
    run = {"es": {"episodes": 2}, "evaluate_episodes": 20, "log_every": log_every}
    study = played(tmp_path, judge="validation", run=run)
    assert [draw.state for draw in study.draws()] == ["done"] * 3
    best = best_of(study.draws(), study.better)
    assert study.better == -1
    assert best is not None
    assert best.value == min(draw.value for draw in study.draws())
    assert study.optuna.best_trial.number == best.number
