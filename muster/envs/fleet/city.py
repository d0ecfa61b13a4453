"""Cities of a fleet: zones, the legs between them, and expected requests from zone to zone.

The built-in cities are in cities/*.json: numbers fitted to the training days of the trips that Enders, Harrison, Pavone
and Schiffer published (L4DC 2023, MIT licence), not the trips themselves. `python -m paper.fleet.fit` fits them again.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats, Ints
from muster.errors import InputError

Zones = NDArray[np.int16]

HOUR = 60
"""Minutes of recorded trips and of request rates."""
SETS = ("training", "validation", "test")
BUSYNESS_LEVELS = 20
_COLUMNS = {
    "zones.csv": ("zone", "column", "row"),
    "legs.csv": ("from", "to", "metres", "minutes", "fare"),
    "trips.csv.gz": ("date", "set", "second", "pickup", "dropoff"),
}


@dataclass(frozen=True, slots=True)
class City:
    """A city of Z zones."""

    name: str
    places: Floats
    """[Z, 2] x and y of the zones' hexagons; neighbours are 1 apart."""
    metres: Floats
    """[Z, Z] length of the shortest way; 0 from a zone to itself."""
    minutes: Ints
    """[Z, Z] driving time."""
    fares: Floats
    """[Z, Z] fare of a request."""
    hourly: Floats
    """[Z, Z] expected requests from zone to zone in the whole hour, for a fleet of `vehicles`."""
    profile: Floats
    """[60] share of the requests in each minute, times 60."""
    busyness: Floats
    """Factors of the mean number of requests on equally likely kinds of days."""
    vehicles: int
    """Fleet size that `hourly` and `limit` are for."""
    limit: int
    """Most requests in a minute."""

    @property
    def n_zones(self) -> int:
        """Z"""
        return len(self.places)

    def expected(self, scale: float) -> Floats:
        """[60, Z] expected requests from each zone in each minute."""
        return np.outer(self.profile, self.hourly.sum(1)) * (scale / HOUR)


@lru_cache(maxsize=4)
def built_in(name: str) -> City:
    """The built-in city of that name."""
    data = json.loads(files("muster.envs.fleet").joinpath(f"cities/{name}.json").read_text(encoding="utf-8"))
    cells = np.array(data["zones"], np.int64)
    hops = shortest_hops(cells)
    metres: Floats = hops.astype(np.float64) * data["hop_metres"]
    return City(
        name=name,
        places=places_of(cells),
        metres=metres,
        minutes=hops * int(data["hop_minutes"]),
        fares=np.round(metres * data["fare_per_metre"], 2),
        hourly=np.array(data["hourly"], np.float64),
        profile=np.array(data["profile"], np.float64),
        busyness=np.array(data["busyness"], np.float64),
        vehicles=int(data["vehicles"]),
        limit=int(data["limit"]),
    )


def places_of(cells: Ints) -> Floats:
    """[Z, 2] centre of each hexagon, 1 from its neighbours': columns count half hexagons, rows go up."""
    return np.stack([cells[:, 0] / 2, cells[:, 1] * np.sqrt(0.75)], axis=1)


def shortest_hops(cells: Ints) -> Ints:
    """[Z, Z] least number of steps from zone to zone through neighbouring zones."""
    across = np.abs(cells[:, None, 0] - cells[None, :, 0])
    up = np.abs(cells[:, None, 1] - cells[None, :, 1])
    beside = ((up == 0) & (across == 2)) | ((up == 1) & (across == 1))
    far = len(cells)
    hops: Ints = np.where(np.eye(len(cells), dtype=np.bool_), 0, np.where(beside, 1, far)).astype(np.int64)
    for middle in range(len(cells)):
        hops = np.minimum(hops, hops[:, middle : middle + 1] + hops[middle : middle + 1])
    return hops


@dataclass(frozen=True, slots=True)
class Trips:
    """Recorded requests, by day and in order of time."""

    city: City
    """Zones and legs of the folder, with rates estimated from its training days."""
    days: dict[str, tuple[str, ...]]
    """The dates of each set."""
    requests: dict[str, tuple[Ints, ...]]
    """For each day of a set, [R, 3]: minute, pick-up zone, drop-off zone."""


def load_trips(folder: str) -> Trips:
    """The trips of a folder, cached until its files change; raises InputError with file and line of a mistake."""
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"trips names a folder with {', '.join(_COLUMNS)}; there is no folder {folder!r}")
    missing = [name for name in _COLUMNS if not (root / name).is_file()]
    if missing:
        raise InputError(f"{folder!r} lacks {' and '.join(missing)}; a folder of trips has {', '.join(_COLUMNS)}")
    return _load(folder, tuple((root / name).stat().st_mtime_ns for name in _COLUMNS))


@lru_cache(maxsize=4)
def _load(folder: str, changed: tuple[int, ...]) -> Trips:
    del changed
    root = Path(folder)
    numbers, cells = _read_zones(root)
    metres, minutes, fares = _read_legs(root, numbers)
    by_day = _read_trips(root, numbers, minutes)
    days = {name: tuple(sorted(date for date, kind in by_day if kind == name)) for name in SETS}
    requests = {name: tuple(by_day[date, name] for date in dates) for name, dates in days.items()}
    hourly, profile, busyness = estimate_rates(requests["training"] or sum(requests.values(), ()), len(cells))
    city = City(
        name=folder,
        places=places_of(cells),
        metres=metres,
        minutes=minutes,
        fares=fares,
        hourly=hourly,
        profile=profile,
        busyness=busyness,
        vehicles=0,
        limit=max(int(np.bincount(day[:, 0]).max()) for days in requests.values() for day in days),
    )
    return Trips(city, days, requests)


def estimate_rates(days: tuple[Ints, ...], n_zones: int) -> tuple[Floats, Floats, Floats]:
    """`hourly` [Z, Z], `profile` [60] and `busyness` [20] of a City, estimated from recorded days.

    The profile is smoothed by a cubic: a trend over the hour is real, a single minute that stands out is not.
    """
    together = np.concatenate(days)
    hourly = np.zeros((n_zones, n_zones))
    np.add.at(hourly, (together[:, 1], together[:, 2]), 1.0 / len(days))
    counts = np.bincount(together[:, 0], minlength=HOUR).astype(np.float64)
    middle = (np.arange(HOUR) - (HOUR - 1) / 2) / HOUR
    profile = np.maximum(np.polyval(np.polyfit(middle, counts / counts.mean(), 3), middle), 0.01)
    totals = np.array([len(day) for day in days], np.float64)
    levels = np.quantile(totals / totals.mean(), (np.arange(BUSYNESS_LEVELS) + 0.5) / BUSYNESS_LEVELS)
    return hourly, profile / profile.mean(), levels / levels.mean()


def slots_of(days: tuple[Ints, ...], limit: int, n_minutes: int) -> tuple[Zones, Zones]:
    """Pick-up and drop-off zones [days, minutes, limit] of the first requests of each minute, then -1."""
    shape = (len(days), n_minutes, limit)
    pickups, dropoffs = np.full(shape, -1, np.int16), np.full(shape, -1, np.int16)
    for d, day in enumerate(days):
        for minute in range(n_minutes):
            first = day[day[:, 0] == minute][:limit]
            pickups[d, minute, : len(first)] = first[:, 1]
            dropoffs[d, minute, : len(first)] = first[:, 2]
    return pickups, dropoffs


def _read_zones(root: Path) -> tuple[dict[str, int], Ints]:
    numbers: dict[str, int] = {}
    cells = []
    for where, row in _rows(root, "zones.csv"):
        if row["zone"] in numbers:
            raise InputError(f"{where}: zone {row['zone']!r} is there already")
        numbers[row["zone"]] = len(numbers)
        cells.append([_integer(where, row, name, signed=True) for name in ("column", "row")])
    if not cells:
        raise InputError(f"{root / 'zones.csv'} has no zones")
    return numbers, np.array(cells, np.int64)


def _read_legs(root: Path, numbers: dict[str, int]) -> tuple[Floats, Ints, Floats]:
    size = (len(numbers), len(numbers))
    metres, fares = np.zeros(size), np.zeros(size)
    minutes: Ints = np.where(np.eye(len(numbers), dtype=np.bool_), 0, -1).astype(np.int64)
    for where, row in _rows(root, "legs.csv"):
        way = _zone(where, row, "from", numbers), _zone(where, row, "to", numbers)
        metres[way] = _number(where, row, "metres")
        minutes[way] = _integer(where, row, "minutes")
        fares[way] = _number(where, row, "fare")
        if minutes[way] > HOUR * 24:
            raise InputError(f"{where}: a leg takes less than a day, got {minutes[way]} minutes")
    if (minutes < 0).any():
        names = list(numbers)
        start, end = np.argwhere(minutes < 0)[0]
        raise InputError(f"{root / 'legs.csv'} has no leg from zone {names[start]} to zone {names[end]}")
    return metres, minutes, fares


def _read_trips(root: Path, numbers: dict[str, int], minutes: Ints) -> dict[tuple[str, str], Ints]:
    requests: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    sets: dict[str, str] = {}
    for where, row in _rows(root, "trips.csv.gz"):
        if row["set"] not in SETS:
            raise InputError(f"{where}: set is one of {', '.join(SETS)}, got {row['set']!r}")
        if sets.setdefault(row["date"], row["set"]) != row["set"]:
            raise InputError(f"{where}: {row['date']} is a {sets[row['date']]} day already, not a {row['set']} one")
        second = _integer(where, row, "second")
        if second >= 60 * HOUR:
            raise InputError(f"{where}: second counts from the start of the hour, 0 to 3599, got {second}")
        way = _zone(where, row, "pickup", numbers), _zone(where, row, "dropoff", numbers)
        if way[0] == way[1] and minutes[way] == 0:
            raise InputError(f"{where}: pickup and dropoff are both zone {row['pickup']}, and legs.csv has no such leg")
        requests.setdefault((row["date"], row["set"]), []).append((second, *way))
    if not requests:
        raise InputError(f"{root / 'trips.csv.gz'} has no trips")
    days = {}
    for key, trips in requests.items():
        # Sorted by second alone: requests of one second stay in the order of the file.
        day = np.array(sorted(trips, key=lambda trip: trip[0]), np.int64)
        day[:, 0] //= 60
        days[key] = day
    return days


def _rows(root: Path, name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """("FILE, line n", row as a dict) of each line of a CSV file."""
    path = root / name
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            lacking = [column for column in _COLUMNS[name] if column not in (reader.fieldnames or ())]
            if lacking:
                raise InputError(f"{path} has no column {', '.join(lacking)}; its first line names the columns")
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                if any(not row[column] for column in _COLUMNS[name]):
                    raise InputError(f"{where}: {', '.join(c for c in _COLUMNS[name] if not row[c])} is missing")
                yield where, row
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as problem:
        raise InputError(f"{path} cannot be read: {problem}") from None


def _number(where: str, row: dict[str, str], column: str) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"{where}: {column} is a number that is not negative, got {row[column]!r}")
    return value


def _integer(where: str, row: dict[str, str], column: str, signed: bool = False) -> int:
    digits = row[column].removeprefix("-") if signed else row[column]
    if not (digits.isdecimal() and len(digits) < 10):
        kind = "an integer" if signed else "an integer that is not negative"
        raise InputError(f"{where}: {column} is {kind}, got {row[column]!r}")
    return int(row[column])


def _zone(where: str, row: dict[str, str], column: str, numbers: dict[str, int]) -> int:
    if row[column] not in numbers:
        raise InputError(f"{where}: {column} is zone {row[column]!r}, which zones.csv does not have")
    return numbers[row[column]]
