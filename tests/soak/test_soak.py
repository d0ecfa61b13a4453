"""The campaign in short: a little of everything that `make soak` does at length."""

import signal

import pytest

from tests import fuzz
from tests.soak import cluster, faults, files, kills, memory, poison, solver
from tests.soak.__main__ import kills_in, of_kills


def test_damaged_files_are_refused(tmp_path):
    for kind, report in files.campaign(tmp_path, 150).items():
        assert report.bad == []
        assert report.counts["refused"] >= 20, kind
    for report in files.crafted_campaign(tmp_path).values():
        assert report.bad == []
        assert report.counts == {"refused": 4}


def test_random_instances_get_answers_that_other_code_agrees_with():
    assert solver.campaign(400).bad == []


def test_the_checks_of_answers_find_wrong_ones():
    call = solver.make(0, 0) | {"method": "lp", "assign_all": False}
    call = {"scores": call["scores"], "method": "lp", "effort": "best", "assign_all": False}

    class Answer:
        assignment, objective, bound, status = (0,) * len(call["scores"]), 1e30, 1e30, "optimal"

    assert solver.complain(call, Answer)


def test_random_calls_reach_every_function_that_the_core_binds():
    with fuzz.counted() as calls:
        _, bad = fuzz.campaign(1500)
        for seed in range(1, 25):
            for room in ("rescue", "fleet", "battle", "pursuit"):
                fuzz.try_one(room, seed, 0)
    assert bad == []
    assert [name for name, count in calls.items() if not count] == []


def test_numbers_that_are_none_are_traced_to_their_environment():
    assert poison.campaign(2 * len(poison.FIELDS)) == []


@pytest.mark.parametrize("learner", ["es", "ppo"])
def test_training_needs_no_more_memory_after_many_updates(learner):
    assert memory.growth_of_training(learner, 100) < 6


def test_evaluation_needs_memory_for_outcomes_alone():
    assert memory.growth_of_evaluation(50_000) < 30


def test_a_closed_terminal_ends_a_run_that_saves_first(tmp_path):
    assert faults.told(signal.SIGHUP)(tmp_path / "run", "es") == ""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "learner"), [(signal.SIGTERM, "es, 2 workers"), (signal.SIGTERM, "ppo, 2 workers")])
def test_a_run_that_is_told_to_end_saves_and_leaves_no_worker_behind(number, learner, tmp_path):
    assert faults.told(number)(tmp_path / "run", learner) == ""


def test_ctrl_c_with_workers_saves_and_leaves_none_behind(tmp_path):
    assert faults.interrupted(tmp_path / "run", "es, 2 workers") == ""


@pytest.mark.slow
def test_a_run_behind_nohup_outlives_its_terminal(tmp_path):
    assert faults.hung_up_behind_nohup(tmp_path / "run", "es") == ""


def test_a_folder_that_is_removed_is_not_made_anew(tmp_path):
    assert faults.removed(tmp_path / "run", "es") == ""
    assert not (tmp_path / "run").exists()


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path):
    assert faults.full_disk(tmp_path / "run", "es") == ""


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "workers"), [("es", 1), ("ppo", 1), ("es", 2)])
def test_killed_runs_end_with_the_same_bits(learner, workers, tmp_path):
    report = kills.campaign(tmp_path, learner, 4, workers)
    assert report.bad == []


def test_kills_of_several_campaigns_are_summed_and_told_apart(monkeypatch):
    found = [kills.Report(kills=3, writing=2, resumed=1), kills.Report(kills=2, resumed=4)]
    asked = []
    monkeypatch.setattr(
        kills, "campaign", lambda folder, learner, count, *_, **more: asked.append(count) or found.pop()
    )
    first = f"| kill -9, evolution | {of_kills('es', 2, 0.0)[0]} | none |"
    assert kills_in(first) == ([2], kills.Report(kills=2, resumed=4))
    both, _ = of_kills("es", 5, 0.0, row=first)
    assert "5 kills (2 + 3 in 2 campaigns), 2 of them while a checkpoint was written; 5 runs came" in both
    assert kills_in(f"| kill -9, evolution | {both} | none |") == ([2, 3], kills.Report(kills=5, writing=2, resumed=5))
    assert kills_in(f"| kill -9, evolution | {both} | 1: other bits |") == ([], kills.Report())
    assert asked == [2, 3]


def test_a_worker_that_is_struck_twice_is_one_to_replace():
    report = cluster.Report(struck=[7, 8, 7], replaced=2, updates=1000)
    assert report.killed == 2
    assert str(report) == "3 kills in 1,000 updates: 2 workers replaced, 1 struck again before they were missed"
