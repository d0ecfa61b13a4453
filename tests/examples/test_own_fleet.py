"""A fleet from tables of one's own: what is written is what muster reads, and what is learned beats `greedy`."""

from __future__ import annotations

import csv

import pytest

import muster
from examples import own_fleet
from muster.envs.fleet.city import load_trips

TRIPS = """time,from,to
2026-03-02 08:00:19,dock,mill
2026-03-02 09:00:00,dock,mill
2026-03-02 08:59:59,mill,dock
2026-03-03 08:10:00,mill,mill
2026-03-03 08:10:01,mill,dock
2026-03-04T08:30:00,dock,mill
"""
PLACES = "place,east,north\ndock,0,0\nmill,3,4\n"


def test_trips_of_the_hour_become_days_and_ways_become_legs(tmp_path):
    (tmp_path / "trips.csv").write_text(TRIPS)
    (tmp_path / "places.csv").write_text(PLACES)
    own_fleet.write_folder(tmp_path / "town", tmp_path / "trips.csv", tmp_path / "places.csv")
    found = load_trips(str(tmp_path / "town"))
    assert found.days == {"training": ("2026-03-02", "2026-03-03"), "validation": (), "test": ("2026-03-04",)}
    # The trip at nine and the one that stays in the mill are left out.
    assert [day.tolist() for day in found.requests["training"]] == [[[0, 0, 1], [59, 1, 0]], [[10, 1, 0]]]
    assert found.city.metres[0, 1] == 5000 * own_fleet.DETOUR
    assert found.city.minutes[0, 1] == 16
    assert found.city.fares[0, 1] == pytest.approx(2 + 0.0012 * 6500)


def test_a_place_that_is_not_in_the_table_is_named(tmp_path):
    (tmp_path / "trips.csv").write_text(TRIPS.replace("08:30:00,dock", "08:30:00,pier"))
    (tmp_path / "places.csv").write_text(PLACES)
    with pytest.raises(muster.InputError, match="'pier'"):
        own_fleet.write_folder(tmp_path / "town", tmp_path / "trips.csv", tmp_path / "places.csv")


def test_the_town_that_is_made_up_can_be_played(tmp_path):
    trips, places = own_fleet.make_up(tmp_path / "plain", days=9, mean=60)
    with places.open() as file:
        assert len(list(csv.DictReader(file))) == len(own_fleet.PLACES)
    own_fleet.write_folder(tmp_path, trips, places)
    compared = muster.compare(["greedy", "match", "hindsight"], own_fleet.env_string(tmp_path, 6) + ",set=test", "all")
    assert compared.evaluations[0].episodes == 3
    greedy, _, hindsight = (one.mean for one in compared.evaluations)
    assert 0 < greedy < hindsight


@pytest.mark.slow
def test_it_learns_to_beat_its_greedy_rule(tmp_path):
    """The claim of the docstring: an interval that excludes 0, on days that come after those it learned on."""
    found = own_fleet.main(tmp_path, minutes=1)
    for difference in found.differences[1:]:  # the run minus greedy, and minus match
        assert difference.ci95[0] > 0
