"""Where a fleet drives: zones, the legs between them, and how many requests to expect from where to where.

Our own cities lie in cities/*.json: numbers fitted to the training days of the trips that Enders, Harrison, Pavone
and Schiffer published (L4DC 2023, MIT licence), not the trips themselves. `python -m paper.fleet.fit` makes them anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats, Ints

Zones = NDArray[np.int16]

HOUR = 60
"""Minutes that are recorded, and for which there are rates."""


@dataclass(frozen=True, slots=True)
class City:
    """Z zones. Nothing here is changed after it is made."""

    name: str
    places: Floats
    """[Z, 2] x and y of the zones' hexagons, in hops."""
    metres: Floats
    """[Z, Z] of the shortest way; 0 from a zone to itself."""
    minutes: Ints
    """[Z, Z]"""
    fares: Floats
    """[Z, Z]"""
    hourly: Floats
    """[Z, Z] requests to expect from zone to zone in the whole hour, for a fleet of `vehicles`."""
    profile: Floats
    """[60] each minute's share of them, times 60."""
    busyness: Floats
    """How many times the usual number of requests a day has: kinds of days, each as likely."""
    vehicles: int
    """The fleet that this many requests are meant for."""
    limit: int
    """Requests a minute, at most, with that fleet."""

    @property
    def n_zones(self) -> int:
        """Z"""
        return len(self.places)

    def expected(self, scale: float) -> Floats:
        """[60, Z] requests to expect in each minute from each zone."""
        return np.outer(self.profile, self.hourly.sum(1)) * (scale / HOUR)


@lru_cache(maxsize=4)
def built_in(name: str) -> City:
    """The city of that name that comes with muster."""
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
    """[Z, 2] the middle of each hexagon, one hop from its neighbours: columns count half hexagons, rows go up."""
    return np.stack([cells[:, 0] / 2, cells[:, 1] * np.sqrt(0.75)], axis=1)


def shortest_hops(cells: Ints) -> Ints:
    """[Z, Z] hops from zone to zone through neighbouring zones: water has no zones, and is driven round."""
    across = np.abs(cells[:, None, 0] - cells[None, :, 0])
    up = np.abs(cells[:, None, 1] - cells[None, :, 1])
    beside = ((up == 0) & (across == 2)) | ((up == 1) & (across == 1))
    far = len(cells)
    hops: Ints = np.where(np.eye(len(cells), dtype=np.bool_), 0, np.where(beside, 1, far)).astype(np.int64)
    for middle in range(len(cells)):
        hops = np.minimum(hops, hops[:, middle : middle + 1] + hops[middle : middle + 1])
    return hops
