"""Whole assignments for the scores alone, from where rounding the linear programme left off: LP's `fast` and `best`.

FAST is one swing of `gap_search`. BEST goes on with swings from crosses of the best assignments found: where two of
them agree, so does the next start; where they differ, it takes from either (as in Yagiura, Ibaraki and Glover's path
relinking, 2006, without the path). Of tiny instances all assignments are looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.assign.batch import Output, Settings
from muster.assign.bettering import read_answer, write_better
from muster.assign.certificate import PROVEN
from muster.assign.gap_search import CHOICES, GAIN_TOLERANCE, Chart, draw, draw_chart, make_chart, oscillate
from muster.assign.given import Given
from muster.assign.grain import grain_of, whole_limit
from muster.assign.instance import Instance, fill_instance, fits, lay_instance
from muster.assign.rounding import make_plan
from muster.compile import entry, kernel, maker
from muster.data import Floats, Ints

# Steps of the first swing, those without success after which it ends, and pairs of agents that it looks at.
STEPS, PATIENCE, PAIRS = 500, 300, 3e6
# Swings of each effort after the first, their steps, and how many assignments are kept.
SWINGS, SWING_STEPS, KEPT = (0, 0, 12, 12), 125, 8
# Instances with no more assignments than this are proven too, where that is asked for.
PROVABLE = 4096.0
# Each agent's chance of another choice where a start has nothing to learn from yet.
SCATTER = 0.15


class Kept(NamedTuple):
    """The best assignments found so far."""

    task: Ints
    """[KEPT, N]"""
    value: Floats
    """[KEPT]"""


@maker
def make_kept(n: int) -> Kept:
    """Room for n agents."""
    return Kept(np.zeros((KEPT, n), np.int64), np.zeros(KEPT))


@kernel
def keep(kept: Kept, chart: Chart, n: int, count: int, value: float) -> int:
    """Enter the best assignment of a swing unless it is known or worse than all; how many are kept now."""
    worst = 0
    for p in range(count):
        if kept.value[p] == value:
            same = True
            for i in range(n):
                same &= kept.task[p, i] == chart.found[i]
            if same:
                return count
        if kept.value[p] < kept.value[worst]:
            worst = p
    if count < KEPT:
        worst, count = count, count + 1
    elif value <= kept.value[worst]:
        return count
    kept.value[worst] = value
    for i in range(n):
        kept.task[worst, i] = chart.found[i]
    return count


@kernel
def cross(kept: Kept, chart: Chart, n: int, count: int) -> None:
    """The next start: between two of those that are kept, or while there are few, near one of them."""
    swing = chart.swing[0]
    first = min(count - 1, int(count * draw(swing)))
    second = (first + 1 + min(count - 2, int((count - 1) * draw(swing)))) % count if count > 1 else first
    for i in range(n):
        chart.task[i] = kept.task[first if draw(swing) < 0.5 else second, i]
        if count < KEPT and draw(swing) < SCATTER:
            chart.task[i] = chart.choice[i, int(min(3, chart.choices[i]) * draw(swing))]


@kernel
def swing_on(chart: Chart, it: Instance, kept: Kept, swings: int, best: Ints, stop: Ints) -> None:
    """Swing from one cross to the next; leaves the best assignment of all in `chart.found`."""
    n, swing = it.facts[0].n, chart.swing[0]
    value = swing.value
    for i in range(n):
        best[i] = chart.found[i]
    count = keep(kept, chart, n, 0, value)
    turn = 0
    while turn < swings and stop[0] == 0 and value < swing.goal:
        turn += 1
        cross(kept, chart, n, count)
        swing.value = -np.inf
        oscillate(chart, it, SWING_STEPS, SWING_STEPS, stop)
        if swing.value == -np.inf:
            continue
        count = keep(kept, chart, n, count, swing.value)
        if swing.value > value:
            value = swing.value
            for i in range(n):
                best[i] = chart.found[i]
    swing.value = value
    for i in range(n):
        chart.found[i] = best[i]


@kernel
def look_at_all(
    chart: Chart, it: Instance, tried: Ints, before: Floats, worth: Floats, hope: Floats, load: Floats
) -> None:
    """Look at all assignments, agent by agent, that may be better than `chart.found`; leaves the best of all there.

    The rest is scratch: tried, before and worth [N], hope [N + 1], load [M].
    """
    n, m, idle, swing = it.facts[0].n, it.facts[0].m, it.facts[0].idle, chart.swing[0]
    hope[n] = 0.0
    for i in range(n - 1, -1, -1):
        most = idle
        for j in range(m):
            most = max(most, it.score[i, j])
        hope[i] = hope[i + 1] + most
    load[:m] = 0.0
    i, tried[0], worth[0] = 0, -1, 0.0
    while i >= 0:
        if tried[i] >= 0 and tried[i] < m:
            # Not a difference: no rounding error stays behind.
            load[tried[i]] = before[i]
        tried[i] += 1
        j = tried[i]
        if j > m:
            i -= 1
            continue
        value = worth[i] + (it.score[i, j] if j < m else idle)
        if j < m:
            before[i] = load[j]
        if value + hope[i + 1] <= swing.value + GAIN_TOLERANCE * abs(swing.value):
            continue
        if j < m and not fits(load[j], it.use[i, j], it.room[j]):
            continue
        if i == n - 1:
            swing.value = value
            for k in range(n):
                chart.found[k] = tried[k]
            continue
        if j < m:
            load[j] += it.use[i, j]
        i += 1
        tried[i], worth[i] = -1, value


@kernel
def first_steps(it: Instance) -> int:
    """Steps of the first swing."""
    n, m = it.facts[0].n, it.facts[0].m
    return min(STEPS, int(PAIRS / (n * min(m, CHOICES) * (1.0 + n / m)))) if n * m > 0 else 0


@entry
def improve_batch(
    rows: Ints, begin: int, end: int, given: Given, settings: Settings, out: Output, space: Floats, stop: Ints
) -> None:
    """Improve the answers in rows[begin:end], which LP has solved, proven and rounded."""
    n, m = given.scores.shape[1], given.scores.shape[2]
    it = lay_instance(space, False)
    chart, kept, plan = make_chart(n, m), make_kept(n), make_plan(n, m)
    place_of, best, prices, proof = np.zeros(m, np.int64), np.zeros(n, np.int64), np.zeros(m), np.zeros(1, PROVEN)
    keys, ties, order, hope = np.zeros(n), np.zeros(n), np.zeros(n, np.int64), np.zeros(n + 1)
    for row in range(begin, end):
        b = rows[row]
        fill_instance(it, given, b, settings.assign_all)
        for j in range(it.facts[0].m):
            prices[j] = out.prices[b, it.tasks[j]]
        draw_chart(chart, it, prices)
        swing = chart.swing[0]
        swing.value = read_answer(chart.found, it, out, b, place_of)
        for i in range(it.facts[0].n):
            # Who has no task begins at its choice of least loss, room or not.
            chart.task[i] = chart.found[i] if chart.found[i] < it.facts[0].m else chart.choice[i, 0]
        swing.goal = whole_limit(it, swing.limit, grain_of(it))
        oscillate(chart, it, first_steps(it), PATIENCE, stop)
        if settings.rounds > 0:
            swing_on(chart, it, kept, settings.rounds, best, stop)
        limit, count = swing.goal, it.facts[0].n
        if settings.asked and count > 0 and (it.facts[0].m + 1.0) ** count <= PROVABLE:
            look_at_all(chart, it, best, keys, ties, hope, plan.load)
            limit = swing.value
        write_better(chart.found, limit, it, settings, out, b, plan, prices, proof[0], order, keys, ties, stop)
