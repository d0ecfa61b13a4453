"""A fleet from your own tables of trips (time, from, to) and places (east, north). A complete run of three minutes:

    python examples/own_fleet.py town

writes example tables to town/plain, converts them to the three files that muster reads, learns for a minute on the
first two thirds of the days, and compares on the rest. With your own tables, step by step:

    python examples/own_fleet.py town --trips trips.csv --places places.csv --minutes 0
    muster train fleet:12,trips=town,cost=0.0006 --learner es --inference lp --minutes 1 --out town/run
    muster compare greedy match town/run fleet:12,trips=town,cost=0.0006,set=test --episodes all

In the example town a minute of learning with 12 vehicles gave 209.9 and 209.8 per morning (`--seed` 0, 1) against 179.5
of `greedy` (+30.3, 95 %: +26.6 to +34.0, and +30.2, +26.5 to +33.9) and 180.7 of `match`, on 100 days after those it
learned on.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import tyro

import muster

HOUR = 8
"""The hour of the trips that are used, from 8 to 9 in the morning; one decision a minute."""
SPEED = 400.0
"""Metres per minute, with lights and turns."""
DETOUR = 1.3
"""Length of streets relative to the straight line."""
FARE, FARE_A_METRE = 2.0, 0.0012

PLACES = {  # name: kilometres east and north
    "harbour": (0.0, 0.0),
    "station": (1.5, 0.5),
    "market": (1.0, 1.5),
    "hospital": (2.5, 1.5),
    "campus": (2.0, 3.0),
    "hills": (0.0, 3.5),
    "lakeside": (4.0, 0.5),
    "north": (3.5, 4.0),
    "airport": (6.0, 3.0),
}
LEAVING = np.array([3, 6, 2, 1, 1, 6, 5, 6, 1.0])
GOING = np.array([2, 5, 6, 4, 6, 1, 1, 1, 3.0])


def main(
    folder: tyro.conf.Positional[Path],
    trips: Path | None = None,
    places: Path | None = None,
    vehicles: int = 12,
    minutes: float = 1.0,
    seed: int = 0,
) -> muster.Comparison | None:
    """Write the files for muster to `folder`; then, unless `minutes` is 0, learn and compare on the last days."""
    if trips is None or places is None:
        trips, places = make_up(folder / "plain")
    write_folder(folder, trips, places)
    if not minutes:
        return None
    env, run = env_string(folder, vehicles), folder / "run"
    muster.train(env, learner="es", inference="lp", minutes=minutes, seed=seed, out=run)
    return muster.compare(["greedy", "match", str(run)], f"{env},set=test", "all")


def env_string(folder: Path, vehicles: int) -> str:
    """The environment string of a folder's training days, with the cost of a metre in this town."""
    return f"fleet:{vehicles},trips={folder},cost=0.0006"


def make_up(folder: Path, days: int = 300, mean: float = 150) -> tuple[Path, Path]:
    """Write example tables of trips and places: people go to work, to school and to the airport."""
    rng = np.random.default_rng(0)
    chances = np.outer(LEAVING, GOING) * (1 - np.eye(len(PLACES)))
    names = list(PLACES)
    rows = []
    for day in range(days):
        start = datetime(2026, 1, 5, HOUR) + timedelta(days=day)
        for second in np.sort(rng.integers(0, 3600, rng.poisson(mean * rng.uniform(0.8, 1.2)))).tolist():
            way = rng.choice(chances.size, p=(chances / chances.sum()).ravel())
            rows.append([start + timedelta(seconds=second), names[way // len(names)], names[way % len(names)]])
    write(folder / "trips.csv", ["time", "from", "to"], rows)
    write(folder / "places.csv", ["place", "east", "north"], ([name, *where] for name, where in PLACES.items()))
    return folder / "trips.csv", folder / "places.csv"


def write_folder(folder: Path, trips: Path, places: Path) -> None:
    """Write zones.csv, legs.csv and trips.csv.gz to `folder`, from tables of trips and places."""
    where = {row["place"]: np.array([float(row["east"]), float(row["north"])]) for row in read(places)}
    write(folder / "zones.csv", ["zone", "column", "row"], ([name, *hexagon(*at)] for name, at in where.items()))
    write(
        folder / "legs.csv",
        ["from", "to", "metres", "minutes", "fare"],
        ([start, end, *leg(where[start], where[end])] for start in where for end in where if start != end),
    )
    unknown = sorted({row[end] for row in read(trips) for end in ("from", "to")} - set(where))
    if unknown:
        raise muster.InputError(f"{trips} names {unknown[0]!r}, which is not among the places of {places}")
    rows = [(datetime.fromisoformat(row["time"]), row["from"], row["to"]) for row in read(trips)]
    # Trips within one place need no driving.
    rows = [(time, start, end) for time, start, end in rows if time.hour == HOUR and start != end]
    dates = sorted({time.date() for time, *_ in rows})
    # Split by date, not at random: a policy is used on days after those it learned on.
    training = set(dates[: max(1, len(dates) * 2 // 3)])
    write(
        folder / "trips.csv.gz",
        ["date", "set", "second", "pickup", "dropoff"],
        (
            [time.date(), "training" if time.date() in training else "test", time.minute * 60 + time.second, *way]
            for time, *way in rows
        ),
    )


def leg(start: np.ndarray, end: np.ndarray) -> tuple[int, int, float]:
    """Metres, whole minutes and fare of the way between two places."""
    metres = DETOUR * 1000 * float(np.linalg.norm(start - end))
    return round(metres), max(1, round(metres / SPEED)), round(FARE + FARE_A_METRE * metres, 2)


def hexagon(east: float, north: float) -> tuple[int, int]:
    """Column and row of the hexagon, half a kilometre wide, around a place; used only by pictures."""
    row = round(north / 0.5 / np.sqrt(0.75))
    return 2 * round(east / 0.5 - row % 2 / 2) + row % 2, row


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV table as dictionaries."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, columns: list[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV table, compressed if the file's name ends in .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])


if __name__ == "__main__":
    print(tyro.cli(main) or "written; muster train and compare as the first lines of this file say")
