"""A town of three zones in a row, two minutes and 400 metres apart, and days written by hand."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from muster.envs.fleet import FleetEnv, FleetSettings

Request = tuple[int, int, int]
"""Second, pick-up zone, drop-off zone."""
Town = Callable[..., str]
HEAD = "date,set,second,pickup,dropoff\n"


def write_town(folder: Path, *days: list[Request], kind: str = "test") -> str:
    """A folder of trips with these days; a hop costs 1.8 to drive and pays 2."""
    (folder / "zones.csv").write_text("zone,column,row\n0,0,0\n1,2,0\n2,4,0\n")
    legs = [(a, b, abs(a - b)) for a in range(3) for b in range(3) if a != b]
    text = "".join(f"{a},{b},{400 * hops},{2 * hops},{2 * hops}\n" for a, b, hops in legs)
    (folder / "legs.csv").write_text("from,to,metres,minutes,fare\n" + text)
    rows = [f"2020-01-{d + 1:02},{kind},{s},{a},{b}\n" for d, day in enumerate(days) for s, a, b in day]
    with gzip.open(folder / "trips.csv.gz", "wt") as file:
        file.write(HEAD + "".join(rows))
    return str(folder)


@pytest.fixture
def town(tmp_path: Path) -> Town:
    """Makes the folder."""

    def make(*days: list[Request], kind: str = "test") -> str:
        return write_town(tmp_path, *days, kind=kind)

    return make


def hour(folder: str, vehicles: int = 1, n_envs: int = 1, **settings: object) -> FleetEnv:
    """A fleet on the test days of a folder, begun on the first of them."""
    import numpy as np

    env = FleetEnv(FleetSettings(vehicles=vehicles, trips=folder, set="test", **settings), n_envs)  # type: ignore[arg-type]
    env.reset(np.arange(n_envs), np.arange(n_envs, dtype=np.uint64))
    return env
