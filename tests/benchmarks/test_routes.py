"""The routing benchmark: instances as stated, answers taken over from records, targets held against results."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

from benchmarks import route_sets, routes
from benchmarks.route_report import markdown, targets
from muster.assign import Solver
from muster.errors import InputError


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(route_sets, "UNIFORM", {20: (2,), 200: (10,)})
    monkeypatch.setattr(route_sets, "STATIC", ((5, 10),))
    monkeypatch.setattr(route_sets, "PUBLISHED", {})
    monkeypatch.setattr(routes, "LIMITS", {"static": (0.01,), "uniform": (0.02,)})


def test_uniform_instances_are_those_of_the_seed():
    np.random.seed(3333)  # noqa: NPY002
    places = np.random.uniform(size=(100, 50, 2))  # noqa: NPY002
    found = next(instance for instance in route_sets.uniform(2) if instance.name == "1")
    assert found.follow[3, 7] == pytest.approx(np.linalg.norm(places[1, 4] - places[1, 8]))
    assert found.first[2, 7] == found.last[0, 7] == pytest.approx(np.linalg.norm(places[1, 0] - places[1, 8]))


def test_a_tour_goes_round_and_an_ambulance_does_not():
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    tour = route_sets.salesmen("", "", square, 1)
    assert -Solver("routes")(tour.problem).objective[0] == pytest.approx(4.0)
    assert next(route_sets.static(1)).problem.end_scores is None


def test_mtsplib_is_read_where_it_lies_and_left_out_where_not(tmp_path):
    assert list(route_sets.mtsplib(tmp_path)) == []
    (tmp_path / "eil51.csv").write_text("x,y\n0,0\n3,4\n-3,4\n")
    found = list(route_sets.mtsplib(tmp_path))
    assert [instance.name for instance in found] == [f"eil51 {m}" for m in (2, 3, 5, 7)]
    assert found[0].first.tolist() == [[5.0, 5.0]] * 2
    assert routes.published("eil51 3") == 159.6


def test_answers_of_the_peer_are_taken_over_from_the_record(small, tmp_path, capsys):
    record = tmp_path / "routes.json"
    peer = {"makespan": 9.0, "seconds": 60.0, "limit": 60.0, "version": "x"}
    known = [{"set": f"uniform {n}, {m}", "name": "0", "ours": [], "peer": peer} for n, m in ((20, 2), (200, 10))]
    still = {"set": "static 5x10", "name": "0", "ours": [], "peer": {**peer, "makespan": 99.0, "limit": 10.0}}
    record.write_text(json.dumps({"uniform": known, "static": [still]}))
    routes.run(True, instances=1, record=record)
    found = json.loads(capsys.readouterr().out)
    assert [row["peer"]["recorded"] for row in found["static"] + found["uniform"]] == [True] * 3
    assert "mTSPLib is left out" in found["notes"][0]
    assert [one["met"] for one in found["targets"]] == [True, True]
    assert json.loads(record.read_text()) == found
    assert record.with_suffix(".md").read_text() == markdown(found) + "\n"


def test_a_promise_that_is_not_kept_is_shown():
    def rows(longest):
        ours = [{"limit": 1.0, "makespan": 2.0, "seconds": 1.0, "bound": 1.0}]
        return [{"set": "uniform 50, 5", "name": "0", "ours": ours, "peer": {"makespan": longest, "limit": 60.0}}]

    assert targets({"static": [], "uniform": rows(1.97)})[0]["met"]
    assert not targets({"static": [], "uniform": rows(1.95)})[0]["met"]


@pytest.mark.skipif(importlib.util.find_spec("ortools") is None, reason="OR-Tools is not installed")
def test_the_peer_solves_the_same_problem():
    """From a process of its own, and no better than the best there is."""
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    tour = routes.ask_peer(route_sets.salesmen("", "", square, 1), 0.1)
    assert tour["makespan"] == pytest.approx(4.0)
    start = next(route_sets.static(1))._replace(first=np.array([[2.0, 9.0]]), follow=np.array([[0.0, 3.0], [3.0, 0.0]]))
    assert routes.ask_peer(start, 0.1)["makespan"] == pytest.approx(5.0)


@pytest.mark.parametrize("given", [{"instances": 0}, {"instances": 101}, {"peer_seconds": -1.0}])
def test_numbers_that_cannot_be_are_refused(given):
    with pytest.raises(InputError, match=next(iter(given))):
        routes.run(True, **given)


def test_a_file_that_is_no_record_is_refused(tmp_path):
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(InputError, match="no record of python -m benchmarks routes"):
        routes.known_answers(tmp_path / "other.json")
