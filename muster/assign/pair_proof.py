"""Proof for QUAD: branch and bound over agents, with what pair terms can add at most.

At every node each agent that is left is bounded on its own: by its score, what it earns with those that are placed,
what as many others as are left could add (`pair_terms`), less what the capacity would cost. The agent whose choices
differ most is placed next, on its best choice first; of agents that are alike, later ones take no earlier task.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.assign.instance import Instance, fits, weight
from muster.assign.local_search import GAIN_TOLERANCE, total_value
from muster.assign.rounding import Plan, clear, copy_plan, join_gain, rank, reassign
from muster.compile import kernel, leaf, maker
from muster.data import Floats, Ints

STATE = np.dtype((np.record, [("placed", np.float64), ("charge", np.float64), ("bound", np.float64)]))
"""placed: what the agents that are placed earn; charge: what the capacity that is left would cost; bound: of a node."""


class Proof(NamedTuple):
    """The way from the root to the present node, and what bounds it."""

    order: Ints
    """[N] agents; the first ones are placed, in this order."""
    like: Ints
    """[N] the first agent that has the same scores and contributions."""
    choice: Ints
    """[N, M + 1] tasks of the agent at each depth, M for none, the best bound first, ..."""
    bound: Floats
    """[N, M + 1] ... their bounds, ..."""
    choices: Ints
    """[N] ... how many, ..."""
    following: Ints
    """[N] ... and the next to be tried."""
    ties: Floats
    """[M + 1] zeros."""
    most: Floats
    """[M, N] what r others can add to what an agent on a task earns."""
    state: Any
    """[1] STATE"""


@maker
def make_proof(n: int, m: int) -> Proof:
    """Room for n agents and m tasks."""
    return Proof(
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros((n, m + 1), np.int64),
        np.zeros((n, m + 1)),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(m + 1),
        np.zeros((m, n)),
        np.zeros(1, STATE),
    )


@kernel
def find_alike(proof: Proof, it: Instance) -> None:
    """Note for every agent the first that is like it."""
    n, m = it.facts[0].n, it.facts[0].m
    for i in range(n):
        proof.order[i], proof.like[i] = i, i
        for other in range(i):
            if proof.like[other] == other:
                same = True
                for j in range(m):
                    if it.score[i, j] != it.score[other, j] or it.use[i, j] != it.use[other, j]:
                        same = False
                        break
                if same:
                    proof.like[i] = other
                    break


@leaf
def hope(trial: Plan, it: Instance, proof: Proof, prices: Floats, i: int, j: int, others: int) -> float:
    """What agent i adds on task j at most, less what its room costs, with so many others to come; -inf: no room."""
    if not fits(trial.load[j], it.use[i, j], it.room[j]):
        return -np.inf
    gain = join_gain(trial, it, i, j) + weight(it, i, j) * proof.most[j, others]
    return gain - it.use[i, j] * prices[j]


@kernel
def expand(trial: Plan, it: Instance, proof: Proof, prices: Floats, depth: int) -> float:
    """Bound the node at `depth`, choose the agent to be placed next and list its choices; returns the bound."""
    n, m, state = it.facts[0].n, it.facts[0].m, proof.state[0]
    idle, others = it.facts[0].idle, n - depth - 1
    total, widest, chosen, its_top = state.placed + state.charge, -1.0, depth, 0.0
    for a in range(depth, n):
        top, second = idle, -np.inf
        for j in range(m):
            own = hope(trial, it, proof, prices, proof.order[a], j, others)
            if own > top:
                top, second = own, top
            elif own > second:
                second = own
        total += top
        if top - second > widest:
            widest, chosen, its_top = top - second, a, top
    i = proof.order[chosen]
    proof.order[chosen] = proof.order[depth]
    proof.order[depth] = i
    first = 0
    for a in range(depth):
        if proof.like[proof.order[a]] == proof.like[i]:
            last = trial.task[proof.order[a]]
            first = max(first, last if last >= 0 else m)
    count, keys = 0, proof.bound[depth]
    for j in range(first, m + 1):
        keys[j] = idle if j == m else hope(trial, it, proof, prices, i, j, others)
        if keys[j] > -np.inf:
            proof.choice[depth, count] = j
            count += 1
    rank(keys, proof.ties, proof.choice[depth], count)
    for j in range(m + 1):
        keys[j] += total - its_top
    proof.choices[depth], proof.following[depth] = count, 0
    return total


@leaf
def place(trial: Plan, it: Instance, state: Any, prices: Floats, i: int, j: int) -> None:
    """Place agent i, which has no task, on task j, or on none for j = m."""
    if j < it.facts[0].m:
        state.placed += join_gain(trial, it, i, j)
        state.charge -= it.use[i, j] * prices[j]
        reassign(trial, it, i, j)
    else:
        state.placed += it.facts[0].idle


@leaf
def take_back(trial: Plan, it: Instance, state: Any, prices: Floats, i: int) -> None:
    """Undo `place`."""
    j = trial.task[i]
    if j >= 0:
        reassign(trial, it, i, -1)
        state.placed -= join_gain(trial, it, i, j)
        state.charge += it.use[i, j] * prices[j]
    else:
        state.placed -= it.facts[0].idle


@kernel
def prove(
    plan: Plan, trial: Plan, it: Instance, proof: Proof, prices: Floats, nodes: float, scale: float, stop: Ints
) -> float:
    """Search until nothing better than `plan` is left, so many nodes were looked at, or stopped.

    `plan` becomes the best assignment found; returns what no assignment is worth more than (as `total_value` means it).
    `proof.most` is filled in; `prices` [M] are any that are not negative, 0 where there is no limit.
    """
    n, m, state = it.facts[0].n, it.facts[0].m, proof.state[0]
    clear(trial, it)
    find_alike(proof, it)
    best, least = total_value(plan, it), GAIN_TOLERANCE * scale
    state.placed, state.charge = 0.0, 0.0
    for j in range(m):
        if prices[j] > 0.0:
            state.charge += prices[j] * it.room[j]
    looked, depth = 1.0, 0
    expand(trial, it, proof, prices, 0)
    while depth >= 0:
        i, turn = proof.order[depth], proof.following[depth]
        if turn > 0:
            take_back(trial, it, state, prices, i)
        j = proof.choice[depth, turn] if turn < proof.choices[depth] else -1
        if j < 0 or proof.bound[depth, j] <= best + least:
            depth -= 1
            continue
        if stop[0] != 0 or looked >= nodes:
            return open_bound(proof, depth, best)
        proof.following[depth] += 1
        place(trial, it, state, prices, i, j)
        if depth == n - 1:
            value = total_value(trial, it)
            if value > best + least:
                best = value
                copy_plan(plan, trial, n, m)
        else:
            depth += 1
            looked += 1.0
            if expand(trial, it, proof, prices, depth) <= best + least:
                proof.choices[depth] = 0
    return best


@kernel
def open_bound(proof: Proof, depth: int, best: float) -> float:
    """What no assignment is worth more than when the search is cut short: the best of what was not looked at."""
    limit = best
    for d in range(depth + 1):
        turn = proof.following[d]
        if turn < proof.choices[d]:
            limit = max(limit, proof.bound[d, proof.choice[d, turn]])
    return limit
