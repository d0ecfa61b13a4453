"""What a policy sees of a fleet, in units that mean the same in another city and with another number of vehicles.

Money is counted in mean margins of a request, vehicles and requests in a zone in mean vehicles a zone, trips in mean
minutes of a trip, waiting in fives. Positions are not seen: what a place is good for is seen through its demand, the
chance to be needed there, and its worth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from muster.compile import entry, leaf
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


class Views(NamedTuple):
    """The arrays of an observation, to be filled."""

    agents: Floats32
    tasks: Floats32
    pairs: Floats32
    task_pairs: Floats32
    whole: Floats32
    task_alive: Bools
    allowed: Bools
    prior: Floats


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


@entry
def see_range(
    begin: int, end: int, roads: Roads, wait: int, cost: float, outlook: Outlook, fleet: Fleet, views: Views
) -> None:
    """Fill the views of these slots; they hold zeros before."""
    n, n_zones = fleet.zone.shape[1], roads.minutes.shape[0]
    n_minutes, m = fleet.pickups.shape[1], fleet.pickups.shape[2]
    with_pairs = views.pairs.shape[3] > 0
    a_zone = n_zones / n
    bound = np.zeros((n_zones, HORIZON + 1), np.int64)
    here = np.zeros(n_zones, np.int64)
    ready = np.zeros(n_zones, np.int64)
    own = np.zeros(n)
    for slot in range(begin, end):
        t = fleet.minute[slot]
        running = t < n_minutes
        bound[:], here[:], ready[:] = 0, 0, 0
        requests, empty = 0, 0
        for i in range(n):
            zone, free = fleet.zone[slot, i], fleet.free[slot, i]
            if free <= HORIZON:
                bound[zone, free] += 1
            ready[zone] += fleet.held[slot, i] < QUEUE and free <= wait
            empty += fleet.held[slot, i] == 0
        for zone in range(n_zones):
            for k in range(HORIZON):
                bound[zone, k + 1] += bound[zone, k]
        for j in range(m):
            if running and fleet.pickups[slot, t, j] >= 0:
                here[fleet.pickups[slot, t, j]] += 1
                requests += 1
        memory = PRIOR_MINUTES * outlook.usual[n_minutes] / n_minutes
        busyness = (fleet.seen[slot] + memory) / (outlook.usual[min(t + 1, n_minutes)] + memory)
        views.whole[slot, 0] = t / n_minutes
        views.whole[slot, 1] = busyness - 1.0
        views.whole[slot, 2] = empty / n
        views.whole[slot, 3] = requests * n_minutes / max(outlook.usual[n_minutes], 1e-9) - 1.0
        for i in range(n):
            zone, free = fleet.zone[slot, i], fleet.free[slot, i]
            after = t + 1 + free
            views.agents[slot, i, 0] = free / 5.0
            views.agents[slot, i, 1] = fleet.held[slot, i] == 0
            chance = chance_among(outlook, wait, bound, here, busyness, zone, t, free, 1)
            own[i] = worth_of(outlook, wait, chance, zone, t + free)
            views.agents[slot, i, 2] = WORTH_SCALE * own[i]
            views.agents[slot, i, 3] = chance
            views.agents[slot, i, 4] = a_zone * demand_of(outlook, busyness, zone, after, after + AHEAD)
        if not running:
            continue
        for j in range(m):
            pickup, dropoff = fleet.pickups[slot, t, j], fleet.dropoffs[slot, t, j]
            if pickup < 0:
                continue
            views.task_alive[slot, j] = True
            minutes = roads.minutes[pickup, dropoff]
            full = roads.metres[pickup, dropoff]
            margin = roads.fares[pickup, dropoff] - cost * full
            after = t + 1 + minutes
            views.tasks[slot, j, 0] = margin / outlook.unit
            views.tasks[slot, j, 1] = minutes / outlook.trip
            views.tasks[slot, j, 2] = a_zone * ready[pickup]
            views.tasks[slot, j, 3] = a_zone * here[pickup]
            views.tasks[slot, j, 4] = a_zone * demand_of(outlook, busyness, pickup, t + 1, t + 1 + AHEAD)
            chance = chance_among(outlook, wait, bound, here, busyness, dropoff, t, minutes, 0)
            views.tasks[slot, j, 5] = chance
            views.tasks[slot, j, 6] = a_zone * demand_of(outlook, busyness, dropoff, after, after + AHEAD)
            views.tasks[slot, j, 7] = WORTH_SCALE * worth_of(outlook, wait, chance, dropoff, t + minutes)
            for i in range(n):
                there = time_to(fleet, roads, slot, i, pickup)
                if there > wait:
                    continue
                zone = fleet.zone[slot, i]
                profit = (margin - cost * roads.metres[zone, pickup]) / outlook.unit
                views.allowed[slot, i, j] = True
                views.prior[slot, i, j] = profit
                if with_pairs:
                    chance = chance_among(outlook, wait, bound, here, busyness, dropoff, t, there + minutes, 0)
                    gained = worth_of(outlook, wait, chance, dropoff, t + there + minutes)
                    views.pairs[slot, i, j, 0] = max(profit, LEAST_PROFIT)
                    views.pairs[slot, i, j, 1] = there / 5.0
                    views.pairs[slot, i, j, 2] = gained - own[i]
                    views.pairs[slot, i, j, 3] = zone != pickup
            if with_pairs:
                for k in range(m):
                    if fleet.pickups[slot, t, k] >= 0:
                        other = fleet.dropoffs[slot, t, k]
                        views.task_pairs[slot, j, k, 0] = fleet.pickups[slot, t, k] == pickup
                        views.task_pairs[slot, j, k, 1] = other == dropoff
                        views.task_pairs[slot, j, k, 2] = roads.minutes[dropoff, other] / outlook.trip
