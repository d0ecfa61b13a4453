"""What every procedure shares that works through a batch: its settings, and the rows of its answers.

A procedure is an entry `solve_batch(begin, end, given, settings, out, space, stop)` in a module of its own, which
solves instances begin..end-1 one after the other, each on its own and without the interpreter's lock; `space`
[WORKSPACES, N, M] is scratch. Each is compiled by itself, so that nobody waits for procedures that are not used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from muster.assign.certificate import reason_of
from muster.assign.instance import Instance
from muster.assign.outcomes import ASSIGNED
from muster.assign.rounding import Plan, value_of
from muster.compile import leaf
from muster.data import Floats, Ints

# Arrays of size [N, M] that a thread works in. numpy allocates them, on huge pages where the system has them: touching
# so much fresh memory page by page would take longer than solving.
WORKSPACES = 5


PAPER, FAST, BEST = 0, 1, 2
"""Efforts."""


class Settings(NamedTuple):
    """How to solve."""

    effort: int
    steps: int
    rule: int
    assign_all: bool
    rounds: int
    certify: bool
    asked: bool
    """Whether what is proven is to be told: LP leaves it out otherwise where its rounding lost nothing."""
    proving: bool
    """Go on until the answer is proven (QUAD)."""
    power: int
    """What routes' costs are raised to (PLAN)."""


class Output(NamedTuple):
    """Where the kernels write the fields of a Solution, row by row."""

    assignment: Ints
    objective: Floats
    relaxed: Floats
    bound: Floats
    status: Ints
    duality_gap: Floats
    frank_wolfe_gap: Floats
    loads: Floats
    prices: Floats
    reason: Ints
    routes: Ints
    """[B, N, M] the tasks of each agent in order, then -1 (PLAN); no rows otherwise."""


@leaf
def write_answer(out: Output, b: int, plan: Plan, it: Instance, prices: Floats, proven: Any) -> None:
    """Write the plan of an instance and what is proven about it to row b, under the numbers of the input."""
    out.objective[b] = value_of(plan, it)
    out.relaxed[b], out.bound[b] = proven.relaxed, proven.bound
    out.duality_gap[b], out.frank_wolfe_gap[b] = proven.duality_gap, proven.frank_wolfe_gap
    for i in range(it.facts[0].n):
        agent = it.agents[i]
        if plan.task[i] >= 0:
            out.assignment[b, agent] = it.tasks[plan.task[i]]
            out.reason[b, agent] = ASSIGNED
        else:
            out.reason[b, agent] = reason_of(plan, it, i)
    for j in range(it.facts[0].m):
        out.loads[b, it.tasks[j]] = plan.load[j]
        out.prices[b, it.tasks[j]] = prices[j]
