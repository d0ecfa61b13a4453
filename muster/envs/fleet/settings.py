"""Settings of fleets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from muster.envs.compiled import Threads, env_name
from muster.errors import InputError
from muster.settings import AtLeast, Between, check_fields, read_options

CityName = Literal["small", "large"]
DaySet = Literal["training", "validation", "test"]
Start = Literal["auto", "random", "even"]


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """Settings of a fleet, checked when made: a simulated `city`, or recorded `trips` and the `set` of days to run."""

    vehicles: Annotated[int, Between(1, 100_000)] = 24
    """Vehicles; a city's requests grow in proportion to them."""
    city: CityName = "small"
    """Simulated city: small (11 zones, for 24 vehicles) or large (38 zones, for 100)."""
    trips: str | None = None
    """Folder with zones.csv, legs.csv and trips.csv.gz: recorded days instead of a city's generator."""
    set: DaySet = "training"
    """Which of the recorded days to run."""
    demand: Annotated[float, Between(0.001, 1000)] = 1.0
    """Factor of the city's requests per vehicle; not for recorded days."""
    limit: Annotated[int | None, Between(1, 100_000)] = None
    """Most requests in a minute, later ones are lost; None: the city's, in proportion to vehicles, or all recorded."""
    wait: Annotated[int, Between(0, 60)] = 5
    """Minutes from the decision within which a request must be picked up."""
    cost: Annotated[float, AtLeast(0)] = 0.0045
    """Cost of a metre, with or without passengers."""
    minutes: Annotated[int, Between(1, 60)] = 60
    """Minutes of an episode, one decision each."""
    start: Start = "auto"
    """Start zones of vehicles: random, or evenly spread; auto: evenly on validation and test days."""
    threads: Threads = "auto"
    """Cores for a step of the batch: one, all, or all only if the batch is large (auto). Changes no result."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.trips is not None and self.demand != 1.0:
            raise InputError("recorded trips cannot be multiplied; leave out demand, or trips")
        if self.trips is not None and self.city != "small":
            raise InputError("trips bring their own zones; leave out city, or trips")
        if self.trips is None and self.set != "training":
            raise InputError(f"set={self.set} chooses among recorded days; give their folder as trips=FOLDER")

    @property
    def evenly(self) -> bool:
        """Whether vehicles start evenly spread: vehicle i in zone i mod Z."""
        if self.start != "auto":
            return self.start == "even"
        return self.trips is not None and self.set != "training"

    @property
    def name(self) -> str:
        """The environment string that makes this environment."""
        # The default city is named too, unless there are recorded trips.
        city = ",city=small" if self.trips is None and self.city == "small" else ""
        return env_name(f"fleet:{self.vehicles}{city}", self, ("vehicles",))

    @classmethod
    def from_text(cls, text: str) -> FleetSettings:
        """Read "24", "24,city=small" or "24,trips=FOLDER,set=test": vehicles, then any settings."""
        size, *options = [part.strip() for part in text.split(",")]
        if not size.isdecimal():
            raise InputError(
                f"fleet takes the number of vehicles first, such as fleet:24,city=small or "
                f"fleet:24,trips=FOLDER,set=test; got {text!r}"
            )
        return cls(vehicles=int(size), **read_options(cls, options, "fleet setting", skip=("vehicles",)))
