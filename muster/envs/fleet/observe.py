"""What a policy sees of a fleet, in units that mean the same in another city and with another number of vehicles.

Money is counted in mean margins of a request, vehicles and requests in a zone in mean vehicles a zone, trips in mean
minutes of a trip, waiting in fives. Positions are not seen: what a place is good for is seen through its demand, the
chance to be needed there, and its worth.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from muster.compile import leaf, lean_entry
from muster.data import Bools, Floats, Floats32, Ints
from muster.envs.fleet.kernels import QUEUE, Fleet, Roads, time_to

AGENT_FEATURES = ("free in", "empty", "worth", "chance", "demand after")
TASK_FEATURES = (
    "margin",
    "minutes",
    "open vehicles",
    "requests here",
    "demand here",
    "chance there",
    "demand there",
    "worth there",
)
PAIR_FEATURES = ("profit", "pick-up in", "worth gained", "empty driving")
TASK_PAIR_FEATURES = ("same pick-up", "same drop-off", "minutes between drop-offs")
GLOBAL_FEATURES = ("time", "busyness", "empty vehicles", "requests now")

AHEAD = 10
"""Minutes over which demand is summed."""
HORIZON = 60
"""Minutes up to which arrivals are told apart."""
RIVALS = 2
"""Who comes this many waiting times later still counts as there."""
PRIOR_MINUTES = 5
"""Minutes' worth of the usual demand that the estimate of a day's busyness starts from."""
LEAST_PROFIT = -5.0
"""Losses beyond this many mean margins are seen as this: nobody takes them."""
WORTH_SCALE = 0.25


class Outlook(NamedTuple):
    """What is known of a city beforehand."""

    usual: Floats
    """[T + AHEAD + HORIZON + 2] requests to expect in all zones together, up to each minute."""
    origins: Floats
    """[Z] share of the requests that start in each zone."""
    worth: Floats
    """[T + 1, Z] of a vehicle that becomes free there and then; see worth.py."""
    taking: Floats
    """[T + 1, Z] of one that takes a request there and then."""
    unit: float
    """Mean margin of a request."""
    trip: float
    """Mean minutes of a request, from pick-up to drop-off."""


class Observations(NamedTuple):
    """The arrays of an observation, to be filled."""

    agents: Floats32
    tasks: Floats32
    pairs: Floats32
    task_pairs: Floats32
    whole: Floats32
    task_alive: Bools
    allowed: Bools
    prior: Floats


class Memory:
    """Observations that are handed out again once nobody refers to any of their arrays.

    Touching fresh memory page by page takes as long as all that is written to it.
    """

    KEPT = 3
    """What is seen now, what was seen before, and one to fill."""
    UNUSED = 3
    """References to an array that is here only: the views', the loop's, and the question's own."""

    def __init__(self, n_envs: int, n_agents: int, n_tasks: int, *, pairs: bool) -> None:
        self._shape = n_envs, n_agents, n_tasks, pairs
        self._views: list[Observations] = []

    def take(self) -> Observations:
        """Observations with anything in them."""
        for views in self._views:
            if all(sys.getrefcount(array) <= self.UNUSED for array in views):
                return views
        views = _empty_views(*self._shape)
        if len(self._views) < self.KEPT:
            self._views.append(views)
        return views


def _empty_views(b: int, n: int, m: int, pairs: bool) -> Observations:
    return Observations(
        agents=np.empty((b, n, len(AGENT_FEATURES)), np.float32),
        tasks=np.empty((b, m, len(TASK_FEATURES)), np.float32),
        pairs=np.empty((b, n, m, len(PAIR_FEATURES) if pairs else 0), np.float32),
        task_pairs=np.empty((b, m, m, len(TASK_PAIR_FEATURES) if pairs else 0), np.float32),
        whole=np.empty((b, len(GLOBAL_FEATURES)), np.float32),
        task_alive=np.empty((b, m), np.bool_),
        allowed=np.empty((b, n, m), np.bool_),
        prior=np.empty((b, n, m)),
    )


@leaf
def demand_of(outlook: Outlook, busyness: float, zone: int, begin: int, end: int) -> float:
    """Requests to expect from `zone` in the minutes from `begin` to before `end`."""
    last = outlook.usual.shape[0] - 1
    return busyness * outlook.origins[zone] * (outlook.usual[min(end, last)] - outlook.usual[min(begin, last)])


@leaf
def tail(mean: float, least: int) -> float:
    """P(D >= least) for D ~ Poisson(mean)."""
    if least <= 0:
        return 1.0
    chance = math.exp(-mean)
    below = chance
    for k in range(1, least):
        chance *= mean / k
        below += chance
    return max(1.0 - below, 0.0)


@leaf
def chance_among(
    outlook: Outlook,
    wait: int,
    bound: Ints,
    here: Ints,
    busyness: float,
    zone: int,
    minute: int,
    after: int,
    itself: int,
) -> float:
    """That one who is free in `zone` in `after` minutes is needed there.

    That is, that there are more requests in the meantime and shortly after than other vehicles: those who can be there
    in time for these requests, and some more.
    """
    others = bound[zone, min(after + RIVALS * wait, HORIZON)] - itself
    requests = demand_of(outlook, busyness, zone, minute + 1, minute + 1 + after + wait)
    return tail(requests, others + 1 - here[zone])


@leaf
def worth_of(outlook: Outlook, wait: int, chance: float, zone: int, minute: int) -> float:
    """Of being free in `zone` at `minute`, in mean margins: with that chance it takes a request, else it waits on."""
    last = outlook.worth.shape[0] - 1
    taken, left = outlook.taking[min(minute, last), zone], outlook.worth[min(minute + wait, last), zone]
    return (chance * taken + (1.0 - chance) * left) / outlook.unit


class Crowd(NamedTuple):
    """What is counted in one state before anything is seen of it; used again for the next."""

    bound: Ints
    """[Z, HORIZON + 1] vehicles that are in the zone, with nothing to do, in so many minutes."""
    ready: Ints
    """[Z] vehicles that can take a request there now."""
    here: Ints
    """[Z] requests that start there."""
    own: Floats
    """[N] what it is worth to each vehicle to be where it will be free."""
    gained: Floats
    """[wait + 1] what a request's drop-off is worth to whoever is at the pick-up in so many minutes; NaN: not known."""


def make_crowd(n_zones: int, n_vehicles: int, wait: int) -> Crowd:
    """Room to count in."""
    return Crowd(
        np.zeros((n_zones, HORIZON + 1), np.int64),
        np.zeros(n_zones, np.int64),
        np.zeros(n_zones, np.int64),
        np.zeros(n_vehicles),
        np.zeros(wait + 1),
    )


@lean_entry
def see_range(
    begin: int, end: int, roads: Roads, wait: int, cost: float, outlook: Outlook, fleet: Fleet, crowd: Crowd,
    views: Observations,
) -> None:  # fmt: skip
    """Fill the views of these slots; zeros where there is nothing to see."""
    n_minutes = fleet.pickups.shape[1]
    for slot in range(begin, end):
        views.tasks[slot], views.pairs[slot], views.task_pairs[slot] = 0.0, 0.0, 0.0
        views.task_alive[slot], views.allowed[slot], views.prior[slot] = False, False, 0.0
        t = fleet.minute[slot]
        busyness = see_whole(slot, wait, outlook, fleet, crowd, views)
        see_vehicles(slot, wait, busyness, outlook, fleet, crowd, views)
        if t == n_minutes:
            continue
        for j in range(fleet.pickups.shape[2]):
            if fleet.pickups[slot, t, j] >= 0:
                see_request(slot, j, roads, wait, cost, busyness, outlook, fleet, crowd, views)
                see_pairs(slot, j, roads, wait, cost, busyness, outlook, fleet, crowd, views)
                if views.pairs.shape[3] > 0:
                    see_other_requests(slot, j, roads, outlook, fleet, views)


@leaf
def see_whole(slot: int, wait: int, outlook: Outlook, fleet: Fleet, crowd: Crowd, views: Observations) -> float:
    """Count who is where, and fill what is seen of the whole; returns how busy the day has been."""
    bound, ready, here = crowd.bound, crowd.ready, crowd.here
    n, t, n_minutes = fleet.zone.shape[1], fleet.minute[slot], fleet.pickups.shape[1]
    bound[:], here[:], ready[:] = 0, 0, 0
    requests, empty = 0, 0
    for i in range(n):
        zone, free = fleet.zone[slot, i], fleet.free[slot, i]
        if free <= HORIZON:
            bound[zone, free] += 1
        ready[zone] += fleet.held[slot, i] < QUEUE and free <= wait
        empty += fleet.held[slot, i] == 0
    for zone in range(bound.shape[0]):
        total = 0
        for k in range(HORIZON + 1):
            total += bound[zone, k]
            bound[zone, k] = total
    if t < n_minutes:
        for j in range(fleet.pickups.shape[2]):
            if fleet.pickups[slot, t, j] >= 0:
                here[fleet.pickups[slot, t, j]] += 1
                requests += 1
    memory = PRIOR_MINUTES * outlook.usual[n_minutes] / n_minutes
    busyness = (fleet.seen[slot] + memory) / (outlook.usual[min(t + 1, n_minutes)] + memory)
    views.whole[slot, 0] = t / n_minutes
    views.whole[slot, 1] = busyness - 1.0
    views.whole[slot, 2] = empty / n
    views.whole[slot, 3] = requests * n_minutes / max(outlook.usual[n_minutes], 1e-9) - 1.0
    return busyness


@leaf
def see_vehicles(
    slot: int, wait: int, busyness: float, outlook: Outlook, fleet: Fleet, crowd: Crowd, views: Observations
) -> None:
    """Fill what is seen of each vehicle, and what its place is worth to it."""
    n, t = fleet.zone.shape[1], fleet.minute[slot]
    a_zone = crowd.here.shape[0] / n
    for i in range(n):
        zone, free = fleet.zone[slot, i], fleet.free[slot, i]
        after = t + 1 + free
        views.agents[slot, i, 0] = free / 5.0
        views.agents[slot, i, 1] = fleet.held[slot, i] == 0
        chance = chance_among(outlook, wait, crowd.bound, crowd.here, busyness, zone, t, free, 1)
        crowd.own[i] = worth_of(outlook, wait, chance, zone, t + free)
        views.agents[slot, i, 2] = WORTH_SCALE * crowd.own[i]
        views.agents[slot, i, 3] = chance
        views.agents[slot, i, 4] = a_zone * demand_of(outlook, busyness, zone, after, after + AHEAD)


@leaf
def see_request(
    slot: int, j: int, roads: Roads, wait: int, cost: float, busyness: float, outlook: Outlook, fleet: Fleet,
    crowd: Crowd, views: Observations,
) -> None:  # fmt: skip
    """Fill what is seen of a request."""
    t = fleet.minute[slot]
    pickup, dropoff = fleet.pickups[slot, t, j], fleet.dropoffs[slot, t, j]
    a_zone = crowd.here.shape[0] / fleet.zone.shape[1]
    minutes = roads.minutes[pickup, dropoff]
    margin = roads.fares[pickup, dropoff] - cost * roads.metres[pickup, dropoff]
    after = t + 1 + minutes
    views.task_alive[slot, j] = True
    views.tasks[slot, j, 0] = margin / outlook.unit
    views.tasks[slot, j, 1] = minutes / outlook.trip
    views.tasks[slot, j, 2] = a_zone * crowd.ready[pickup]
    views.tasks[slot, j, 3] = a_zone * crowd.here[pickup]
    views.tasks[slot, j, 4] = a_zone * demand_of(outlook, busyness, pickup, t + 1, t + 1 + AHEAD)
    chance = chance_among(outlook, wait, crowd.bound, crowd.here, busyness, dropoff, t, minutes, 0)
    views.tasks[slot, j, 5] = chance
    views.tasks[slot, j, 6] = a_zone * demand_of(outlook, busyness, dropoff, after, after + AHEAD)
    views.tasks[slot, j, 7] = WORTH_SCALE * worth_of(outlook, wait, chance, dropoff, t + minutes)


@leaf
def see_pairs(
    slot: int, j: int, roads: Roads, wait: int, cost: float, busyness: float, outlook: Outlook, fleet: Fleet,
    crowd: Crowd, views: Observations,
) -> None:  # fmt: skip
    """Fill what is seen of a request together with each vehicle that can be there in time.

    What the drop-off is worth depends on when the vehicle comes and not on which it is: it is worked out once for all
    that come in the same minute.
    """
    t, gained = fleet.minute[slot], crowd.gained
    pickup, dropoff = fleet.pickups[slot, t, j], fleet.dropoffs[slot, t, j]
    minutes = roads.minutes[pickup, dropoff]
    margin = roads.fares[pickup, dropoff] - cost * roads.metres[pickup, dropoff]
    with_pairs = views.pairs.shape[3] > 0
    gained[:] = np.nan
    for i in range(fleet.zone.shape[1]):
        there = time_to(fleet, roads, slot, i, pickup)
        if there > wait:
            continue
        zone = fleet.zone[slot, i]
        profit = (margin - cost * roads.metres[zone, pickup]) / outlook.unit
        views.allowed[slot, i, j] = True
        views.prior[slot, i, j] = profit
        if with_pairs:
            if math.isnan(gained[there]):
                later = there + minutes
                chance = chance_among(outlook, wait, crowd.bound, crowd.here, busyness, dropoff, t, later, 0)
                gained[there] = worth_of(outlook, wait, chance, dropoff, t + later)
            views.pairs[slot, i, j, 0] = max(profit, LEAST_PROFIT)
            views.pairs[slot, i, j, 1] = there / 5.0
            views.pairs[slot, i, j, 2] = gained[there] - crowd.own[i]
            views.pairs[slot, i, j, 3] = zone != pickup


@leaf
def see_other_requests(slot: int, j: int, roads: Roads, outlook: Outlook, fleet: Fleet, views: Observations) -> None:
    """Fill what is seen of a request together with each of the same minute."""
    t = fleet.minute[slot]
    pickup, dropoff = fleet.pickups[slot, t, j], fleet.dropoffs[slot, t, j]
    for k in range(fleet.pickups.shape[2]):
        if fleet.pickups[slot, t, k] >= 0:
            other = fleet.dropoffs[slot, t, k]
            views.task_pairs[slot, j, k, 0] = fleet.pickups[slot, t, k] == pickup
            views.task_pairs[slot, j, k, 1] = other == dropoff
            views.task_pairs[slot, j, k, 2] = roads.minutes[dropoff, other] / outlook.trip
