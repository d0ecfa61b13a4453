"""PLAN over a batch: every instance gets routes of its own, begun from those of the last decision if there are any."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.assign.amax import is_sound
from muster.assign.batch import Output, Settings
from muster.assign.given import Given
from muster.assign.instance import LARGEST
from muster.assign.outcomes import ASSIGNED, BETTER_LEFT_OUT, INVALID, ITERATION_LIMIT, OPTIMAL, TIME_LIMIT
from muster.assign.route_positions import make_lists
from muster.assign.route_search import construct, copy_routes, improve, make_ruin, met
from muster.assign.routes import (
    ABSENT,
    TOTAL,
    Routes,
    Trip,
    count_visits,
    insert,
    lower_bound,
    make_routes,
    may_visit,
    measure,
    visits_already,
    worth_of,
)
from muster.compile import entry, kernel, maker
from muster.data import Floats, Ints

# Iterations of each effort; the paper has no routes.
ITERATIONS = (0, 300, 20_000)


class Cast(NamedTuple):
    """Who takes part in an instance, by the numbers of the input."""

    agents: Ints
    tasks: Ints


@entry
def solve_batch(begin: int, end: int, given: Given, settings: Settings, out: Output, space: Floats, stop: Ints) -> None:
    """Plan instances begin..end-1; see `muster.assign.batch`."""
    for b in range(begin, end):
        if not is_sound(given, b) or not costs_are_sound(given, b):
            out.status[b] = INVALID
            continue
        cast = Cast(np.flatnonzero(given.agent_alive[b]), np.flatnonzero(given.task_alive[b]))
        out.duality_gap[b], out.frank_wolfe_gap[b] = np.nan, np.nan
        out.status[b] = OPTIMAL
        for agent in cast.agents:
            out.reason[b, agent] = BETTER_LEFT_OUT
        if len(cast.agents) > 0 and len(cast.tasks) > 0:
            plan_instance(given, b, cast, settings, out, stop)


@maker
def plan_instance(given: Given, b: int, cast: Cast, settings: Settings, out: Output, stop: Ints) -> None:
    """Routes of one instance, written to row b."""
    n, m = len(cast.agents), len(cast.tasks)
    trip = make_trip(given, b, cast, settings.power)
    visits = len(trip.task)
    reach, home, state = np.empty(m), np.empty(m), np.empty(m, np.int64)
    bound = lower_bound(trip, n, reach, home, state)
    out.bound[b] = -bound
    if visits == 0:
        return
    scale = normalise(trip, bound)
    routes, best = make_routes(visits, n, m), make_routes(visits, n, m)
    lists, ruin = make_lists(trip, n), make_ruin(visits, n)
    rng = np.ones(1, np.uint64)
    if given.routes.shape[0] > 0:
        resume(trip, routes, given.routes[b], cast.agents, cast.tasks, reach)
    construct(trip, routes, lists, ruin, rng)
    measure(trip, routes)
    # Until somebody stops it, in ever longer rounds, each from the best so far: one long round would never cool down.
    for turn in range(settings.rounds + 1):
        if turn > 0:
            copy_routes(routes, best)
        iterations = settings.steps << min(turn, 20)
        if improve(trip, routes, best, lists, ruin, rng, iterations, bound / scale, stop) < iterations:
            break
    measure(trip, best)
    if not met(best, trip.power, bound / scale, worth_of(best, trip.power)):
        out.status[b] = TIME_LIMIT if stop[0] != 0 else ITERATION_LIMIT
    write(trip, best, cast, scale, given, b, out)


@kernel
def costs_are_sound(given: Given, b: int) -> bool:
    """Whether the scores from task to task, and from the last task, can be worked with."""
    sound = True
    for j in range(given.task_alive.shape[1]):
        if given.task_alive[b, j]:
            for k in range(given.task_alive.shape[1]):
                if given.task_alive[b, k] and given.task_scores.shape[0] > 0:
                    sound &= abs(given.task_scores[b, j, k]) <= LARGEST
            for i in range(given.agent_alive.shape[1]):
                if given.agent_alive[b, i] and given.end_scores.shape[0] > 0:
                    sound &= abs(given.end_scores[b, i, j]) <= LARGEST
    return sound


@maker
def make_trip(given: Given, b: int, cast: Cast, power: int) -> Trip:
    """The instance as costs, living agents and tasks only, with a visit for every agent that a task takes."""
    n, m = len(cast.agents), len(cast.tasks)
    first, follow, may = np.empty((n, m)), np.zeros((m, m)), np.ones((n, m), np.bool_)
    last = np.empty((n, m)) if given.end_scores.shape[0] > 0 else np.empty((0, 0))
    use = np.empty((n, m)) if given.contributions.shape[0] > 0 else np.empty((0, 0))
    room = np.empty(m)
    for j in range(m):
        task = cast.tasks[j]
        room[j] = given.capacities[b, task]
        for k in range(m):
            if given.task_scores.shape[0] > 0:
                follow[j, k] = -given.task_scores[b, task, cast.tasks[k]]
        for i in range(n):
            agent = cast.agents[i]
            score = given.scores[b, agent, task]
            may[i, j] = score > -np.inf and (given.allowed.shape[0] == 0 or given.allowed[b, agent, task])
            first[i, j] = -score if may[i, j] else np.inf
            if last.shape[0] > 0:
                last[i, j] = -given.end_scores[b, agent, task]
            if use.shape[0] > 0:
                use[i, j] = given.contributions[b, agent, task]
    most = np.empty(m, np.int64)
    task_of = np.empty(count_visits(use, room, may, n, most), np.int64)
    v = 0
    for j in range(m):
        for _ in range(most[j]):
            task_of[v] = j
            v += 1
    return Trip(first, follow, last, may, use, room, task_of, power)


@kernel
def normalise(trip: Trip, bound: float) -> float:
    """Divide the costs by what a route costs about, so that powers stay in range; returns the divisor."""
    scale = bound
    if not scale > 0.0:
        scale = 0.0
        for i in range(trip.first.shape[0]):
            for j in range(trip.first.shape[1]):
                if trip.allowed[i, j]:
                    scale = max(scale, abs(trip.first[i, j]))
    if not scale > 0.0:
        return 1.0
    for i in range(trip.first.shape[0]):
        for j in range(trip.first.shape[1]):
            trip.first[i, j] /= scale
            if trip.last.shape[0]:
                trip.last[i, j] /= scale
    for j in range(trip.follow.shape[0]):
        for k in range(trip.follow.shape[1]):
            trip.follow[j, k] /= scale
    return scale


@kernel
def resume(trip: Trip, routes: Routes, before: Ints, agents: Ints, tasks: Ints, position: Floats) -> None:
    """Take over the routes of the last decision, without the tasks that are gone; `position` [M] is for scratch."""
    visits, n = trip.task.shape[0], agents.shape[0]
    place = 0
    for j in range(tasks.shape[0]):
        # The first visit of each task; later ones follow it.
        position[j] = place
        while place < visits and trip.task[place] == j:
            place += 1
    for i in range(n):
        a = visits + i
        for k in range(before.shape[1]):
            wanted = before[agents[i], k]
            if wanted < 0:
                break
            j = find(tasks, wanted)
            if j < 0 or not may_visit(trip, routes, i, j) or visits_already(trip, routes, i, j):
                continue
            v = int(position[j])
            while v < visits and trip.task[v] == j and routes.owner[v] != ABSENT:
                v += 1
            if v < visits and trip.task[v] == j:
                insert(trip, routes, v, a)
                a = v


@kernel
def find(sorted_values: Ints, value: int) -> int:
    """Where a value is, -1 if nowhere."""
    low, high = 0, sorted_values.shape[0]
    while low < high:
        middle = (low + high) // 2
        if sorted_values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < sorted_values.shape[0] and sorted_values[low] == value else -1


@kernel
def write(trip: Trip, routes: Routes, cast: Cast, scale: float, given: Given, b: int, out: Output) -> None:
    """The plan in the numbers of the input: routes, first stops, and what it is worth."""
    visits = trip.task.shape[0]
    total, longest = 0.0, 0.0
    for i in range(cast.agents.shape[0]):
        agent = cast.agents[i]
        total += routes.cost[i] * scale
        longest = max(longest, routes.cost[i] * scale)
        a, k = routes.next[visits + i], 0
        while a < visits:
            task = cast.tasks[trip.task[a]]
            out.routes[b, agent, k] = task
            if k == 0:
                out.assignment[b, agent] = task
                out.reason[b, agent] = ASSIGNED
                out.loads[b, task] += given.contributions[b, agent, task] if given.contributions.shape[0] > 0 else 1.0
            k += 1
            a = routes.next[a]
    out.objective[b] = -total if trip.power == TOTAL else -longest
    out.relaxed[b] = out.objective[b]
