"""A fleet of vehicles and the requests of one hour: each is taken by a vehicle in its minute, or lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.compiled import CompiledEnv
from muster.envs.fleet.city import City, Zones, built_in, load_trips, slots_of
from muster.envs.fleet.observe import FEATURE_NAMES, BufferPool
from muster.envs.fleet.settings import FleetSettings
from muster.envs.renderer import Renderer
from muster.envs.vector import Metric, Policy
from muster.errors import InputError
from muster.kernels import core
from muster.rng import Seeds, episode_seeds

VEHICLES_A_THREAD = 10_000
"""Least number of vehicles per thread for which another thread pays."""


class FleetState(NamedTuple):
    """The state of B episodes: N vehicles, T minutes, at most M requests a minute."""

    rng: Seeds
    minute: Ints
    """[B] minute of the next decision."""
    running: Bools
    zone: Ints
    """[B, N] zone of the vehicle after the last request it holds."""
    free: Ints
    """[B, N] minutes until the last request it holds is done."""
    first: Ints
    """[B, N] minutes until the request in service is done."""
    held: Ints
    """[B, N] requests held: 0, 1 or 2."""
    number: Ints
    """[B, N] identity of the vehicle, which breaks ties independently of its index."""
    stops: Ints
    """[B, N, 5] for scenes: origin, pick-up and drop-off of the request in service, and those of the queued one."""
    taken: Ints
    """[B, N] request taken at the last decision, or -1."""
    pickups: Zones
    """[B, T, M] pick-up zones of each minute's requests, then -1."""
    dropoffs: Zones
    """[B, T, M]"""
    lost: Ints
    """[B] requests beyond the limit of their minute."""
    earned: Floats
    """[B] profit."""
    served: Ints
    """[B] requests taken."""
    seen: Ints
    """[B] requests up to and including the present minute."""
    empty: Floats
    """[B] metres driven without passengers."""

    @classmethod
    def empty_slots(cls, b: int, n: int, m: int, minutes: int) -> FleetState:
        """Arrays for B episodes, before their reset."""
        of_vehicles = ("zone", "free", "first", "held", "number", "taken")
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(cls._fields, (b,)) | dict.fromkeys(of_vehicles, (b, n))
        kinds: dict[str, Any] = {"rng": np.uint64, "running": np.bool_, "earned": np.float64, "empty": np.float64}
        state: dict[str, Any] = {name: np.zeros(shape, kinds.get(name, np.int64)) for name, shape in shapes.items()}
        state["stops"] = np.zeros((b, n, 5), np.int64)
        state["pickups"], state["dropoffs"] = np.full((2, b, minutes, m), -1, np.int16)
        return cls(**state)


class Outlook(NamedTuple):
    """Expectations that follow from a city's rates, from which observations are computed."""

    usual: Floats
    """[T + AHEAD + HORIZON + 2] expected requests in all zones before each minute."""
    origins: Floats
    """[Z] share of the requests from each zone."""
    worth: Floats
    """[T + 1, Z] expected profit, until the end, of a vehicle that becomes free at that minute in that zone."""
    taking: Floats
    """[T + 1, Z] likewise of a vehicle that takes a request there."""
    unit: float
    """Mean absolute margin of a request."""
    trip: float
    """Mean minutes of a request, from pick-up to drop-off."""


class FleetEnv(CompiledEnv):
    """B hours of a fleet; a step is a minute, and its reward the profit of the requests taken in it.

    A vehicle that cannot be at the pick-up in time takes no request. With recorded days, seed k below their number is
    day k.
    """

    metric: Metric = "return"
    idling = True

    def __init__(self, settings: FleetSettings | None = None, n_envs: int = 1) -> None:
        self.settings = settings = settings or FleetSettings()
        self.name = settings.name
        self.max_steps = settings.minutes
        n = settings.vehicles
        self.city, self._scale, m = self._find_city()
        self.set_size(n_envs, n, m, n_envs * n // VEHICLES_A_THREAD, settings.threads)
        self._order: Ints = np.tile(np.arange(m), (n_envs, 1))
        self.bound = np.full(n_envs, np.inf)
        """[B] upper bound on the return; infinite until `hindsight` has computed it."""
        self.fleet = FleetState.empty_slots(n_envs, n, m, settings.minutes)
        self._expected = self.city.expected(self._scale).sum(1)
        self.kernel = self._make_kernel()
        self.show()

    def _find_city(self) -> tuple[City, float, int]:
        """The city, the factor of its requests, and the most requests in a minute; loads recorded days, if any."""
        settings = self.settings
        if settings.trips is None:
            city = built_in(settings.city)
            scale = settings.demand * settings.vehicles / city.vehicles
            limit = settings.limit or math.ceil(round(city.limit * scale, 9))
            self._pickups = self._dropoffs = np.zeros((0, settings.minutes, limit), np.int16)
            self._lost: Ints = np.zeros(0, np.int64)
            return city, scale, limit
        trips = load_trips(settings.trips)
        days = trips.requests[settings.set]
        if not days:
            raise InputError(f"{settings.trips} has no {settings.set} days")
        limit = settings.limit or trips.city.limit
        self.days = trips.days[settings.set]
        self._pickups, self._dropoffs = slots_of(days, limit, settings.minutes)
        within = np.array([(day[:, 0] < settings.minutes).sum() for day in days], np.int64)
        self._lost = within - (self._pickups >= 0).sum((1, 2))
        return trips.city, 1.0, limit

    def _make_kernel(self) -> Any:
        city, settings = self.city, self.settings
        self.outlook = self._look_ahead()
        known = {
            "metres": city.metres,
            "minutes": city.minutes,
            "fares": city.fares,
            "expected": self._expected,
            "cumulative": np.cumsum(city.hourly / city.hourly.sum()),
            "busyness": city.busyness,
            "day_pickups": self._pickups,
            "day_dropoffs": self._dropoffs,
            "day_lost": self._lost,
        }
        *tables, unit, trip = self.outlook
        return core.fleet.Fleet(
            {**self.fleet._asdict(), **known, **dict(zip(Outlook._fields, tables, strict=False))},
            wait=settings.wait,
            cost=settings.cost,
            evenly=settings.evenly,
            unit=unit,
            trip=trip,
        )

    def _look_ahead(self) -> Outlook:
        """The Outlook of this city, fleet and hour."""
        city, minutes = self.city, self.settings.minutes
        expected = city.expected(self._scale)[:minutes]
        margins = city.fares - self.settings.cost * city.metres
        share = city.hourly / city.hourly.sum()
        from_zone = city.hourly / np.maximum(city.hourly.sum(1, keepdims=True), 1e-12)
        worth, taking = expect_worth(expected, from_zone, margins, city.minutes, float(self.n_agents))
        # After the hour nothing is earned, but observed demand stays at its last value.
        later = np.repeat(expected[-1:].sum(1), core.fleet.AHEAD + core.fleet.HORIZON + 1)
        return Outlook(
            usual=np.concatenate([[0.0], np.cumsum(np.concatenate([expected.sum(1), later]))]),
            origins=share.sum(1),
            worth=worth,
            taking=taking,
            unit=max(float((share * np.abs(margins)).sum()), 1e-9),
            trip=max(float((share * city.minutes).sum()), 1.0),
        )

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """Names of the features, whose units observe.py describes."""
        return FEATURE_NAMES

    def show(self, *, pair_features: bool = True, planes: bool = False, prior: bool = False) -> None:
        """Choose whether observations have pair features; the prior is always the profit."""
        super().show(pair_features=pair_features, planes=planes, prior=prior)
        self._buffers = BufferPool(self.n_envs, self.n_agents, self.n_tasks, pairs=pair_features)

    def all_episodes(self) -> Seeds | None:
        """The seeds of the recorded days, in order; None if days are simulated."""
        return None if self.settings.trips is None else np.arange(len(self.days), dtype=np.uint64)

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Reset `slots[k]` to the first minute of the episode of `seeds[k]`."""
        super().reset(slots, seeds)
        self.bound[slots] = np.inf
        self._order[slots] = np.arange(self.n_tasks)

    def observe(self) -> BatchObservation:
        """Features, masks, the prior (profit in mean margins) and feasible pairs, in arrays of their own."""
        b, n, m = self.n_envs, self.n_agents, self.n_tasks
        buffers = self._buffers.take()
        self.share_out(lambda begin, end: self.kernel.observe(begin, end, *buffers))
        return BatchObservation(
            agent_features=buffers.agents,
            task_features=buffers.tasks,
            pair_features=buffers.pairs,
            task_pair_features=buffers.task_pairs,
            agent_alive=np.ones((b, n), np.bool_),
            task_alive=buffers.task_alive,
            contributions=np.broadcast_to(np.ones(()), (b, n, m)),
            capacities=np.ones((b, m)),
            allowed=buffers.allowed,
            prior=buffers.prior,
            global_features=buffers.global_features,
            task_ids=self.fleet.minute[:, None] * m + self._order,
        )

    def outcome(self) -> Floats:
        """[B] profit so far."""
        return self.fleet.earned.copy()

    def metrics(self) -> dict[str, Floats]:
        """Requests taken, all requests (also beyond the limit), empty kilometres, and the upper bound if known."""
        metrics = {
            "served": self.fleet.served.astype(np.float64),
            "requests": (self.fleet.seen + self.fleet.lost).astype(np.float64),
            "empty_km": self.fleet.empty / 1000,
        }
        return metrics if np.isinf(self.bound).any() else {**metrics, "upper_bound": self.bound.copy()}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state of vehicles and requests, the bound and the order of requests."""
        return {**self.fleet._asdict(), "bound": self.bound, "order": self._order}

    def running(self) -> Bools:
        """[B] whether minutes are left."""
        return self.fleet.running.copy()

    def reseed(self, seeds: Seeds) -> None:
        """Draw later requests anew, on a day as busy as those so far make likely; also of recorded days."""
        self.fleet.rng[:] = seeds
        self.bound[:] = np.inf
        self.kernel.draw_requests(self._likely_busyness(seeds))

    def _likely_busyness(self, seeds: Seeds) -> Floats:
        """[B] a busyness for each slot, drawn from its posterior given the requests so far, which are Poisson."""
        levels = np.sort(self.city.busyness)
        usual = np.cumsum(self._expected)[np.minimum(self.fleet.minute, self.max_steps - 1)]
        rate = levels * usual[:, None]
        fit = self.fleet.seen[:, None] * np.log(np.maximum(rate, 1e-12)) - rate
        chances = np.cumsum(np.exp(fit - fit.max(1, keepdims=True)), axis=1)
        uniforms = (episode_seeds(0, seeds.astype(np.int64)) >> np.uint64(11)) * 2.0**-53
        return levels[(chances <= (uniforms * chances[:, -1])[:, None]).sum(1).clip(max=len(levels) - 1)]

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber vehicles and requests."""
        fleet = self.fleet
        for array in (fleet.zone, fleet.free, fleet.first, fleet.held, fleet.number, fleet.stops):
            array[:] = array[:, agents]
        fleet.taken[:] = -1
        self._order[:] = self._order[:, tasks]
        for requests in (fleet.pickups, fleet.dropoffs):
            requests[:] = requests[:, :, tasks]
        return True

    def renderer(self) -> Renderer:
        """A renderer of the map."""
        from muster.envs.fleet.renderer import FleetRenderer

        return FleetRenderer(self)

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[FleetEnv], Policy]]:
        """greedy, match, worth, and hindsight, which knows all requests."""
        from muster.envs.fleet.baselines import Greedy, Hindsight, Match, Worth

        return {"greedy": Greedy, "match": Match, "worth": Worth, "hindsight": Hindsight}


def expect_worth(
    expected: Floats, shares: Floats, margins: Floats, minutes: Ints, vehicles: float
) -> tuple[Floats, Floats]:
    """`worth` and `taking` of an Outlook, [T + 1, Z] each.

    From `expected` requests [T, Z], `shares` [Z, Z] of destinations by origin, and `margins` [Z, Z]: fare minus cost.
    """
    worth = np.empty((len(expected) + 1, expected.shape[1]))
    taking = np.empty_like(worth)
    core.fleet.expect_worth(expected, shares, margins, minutes, vehicles, worth, taking)
    return worth, taking


def from_options(text: str, n_envs: int) -> FleetEnv:
    """The environment of "24,city=small" or "24,trips=FOLDER,set=test"."""
    return FleetEnv(FleetSettings.from_text(text), n_envs)
