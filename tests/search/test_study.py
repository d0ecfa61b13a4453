"""Studies: shared by processes, killed at any moment, and the same trials all the same."""

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
from muster.search import study as study_module  # noqa: E402
from muster.search.space import StudySettings  # noqa: E402
from muster.search.study import JOURNAL, RUNGS, Study, best_of, folder_of, ranked  # noqa: E402

TOY = "tests.learning.toy:Pairing"
SPACE = {
    "learner": "es",
    "es": {
        "pairs": [1, 2],
        "sigma": {"low": 0.01, "high": 0.5, "log": True},
        "learning_rate": {"low": 0.01, "high": 0.2},
    },
}


def tiny(**more):
    run = {"log_every": 50, "es": {"episodes": 2}}
    settings = {"steps": 300, "trials": 3, "run": run} | more
    return StudySettings(env=("rescue:1x2",), space_name="tiny", space=SPACE, **settings)


def completed(folder, **more):
    study = Study.open(folder, tiny(**more))
    assert study.run()
    return study


def test_every_trial_is_a_run_and_is_judged_by_its_training_reward(tmp_path):
    study = completed(tmp_path)
    trials = study.trials()
    assert [trial.state for trial in trials] == ["done"] * 3
    for trial in trials:
        folder = tmp_path / trial.folder
        summary = json.loads((folder / "summary.json").read_text())
        assert trial.value == summary["best_training_reward"]
        run = stored_settings(folder)
        assert (run.es.sigma, run.es.pairs) == (trial.settings["es.sigma"], trial.settings["es.pairs"])
        assert (run.seed, run.steps, run.es.episodes) == (0, 300, 2)
    best = best_of(trials, 1)
    assert best is not None
    assert best.value == max(trial.value for trial in trials)
    assert Study.open(tmp_path, None).claim() is None


def test_random_trials_depend_on_seed_and_number_alone(tmp_path):
    """Not on the process, nor on what else was sampled."""
    one = Study.open(tmp_path / "one", tiny(trials=4))
    held = [one.claim() for _ in range(4)]
    sampled = [claim.values for claim in held]
    two = [Study.open(tmp_path / "two", tiny(trials=4)) for _ in range(2)]
    claims = [two[k % 2].claim() for k in range(4)]
    assert [claim.values for claim in claims] == sampled
    assert len({values["es.sigma"] for values in sampled}) == 4
    other = Study.open(tmp_path / "three", tiny(seed=1))
    held += [*claims, other.claim()]
    assert held[-1].values != sampled[0]
    for claim in held:
        claim.release()


def test_what_is_left_is_resumed_and_what_is_held_is_not(tmp_path):
    study = Study.open(tmp_path, tiny(trials=2))
    first, second = study.claim(), study.claim()
    other = Study.open(tmp_path, None)
    assert other.claim() is None
    first.release()
    again = other.claim()
    assert (again.number, again.resumed, again.values) == (first.number, True, first.values)
    assert other.claim() is None
    second.release()
    again.release()
    assert other.run()
    assert [trial.state for trial in other.trials()] == ["done", "done"]


def test_a_process_that_is_killed_loses_nothing(tmp_path):
    """Its trial goes on from the last checkpoint, and ends as one that was not disturbed."""
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.search.test_study import tiny\n"
        "from muster.search.study import Study\n"
        "run = {'log_every': 50, 'es': {'episodes': 2}}\n"
        "Study.open(Path(sys.argv[1]), tiny(trials=2, steps=200_000, run=run)).run(print)\n"
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
    assert (claim.number, claim.resumed) == (0, True)
    claim.release()
    assert study.trials()[0].state == "running"
    assert optuna.load_study(study_name="muster", storage=study.optuna._storage).trials[0].params == claim.values


def test_another_study_in_the_same_folder_is_refused(tmp_path):
    Study.open(tmp_path, tiny())
    with pytest.raises(InputError, match="another sampler: 'random', not 'tpe'"):
        Study.open(tmp_path, tiny(sampler="tpe"))
    assert Study.open(tmp_path, tiny(trials=9)).settings.trials == 3
    assert Study.open(tmp_path, None, trials=9).settings.trials == 9
    assert Study.open(tmp_path, None).settings.trials == 9
    with pytest.raises(InputError, match="holds no study"):
        Study.open(tmp_path / "none", None)


def test_a_trial_that_falls_behind_is_ended_and_still_a_run(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        optuna.trial.Trial, "should_prune", lambda trial: asked.append(trial.number) or trial.number == 1
    )
    study = completed(tmp_path, pruner="median", steps=2000)
    states = [trial.state for trial in study.trials()]
    assert states == ["done", "pruned", "done"]
    assert asked.count(0) <= RUNGS
    ended = study.trials()[1]
    assert ended.steps < 2000
    assert (tmp_path / ended.folder / "summary.json").exists()
    assert (tmp_path / ended.folder / "best.safetensors").exists()
    assert ranked(study.trials(), 1)[-1].number == 1


@pytest.mark.parametrize("sampler", ["random", "tpe"])
@pytest.mark.parametrize("pruner", ["none", "median", "hyperband"])
def test_every_sampler_works_with_every_pruner(sampler, pruner, tmp_path):
    study = Study.open(tmp_path, tiny(sampler=sampler, pruner=pruner, trials=13))
    for number in range(13):
        claim = study.claim()
        claim.trial.report(claim.values["es.sigma"], 1)
        claim.trial.should_prune()
        study.optuna.tell(claim.trial, claim.values["es.sigma"])
        claim.release()
        assert claim.number == number
    found = study.importances()
    assert set(found) == {"es.pairs", "es.sigma", "es.learning_rate"}
    assert max(found, key=found.get) == "es.sigma"


def test_a_trial_whose_numbers_run_away_is_noted_and_the_search_goes_on(tmp_path, monkeypatch):
    from muster.learning.optimiser import TrainingError

    def fail(settings, folder, resume, report):
        raise TrainingError("a score is not finite")

    monkeypatch.setattr(study_module, "run_training", fail)
    study = completed(tmp_path)
    assert [(trial.state, trial.why) for trial in study.trials()] == [("failed", "a score is not finite")] * 3
    assert best_of(study.trials(), 1) is None


def test_a_trial_that_its_environment_refuses_is_noted_and_the_search_goes_on(tmp_path):
    """Of settings that are right one by one, and that no model can be made with."""
    space = SPACE | {"form": ["centred", "plain"]}
    study = Study.open(tmp_path, replace(tiny(trials=6), space=space, env=(TOY,)))
    assert study.run()
    found = {trial.settings["form"]: (trial.state, trial.why) for trial in study.trials()}
    assert found["plain"] == ("done", "")
    assert found["centred"] == (
        "failed",
        f"{TOY} names no positions to measure from the middle; leave out --form centred",
    )


def test_a_study_of_which_no_trial_can_be_made_is_refused_before_anything_is_sampled(tmp_path):
    run = {"es": {"episodes": 2}, "form": "centred"}
    with pytest.raises(InputError, match="leave out --form centred"):
        Study.open(tmp_path / "study", replace(tiny(run=run), env=(TOY,)))
    assert not (tmp_path / "study").exists()


def test_a_disk_that_cannot_be_written_ends_the_search_and_no_trial(tmp_path, monkeypatch):
    def fail(settings, folder, resume, report):
        raise InputError("cannot write there: no space left on device")

    monkeypatch.setattr(study_module, "run_training", fail)
    study = Study.open(tmp_path, tiny())
    with pytest.raises(InputError, match="no space left"):
        study.run()
    assert [trial.state for trial in study.trials()] == ["running"]


@pytest.mark.parametrize("log_every", [50, 50_000])
def test_trials_can_be_judged_by_validation_episodes(log_every, tmp_path):
    """Of which fewer steps are better in search and rescue. The last update may be one to log anyway, or not."""
    run = {"es": {"episodes": 2}, "evaluate_episodes": 20, "log_every": log_every}
    study = completed(tmp_path, judge="validation", run=run)
    assert [trial.state for trial in study.trials()] == ["done"] * 3
    best = best_of(study.trials(), study.better)
    assert study.better == -1
    assert best is not None
    assert best.value == min(trial.value for trial in study.trials())
    assert study.optuna.best_trial.number == best.number
