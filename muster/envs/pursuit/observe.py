"""What a policy sees of a pursuit: distances and relative positions, so that any grid looks alike."""

from __future__ import annotations

import math

import numpy as np

from muster.compile import entry, kernel, leaf, lean_entry
from muster.data import Bools, Floats, Floats32, Ints
from muster.envs.pursuit.kernels import FAR, Rules, World, ahead, apart, count_beside, distance

UNITS_PER_CELL = 1 / 8
"""Distances are seen in units of 8 cells."""
AGENT_FEATURES = ("distance of the nearest free evader", "distance of the nearest other pursuer")
TASK_FEATURES = (
    "caught",
    "distance of the nearest pursuer",
    "distance of the last pursuer needed",
    "pursuers beside it / needed",
    "pursuers after it / needed",
    "cells to the nearer side wall, at most 8",
    "cells to the nearer upper or lower wall, at most 8",
)
PAIR_FEATURES = (
    "dx",
    "dy",
    "|dx|",
    "|dy|",
    "distance",
    "was my evader",
    "change of the distance by the evader's last move, in cells",
    "distance of the nearest other pursuer from the evader",
    "cosine of the angle between me and that pursuer, seen from the evader",
)
TASK_PAIR_FEATURES = ("dx", "dy", "|dx|", "|dy|", "distance")
WIDTHS = (len(AGENT_FEATURES), len(TASK_FEATURES), len(PAIR_FEATURES), len(TASK_PAIR_FEATURES))
RAW_WIDTHS = (2, 3, 0, 0)
"""Coordinates only."""


@lean_entry
def see_coordinates(env: World, rules: Rules, agents: Floats32, tasks: Floats32) -> None:
    """Agents [B, N, 2] = x, y; tasks [B, M, 3] = x, y, caught; from the middle of the grid, in units of 8 cells."""
    middle_row, middle_column = (rules.height - 1) / 2.0, (rules.width - 1) / 2.0
    for b in range(agents.shape[0]):
        for i in range(agents.shape[1]):
            agents[b, i, 0] = (env.pursuers[b, i, 1] - middle_column) * UNITS_PER_CELL
            agents[b, i, 1] = (env.pursuers[b, i, 0] - middle_row) * UNITS_PER_CELL
        for j in range(tasks.shape[1]):
            tasks[b, j, 0] = (env.evaders[b, j, 1] - middle_column) * UNITS_PER_CELL
            tasks[b, j, 1] = (env.evaders[b, j, 0] - middle_row) * UNITS_PER_CELL
            tasks[b, j, 2] = 0.0 if env.free[b, j] else 1.0


@lean_entry
def measure(env: World, rules: Rules, prior: Floats) -> None:
    """[B, N, M] minus the distance from each pursuer to each evader, in units of 8 cells."""
    for b in range(prior.shape[0]):
        for i in range(prior.shape[1]):
            for j in range(prior.shape[2]):
                prior[b, i, j] = -UNITS_PER_CELL * distance(env.pursuers[b, i], env.evaders[b, j], rules)


@entry
def see_relations(
    env: World, rules: Rules, agents: Floats32, tasks: Floats32, pairs: Floats32, task_pairs: Floats32
) -> None:
    """Fill the four blocks, as the lists above name their columns; all zero but "caught" for a caught evader."""
    n, m = agents.shape[1], tasks.shape[1]
    ways = np.empty((m, n), np.int64)
    least = np.empty(max(min(2, n), rules.needed), np.int64)
    for b in range(agents.shape[0]):
        pursuers, evaders, free = env.pursuers[b], env.evaders[b], env.free[b]
        for j in range(m):
            for i in range(n):
                ways[j, i] = distance(pursuers[i], evaders[j], rules)
        for i in range(n):
            see_pursuer(i, pursuers, free, ways, rules, agents[b, i])
        for j in range(m):
            tasks[b, j] = 0.0
            pairs[b, :, j] = 0.0
            if not free[j]:
                tasks[b, j, 0] = 1.0
                continue
            find_least(ways[j], least)
            nearest, second = least[0], least[min(1, n - 1)]
            tasks[b, j, 3] = count_beside(pursuers, evaders[j], rules) / rules.needed
            see_evader(evaders[j], nearest, least[rules.needed - 1], rules, tasks[b, j])
            for i in range(n):
                if env.targets[b, i] == j:
                    tasks[b, j, 4] += 1.0 / rules.needed
                see_apart(pursuers[i], evaders[j], rules, pairs[b, i, j])
                pairs[b, i, j, 5] = 1.0 if env.targets[b, i] == j else 0.0
                before = apart(
                    evaders[j, 0] - env.moves[b, j, 0], evaders[j, 1] - env.moves[b, j, 1], pursuers[i], rules
                )
                pairs[b, i, j, 6] = ways[j, i] - before
                other = second if ways[j, i] == nearest else nearest
                pairs[b, i, j, 7] = other * UNITS_PER_CELL
                pairs[b, i, j, 8] = most_opposite(i, other, pursuers, evaders[j], ways[j], rules)
        for j in range(m):
            for k in range(m):
                task_pairs[b, j, k] = 0.0
                if free[j] and free[k]:
                    see_apart(evaders[j], evaders[k], rules, task_pairs[b, j, k])


@leaf
def see_apart(source: Ints, target: Ints, rules: Rules, row: Floats32) -> None:
    """The first five features of a pair: dx, dy, their absolutes and the distance."""
    dx = ahead(source[1], target[1], rules.width, rules.walls) * UNITS_PER_CELL
    dy = ahead(source[0], target[0], rules.height, rules.walls) * UNITS_PER_CELL
    row[0], row[1], row[2], row[3], row[4] = dx, dy, abs(dx), abs(dy), max(abs(dx), abs(dy))


@kernel
def see_pursuer(i: int, pursuers: Ints, free: Bools, ways: Ints, rules: Rules, row: Floats32) -> None:
    """Distances of the nearest free evader and of the nearest other pursuer; 0 if there is none."""
    evader, other = FAR, FAR
    for j in range(ways.shape[0]):
        if free[j]:
            evader = min(evader, ways[j, i])
    for k in range(pursuers.shape[0]):
        if k != i:
            other = min(other, distance(pursuers[i], pursuers[k], rules))
    row[0] = 0.0 if evader == FAR else evader * UNITS_PER_CELL
    row[1] = 0.0 if other == FAR else other * UNITS_PER_CELL


@leaf
def see_evader(evader: Ints, nearest: int, last: int, rules: Rules, row: Floats32) -> None:
    """How far a free evader's pursuers and walls are; without walls they are far."""
    row[1] = nearest * UNITS_PER_CELL
    row[2] = last * UNITS_PER_CELL
    row[5] = row[6] = 8 * UNITS_PER_CELL
    if rules.walls:
        row[5] = min(evader[1], rules.width - 1 - evader[1], 8) * UNITS_PER_CELL
        row[6] = min(evader[0], rules.height - 1 - evader[0], 8) * UNITS_PER_CELL


@kernel
def most_opposite(i: int, way: int, pursuers: Ints, evader: Ints, ways: Ints, rules: Rules) -> float:
    """The least cosine between pursuer i and another at distance `way`, seen from the evader: -1 is a pincer.

    1 if there is nobody else, or where a direction is none.
    """
    y = ahead(evader[0], pursuers[i, 0], rules.height, rules.walls)
    x = ahead(evader[1], pursuers[i, 1], rules.width, rules.walls)
    least = 1.0
    for k in range(pursuers.shape[0]):
        if k != i and ways[k] == way:
            v = ahead(evader[0], pursuers[k, 0], rules.height, rules.walls)
            u = ahead(evader[1], pursuers[k, 1], rules.width, rules.walls)
            lengths = (x * x + y * y) * (u * u + v * v)
            if lengths > 0:
                least = min(least, (x * u + y * v) / math.sqrt(lengths))
    return least


@kernel
def find_least(values: Ints, least: Ints) -> None:
    """The least of `values` in rising order, as many as `least` has room for."""
    filled = 0
    for k in range(values.shape[0]):
        at = min(filled, least.shape[0] - 1)
        if filled == least.shape[0] and values[k] >= least[at]:
            continue
        while at > 0 and least[at - 1] > values[k]:
            least[at] = least[at - 1]
            at -= 1
        least[at] = values[k]
        filled = min(filled + 1, least.shape[0])
