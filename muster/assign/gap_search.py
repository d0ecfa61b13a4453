"""Whole assignments under tight capacities: a search that crosses what the capacities forbid.

Measured by the prices pi of the linear programme, every assignment falls short of its bound by

    sum_i loss[i, task_i] + sum_j pi_j (room_j - load_j),   loss_ij = y_i - (h_ij - mu_ij pi_j) >= 0,

so only pairs of small loss are worth a look. A step is the best move or trade of all under that measure, where a unit
beyond a capacity costs a weight of its own: it grows while the capacity is exceeded and shrinks while none is, so the
search swings from one side of the border to the other (Glover's strategic oscillation; Díaz and Fernández 2001). What
was just left is not gone back to for a few steps.

Being left out is a choice like the others: task m, which has room for all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.assign.instance import CAPACITY_TOLERANCE, Instance
from muster.compile import kernel, leaf, maker
from muster.data import Floats, Ints

# Choices of each agent that are looked at, those of least loss.
CHOICES = 6
# Weight of a unit beyond a capacity at first, as a share of its price, and how it changes with every step.
FIRST_WEIGHT = 0.5
GROWTH, DECAY = 1.05, 0.95
# Steps for which what was left is not gone back to: this many, and up to as many again.
TENURE = 2
# Gains below this share of the bound are rounding errors.
GAIN_TOLERANCE = 1e-11

SWING = np.dtype(
    (
        np.record,
        [("limit", np.float64), ("value", np.float64), ("goal", np.float64), ("steps", np.int64), ("draws", np.uint64)],
    )
)
"""limit: what the prices prove; value: of the best assignment found, with the penalty for agents left out; goal: what
cannot be improved on; steps: taken so far; draws: the state of the random numbers."""


class Chart(NamedTuple):
    """An instance as the prices show it, and where the search stands."""

    loss: Floats
    """[M + 1, N] infinite for pairs that cannot be."""
    use: Floats
    """[M + 1, N]"""
    room: Floats
    """[M + 1] finite, and with the tolerance of capacities."""
    price: Floats
    """[M + 1]"""
    weight: Floats
    """[M + 1] cost of a unit beyond the room, now and at first."""
    first_weight: Floats
    choice: Ints
    """[N, CHOICES] tasks by increasing loss."""
    choices: Ints
    """[N] how many."""
    task: Ints
    """[N]"""
    own_loss: Floats
    """[N] loss and contribution at that task."""
    own_use: Floats
    load: Floats
    """[M + 1]"""
    head: Ints
    """[M + 1] first agent of each task, -1 for none."""
    following: Ints
    """[N] next and previous agent of the same task."""
    before: Ints
    barred: Any
    """[M + 1, N] the step until which the agent may not come back."""
    found: Ints
    """[N] the best assignment found."""
    swing: Any
    """[1] SWING"""


@maker
def make_chart(n: int, m: int) -> Chart:
    """Room for n agents and m tasks."""
    return Chart(
        np.empty((m + 1, n)),
        np.empty((m + 1, n)),
        np.zeros(m + 1),
        np.zeros(m + 1),
        np.zeros(m + 1),
        np.zeros(m + 1),
        np.zeros((n, CHOICES), np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n),
        np.zeros(n),
        np.zeros(m + 1),
        np.zeros(m + 1, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros((m + 1, n), np.int32),
        np.zeros(n, np.int64),
        np.zeros(1, SWING),
    )


@kernel
def draw_chart(chart: Chart, it: Instance, prices: Floats) -> None:
    """Losses under the prices, the choices worth a look, and the bound that the prices prove."""
    n, m, swing = it.facts[0].n, it.facts[0].m, chart.swing[0]
    limit, mean, priced = 0.0, 0.0, 0
    for j in range(m):
        total = 0.0
        for i in range(n):
            total += it.use[i, j]
        chart.room[j] = min(it.room[j], 2.0 * total + 1.0) * (1.0 + CAPACITY_TOLERANCE)
        chart.price[j] = prices[j]
        if prices[j] > 0.0:
            limit += prices[j] * it.room[j]
            mean += prices[j]
            priced += 1
    chart.room[m], chart.price[m] = n + 1.0, 0.0
    for i in range(n):
        best = it.facts[0].idle
        for j in range(m):
            value = it.score[i, j] - it.use[i, j] * prices[j]
            best = max(best, value)
            chart.use[j, i] = it.use[i, j]
            possible = it.use[i, j] <= chart.room[j] and value > -np.inf
            chart.loss[j, i] = value if possible else -np.inf
        chart.use[m, i], chart.loss[m, i] = 0.0, it.facts[0].idle
        for j in range(m + 1):
            chart.loss[j, i] = best - chart.loss[j, i]
        limit += best
        list_choices(chart, i, m)
    # A capacity without a price is exceeded at the others' mean.
    mean = mean / priced if priced > 0 else typical_score(it)
    for j in range(m + 1):
        chart.first_weight[j] = FIRST_WEIGHT * (chart.price[j] if chart.price[j] > 0.0 else mean)
    swing.limit, swing.value, swing.steps, swing.draws = limit, -np.inf, 0, 1
    swing.goal = limit


@kernel
def typical_score(it: Instance) -> float:
    """Mean size of a score per unit of contribution."""
    n, m = it.facts[0].n, it.facts[0].m
    worth, amount = 0.0, 0.0
    for i in range(n):
        for j in range(m):
            if it.score[i, j] > -np.inf:
                worth += abs(it.score[i, j])
                amount += it.use[i, j]
    return worth / amount if amount > 0.0 and worth > 0.0 else 1.0


@kernel
def list_choices(chart: Chart, i: int, m: int) -> None:
    """The choices of agent i of least loss, in order."""
    loss, choice = chart.loss, chart.choice
    count = 0
    for j in range(m + 1):
        value = loss[j, i]
        if value == np.inf or (count == CHOICES and value >= loss[choice[i, count - 1], i]):
            continue
        place = min(count, CHOICES - 1)
        while place > 0 and loss[choice[i, place - 1], i] > value:
            choice[i, place] = choice[i, place - 1]
            place -= 1
        choice[i, place] = j
        count = min(count + 1, CHOICES)
    chart.choices[i] = count


@kernel
def place(chart: Chart, n: int, m: int) -> None:
    """Make loads and lists agree with `task`, and forget weights and what was barred."""
    for j in range(m + 1):
        chart.load[j] = 0.0
        chart.weight[j] = chart.first_weight[j]
        chart.head[j] = -1
    for i in range(n):
        enlist(chart, i, chart.task[i])
        for j in range(m + 1):
            chart.barred[j, i] = 0
    chart.swing[0].steps = 0


@leaf
def enlist(chart: Chart, i: int, j: int) -> None:
    """Agent i joins task j."""
    first = chart.head[j]
    chart.task[i] = j
    chart.load[j] += chart.use[j, i]
    chart.own_loss[i], chart.own_use[i] = chart.loss[j, i], chart.use[j, i]
    chart.following[i], chart.before[i] = first, -1
    if first >= 0:
        chart.before[first] = i
    chart.head[j] = i


@leaf
def dismiss(chart: Chart, i: int) -> None:
    """Agent i leaves its task."""
    j, before, after = chart.task[i], chart.before[i], chart.following[i]
    chart.load[j] -= chart.use[j, i]
    if before >= 0:
        chart.following[before] = after
    else:
        chart.head[j] = after
        if after < 0:
            chart.load[j] = 0.0
    if after >= 0:
        chart.before[after] = before


@leaf
def tension(chart: Chart, j: int, load: float) -> float:
    """What a load on task j costs: room that is paid for and not used, or a load beyond the room."""
    left = chart.room[j] - load
    return chart.price[j] * left if left >= 0.0 else -chart.weight[j] * left


@kernel
def best_step(chart: Chart, n: int) -> tuple[int, int, int]:
    """The best move or trade that is not barred: agent, task, and the agent that comes back from there or -1."""
    task, load, loss, use = chart.task, chart.load, chart.loss, chart.use
    own_loss, own_use = chart.own_loss, chart.own_use
    head, following, barred = chart.head, chart.following, chart.barred
    now = chart.swing[0].steps
    best, mover, target, partner = np.inf, -1, -1, -1
    for i in range(n):
        a = task[i]
        load_a = load[a] - own_use[i]
        tense_a, left_a = tension(chart, a, load[a]), tension(chart, a, load_a)
        for c in range(chart.choices[i]):
            j = chart.choice[i, c]
            if j == a or barred[j, i] > now:
                continue
            change = loss[j, i] - own_loss[i] - tense_a - tension(chart, j, load[j])
            if change >= best:
                continue
            load_j = load[j] + use[j, i]
            value = change + left_a + tension(chart, j, load_j)
            if value < best:
                best, mover, target, partner = value, i, j, -1
            k = head[j]
            while k >= 0:
                base = change + loss[a, k] - own_loss[k]
                if base < best and barred[a, k] <= now:
                    value = base + tension(chart, a, load_a + use[a, k]) + tension(chart, j, load_j - own_use[k])
                    if value < best:
                        best, mover, target, partner = value, i, j, k
                k = following[k]
    return mover, target, partner


@leaf
def draw(swing: Any) -> float:
    """A random number in [0, 1)."""
    swing.draws = swing.draws * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return float(swing.draws >> np.uint64(33)) / 2147483648.0


@kernel
def oscillate(chart: Chart, it: Instance, steps: int, patience: int, stop: Ints) -> bool:
    """Take `steps` steps from where `task` is, fewer if `patience` many find nothing better; whether any was found."""
    n, m, swing = it.facts[0].n, it.facts[0].m, chart.swing[0]
    place(chart, n, m)
    note(chart, it)
    least = GAIN_TOLERANCE * max(abs(swing.limit), abs(swing.goal))
    better, last = False, 0
    while swing.steps < steps and swing.steps - last <= patience and swing.value < swing.goal - least and stop[0] == 0:
        swing.steps += 1
        i, j, k = best_step(chart, n)
        if i < 0:
            continue
        tenure = swing.steps + TENURE + int((TENURE + 1) * draw(swing))
        a = chart.task[i]
        dismiss(chart, i)
        enlist(chart, i, j)
        chart.barred[a, i] = tenure
        if k >= 0:
            dismiss(chart, k)
            enlist(chart, k, a)
            chart.barred[j, k] = tenure
        feasible = True
        for q in range(m):
            if chart.load[q] > chart.room[q]:
                chart.weight[q] *= GROWTH
                feasible = False
        if feasible:
            for q in range(m):
                chart.weight[q] *= DECAY
            if note(chart, it):
                better, last = True, swing.steps
    return better


@kernel
def note(chart: Chart, it: Instance) -> bool:
    """Keep where the search stands if it is feasible and better than all before; whether it is."""
    n, m, swing = it.facts[0].n, it.facts[0].m, chart.swing[0]
    for q in range(m):
        if chart.load[q] > chart.room[q]:
            return False
    value = 0.0
    for i in range(n):
        value += it.score[i, chart.task[i]] if chart.task[i] < m else it.facts[0].idle
    if swing.value > -np.inf and value <= swing.value + GAIN_TOLERANCE * abs(swing.value):
        return False
    swing.value = value
    for i in range(n):
        chart.found[i] = chart.task[i]
    return True
