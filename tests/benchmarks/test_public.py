"""The public problems: files and generators give what was published, and the report says what was measured."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from benchmarks import public, public_sets
from benchmarks.public_report import markdown
from muster.errors import InputError


@pytest.mark.parametrize(("kind", "low", "high"), [("c", 5, 25), ("d", 1, 100), ("e", 1, np.inf)])
def test_generated_types_are_those_published(kind, low, high):
    cost, use, capacity = public_sets.make_gap(kind, 5, 400, seed=0)
    assert cost.shape == use.shape == (400, 5)
    assert low <= use.min()
    assert use.max() <= high
    assert capacity == pytest.approx(0.8 * use.sum(axis=0) / 5, abs=1)
    # c: costs know nothing of uses; d and e: what uses little costs much.
    relation = np.corrcoef(cost.ravel(), use.ravel())[0, 1]
    assert abs(relation) < 0.1 if kind == "c" else relation < -0.4
    with pytest.raises(InputError, match="types c, d and e"):
        public_sets.make_gap("f", 5, 10, seed=0)


def test_a_file_is_read_by_machines_and_given_by_jobs(tmp_path):
    path = tmp_path / "c0203.txt.gz"
    with gzip.open(path, "wt") as file:
        file.write("2 3\n1 2 3\n4 5 6\n7 8 9\n10 11 12\n20 30\n")
    cost, use, capacity = public_sets.read_gap(path)
    assert cost.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert use.tolist() == [[7, 10], [8, 11], [9, 12]]
    assert capacity.tolist() == [20, 30]
    with gzip.open(path, "wt") as file:
        file.write("2 3\n1 2 3\n")
    with pytest.raises(InputError, match="should hold 16 numbers"):
        public_sets.read_gap(path)


def test_a_minimum_is_a_maximum_in_its_own_numbers():
    data = public_sets.make_gap("c", 3, 9, seed=2)
    by_sense = {one.sense: one for one in public_sets.both_senses("c0309", data, {"min": 5.0})}
    found = {sense: public.own(one, "exact", None) for sense, one in by_sense.items()}
    assert found["min"]["proven"]
    assert found["max"]["proven"]
    assert found["min"]["value"] < found["max"]["value"]
    assert found["min"]["bound"] == pytest.approx(found["min"]["value"])
    assert by_sense["min"].best_known == 5.0
    assert np.isnan(by_sense["max"].best_known)


def test_the_report_counts_proofs_and_answers_that_are_not_whole():
    one = next(public_sets.both_senses("c0309", public_sets.make_gap("c", 3, 9, seed=2), {}))
    rows = public.measure_gap([one], (0.2,), 0.3, notes := [])
    assert ("muster exact", 0.3) in [(entry["solver"], entry["limit"]) for entry in rows[0]["runs"]]
    assert {"muster fast", "muster best", "muster exact"} <= {entry["solver"] for entry in rows[0]["runs"]}
    assert all(entry["gap"] >= 0 for entry in rows[0]["runs"] if entry["gap"] is not None)
    rows[0]["runs"][0] |= {"value": None, "gap": None, "proven": False}
    machine = {"description": "m", "versions": {}, "date": "d", "load": 0.0}
    found = {
        "command": "python -m benchmarks public",
        "machine": machine,
        "notes": notes,
        "seconds": 1.0,
        "load_at_end": 0.0,
    }
    text = markdown(found | {"gap": rows, "small": [public.measure_small(5, 15)], "diversity": [], "plain": []})
    assert "| muster fast | 1 | 1 |  |  | 0 |" in text
    assert "| muster exact, 0.2 s | 1 | 0 | 0.000 % | 0.000 % | 1 |" in text
    assert "| 5x15 | 10 | 10 |" in text


def test_seconds_that_cannot_be_are_refused():
    with pytest.raises(InputError, match="positive numbers of seconds"):
        public.run(limits=(0.0,))
    with pytest.raises(InputError, match="proof must be a positive number of seconds"):
        public.run(proof=0.0)
