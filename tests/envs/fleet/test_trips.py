"""What a folder of trips must be: everything else is refused with a file, a line and a sentence."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from muster.envs.fleet.city import load_trips
from muster.errors import InputError

from .conftest import HEAD, Town, write_town

BROKEN = {
    "zones.csv has no column row": ("zones.csv", "zone,column\n0,0\n"),
    r"zones.csv, line 3: zone '0' is there already": ("zones.csv", "zone,column,row\n0,0,0\n0,2,0\n"),
    r"zones.csv, line 2: column is an integer, got 'x'": ("zones.csv", "zone,column,row\n0,x,0\n"),
    r"zones.csv has no zones": ("zones.csv", "zone,column,row\n"),
    r"legs.csv, line 2: metres is a number that is not negative, got '-4'": (
        "legs.csv",
        "from,to,metres,minutes,fare\n0,1,-4,2,2\n",
    ),
    r"legs.csv, line 2: to is zone '9', which zones.csv does not have": (
        "legs.csv",
        "from,to,metres,minutes,fare\n0,9,400,2,2\n",
    ),
    r"legs.csv has no leg from zone 0 to zone 2": ("legs.csv", "from,to,metres,minutes,fare\n0,1,400,2,2\n"),
    r"legs.csv, line 2: minutes is missing": ("legs.csv", "from,to,metres,minutes,fare\n0,1,400,,2\n"),
    r"trips.csv.gz, line 2: set is one of training, validation, test, got 'spare'": (
        "trips.csv.gz",
        HEAD + "d,spare,0,0,1\n",
    ),
    r"trips.csv.gz, line 3: d is a test day already": ("trips.csv.gz", HEAD + "d,test,0,0,1\nd,training,1,0,1\n"),
    r"trips.csv.gz, line 2: second counts from the start of the hour": ("trips.csv.gz", HEAD + "d,test,3600,0,1\n"),
    r"trips.csv.gz, line 2: pickup is zone '7'": ("trips.csv.gz", HEAD + "d,test,0,7,1\n"),
    r"trips.csv.gz, line 2: pickup and dropoff are both zone 1": ("trips.csv.gz", HEAD + "d,test,0,1,1\n"),
    r"trips.csv.gz has no trips": ("trips.csv.gz", HEAD),
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_what_cannot_be_used_is_named_with_its_line(tmp_path: Path, sentence: str) -> None:
    write_town(tmp_path, [(0, 0, 1)])
    name, text = BROKEN[sentence]
    if name.endswith(".gz"):
        with gzip.open(tmp_path / name, "wt") as file:
            file.write(text)
    else:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=sentence):
        load_trips(str(tmp_path))


def test_a_missing_folder_and_a_missing_file_are_told_apart(tmp_path: Path, town: Town) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        load_trips(str(tmp_path / "nowhere"))
    folder = town([(0, 0, 1)])
    (tmp_path / "legs.csv").unlink()
    with pytest.raises(InputError, match=r"lacks legs\.csv"):
        load_trips(folder)


def test_a_file_that_is_no_gzip_is_a_sentence(tmp_path: Path, town: Town) -> None:
    folder = town([(0, 0, 1)])
    (tmp_path / "trips.csv.gz").write_text("not compressed")
    with pytest.raises(InputError, match="cannot be read"):
        load_trips(folder)


def test_days_are_in_order_and_so_are_their_requests(tmp_path: Path) -> None:
    folder = write_town(tmp_path, [(70, 1, 2), (5, 0, 1)], [(0, 2, 0)])
    trips = load_trips(folder)
    assert trips.days["test"] == ("2020-01-01", "2020-01-02")
    assert trips.requests["test"][0].tolist() == [[0, 0, 1], [1, 1, 2]]
    assert trips.requests["training"] == ()
    # With no training days, rates come from all there are.
    assert trips.city.hourly.sum() == pytest.approx(1.5)
    assert np.isfinite(trips.city.profile).all()
