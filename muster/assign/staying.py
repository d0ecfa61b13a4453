"""Plans that stay: an answer that is never worth less than what is still possible of the plan before it."""

from __future__ import annotations

import numpy as np

from muster.assign.batch import Output, Settings
from muster.assign.certificate import reason_of
from muster.assign.frank_wolfe import scale_of
from muster.assign.given import Given
from muster.assign.instance import Instance, fill_instance, fits, lay_instance
from muster.assign.local_search import Search, improve, make_search, total_value
from muster.assign.outcomes import ASSIGNED, INVALID, LOCAL_OPTIMUM, OPTIMAL, ROUNDED, TIME_LIMIT
from muster.assign.rounding import Plan, clear, make_plan, reassign, value_of
from muster.compile import entry, kernel
from muster.data import Floats, Ints

# Plans whose values differ by no more than this share count as worth the same; the one with fewer changes is taken.
TIE = 1e-12


@kernel
def load_plan(plan: Plan, it: Instance, tasks: Ints, place: Ints) -> None:
    """As much of an assignment, by the numbers of the input, as is still possible; `place` is each task's number."""
    clear(plan, it)
    for i in range(it.facts[0].n):
        task = tasks[it.agents[i]]
        j = place[task] if task >= 0 else -1
        if j >= 0 and it.score[i, j] > -np.inf and fits(plan.load[j], it.use[i, j], it.room[j]):
            reassign(plan, it, i, j)


@kernel
def standing(out: Output, b: int, it: Instance, previous: Ints) -> tuple[float, int]:
    """The value of the answer with the penalty for agents left out, and how many have not the task they had."""
    value, different = out.objective[b], 0
    for i in range(it.facts[0].n):
        agent = it.agents[i]
        if out.assignment[b, agent] < 0:
            value += it.facts[0].idle
        different += 1 if previous[agent] >= 0 and out.assignment[b, agent] != previous[agent] else 0
    return value, different


@kernel
def write_plan(out: Output, b: int, plan: Plan, it: Instance, certify: bool) -> None:
    """Replace the answer of row b; what is proven about its instance stays."""
    out.objective[b] = value_of(plan, it)
    out.bound[b] = max(out.bound[b], out.objective[b])
    for i in range(it.facts[0].n):
        agent = it.agents[i]
        out.assignment[b, agent] = it.tasks[plan.task[i]] if plan.task[i] >= 0 else -1
        if plan.task[i] >= 0:
            out.reason[b, agent] = ASSIGNED
        elif certify:
            out.reason[b, agent] = reason_of(plan, it, i)
    for j in range(it.facts[0].m):
        out.loads[b, it.tasks[j]] = plan.load[j]


@kernel
def stay(
    plan: Plan, it: Instance, search: Search, out: Output, b: int, previous: Ints, settings: Settings, stop: Ints
) -> None:
    """Take the plan before, improved step by step if the effort allows, where it is worth more than the answer.

    Or worth the same with fewer changes. `plan` holds as much of it as is possible.
    """
    if settings.effort > 0:
        improve(plan, it, search, True, scale_of(it), stop)
    found, different = standing(out, b, it, previous)
    value, moved = total_value(plan, it), 0
    for i in range(it.facts[0].n):
        before = previous[it.agents[i]]
        now = it.tasks[plan.task[i]] if plan.task[i] >= 0 else -1
        moved += 1 if before >= 0 and now != before else 0
    slack = TIE * max(abs(found), abs(value))
    if value > found + slack or (value >= found - slack and moved < different):
        write_plan(out, b, plan, it, settings.certify)
        if out.status[b] == ROUNDED or (value > found + slack and out.status[b] not in (OPTIMAL, TIME_LIMIT)):
            out.status[b] = LOCAL_OPTIMUM


@entry
def keep_previous(
    begin: int,
    end: int,
    given: Given,
    previous: Ints,
    settings: Settings,
    out: Output,
    space: Floats,
    stop: Ints,
) -> None:
    """Let no answer of instances begin..end-1 be worth less than what is still possible of the plan before it."""
    n, m = given.scores.shape[1], given.scores.shape[2]
    it, plan, search = lay_instance(space, True), make_plan(n, m), make_search(n, m)
    place = np.full(m, -1, np.int64)
    for b in range(begin, end):
        if out.status[b] == INVALID or not fill_instance(it, given, b, settings.assign_all):
            continue
        place[:] = -1
        for j in range(it.facts[0].m):
            place[it.tasks[j]] = j
        load_plan(plan, it, previous[b], place)
        stay(plan, it, search, out, b, previous[b], settings, stop)
