"""The inner loops of the fleet: plain arrays in, modified in place.

B slots, N vehicles, M requests a minute at most, T minutes, Z zones. Every function touches its own slots only, so
the loop over slots may run on any number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from muster.compile import entry, leaf
from muster.data import Bools, Floats, Ints
from muster.envs.fleet.city import Zones
from muster.rng import Seeds, below, uniform

QUEUE = 2
"""Requests that a vehicle holds at most: one in service, one queued."""
NEVER = 1 << 30


class Roads(NamedTuple):
    """What driving takes and pays, from zone to zone [Z, Z]."""

    metres: Floats
    minutes: Ints
    fares: Floats


class Fleet(NamedTuple):
    """The state of B episodes."""

    rng: Seeds
    minute: Ints
    """[B] the decision that is due."""
    running: Bools
    zone: Ints
    """[B, N] where the vehicle is once it has done all it holds."""
    free: Ints
    """[B, N] minutes until then."""
    first: Ints
    """[B, N] minutes until the request in service is done."""
    held: Ints
    """[B, N] requests held: 0, 1 or 2."""
    number: Ints
    """[B, N] which vehicle it is: decides between equals, however the slots are numbered."""
    stops: Ints
    """[B, N, 5] for pictures: from where, pick-up and drop-off of the request in service, and of the queued one."""
    given: Ints
    """[B, N] the request taken at the last decision, or -1."""
    pickups: Zones
    """[B, T, M] each minute's requests; -1 where there is none."""
    dropoffs: Zones
    lost: Ints
    """[B] requests beyond the limit of their minute."""
    earned: Floats
    served: Ints
    seen: Ints
    """[B] requests up to and including the present minute's."""
    empty: Floats
    """[B] metres driven without a passenger."""


class Demand(NamedTuple):
    """From what requests are drawn."""

    expected: Floats
    """[T] requests to expect in each minute."""
    cumulative: Floats
    """[Z·Z] chance that a request goes from zone to zone, summed up."""
    busyness: Floats


@leaf
def count_seen(fleet: Fleet, slot: int) -> None:
    """Add the present minute's requests to those seen."""
    minute = fleet.minute[slot]
    if minute < fleet.pickups.shape[1]:
        for j in range(fleet.pickups.shape[2]):
            fleet.seen[slot] += fleet.pickups[slot, minute, j] >= 0


@entry
def begin_slots(slots: Ints, seeds: Seeds, evenly: bool, n_zones: int, fleet: Fleet) -> None:
    """Vehicles at their first zones, everything else empty; the requests are still to come."""
    for k in range(slots.shape[0]):
        slot = slots[k]
        fleet.rng[slot] = seeds[k]
        fleet.minute[slot] = 0
        fleet.running[slot] = True
        fleet.lost[slot], fleet.served[slot], fleet.seen[slot] = 0, 0, 0
        fleet.earned[slot], fleet.empty[slot] = 0.0, 0.0
        for i in range(fleet.zone.shape[1]):
            fleet.number[slot, i] = i
            fleet.zone[slot, i] = i % n_zones if evenly else below(fleet.rng, slot, n_zones)
            fleet.free[slot, i], fleet.first[slot, i], fleet.held[slot, i] = 0, 0, 0
            fleet.given[slot, i] = -1
            fleet.stops[slot, i] = fleet.zone[slot, i]


@entry
def draw_requests(slots: Ints, busyness: Floats, demand: Demand, n_zones: int, fleet: Fleet) -> None:
    """The requests after the present minute, drawn anew; at the very start, the present minute's too.

    A Poisson number in each minute: exponential gaps until the minute is full. `busyness` [slots] multiplies the rates.
    """
    n_minutes, limit = fleet.pickups.shape[1], fleet.pickups.shape[2]
    for k in range(slots.shape[0]):
        slot = slots[k]
        begun = fleet.minute[slot] > 0 or fleet.seen[slot] > 0
        for minute in range(fleet.minute[slot] + begun, n_minutes):
            room, count = demand.expected[minute] * busyness[k], 0
            fleet.pickups[slot, minute] = -1
            fleet.dropoffs[slot, minute] = -1
            while True:
                room += math.log(1.0 - uniform(fleet.rng, slot))
                if room < 0.0:
                    break
                pair = np.searchsorted(demand.cumulative, uniform(fleet.rng, slot), side="right")
                if count < limit:
                    fleet.pickups[slot, minute, count] = pair // n_zones
                    fleet.dropoffs[slot, minute, count] = pair % n_zones
                    count += 1
                else:
                    fleet.lost[slot] += 1
        if not begun:
            count_seen(fleet, slot)


@entry
def choose_busyness(slots: Ints, demand: Demand, fleet: Fleet) -> Floats:
    """[slots] how busy each slot's day is: one of the levels, each as likely."""
    chosen = np.empty(slots.shape[0])
    for k in range(slots.shape[0]):
        chosen[k] = demand.busyness[below(fleet.rng, slots[k], demand.busyness.shape[0])]
    return chosen


@entry
def choose_days(slots: Ints, seeds: Seeds, n_days: int, fleet: Fleet) -> Ints:
    """[slots] the recorded day of each seed: seeds below the number of days name theirs, others draw one."""
    days = np.empty(slots.shape[0], np.int64)
    for k in range(slots.shape[0]):
        drawn = below(fleet.rng, slots[k], n_days)
        days[k] = np.int64(seeds[k]) if seeds[k] < np.uint64(n_days) else drawn
    return days


@entry
def play_days(slots: Ints, days: Ints, pickups: Zones, dropoffs: Zones, lost: Ints, fleet: Fleet) -> None:
    """Recorded requests [days, T, M] into the slots."""
    for k in range(slots.shape[0]):
        fleet.pickups[slots[k]] = pickups[days[k]]
        fleet.dropoffs[slots[k]] = dropoffs[days[k]]
        fleet.lost[slots[k]] = lost[days[k]]
        count_seen(fleet, slots[k])


@entry
def first_bad_task(assignment: Ints, n_tasks: int) -> int:
    """Flat index of the first entry outside -1..M-1, or -1."""
    flat = assignment.reshape(-1)
    for k in range(flat.shape[0]):
        if flat[k] < -1 or flat[k] >= n_tasks:
            return k
    return -1


@leaf
def time_to(fleet: Fleet, roads: Roads, slot: int, i: int, pickup: int) -> int:
    """Minutes until vehicle i can be at `pickup`, through everything it still has to do; NEVER if it is full."""
    if fleet.held[slot, i] >= QUEUE:
        return NEVER
    return fleet.free[slot, i] + roads.minutes[fleet.zone[slot, i], pickup]


@leaf
def take(fleet: Fleet, roads: Roads, slot: int, i: int, pickup: int, dropoff: int, cost: float) -> float:
    """Vehicle i takes a request: what it pays, less every metre driven for it."""
    here = fleet.zone[slot, i]
    held = fleet.held[slot, i]
    fleet.free[slot, i] += roads.minutes[here, pickup] + roads.minutes[pickup, dropoff]
    if held == 0:
        fleet.first[slot, i] = fleet.free[slot, i]
        fleet.stops[slot, i, 0] = here
    fleet.stops[slot, i, 1 + 2 * held] = pickup
    fleet.stops[slot, i, 2 + 2 * held] = dropoff
    fleet.held[slot, i] = held + 1
    fleet.zone[slot, i] = dropoff
    fleet.empty[slot] += roads.metres[here, pickup]
    return roads.fares[pickup, dropoff] - cost * (roads.metres[here, pickup] + roads.metres[pickup, dropoff])


@leaf
def drive(fleet: Fleet, slot: int, i: int) -> None:
    """One minute passes for vehicle i."""
    if fleet.held[slot, i] == 0:
        return
    fleet.free[slot, i] -= 1
    fleet.first[slot, i] -= 1
    while fleet.held[slot, i] > 0 and fleet.first[slot, i] <= 0:
        fleet.held[slot, i] -= 1
        fleet.stops[slot, i, 0] = fleet.stops[slot, i, 2]
        if fleet.held[slot, i] > 0:
            fleet.first[slot, i] = fleet.free[slot, i]
            fleet.stops[slot, i, 1] = fleet.stops[slot, i, 3]
            fleet.stops[slot, i, 2] = fleet.stops[slot, i, 4]
    if fleet.held[slot, i] == 0:
        fleet.free[slot, i], fleet.first[slot, i] = 0, 0
        fleet.stops[slot, i] = fleet.zone[slot, i]


@entry
def step_range(
    begin: int,
    end: int,
    assignment: Ints,
    roads: Roads,
    wait: int,
    cost: float,
    fleet: Fleet,
    reward: Floats,
    terminated: Bools,
) -> None:
    """Requests are taken, then a minute passes. Of several vehicles for one request the first to be there takes it.

    A vehicle that is sent where it cannot be in time, or to no request, takes none.
    """
    n_tasks = fleet.pickups.shape[2]
    taker = np.empty(n_tasks, np.int64)
    arrival = np.empty(n_tasks, np.int64)
    for slot in range(begin, end):
        reward[slot] = 0.0
        terminated[slot] = False
        if not fleet.running[slot]:
            continue
        minute = fleet.minute[slot]
        taker[:] = -1
        for i in range(fleet.zone.shape[1]):
            fleet.given[slot, i] = -1
            j = assignment[slot, i]
            if j < 0 or fleet.pickups[slot, minute, j] < 0:
                continue
            there = time_to(fleet, roads, slot, i, fleet.pickups[slot, minute, j])
            if there > wait:
                continue
            best = taker[j]
            if (
                best < 0
                or there < arrival[j]
                or (there == arrival[j] and fleet.number[slot, i] < fleet.number[slot, best])
            ):
                taker[j], arrival[j] = i, there
        for j in range(n_tasks):
            i = taker[j]
            if i >= 0:
                pickup, dropoff = fleet.pickups[slot, minute, j], fleet.dropoffs[slot, minute, j]
                reward[slot] += take(fleet, roads, slot, i, pickup, dropoff, cost)
                fleet.served[slot] += 1
                fleet.given[slot, i] = j
        for i in range(fleet.zone.shape[1]):
            drive(fleet, slot, i)
        fleet.earned[slot] += reward[slot]
        fleet.minute[slot] += 1
        count_seen(fleet, slot)
        if fleet.minute[slot] >= fleet.pickups.shape[1]:
            terminated[slot] = True
            fleet.running[slot] = False


@entry
def send_greedily(roads: Roads, wait: int, cost: float, fleet: Fleet) -> Ints:
    """[B, N] requests in order, each to the nearest vehicle that is free to take it, in time and at a profit."""
    n_envs, n = fleet.zone.shape
    assignment = np.full((n_envs, n), -1, np.int64)
    for slot in range(n_envs):
        minute = fleet.minute[slot]
        if not fleet.running[slot]:
            continue
        for j in range(fleet.pickups.shape[2]):
            pickup, dropoff = fleet.pickups[slot, minute, j], fleet.dropoffs[slot, minute, j]
            if pickup < 0:
                continue
            best, nearest = -1, math.inf
            for i in range(n):
                away = roads.metres[fleet.zone[slot, i], pickup]
                late = time_to(fleet, roads, slot, i, pickup) > wait
                if assignment[slot, i] >= 0 or late or away >= nearest:
                    continue
                if roads.fares[pickup, dropoff] - cost * (away + roads.metres[pickup, dropoff]) > 0:
                    best, nearest = i, away
            if best >= 0:
                assignment[slot, best] = j
    return assignment
